// SPDX-License-Identifier: Apache-2.0
import { signal } from '@preact/signals'

interface Toast {
  id: number
  text: string
  kind: 'good' | 'bad'
}

const toasts = signal<Toast[]>([])
let next = 1

export function toast(text: string, kind: 'good' | 'bad' = 'good') {
  const id = next++
  toasts.value = [...toasts.value.slice(-3), { id, text, kind }]
  setTimeout(() => (toasts.value = toasts.value.filter((t) => t.id !== id)), kind === 'bad' ? 8000 : 3500)
}

/** Runs something and says how it ended. */
export async function doing<T>(what: Promise<T>, done?: string): Promise<T | undefined> {
  try {
    const v = await what
    if (done) toast(done)
    return v
  } catch (e) {
    toast((e as Error).message, 'bad')
    return undefined
  }
}

export function Toasts() {
  return (
    <div class="toasts" aria-live="polite">
      {toasts.value.map((t) => (
        <div key={t.id} class={t.kind} role={t.kind === 'bad' ? 'alert' : 'status'}>
          {t.text}
        </div>
      ))}
    </div>
  )
}
