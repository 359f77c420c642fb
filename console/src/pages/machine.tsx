// SPDX-License-Identifier: Apache-2.0
// The server itself: its machine, room for more sandboxes, the warm pool, rates and latencies out of its own metrics.
// Needs the administrator's token, which is kept in memory alone.
import { useEffect, useRef, useState } from 'preact/hooks'
import { ApiError, call, get } from '../app/api'
import { usePoll } from '../app/poll'
import { session, setAdminToken } from '../app/session'
import { bytes, duration, plural } from '../lib/format'
import { quantile, readMetrics, sum, type Sample } from '../lib/prometheus'
import { Button, Failed, Field, Loading, Note, PageHead, Spark, State } from '../ui/parts'
import { DoctorView, useDoctor } from './doctor'
import './machine.css'

interface Node {
  id: string
  status: string
  version: string
  sandboxCount: number
  createSuccesses: number
  createFails: number
  machineInfo: { cpuModelName: string; cpuArchitecture: string }
  metrics: {
    cpuCount: number
    cpuPercent: number
    memoryUsedBytes: number
    memoryTotalBytes: number
    allocatedMemoryBytes: number
  }
}

const CLASSES = [
  ['create', 'Create'],
  ['list', 'Lists'],
  ['sandbox', 'Sandboxes'],
  ['template', 'Templates'],
  ['agent', 'Commands and files'],
  ['interpreter', 'Cells'],
  ['port', 'Ports of sandboxes'],
] as const

function AskToken() {
  const [token, setToken] = useState('')
  const [error, setError] = useState('')
  const submit = async (e: Event) => {
    e.preventDefault()
    setError('')
    try {
      await get('/nodes', { headers: { 'X-Admin-Token': token }, admin: true })
      setAdminToken(token)
    } catch (x) {
      setError((x as Error).message)
    }
  }
  return (
    <section class="card">
      <header>
        <h2>The administrator’s token</h2>
      </header>
      <form class="body tokenform" onSubmit={submit}>
        <Field
          label="Token"
          error={error}
          hint={
            <>
              What the setting <code>admin_token</code> of this server says. A reload forgets it
            </>
          }
        >
          {(id) => (
            <input
              id={id}
              type="password"
              autocomplete="off"
              value={token}
              onInput={(e) => setToken(e.currentTarget.value)}
            />
          )}
        </Field>
        <Button kind="primary" type="submit" disabled={!token}>
          Open
        </Button>
      </form>
    </section>
  )
}

function Tile({ label, value, sub, line }: { label: string; value: string; sub?: string; line?: number[] }) {
  return (
    <div class="card tile">
      <small>{label}</small>
      <b class="num">{value}</b>
      <span class="soft">{sub}</span>
      {line && line.length > 1 && <Spark values={line} label={label} />}
    </div>
  )
}

const ms = (s: number) =>
  Number.isNaN(s) ? '–' : s < 1 ? `${(s * 1000).toFixed(s < 0.01 ? 1 : 0)} ms` : `${s.toFixed(1)} s`

