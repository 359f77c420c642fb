// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks'

const PAGE = 100

function Leaf({ value }: { value: unknown }) {
  if (typeof value === 'string') return <span class="j-str">{JSON.stringify(value)}</span>
  if (value === null) return <span class="j-null">null</span>
  return <span class="j-num">{String(value)}</span>
}

function Branch({ name, value, depth }: { name?: string; value: object; depth: number }) {
  const [open, setOpen] = useState(depth < 2)
  const [most, setMost] = useState(PAGE)
  const isList = Array.isArray(value)
  const rows = Object.entries(value)
  const [a, b] = isList ? '[]' : '{}'
  return (
    <div class="j-node">
      <button type="button" class="j-open" aria-expanded={open} onClick={() => setOpen(!open)}>
        {name !== undefined && <span class="j-key">{name}: </span>}
        {a}
        {!open && ' … '}
        {!open && b} <small>{rows.length}</small>
      </button>
      {open && (
        <div class="j-kids">
          {rows.slice(0, most).map(([k, v]) => (
            <Node key={k} name={k} value={v} depth={depth + 1} />
          ))}
          {rows.length > most && (
            <button type="button" class="textlink" onClick={() => setMost(most + 10 * PAGE)}>
              {rows.length - most} more
            </button>
          )}
        </div>
      )}
      {open && <span>{b}</span>}
    </div>
  )
}

function Node({ name, value, depth }: { name?: string; value: unknown; depth: number }) {
  if (typeof value === 'object' && value !== null) return <Branch name={name} value={value} depth={depth} />
  return (
    <div class="j-leaf">
      {name !== undefined && <span class="j-key">{name}: </span>}
      <Leaf value={value} />
    </div>
  )
}

export function JsonTree({ value }: { value: unknown }) {
  return (
    <div class="json">
      <Node value={value} depth={0} />
    </div>
  )
}
