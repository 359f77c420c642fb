// SPDX-License-Identifier: Apache-2.0
// What happened to all sandboxes of the team.
import { useState } from 'preact/hooks'
import { get } from '../app/api'
import { usePoll } from '../app/poll'
import { dateTime } from '../lib/format'
import { eventKind, eventWords } from '../lib/events'
import type { LifecycleEvent } from '../lib/types'
import { Failed, Link, Loading, PageHead, State } from '../ui/parts'

const TYPES = ['created', 'updated', 'paused', 'resumed', 'checkpointed', 'killed']

export default function Events() {
  const [type, setType] = useState('')
  const filter = type ? `&types=sandbox.lifecycle.${type}` : ''
  const { data, error, refresh } = usePoll(
    (signal) => get<LifecycleEvent[]>(`/events/sandboxes?limit=100${filter}`, { signal }),
    3000,
    [type],
  )
  return (
    <>
      <PageHead title="Events" sub="The latest hundred, as they happen">
        <select class="narrow" aria-label="Type" value={type} onChange={(e) => setType(e.currentTarget.value)}>
          <option value="">All types</option>
          {TYPES.map((t) => (
            <option key={t} value={t}>
              {t}
            </option>
          ))}
        </select>
      </PageHead>
      {error && !data && <Failed error={error} retry={refresh} />}
      {!data && !error && <Loading />}
      {data && (
        <div class="tablewrap">
          <table class="list stack">
            <thead>
              <tr>
                <th>Sandbox</th>
                <th>Event</th>
                <th>When</th>
                <th>What</th>
              </tr>
            </thead>
            <tbody>
              {data.map((e) => (
                <tr key={e.id}>
                  <td class="name">
                    <Link to={`/sandboxes/${e.sandboxId}/events`} class="mono">
                      {e.sandboxId}
                    </Link>
                  </td>
                  <td>
                    <State {...eventKind(e.type)} />
                  </td>
                  <td class="soft num">{dateTime(e.timestamp)}</td>
                  <td>{eventWords(e.eventData)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {data.length === 0 && <p class="none">Nothing happened yet</p>}
        </div>
      )}
    </>
  )
}