function Latencies({ all }: { all: Sample[] }) {
  return (
    <div class="tablewrap" role="region" aria-label="Latencies" tabIndex={0}>
      <table class="list">
        <thead>
          <tr>
            <th>Requests</th>
            <th class="end">Count</th>
            <th class="end">Failed</th>
            <th class="end">Median</th>
            <th class="end">95%</th>
            <th class="end">99%</th>
          </tr>
        </thead>
        <tbody>
          {CLASSES.map(([name, label]) => (
            <tr key={name}>
              <td class="name">{label}</td>
              <td class="end num">
                {sum(all, 'cloche_request_seconds_count', { class: name }).toLocaleString('en')}
              </td>
              <td class="end num">
                {sum(all, 'cloche_requests_total', { class: name, status: '5xx' }).toLocaleString('en')}
              </td>
              {[0.5, 0.95, 0.99].map((q) => (
                <td key={q} class="end num">
                  {ms(quantile(all, 'cloche_request_seconds', q, { class: name }))}
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

function Teams({ counts }: { counts: Record<string, number> }) {
  const rows = Object.entries(counts).sort((a, b) => b[1] - a[1])
  return (
    <div class="tablewrap">
      <table class="list">
        <thead>
          <tr>
            <th>Team</th>
            <th class="end">Sandboxes</th>
          </tr>
        </thead>
        <tbody>
          {rows.map(([team, n]) => (
            <tr key={team}>
              <td class="mono break">{team}</td>
              <td class="end num">{n.toLocaleString('en')}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length === 0 && <p class="none">No sandbox runs</p>}
    </div>
  )
}

function Health() {
  const { data, error } = usePoll((signal) => call('GET', '/health', { signal }).then(() => true), 3000, [])
  if (error) return <State is="bad" word={error.message} />
  return data ? <State is="good" word="healthy" /> : null
}

function Figures() {
  const doctor = useDoctor()
  const room = doctor.data?.capacity
  const history = useRef<{ at: number; requests: number; rate: number; running: number }[]>([])
  const { data, error, refresh } = usePoll(
    async (signal) => {
      const [nodes, counts, text] = await Promise.all([
        get<Node[]>('/nodes', { signal, admin: true }),
        get<Record<string, number>>('/admin/sandboxes/running-counts', { signal, admin: true }),
        call('GET', '/metrics', { signal, admin: true }).then((r) => r.text()),
      ])
      const all = readMetrics(text)
      const requests = sum(all, 'cloche_request_seconds_count')
      const last = history.current[history.current.length - 1]
      const at = Date.now()
      const rate = last ? Math.max(0, ((requests - last.requests) * 1000) / (at - last.at)) : 0
      history.current = [
        ...history.current,
        { at, requests, rate, running: sum(all, 'cloche_boxes', { state: 'running' }) },
      ].slice(-60)
      return { nodes, counts, all }
    },
    3000,
    [],
  )
  useEffect(() => {
    if (error instanceof ApiError && (error.status === 401 || error.status === 403)) setAdminToken(undefined)
  }, [error])
  if (error && !data) return <Failed error={error} retry={refresh} />
  if (!data) return <Loading />
  const { nodes, counts, all } = data
  const rate = history.current.map((h) => h.rate)
  const started = sum(all, 'cloche_start_time_seconds') * 1000
  return (
    <>
      <div class="tiles">
        <Tile
          label="Running"
          value={String(sum(all, 'cloche_boxes', { state: 'running' }))}
          sub={`${sum(all, 'cloche_boxes', { state: 'paused' })} paused`}
          line={history.current.map((h) => h.running)}
        />
        <Tile
          label="Room for more"
          value={room ? `≈ ${room.idle.toLocaleString('en')}` : '…'}
          sub={room ? `idle ones, or ${room.running.toLocaleString('en')} that are busy` : 'the doctor looks'}
        />
        <Tile label="Warm pool" value={String(sum(all, 'cloche_warm_boxes'))} sub="ready to be given out" />
        <Tile
          label="Requests"
          value={`${(rate[rate.length - 1] ?? 0).toFixed(1)}/s`}
          sub={`${sum(all, 'cloche_connections')} connections`}
          line={rate}
        />
        <Tile
          label="Made"
          value={sum(all, 'cloche_launches_total').toLocaleString('en')}
          sub={`${sum(all, 'cloche_launches_failed_total')} failed`}
        />
        <Tile
          label="Up"
          value={duration(Date.now() - started)}
          sub={`${plural(sum(all, 'cloche_checkpoints'), 'checkpoint')}, ${bytes(sum(all, 'cloche_checkpoint_bytes'))}`}
        />
      </div>
      {sum(all, 'cloche_checkpoint_ready') === 0 && (
        <Note kind="warm">
          Sandboxes can’t be written to disk here: a pause keeps them in memory. The doctor says why, below.
        </Note>
      )}
      <h2>Nodes</h2>
      <div class="tablewrap" role="region" aria-label="Nodes" tabIndex={0}>
        <table class="list stack">
          <thead>
            <tr>
              <th>Node</th>
              <th>State</th>
              <th>Machine</th>
              <th>Load</th>
              <th>Memory</th>
              <th>Sandboxes</th>
            </tr>
          </thead>
          <tbody>
            {nodes.map((n) => (
              <tr key={n.id}>
                <td class="name">
                  {n.id} <small>{n.version}</small>
                </td>
                <td>
                  <State is={n.status === 'ready' ? 'good' : 'warm'} word={n.status} />
                </td>
                <td class="soft">
                  {n.machineInfo.cpuModelName}, {n.metrics.cpuCount} cores, {n.machineInfo.cpuArchitecture}
                </td>
                <td class="num" title="Load of the last minute, 100% is one process for each core">
                  {Math.round(n.metrics.cpuPercent)}%<span class="narrow-only"> load</span>
                </td>
                <td class="num">
                  {bytes(n.metrics.memoryUsedBytes)} of {bytes(n.metrics.memoryTotalBytes)}
                </td>
                <td class="num">
                  {n.sandboxCount}
                  <span class="narrow-only"> sandboxes</span>
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>Running by team</h2>
      <Teams counts={counts} />
      <h2>Latencies since the start</h2>
      <Latencies all={all} />
      <DoctorView {...doctor} />
    </>
  )
}

export default function Machine() {
  return (
    <>
      <PageHead title="Machine" sub={<Health />}>
        {session.value?.adminToken && <Button onClick={() => setAdminToken(undefined)}>Forget the token</Button>}
      </PageHead>
      {session.value?.adminToken ? <Figures /> : <AskToken />}
    </>
  )
}
