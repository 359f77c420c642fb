// SPDX-License-Identifier: Apache-2.0
// What happened to the sandboxes of the team, as it happens, by type and sandbox, and what was before.
import { useState } from 'preact/hooks'
import { get } from '../app/api'
import { usePoll } from '../app/poll'
import { dateTime } from '../lib/format'
import { eventKind, eventWords } from '../lib/events'
import type { LifecycleEvent } from '../lib/types'
import { Button, Check, Failed, Link, Loading, PageHead, State } from '../ui/parts'

const TYPES = ['created', 'updated', 'paused', 'resumed', 'checkpointed', 'killed']
const PAGE = 100
const LONG = 24 * 3600_000

export default function Events() {
  const [type, setType] = useState('')
  const [box, setBox] = useState('')
  const [follow, setFollow] = useState(true)
  const [offset, setOffset] = useState(0)
  const one = box.trim()
  const filter = type ? `&types=sandbox.lifecycle.${type}` : ''
  const { data, error, refresh } = usePoll(
    (signal) =>
      get<LifecycleEvent[]>(
        `/events/sandboxes${one && `/${encodeURIComponent(one)}`}?limit=${PAGE}&offset=${offset}${filter}`,
        { signal },
      ),
    follow && offset === 0 ? 2000 : LONG,
    [type, one, follow, offset],
  )
  return (
    <>
      <PageHead title="Events" sub={offset ? `From the ${offset + 1}th on` : 'The latest hundred'}>
        <Check label="Follow" checked={follow && offset === 0} onChange={(on) => (setFollow(on), setOffset(0))} />
        <input
          type="search"
          class="narrow"
          aria-label="Sandbox"
          placeholder="Id of a sandbox"
          value={box}
          onChange={(e) => (setBox(e.currentTarget.value), setOffset(0))}
        />
        <select
          class="narrow"
          aria-label="Type"
          value={type}
          onChange={(e) => (setType(e.currentTarget.value), setOffset(0))}
        >
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
          {data.length === 0 && <p class="none">{offset ? 'No older ones' : 'Nothing happened yet'}</p>}
        </div>
      )}
      {data && (data.length === PAGE || offset > 0) && (
        <div class="row">
          <Button disabled={offset === 0} onClick={() => setOffset(Math.max(0, offset - PAGE))}>
            Newer
          </Button>
          <Button disabled={data.length < PAGE} onClick={() => setOffset(offset + PAGE)}>
            Older
          </Button>
        </div>
      )}
    </>
  )
}
