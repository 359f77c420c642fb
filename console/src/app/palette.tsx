// SPDX-License-Identifier: Apache-2.0
import { useEffect, useRef, useState } from 'preact/hooks'
import { fit } from '../lib/fuzzy'
import { Dialog } from '../ui/parts'
import { templateName, type Sandbox, type Template } from '../lib/types'
import { get } from './api'
import { commands, helpOpen, paletteOpen, type Command } from './commands'
import { go } from './router'

export function Palette() {
  return (
    <>
      {paletteOpen.value && <Open />}
      {helpOpen.value && <Help />}
    </>
  )
}

/** What there is to go to, asked for when the palette opens. */
function useThings(): Command[] {
  const [things, setThings] = useState<Command[]>([])
  useEffect(() => {
    const stop = new AbortController()
    const options = { signal: stop.signal }
    const boxes = get<Sandbox[]>('/v2/sandboxes?state=running,paused&limit=100', options).then((list) =>
      list.map((b) => ({
        id: `box ${b.sandboxID}`,
        group: 'Sandbox',
        label: [b.sandboxID, b.alias, ...Object.values(b.metadata ?? {})].filter(Boolean).join(' · '),
        run: () => go(`/sandboxes/${b.sandboxID}`),
      })),
    )
    const templates = get<Template[]>('/templates', options).then((list) =>
      list.map((t) => ({
        id: `template ${t.templateID}`,
        group: 'Template',
        label: templateName(t),
        run: () => go(`/templates/${t.templateID}`),
      })),
    )
    void Promise.allSettled([boxes, templates]).then((all) => {
      if (!stop.signal.aborted) setThings(all.flatMap((r) => (r.status === 'fulfilled' ? r.value : [])))
    })
    return () => stop.abort()
  }, [])
  return things
}

function Open() {
  const things = useThings()
  const [text, setText] = useState('')
  const [at, setAt] = useState(0)
  const ref = useRef<HTMLDialogElement>(null)
  const close = () => (paletteOpen.value = false)
  const hits = [...commands.value, ...things]
    .map((c) => ({ c, score: fit(text, `${c.group} ${c.label}`) }))
    .filter((h) => h.score > 0)
    .sort((a, b) => (text ? b.score - a.score : 0))
    .slice(0, 60)
  useEffect(() => {
    if (!ref.current?.open) ref.current?.showModal()
  }, [])
  useEffect(
    () => ref.current?.querySelector('[aria-selected=true]')?.scrollIntoView({ block: 'nearest' }),
    [at, text],
  )
  const key = (e: KeyboardEvent) => {
    if (e.key === 'ArrowDown') setAt((at + 1) % Math.max(hits.length, 1))
    else if (e.key === 'ArrowUp') setAt((at - 1 + hits.length) % Math.max(hits.length, 1))
    else if (e.key === 'Enter') {
      close()
      hits[at]?.c.run()
    } else return
    e.preventDefault()
  }
  return (
    <dialog
      ref={ref}
      class="palette"
      aria-label="Commands"
      onClose={close}
      onMouseDown={(e) => e.target === ref.current && close()}
    >
      <div class="sheet" onKeyDown={key}>
        <input
          type="text"
          placeholder="A page, a sandbox, a template, or what to do…"
          aria-label="Search commands"
          role="combobox"
          aria-expanded="true"
          aria-controls="palette-list"
          aria-activedescendant={hits[at] ? `cmd-${at}` : undefined}
          value={text}
          onInput={(e) => {
            setText(e.currentTarget.value)
            setAt(0)
          }}
        />
        <ul id="palette-list" role="listbox" aria-label="Commands">
          {hits.map(({ c }, i) => (
            <li
              key={c.id}
              id={`cmd-${i}`}
              role="option"
              aria-selected={i === at}
              onMouseMove={() => i !== at && setAt(i)}
              onClick={() => {
                close()
                c.run()
              }}
            >
              <small>{c.group}</small>
              <span>{c.label}</span>
              {c.keys && <kbd>{c.keys}</kbd>}
            </li>
          ))}
        </ul>
        {hits.length === 0 && <p class="none">Nothing fits</p>}
      </div>
    </dialog>
  )
}

function Help() {
  const rows = commands.value.filter((c) => c.keys)
  return (
    <Dialog title="Keys" onClose={() => (helpOpen.value = false)}>
      <div class="body">
        <table class="keys">
          <tbody>
            <tr>
              <td>
                <kbd>Ctrl K</kbd>
              </td>
              <td>All commands</td>
            </tr>
            {rows.map((c) => (
              <tr key={c.id}>
                <td>
                  <kbd>{c.keys}</kbd>
                </td>
                <td>
                  {c.group}: {c.label}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Dialog>
  )
}
