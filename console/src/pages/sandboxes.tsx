// SPDX-License-Identifier: Apache-2.0
// All sandboxes of the team, live, and those that ended lately with the reason.
import { useEffect, useMemo, useState } from 'preact/hooks'
import { get, pages } from '../app/api'
import { useCommands } from '../app/commands'
import { usePoll } from '../app/poll'
import { go, query } from '../app/router'
import { age, bytes, dateTime, duration, percent, plural } from '../lib/format'
import { History } from '../lib/history'
import type { LifecycleEvent, Metric, Sandbox } from '../lib/types'
import { Button, Empty, Failed, Link, Loading, PageHead, Spark, State } from '../ui/parts'
import { SandboxActions } from './sandbox/actions'
import { CreateDialog } from './sandbox/create'

const POLL_MS = 2500

function useHistory(boxes: Sandbox[] | undefined) {
  const history = useMemo(() => new History(), [])
  const running = (boxes ?? []).filter((b) => b.state === 'running').map((b) => b.sandboxID)
  const ids = running.slice(0, 100).join(',')
  const { data } = usePoll(
    async (signal) => {
      if (!ids) return 0
      const m = await get<{ sandboxes: Record<string, Metric> }>(`/sandboxes/metrics?sandbox_ids=${ids}`, { signal })
      for (const [id, metric] of Object.entries(m.sandboxes)) history.add(id, metric)
      return Date.now()
    },
    5000,
    [ids],
  )
  useEffect(() => {
    for (const id of running.slice(0, 24))
      if (history.of(id).length === 0)
        void get<Metric[]>(`/sandboxes/${id}/metrics`).then(
          (list) => list.slice(-30).forEach((m) => history.add(id, m)),
          () => undefined,
        )
    history.keep(new Set(running))
  }, [ids])
  return { history, stamp: data }
}

function Usage({ list }: { list: Metric[] }) {
  const last = list[list.length - 1]
  if (!last) return <span class="soft">–</span>
  return (
    <span class="usage">
      <Spark values={list.map((m) => m.cpuUsedPct)} max={5} label={`Processor ${percent(last.cpuUsedPct)}`} />
      <span class="num soft">{percent(last.cpuUsedPct)}</span>
      <Spark values={list.map((m) => m.memUsed)} max={last.memTotal * 0.05} label={`Memory ${bytes(last.memUsed)}`} />
      <span class="num soft">{bytes(last.memUsed)}</span>
    </span>
  )
}

function Row({ box, list, now, changed }: { box: Sandbox; list: Metric[]; now: number; changed: () => void }) {
  const left = Date.parse(box.endAt) - now
  const paused = box.state === 'paused'
  return (
    <tr>
      <td class="name">
        <Link to={`/sandboxes/${box.sandboxID}`} class="mono">
          {box.sandboxID}
        </Link>
        {box.metadata &&
          Object.entries(box.metadata)
            .slice(0, 2)
            .map(([k, v]) => (
              <span key={k} class="tag" title={`${k}: ${v}`}>
                {k}: {v}
              </span>
            ))}
      </td>
      <td>
        <State is={paused ? 'warm' : 'good'} word={box.state} />
      </td>
      <td class="cut">{box.alias || box.templateID}</td>
      <td class="num soft" title={`Started ${dateTime(box.startedAt)}`}>
        {age(box.startedAt, now)}
      </td>
      <td class={`num ${!paused && left < 60000 ? 'urgent' : 'soft'}`} title={`Until ${dateTime(box.endAt)}`}>
        {paused ? '–' : duration(left)}
        {!paused && <span class="narrow-only"> left</span>}
      </td>
      <td class="wide-only">{paused ? <span class="soft">–</span> : <Usage list={list} />}</td>
      <td class="end">
        <SandboxActions box={box} changed={changed} />
      </td>
    </tr>
  )
}

