// SPDX-License-Identifier: Apache-2.0
// What the palette offers and which keys do it. Pages add theirs while they are shown.
import { signal } from '@preact/signals'
import { useEffect } from 'preact/hooks'

export interface Command {
  id: string
  label: string
  group: string
  keys?: string // "g s": one key after another; "n": one key
  run: () => void
}

export const commands = signal<Command[]>([])
export const paletteOpen = signal(false)
export const helpOpen = signal(false)

export function addCommands(list: Command[]): () => void {
  commands.value = [...commands.value, ...list]
  return () => (commands.value = commands.value.filter((c) => !list.includes(c)))
}

export function useCommands(list: Command[], deps: unknown[]) {
  useEffect(() => addCommands(list), deps)
}

let before = ''
let beforeAt = 0

function typing(target: EventTarget | null): boolean {
  const e = (target as HTMLElement | null)?.closest?.(
    'input, textarea, select, [contenteditable], .xterm, .cm-host, dialog',
  )
  return e !== null && e !== undefined
}

export function onKey(e: KeyboardEvent) {
  if ((e.ctrlKey || e.metaKey) && e.key.toLowerCase() === 'k') {
    e.preventDefault()
    paletteOpen.value = !paletteOpen.value
    return
  }
  if (e.ctrlKey || e.metaKey || e.altKey || typing(e.target) || paletteOpen.value) return
  if (e.key === '?') {
    helpOpen.value = true
    return
  }
  const two = performance.now() - beforeAt < 900 ? `${before} ${e.key}` : ''
  const hit = commands.value.find((c) => c.keys !== undefined && (c.keys === two || c.keys === e.key))
  before = e.key
  beforeAt = performance.now()
  if (!hit) return
  e.preventDefault()
  hit.run()
}
