// SPDX-License-Identifier: Apache-2.0
// Where the tags of a template were: each with the builds it was put on, newest first, and the way back.
import { get } from '../app/api'
import { usePoll } from '../app/poll'
import { dateTime } from '../lib/format'
import { Button, Failed, Link, Loading } from '../ui/parts'
import './tag_history.css'

interface Assignment {
  assignmentId: string
  buildId: string
  assignedAt: string
}

interface Group {
  tag: string
  assignments: Assignment[]
  hasMore: boolean
}

interface Props {
  id: string
  stamp: string // changes when tags do
  back: (tag: string, build: string) => void
}

export function TagHistory({ id, stamp, back }: Props) {
  const { data, error, refresh } = usePoll(
    (signal) => get<{ tags: Group[] }>(`/templates/${id}/tags/groups?tagsLimit=100&assignmentLimit=25`, { signal }),
    10_000,
    [id, stamp],
  )
  return (
    <section class="card" aria-label="History of tags">
      <header>
        <h2>History of tags</h2>
      </header>
      {error && !data && <Failed error={error} retry={refresh} />}
      {!data && !error && <Loading />}
      {data?.tags.map((g) => (
        <div key={g.tag} class="body taghistory">
          <span class="tag">{g.tag}</span>
          <ol>
            {g.assignments.map((a, i) => (
              <li key={a.assignmentId}>
                <Link to={`/templates/${id}/${a.buildId}`} class="mono">
                  {a.buildId.slice(0, 8)}
                </Link>{' '}
                <span class="soft num">{dateTime(a.assignedAt)}</span>{' '}
                {i === 0 ? (
                  <small>now</small>
                ) : (
                  a.buildId !== g.assignments[0]!.buildId && (
                    <Button
                      small
                      icon="refresh"
                      label={`Back to this: ${g.tag} on ${a.buildId.slice(0, 8)}`}
                      onClick={() => back(g.tag, a.buildId)}
                    >
                      Back to this
                    </Button>
                  )
                )}
              </li>
            ))}
          </ol>
          {g.hasMore && <small>and older ones</small>}
        </div>
      ))}
      {data?.tags.length === 0 && <p class="none">No tag yet</p>}
    </section>
  )
}
