// SPDX-License-Identifier: Apache-2.0
// What the sandbox looked up and where it connected, as the server saw it.
import { useState } from 'preact/hooks'
import { ApiError, get } from '../../app/api'
import { usePoll } from '../../app/poll'
import { bytes, clock } from '../../lib/format'
import { netLine, type NetEntry } from '../../lib/network'
import { Empty, Failed, Loading, State } from '../../ui/parts'
import type { TabProps } from './page'

function verdict(e: NetEntry): { is: 'good' | 'warm' | 'bad' | 'off'; word: string } {
  if (e.type === 'name') return { is: 'off', word: 'name' }
  if (e.verdict === 'refused') return { is: 'bad', word: 'refused' }
  if (e.type === 'lost') return { is: 'warm', word: 'lost' }
  return { is: 'good', word: e.verdict ?? e.type }
}

export default function Network({ id }: TabProps) {
  const [text, setText] = useState('')
  const { data, error, refresh } = usePoll(
    (signal) => get<{ entries: NetEntry[] }>(`/sandboxes/${id}/network/log?limit=1000`, { signal }),
    2500,
    [id],
  )
  if (error instanceof ApiError && error.status === 403)
    return (
      <Empty icon="lock" title="No network log is kept">
        <p>{error.message}</p>
      </Empty>
    )
  if (error && !data) return <Failed error={error} retry={refresh} />
  if (!data) return <Loading />
  const shown = data.entries.filter((e) => netLine(e).toLowerCase().includes(text.toLowerCase())).reverse()
  return (
    <>
      <div class="row">
        <input
          type="search"
          placeholder="Filter"
          aria-label="Filter the network log"
          value={text}
          onInput={(e) => setText(e.currentTarget.value)}
        />
      </div>
      <div class="tablewrap">
        <table class="list">
          <thead>
            <tr>
              <th>Time</th>
              <th>Verdict</th>
              <th>What</th>
              <th class="end">In / out</th>
            </tr>
          </thead>
          <tbody>
            {shown.map((e, i) => (
              <tr key={i}>
                <td class="soft num">{clock(e.timestamp)}</td>
                <td>
                  <State {...verdict(e)} />
                </td>
                <td class="mono break">{netLine(e)}</td>
                <td class="end num soft">
                  {e.bytesIn !== undefined ? `${bytes(e.bytesIn)} / ${bytes(e.bytesOut ?? 0)}` : ''}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {shown.length === 0 && <p class="none">{text ? 'Nothing fits' : 'It has not used the network yet'}</p>}
      </div>
    </>
  )
}
