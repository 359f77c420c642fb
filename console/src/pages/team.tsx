// SPDX-License-Identifier: Apache-2.0
// The team: who it is, and its sandboxes over time. The API tells no limits of a team; `cloche team` does.
import { useState } from 'preact/hooks'
import { get } from '../app/api'
import { usePoll } from '../app/poll'
import { session } from '../app/session'
import { dateTime } from '../lib/format'
import { Copy, Failed, Link, Loading, PageHead } from '../ui/parts'
import { Plot } from '../ui/plot'

interface Point {
  timestampUnix: number
  concurrentSandboxes: number
  sandboxStartRate: number
}

interface Most {
  timestamp: string
  value: number
}

const RANGES = [
  ['1 hour', 3600],
  ['1 day', 86400],
  ['7 days', 7 * 86400],
] as const

const COUNTED = [
  ['/templates', 'Templates'],
  ['/volumes', 'Volumes'],
  ['/secrets', 'Secrets'],
  ['/api-keys', 'API keys', '/keys'],
  ['/events/webhooks', 'Webhooks', '/webhooks'],
] as const

const perSecond = (v: number) => (v === 0 ? '0' : `${v >= 10 ? Math.round(v) : Number(v.toPrecision(2))}/s`)
const count = (v: number) => (Number.isInteger(v) ? String(v) : '')

function Usage({ list, mosts }: { list: Point[]; mosts: [Most, Most] }) {
  const times = list.map((p) => p.timestampUnix)
  return (
    <div class="grid">
      <section class="card plotcard">
        <header>
          <h3>Sandboxes at once</h3>{' '}
          <span class="num soft">
            most {mosts[0].value}, {dateTime(mosts[0].timestamp)}
          </span>
        </header>
        <Plot
          label="Sandboxes at once over time"
          times={times}
          format={count}
          max={4}
          lines={[
            { label: 'Sandboxes', values: list.map((p) => p.concurrentSandboxes), color: '--accent', fill: true },
          ]}
        />
      </section>
      <section class="card plotcard">
        <header>
          <h3>Starts</h3>{' '}
          <span class="num soft">
            most {perSecond(mosts[1].value)}, {dateTime(mosts[1].timestamp)}
          </span>
        </header>
        <Plot
          label="Starts per second over time"
          times={times}
          format={perSecond}
          lines={[{ label: 'Starts', values: list.map((p) => p.sandboxStartRate), color: '--warm', fill: true }]}
        />
      </section>
    </div>
  )
}

function Holdings() {
  const { data, error, refresh } = usePoll(
    (signal) => Promise.all(COUNTED.map(([path]) => get<unknown[]>(path, { signal }).then((l) => l.length))),
    15_000,
    [],
  )
  if (error && !data) return <Failed error={error} retry={refresh} />
  return (
    <dl class="facts">
      <dt>Name</dt>
      <dd>{session.value?.teamName}</dd>
      <dt>Id</dt>
      <dd>
        <code class="break">{session.value?.teamID}</code>{' '}
        <Copy text={session.value?.teamID ?? ''} label="Copy the id" />
      </dd>
      {COUNTED.map(([path, label, page], i) => (
        <>
          <dt>{label}</dt>
          <dd>
            <Link to={page ?? path} class="num">
              {data ? data[i] : '–'}
            </Link>
          </dd>
        </>
      ))}
    </dl>
  )
}

export default function Team() {
  const [span, setSpan] = useState<number>(3600)
  const id = session.value?.teamID
  const { data, error, refresh } = usePoll(
    async (signal) => {
      const at = `/teams/${id}/metrics`
      const from = `start=${Math.floor(Date.now() / 1000) - span}`
      const [list, boxes, rate] = await Promise.all([
        get<Point[]>(`${at}?${from}`, { signal }),
        get<Most>(`${at}/max?${from}&metric=concurrent_sandboxes`, { signal }),
        get<Most>(`${at}/max?${from}&metric=sandbox_start_rate`, { signal }),
      ])
      return { list, mosts: [boxes, rate] as [Most, Most] }
    },
    5000,
    [id, span],
  )
  return (
    <>
      <PageHead title="Team" sub={session.value?.teamName} />
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
      {error && !data && <Failed error={error} retry={refresh} />}
      {!data && !error && <Loading />}
      {data?.list.length === 0 && <p class="note">No sandbox ran in this time.</p>}
      {data && data.list.length > 0 && <Usage {...data} />}
      <section class="card">
        <header>
          <h2>What it has</h2>
        </header>
        <div class="body">
          <Holdings />
        </div>
      </section>
    </>
  )
}
