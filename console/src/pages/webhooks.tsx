// SPDX-License-Identifier: Apache-2.0
// URLs that events are posted to, and how that went.
import { useState } from 'preact/hooks'
import { del, get, patch, post } from '../app/api'
import { useCommands } from '../app/commands'
import { usePoll } from '../app/poll'
import { go } from '../app/router'
import { dateTime } from '../lib/format'
import {
  Button,
  Check,
  Confirm,
  Dialog,
  Empty,
  Failed,
  Field,
  Link,
  Loading,
  Menu,
  Note,
  PageHead,
  State,
} from '../ui/parts'
import { doing } from '../ui/toast'

interface Webhook {
  id: string
  name: string
  url: string
  enabled: boolean
  events: string[]
  createdAt: string
}

const TYPES = ['created', 'updated', 'paused', 'resumed', 'checkpointed', 'killed'].map(
  (t) => `sandbox.lifecycle.${t}`,
)

function NewDialog({ onClose, changed }: { onClose: () => void; changed: () => void }) {
  const [name, setName] = useState('')
  const [url, setUrl] = useState('')
  const [secret, setSecret] = useState('')
  const [events, setEvents] = useState<string[]>(TYPES)
  const [error, setError] = useState('')
  const submit = async (e: Event) => {
    e.preventDefault()
    setError('')
    try {
      await post('/events/webhooks', { name: name.trim(), url: url.trim(), events, signatureSecret: secret })
      changed()
      onClose()
    } catch (x) {
      setError((x as Error).message)
    }
  }
  return (
    <Dialog title="New webhook" onClose={onClose}>
      <form onSubmit={submit}>
        <div class="body">
          <Field label="Name">
            {(id) => <input id={id} type="text" value={name} onInput={(e) => setName(e.currentTarget.value)} />}
          </Field>
          <Field label="URL" hint="Events are posted there as JSON">
            {(id) => (
              <input
                id={id}
                type="text"
                value={url}
                placeholder="https://"
                onInput={(e) => setUrl(e.currentTarget.value)}
              />
            )}
          </Field>
          <Field label="Secret" hint="Signs each request, so that the receiver can check it; 32 characters at least">
            {(id) => (
              <input
                id={id}
                type="password"
                autocomplete="off"
                value={secret}
                onInput={(e) => setSecret(e.currentTarget.value)}
              />
            )}
          </Field>
          <div class="row">
            {TYPES.map((t) => (
              <Check
                key={t}
                label={t.split('.').pop()}
                checked={events.includes(t)}
                onChange={(on) => setEvents(on ? [...events, t] : events.filter((x) => x !== t))}
              />
            ))}
          </div>
          {error && <Note kind="bad">{error}</Note>}
        </div>
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" disabled={!name.trim() || !url.trim() || events.length === 0}>
            Register
          </Button>
        </footer>
      </form>
    </Dialog>
  )
}

export default function Webhooks() {
  const { data, error, refresh } = usePoll((signal) => get<Webhook[]>('/events/webhooks', { signal }), 5000, [])
  const [making, setMaking] = useState(false)
  const [ending, setEnding] = useState<Webhook>()
  useCommands(
    [{ id: 'hook-new', label: 'New webhook', group: 'Webhooks', keys: 'n', run: () => setMaking(true) }],
    [],
  )
  if (error && !data) return <Failed error={error} retry={refresh} />
  return (
    <>
      <PageHead title="Webhooks" sub="Events posted to your own addresses">
        <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
          New webhook
        </Button>
      </PageHead>
      {!data && <Loading />}
      {data?.length === 0 && (
        <Empty icon="hook" title="No webhook yet">
          <p>Register an address, and events of sandboxes are posted there with a signature.</p>
        </Empty>
      )}
      {data && data.length > 0 && (
        <div class="tablewrap">
          <table class="list stack">
            <thead>
              <tr>
                <th>Name</th>
                <th>State</th>
                <th>URL</th>
                <th>Events</th>
                <th>Made</th>
                <th class="end">
                  <span class="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.map((w) => (
                <tr key={w.id}>
                  <td class="name">
                    <Link to={`/webhooks/${w.id}`}>{w.name}</Link>
                  </td>
                  <td>
                    <State is={w.enabled ? 'good' : 'off'} word={w.enabled ? 'on' : 'off'} />
                  </td>
                  <td class="mono break">{w.url}</td>
                  <td class="soft">{w.events.map((e) => e.split('.').pop()).join(', ')}</td>
                  <td class="soft num">{dateTime(w.createdAt)}</td>
                  <td class="end">
                    <Menu
                      label={`Actions of ${w.name}`}
                      items={[
                        {
                          label: w.enabled ? 'Turn off' : 'Turn on',
                          icon: w.enabled ? 'pause' : 'play',
                          run: () =>
                            void doing(patch(`/events/webhooks/${w.id}`, { enabled: !w.enabled }), 'Changed').then(
                              refresh,
                            ),
                        },
                        { label: 'Deliveries', icon: 'list', run: () => go(`/webhooks/${w.id}`) },
                        { label: 'Delete', icon: 'trash', danger: true, run: () => setEnding(w) },
                      ]}
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {making && <NewDialog changed={refresh} onClose={() => setMaking(false)} />}
      {ending && (
        <Confirm
          title={`Delete ${ending.name}?`}
          word="Delete"
          text={<code>{ending.url}</code>}
          onClose={() => setEnding(undefined)}
          run={() => doing(del(`/events/webhooks/${ending.id}`), 'Deleted').then(refresh)}
        />
      )}
    </>
  )
}
