// SPDX-License-Identifier: Apache-2.0
import { get } from '../../app/api'
import { usePoll } from '../../app/poll'
import { dateTime } from '../../lib/format'
import type { LifecycleEvent } from '../../lib/types'
import { Failed, Loading, State } from '../../ui/parts'
import type { TabProps } from './page'

const KIND: Record<string, 'good' | 'warm' | 'bad' | 'off'> = {
  created: 'good',
  resumed: 'good',
  paused: 'warm',
  killed: 'bad',
}

/** What an event tells beyond its type, without nesting. */
export function words(data: LifecycleEvent['eventData']): string {
  if (!data) return ''
  if (typeof data.kill_cause === 'string') return data.kill_cause
  return Object.entries(data)
    .filter(([, v]) => typeof v !== 'object')
    .map(([k, v]) => `${k.replace(/_/g, ' ')}: ${String(v)}`)
    .join(', ')
}

export default function Events({ id }: TabProps) {
  const { data, error, refresh } = usePoll(
    (signal) => get<LifecycleEvent[]>(`/events/sandboxes/${id}?limit=100`, { signal }),
    3000,
    [id],
  )
  if (error && !data) return <Failed error={error} retry={refresh} />
  if (!data) return <Loading />
  return (
    <div class="tablewrap">
      <table class="list stack">
        <thead>
          <tr>
            <th>Event</th>
            <th>When</th>
            <th>What</th>
          </tr>
        </thead>
        <tbody>
          {data.map((e) => {
            const word = e.type.split('.').pop() ?? e.type
            return (
              <tr key={e.id}>
                <td class="name">
                  <State is={KIND[word] ?? 'off'} word={word} />
                </td>
                <td class="soft num">{dateTime(e.timestamp)}</td>
                <td>{words(e.eventData)}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
      {data.length === 0 && <p class="none">No event is kept</p>}
    </div>
  )
}
