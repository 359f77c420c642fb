// SPDX-License-Identifier: Apache-2.0
// What one build of a template has that another has not: packages, then files.
import { useState } from 'preact/hooks'
import { get } from '../app/api'
import { usePoll } from '../app/poll'
import { bytes, dateTime, plural } from '../lib/format'
import { Dialog, Failed, Field, Loading, Note, State } from '../ui/parts'

export interface Diff {
  packages: { manager: string; name: string; from: string | null; to: string | null }[]
  files: { path: string; change: string; detail?: string; sizeFrom?: number | null; sizeTo?: number | null }[]
  added: number
  removed: number
  changed: number
  bytesFrom: number
  bytesTo: number
  complete: boolean
}

interface Build {
  buildID: string
  status: string
  createdAt: string
}

const LOOK: Record<string, 'good' | 'bad' | 'warm'> = { added: 'good', removed: 'bad', changed: 'warm' }

function sizes(f: Diff['files'][number]): string {
  const [from, to] = [f.sizeFrom, f.sizeTo].map((n) => (typeof n === 'number' ? bytes(n) : ''))
  return from && to && from !== to ? `${from} → ${to}` : to || from || ''
}

function Packages({ d }: { d: Diff }) {
  if (d.packages.length === 0) return null
  return (
    <div class="tablewrap" role="region" aria-label="Packages" tabIndex={0}>
      <table class="list">
        <thead>
          <tr>
            <th>Package</th>
            <th>Of</th>
            <th>Before</th>
            <th>After</th>
          </tr>
        </thead>
        <tbody>
          {d.packages.map((p) => (
            <tr key={`${p.manager} ${p.name}`}>
              <td class="name break">{p.name}</td>
              <td class="soft">{p.manager}</td>
              <td class="mono break">{p.from || '–'}</td>
              <td class="mono break">{p.to || '–'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Files({ d }: { d: Diff }) {
  if (d.files.length === 0) return null
  return (
    <div class="tablewrap" role="region" aria-label="Files" tabIndex={0}>
      <table class="list stack">
        <thead>
          <tr>
            <th>File</th>
            <th>Change</th>
            <th class="end">Size</th>
          </tr>
        </thead>
        <tbody>
          {d.files.map((f) => (
            <tr key={f.path}>
              <td class="mono break">{f.path}</td>
              <td>
                <State is={LOOK[f.change] ?? 'warm'} word={f.change} /> <span class="soft">{f.detail}</span>
              </td>
              <td class="end num soft">{sizes(f)}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Difference({ id, from, to }: { id: string; from: string; to: string }) {
  const { data, error, refresh } = usePoll(
    (signal) => get<Diff>(`/templates/${id}/builds/${to}/diff?from=${from}`, { signal }),
    0,
    [id, from, to],
  )
  if (error) return <Failed error={error} retry={refresh} />
  if (!data) return <Loading />
  const files = data.added + data.removed + data.changed
  return (
    <div class="builddiff">
      <p class="soft">
        {files + data.packages.length === 0
          ? 'Nothing differs'
          : `${plural(data.packages.length, 'package')}, ${plural(files, 'file')}: ${data.added} added, ` +
            `${data.removed} removed, ${data.changed} changed; ${bytes(data.bytesFrom)} before, ${bytes(data.bytesTo)} after`}
      </p>
      {!data.complete && <Note kind="warm">There is more: the server listed a part.</Note>}
      <Packages d={data} />
      <Files d={data} />
    </div>
  )
}

export function DiffDialog({
  id,
  builds,
  to,
  tags,
  onClose,
}: {
  id: string
  builds: Build[]
  to: string
  tags: { tag: string; buildID: string }[]
  onClose: () => void
}) {
  const ready = builds.filter((b) => b.buildID !== to && (b.status === 'ready' || b.status === 'uploaded'))
  const at = builds.findIndex((b) => b.buildID === to)
  const before = ready.find((b) => builds.indexOf(b) > at) ?? ready[0]
  const [from, setFrom] = useState(before?.buildID ?? '')
  const label = (b: Build) => {
    const own = tags.filter((t) => t.buildID === b.buildID).map((t) => t.tag)
    return `${b.buildID.slice(0, 8)}, ${dateTime(b.createdAt)}${own.length ? `, ${own.join(' ')}` : ''}`
  }
  return (
    <Dialog title={`What ${to.slice(0, 8)} has changed`} wide onClose={onClose}>
      <div class="body">
        {from ? (
          <>
            <Field label="Compared with">
              {(fid) => (
                <select id={fid} value={from} onChange={(e) => setFrom(e.currentTarget.value)}>
                  {ready.map((b) => (
                    <option key={b.buildID} value={b.buildID}>
                      {label(b)}
                    </option>
                  ))}
                </select>
              )}
            </Field>
            <Difference id={id} from={from} to={to} />
          </>
        ) : (
          <p class="none">There is no other finished build to compare it with.</p>
        )}
      </div>
    </Dialog>
  )
}
