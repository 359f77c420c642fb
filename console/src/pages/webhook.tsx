// SPDX-License-Identifier: Apache-2.0
// One webhook: what was sent, what was answered, and figures of a day. Receivers choose what they answer: it is text.
import { useState } from 'preact/hooks'
import { get } from '../app/api'
import { usePoll } from '../app/poll'
import { dateTime, plural } from '../lib/format'
import type { Params } from '../lib/match'
import { Failed, Link, Loading, PageHead, State } from '../ui/parts'
import { Plot } from '../ui/plot'
import './webhook.css'

interface Webhook {
  id: string
  name: string
  url: string
  enabled: boolean
}

interface Attempt {
  id: string
  status: 'success' | 'failed'
  durationMs: number
  timestamp: string
  requestBody: string
  responseBody: string | null
  responseHttpStatusCode: number | null
  errorClass: string | null
  errorMessage: string | null
}

interface Delivery {
  eventId: string
  eventType: string
  sandboxId: string
  attempts: Attempt[]
}

interface Figures {
  total: number
  failed: number
  durationMs: { minimum: number; average: number; maximum: number }
}

interface Stats extends Figures {
  buckets: (Figures & { timestamp: string })[]
}

function Day({ stats }: { stats: Stats }) {
  const times = stats.buckets.map((b) => Date.parse(b.timestamp) / 1000)
  return (
    <section class="card plotcard">
      <header>
        <h2>The last day</h2>{' '}
        <span class="num soft">
          {plural(stats.total, 'attempt')}, {stats.failed.toLocaleString('en')} failed
        </span>
      </header>
      <Plot
        label="Attempts over the last day"
        times={times}
        format={(v) => String(Math.round(v * 10) / 10)}
        max={4}
        lines={[
          { label: 'Attempts', values: stats.buckets.map((b) => b.total), color: '--accent', fill: true },
          { label: 'Failed', values: stats.buckets.map((b) => b.failed), color: '--bad' },
        ]}
      />
    </section>
  )
}

const answer = (a: Attempt) =>
  a.responseHttpStatusCode ? `answered ${a.responseHttpStatusCode}` : (a.errorClass ?? '').replace('_', ' ')

function Row({ d }: { d: Delivery }) {
  const last = d.attempts[0]!
  return (
    <tr class="delivery">
      <td class="name">
        <State is={last.status === 'success' ? 'good' : 'bad'} word={d.eventType.split('.').pop()!} />
      </td>
      <td>
        <Link to={`/sandboxes/${d.sandboxId}/events`} class="mono">
          {d.sandboxId}
        </Link>
      </td>
      <td class="soft num">{dateTime(last.timestamp)}</td>
      <td>
        <details>
          <summary>
            {answer(last)} in {last.durationMs} ms
            {d.attempts.length > 1 && <span class="soft"> · {plural(d.attempts.length, 'attempt')}</span>}
          </summary>
          {d.attempts.map((a) => (
            <div key={a.id} class="attempt">
              <small>
                {dateTime(a.timestamp)} · {answer(a)} {a.errorMessage}
              </small>
              <pre tabIndex={0} aria-label="Sent">
                {a.requestBody}
              </pre>
              {a.responseBody && (
                <pre tabIndex={0} aria-label="Answered">
                  {a.responseBody}
                </pre>
              )}
            </div>
          ))}
        </details>
      </td>
    </tr>
  )
}

export default function WebhookPage({ params }: { params: Params }) {
  const id = params['id']!
  const [only, setOnly] = useState('')
  const { data, error, refresh } = usePoll(
    async (signal) => {
      const at = `/events/webhooks/${id}`
      const [hook, list, stats] = await Promise.all([
        get<Webhook>(at, { signal }),
        get<{ data: Delivery[] }>(`${at}/deliveries?limit=50${only && `&deliveryStatus=${only}`}`, { signal }),
        get<Stats>(`${at}/stats`, { signal }),
      ])
      return { hook, list: list.data, stats }
    },
    3000,
    [id, only],
  )
  if (error && !data) return <Failed error={error} retry={refresh} />
  if (!data) return <Loading />
  const { hook, list, stats } = data
  return (
    <>
      <PageHead
        title={
          <span class="crumbs">
            <Link to="/webhooks">Webhooks</Link> <span class="soft">/</span> {hook.name}
          </span>
        }
        sub={
          <>
            <State is={hook.enabled ? 'good' : 'off'} word={hook.enabled ? 'on' : 'off'} />{' '}
            <code class="break">{hook.url}</code>
          </>
        }
      >
        <select class="narrow" aria-label="Which" value={only} onChange={(e) => setOnly(e.currentTarget.value)}>
          <option value="">All deliveries</option>
          <option value="success">Delivered</option>
          <option value="failed">Failed</option>
        </select>
      </PageHead>
      <Day stats={stats} />
      <div class="tablewrap">
        <table class="list stack">
          <thead>
            <tr>
              <th>Event</th>
              <th>Sandbox</th>
              <th>Sent</th>
              <th>Answer</th>
            </tr>
          </thead>
          <tbody>
            {list.map((d) => (
              <Row key={d.eventId} d={d} />
            ))}
          </tbody>
        </table>
        {list.length === 0 && <p class="none">Nothing was sent yet. The latest fifty events stand here.</p>}
      </div>
    </>
  )
}
