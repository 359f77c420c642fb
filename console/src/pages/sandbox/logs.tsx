// SPDX-License-Identifier: Apache-2.0
// What the sandbox's processes printed: followed, searched, by level.
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, get } from '../../app/api'
import { ansi } from '../../lib/ansi'
import { clock } from '../../lib/format'
import type { LogEntry } from '../../lib/types'
import { Check, Failed, Loading } from '../../ui/parts'
import type { TabProps } from './page'

const KEPT = 3000
const PAGE = 1000

/** Joins what was read again: the cursor counts milliseconds, several lines may share one. */
export function join(have: LogEntry[], more: LogEntry[]): LogEntry[] {
  const lastMs = have.length ? Math.floor(Date.parse(have[have.length - 1]!.timestamp)) : 0
  const key = (e: LogEntry) => `${e.timestamp}\n${e.message}`
  const seen = new Map<string, number>()
  for (let i = have.length - 1; i >= 0 && Date.parse(have[i]!.timestamp) >= lastMs; i--)
    seen.set(key(have[i]!), (seen.get(key(have[i]!)) ?? 0) + 1)
  const fresh = more.filter((e) => {
    const n = seen.get(key(e)) ?? 0
    if (n > 0) seen.set(key(e), n - 1)
    return n === 0
  })
  return fresh.length ? [...have, ...fresh].slice(-KEPT) : have
}

function useLogs(id: string, search: string, level: string, follow: boolean) {
  const [lines, setLines] = useState<LogEntry[]>()
  const [error, setError] = useState<Error>()
  useEffect(() => {
    let over = false
    let timer = 0
    let have: LogEntry[] = []
    const stop = new AbortController()
    const ask = async () => {
      const q = new URLSearchParams({ limit: String(PAGE) })
      if (search) q.set('search', search)
      if (level) q.set('level', level)
      const last = have[have.length - 1]
      if (last) {
        q.set('cursor', String(Math.floor(Date.parse(last.timestamp))))
        q.set('direction', 'forward')
      }
      try {
        const { logs } = await get<{ logs: LogEntry[] }>(`/v2/sandboxes/${id}/logs?${q}`, { signal: stop.signal })
        if (over) return
        have = join(have, last ? logs : logs.slice().reverse())
        setLines(have)
        setError(undefined)
      } catch (e) {
        if (over) return
        setError(e as Error)
        if (e instanceof ApiError && e.status !== 0 && e.status < 500) return
      }
      if (follow && !over) timer = window.setTimeout(ask, document.hidden ? 5000 : 1000)
    }
    void ask()
    return () => {
      over = true
      stop.abort()
      clearTimeout(timer)
    }
  }, [id, search, level, follow])
  return { lines, error }
}

export function Coloured({ text }: { text: string }) {
  return (
    <>
      {ansi(text).map((p, i) => (
        <span key={i} class={p.classes}>
          {p.text}
        </span>
      ))}
    </>
  )
}

export default function Logs({ id, detail }: TabProps) {
  const [typed, setTyped] = useState('')
  const [search, setSearch] = useState('')
  const [level, setLevel] = useState('')
  const [follow, setFollow] = useState(true)
  const view = useRef<HTMLDivElement>(null)
  const atEnd = useRef(true)
  const { lines, error } = useLogs(id, search, level, follow && detail !== undefined)
  useEffect(() => {
    const t = setTimeout(() => setSearch(typed), 250)
    return () => clearTimeout(t)
  }, [typed])
  useEffect(() => {
    if (follow && atEnd.current && view.current) view.current.scrollTop = view.current.scrollHeight
  }, [lines])
  return (
    <section class="card logcard">
      <header>
        <input
          type="search"
          placeholder="Search"
          aria-label="Search logs"
          value={typed}
          onInput={(e) => setTyped(e.currentTarget.value)}
        />
        <select class="narrow" aria-label="Level" value={level} onChange={(e) => setLevel(e.currentTarget.value)}>
          <option value="">All levels</option>
          <option value="info">Info and above</option>
          <option value="warn">Warnings and errors</option>
          <option value="error">Errors</option>
        </select>
        <span class="grow" />
        {detail && <Check label="Follow" checked={follow} onChange={setFollow} />}
      </header>
      {error && <Failed error={error} />}
      {!lines && !error && <Loading />}
      <div
        class="loglines ansi"
        ref={view}
        tabIndex={0}
        role="log"
        aria-label="Log lines"
        onScroll={(e) => {
          const v = e.currentTarget
          atEnd.current = v.scrollHeight - v.scrollTop - v.clientHeight < 30
        }}
      >
        {lines?.map((l, i) => (
          <div key={i} class={`line ${l.level}`}>
            <time>{clock(l.timestamp)}</time>
            <b>{l.level}</b>
            <span>
              <Coloured text={l.message} />
            </span>
          </div>
        ))}
        {lines?.length === 0 && <p class="soft none">{search ? 'No line has that' : 'Nothing was logged yet'}</p>}
      </div>
    </section>
  )
}
