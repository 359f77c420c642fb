// SPDX-License-Identifier: Apache-2.0
// What it is, and how it did: processor, memory and disk over time.
import { useState } from 'preact/hooks'
import { get } from '../../app/api'
import { usePoll } from '../../app/poll'
import { bytes, dateTime, percent } from '../../lib/format'
import type { Metric, SandboxDetail } from '../../lib/types'
import { Plot } from '../../ui/plot'
import type { TabProps } from './page'

const RANGES = [
  ['15 min', 900],
  ['1 hour', 3600],
  ['1 day', 86400],
] as const

function Facts({ d }: { d: SandboxDetail }) {
  const meta = Object.entries(d.metadata ?? {})
  return (
    <section class="card">
      <header>
        <h2>About it</h2>
      </header>
      <div class="body">
        <dl class="facts">
          <dt>Template</dt>
          <dd>
            {d.alias || '–'} <small class="mono">{d.templateID}</small>
          </dd>
          <dt>Size</dt>
          <dd>
            {d.cpuCount} processors, {bytes(d.memoryMB * 1048576)} memory, {bytes(d.diskSizeMB * 1048576)} disk
          </dd>
          <dt>Started</dt>
          <dd>{dateTime(d.startedAt)}</dd>
          <dt>{d.state === 'running' ? 'Until' : 'Paused'}</dt>
          <dd>{dateTime(d.endAt)}</dd>
          <dt>At the end</dt>
          <dd>
            {d.lifecycle?.onTimeout === 'pause' ? 'paused' : 'killed'}
            {d.lifecycle?.autoResume && ', resumed by requests'}
          </dd>
          <dt>Internet</dt>
          <dd>{d.allowInternetAccess === false ? 'off' : 'as the server allows'}</dd>
          {d.volumeMounts && d.volumeMounts.length > 0 && (
            <>
              <dt>Volumes</dt>
              <dd>{d.volumeMounts.map((v) => `${v.name} at ${v.path}`).join(', ')}</dd>
            </>
          )}
          {meta.length > 0 && (
            <>
              <dt>Metadata</dt>
              <dd class="row">
                {meta.map(([k, v]) => (
                  <span key={k} class="tag">
                    {k}: {v}
                  </span>
                ))}
              </dd>
            </>
          )}
        </dl>
      </div>
    </section>
  )
}

export default function Overview({ id, detail }: TabProps) {
  const [span, setSpan] = useState(900)
  const { data } = usePoll(
    (signal) => get<Metric[]>(`/sandboxes/${id}/metrics?start=${Math.floor(Date.now() / 1000) - span}`, { signal }),
    5000,
    [id, span],
  )
  const list = data ?? []
  const times = list.map((m) => m.timestampUnix)
  const last = list[list.length - 1]
  return (
    <>
      <div class="row">
        <h2>Usage</h2>
        <span class="grow" />
        <div class="seg" role="group" aria-label="Span">
          {RANGES.map(([label, s]) => (
            <button key={s} type="button" aria-pressed={span === s} onClick={() => setSpan(s)}>
              {label}
            </button>
          ))}
        </div>
      </div>
      {list.length === 0 ? (
        <p class="note">No measurement yet: they are taken every five seconds.</p>
      ) : (
        <div class="grid">
          <section class="card plotcard">
            <header>
              <h3>Processor</h3>{' '}
              <span class="num soft">
                {percent(last!.cpuUsedPct)} of {last!.cpuCount} cores
              </span>
            </header>
            <Plot
              label="Processor over time"
              times={times}
              format={percent}
              max={5}
              lines={[{ label: 'Used', values: list.map((m) => m.cpuUsedPct), color: '--accent', fill: true }]}
            />
          </section>
          <section class="card plotcard">
            <header>
              <h3>Memory</h3>{' '}
              <span class="num soft">
                {bytes(last!.memUsed)} of {bytes(last!.memTotal)}
              </span>
            </header>
            <Plot
              label="Memory over time"
              times={times}
              format={bytes}
              binary
              lines={[
                { label: 'Used', values: list.map((m) => m.memUsed), color: '--accent', fill: true },
                { label: 'Cache', values: list.map((m) => m.memCache), color: '--warm' },
              ]}
            />
          </section>
          <section class="card plotcard">
            <header>
              <h3>Disk</h3>{' '}
              <span class="num soft">
                {bytes(last!.diskUsed)} of {bytes(last!.diskTotal)}
              </span>
            </header>
            <Plot
              label="Disk over time"
              times={times}
              format={bytes}
              binary
              lines={[{ label: 'Used', values: list.map((m) => m.diskUsed), color: '--accent', fill: true }]}
            />
          </section>
        </div>
      )}
      {detail && <Facts d={detail} />}
    </>
  )
}