function Ended() {
  const { data, error, refresh } = usePoll(
    (signal) => get<LifecycleEvent[]>('/events/sandboxes?limit=50&types=sandbox.lifecycle.killed', { signal }),
    5000,
    [],
  )
  if (error && !data) return <Failed error={error} retry={refresh} />
  if (!data) return <Loading />
  return (
    <div class="tablewrap">
      <table class="list stack">
        <thead>
          <tr>
            <th>Sandbox</th>
            <th>Ended</th>
            <th>Cause</th>
            <th>Lived</th>
          </tr>
        </thead>
        <tbody>
          {data.map((e) => {
            const run = e.eventData?.execution as { execution_time?: number } | undefined
            return (
              <tr key={e.id}>
                <td class="name">
                  <Link to={`/sandboxes/${e.sandboxId}/logs`} class="mono">
                    {e.sandboxId}
                  </Link>
                </td>
                <td class="soft">{dateTime(e.timestamp)}</td>
                <td>{e.eventData?.kill_cause ?? e.eventData?.kill_reason ?? '–'}</td>
                <td class="num soft">{run?.execution_time !== undefined ? duration(run.execution_time) : '–'}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
      {data.length === 0 && <p class="none">None has ended yet</p>}
    </div>
  )
}

export default function Sandboxes() {
  const view = query.value.get('show') ?? 'live'
  const [creating, setCreating] = useState(false)
  const [text, setText] = useState('')
  const [now, setNow] = useState(Date.now())
  const { data, error, refresh } = usePoll(
    (signal) => pages<Sandbox>('/v2/sandboxes?state=running,paused&limit=100', 1000, { signal }),
    POLL_MS,
    [],
  )
  const { history } = useHistory(data)
  useEffect(() => {
    const t = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(t)
  }, [])
  useCommands(
    [
      { id: 'new', label: 'Create a sandbox', group: 'Sandboxes', keys: 'n', run: () => setCreating(true) },
      {
        id: 'ended',
        label: 'Show those that ended',
        group: 'Sandboxes',
        keys: 'e',
        run: () => go('/sandboxes?show=ended'),
      },
    ],
    [],
  )
  const running = data?.filter((b) => b.state === 'running').length ?? 0
  const shown = (data ?? []).filter((b) =>
    `${b.sandboxID} ${b.alias ?? ''} ${b.state} ${JSON.stringify(b.metadata ?? {})}`
      .toLowerCase()
      .includes(text.toLowerCase()),
  )
  return (
    <>
      <PageHead
        title="Sandboxes"
        sub={
          data && `${plural(running, 'running', 'running')}, ${(data.length - running).toLocaleString('en')} paused`
        }
      >
        <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
          New sandbox
        </Button>
      </PageHead>
      <div class="row">
        <div class="seg" role="group" aria-label="Which">
          <button type="button" aria-pressed={view === 'live'} onClick={() => go('/sandboxes')}>
            Live
          </button>
          <button type="button" aria-pressed={view === 'ended'} onClick={() => go('/sandboxes?show=ended')}>
            Ended
          </button>
        </div>
        {view === 'live' && data && data.length > 0 && (
          <input
            type="search"
            placeholder="Filter"
            aria-label="Filter sandboxes"
            value={text}
            onInput={(e) => setText(e.currentTarget.value)}
          />
        )}
      </div>
      {error && !data && <Failed error={error} retry={refresh} />}
      {view === 'ended' ? (
        <Ended />
      ) : !data ? (
        !error && <Loading />
      ) : data.length === 0 ? (
        <Empty icon="box" title="No sandbox is alive">
          <p>Create one here, or with any E2B client that has this server’s address and a key.</p>
          <Button kind="primary" icon="plus" onClick={() => setCreating(true)}>
            New sandbox
          </Button>
        </Empty>
      ) : (
        <div class="tablewrap tall">
          <table class="list stack">
            <thead>
              <tr>
                <th>Sandbox</th>
                <th>State</th>
                <th>Template</th>
                <th>Age</th>
                <th>Time left</th>
                <th class="wide-only">Processor and memory</th>
                <th class="end">
                  <span class="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {shown.map((b) => (
                <Row key={b.sandboxID} box={b} list={history.of(b.sandboxID)} now={now} changed={refresh} />
              ))}
            </tbody>
          </table>
          {shown.length === 0 && <p class="none">Nothing fits “{text}”</p>}
        </div>
      )}
      {creating && <CreateDialog onClose={() => setCreating(false)} onCreated={(id) => go(`/sandboxes/${id}`)} />}
    </>
  )
}
