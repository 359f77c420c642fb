// SPDX-License-Identifier: Apache-2.0
// What the machine gives to the server, as `cloche doctor` says it, and for how many more sandboxes there is room.
import { get } from '../app/api'
import { usePoll } from '../app/poll'
import { bytes } from '../lib/format'
import { Button, Failed, Loading, State } from '../ui/parts'

export interface Doctor {
  health: 'ok' | 'less' | 'no'
  host: { kernel: string; system: string; architecture: string; controlGroups: string; filesystem: string }
  checks: { id: string; name: string; health: 'ok' | 'less' | 'no'; detail: string; remedy: string }[]
  capacity: {
    idle: number
    running: number
    idleBound: string
    runningBound: string
    bounds: { resource: string; available: number; unit: string; idle: number; running: number; remedy: string }[]
  }
}

const LOOK = { ok: 'good', less: 'warm', no: 'bad' } as const
const ORDER = { no: 0, less: 1, ok: 2 }
const WORD = { ok: 'ok', less: 'less', no: 'NO' }

/** Asked once, and again when somebody asks: the machine is tried out, which takes a second or two. */
export function useDoctor() {
  return usePoll((signal) => get<Doctor>('/admin/doctor', { signal, admin: true }), 0, [])
}

const amount = (n: number, unit: string) =>
  unit === 'MiB' || unit === 'MB' ? bytes(n * 1048576) : `${n.toLocaleString('en')} ${unit}`

function Bounds({ d }: { d: Doctor }) {
  return (
    <div class="tablewrap" role="region" aria-label="Capacity" tabIndex={0}>
      <table class="list">
        <thead>
          <tr>
            <th>What is at hand</th>
            <th class="end">Available</th>
            <th class="end">Idle sandboxes</th>
            <th class="end">Busy ones</th>
          </tr>
        </thead>
        <tbody>
          {d.capacity.bounds.map((b) => (
            <tr key={b.resource} title={b.remedy}>
              <td class="name">{b.resource}</td>
              <td class="end num soft">{amount(b.available, b.unit)}</td>
              <td class="end num">{b.idle.toLocaleString('en')}</td>
              <td class="end num">{b.running.toLocaleString('en')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

export function DoctorView({ data, error, refresh }: ReturnType<typeof useDoctor>) {
  if (error && !data) return <Failed error={error} retry={refresh} />
  if (!data) return <Loading />
  const checks = [...data.checks].sort((a, b) => ORDER[a.health] - ORDER[b.health])
  return (
    <>
      <div class="sectionhead">
        <h2>Doctor</h2>
        <span class="soft">
          {data.host.system}, Linux {data.host.kernel}, {data.host.filesystem}
        </span>
        <span class="grow" />
        <Button small icon="refresh" onClick={refresh}>
          Examine again
        </Button>
      </div>
      <div class="tablewrap">
        <table class="list stack">
          <thead>
            <tr>
              <th>Check</th>
              <th>State</th>
              <th>What is so</th>
            </tr>
          </thead>
          <tbody>
            {checks.map((c) => (
              <tr key={c.id}>
                <td class="name">{c.name}</td>
                <td>
                  <State is={LOOK[c.health]} word={WORD[c.health]} />
                </td>
                <td>
                  {c.detail}
                  {c.remedy && <div class="soft">→ {c.remedy}</div>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <h2>Capacity</h2>
      <Bounds d={data} />
    </>
  )
}
