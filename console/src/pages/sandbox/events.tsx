// SPDX-License-Identifier: Apache-2.0
import { get } from '../../app/api'
import { usePoll } from '../../app/poll'
import { eventKind, eventWords } from '../../lib/events'
import { dateTime } from '../../lib/format'
import type { LifecycleEvent } from '../../lib/types'
import { Failed, Loading, State } from '../../ui/parts'
import type { TabProps } from './page'

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
          {data.map((e) => (
            <tr key={e.id}>
              <td class="name">
                <State {...eventKind(e.type)} />
              </td>
              <td class="soft num">{dateTime(e.timestamp)}</td>
              <td>{eventWords(e.eventData)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      {data.length === 0 && <p class="none">No event is kept</p>}
    </div>
  )
}
