// SPDX-License-Identifier: Apache-2.0
// Secrets: values go in and never come out.
import { useState } from 'preact/hooks'
import { del, get, post } from '../app/api'
import { useCommands } from '../app/commands'
import { usePoll } from '../app/poll'
import { dateTime } from '../lib/format'
import { Button, Confirm, Dialog, Empty, Failed, Field, Loading, Menu, PageHead } from '../ui/parts'
import { doing } from '../ui/toast'

interface Secret {
  secretID: string
  name: string
  currentVersion: number
  updatedAt: string
}

function ValueDialog({ secret, onClose, changed }: { secret?: Secret; onClose: () => void; changed: () => void }) {
  const [name, setName] = useState('')
  const [value, setValue] = useState('')
  const [busy, setBusy] = useState(false)
  const run = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    const call = secret
      ? post(`/secrets/${secret.secretID}`, { value })
      : post('/secrets', { name: name.trim(), value })
    const done = await doing(call, secret ? 'A new version is in use' : 'Kept')
    setBusy(false)
    if (done === undefined) return
    changed()
    onClose()
  }
  return (
    <Dialog title={secret ? `New value of ${secret.name}` : 'New secret'} onClose={onClose}>
      <form onSubmit={run}>
        <div class="body">
          {!secret && (
            <Field label="Name">
              {(id) => <input id={id} type="text" value={name} onInput={(e) => setName(e.currentTarget.value)} />}
            </Field>
          )}
          <Field label="Value" hint="Kept encrypted; no call returns it">
            {(id) => (
              <input
                id={id}
                type="password"
                autocomplete="off"
                value={value}
                onInput={(e) => setValue(e.currentTarget.value)}
              />
            )}
          </Field>
        </div>
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy} disabled={!value || (!secret && !name.trim())}>
            Keep
          </Button>
        </footer>
      </form>
    </Dialog>
  )
}

export default function Secrets() {
  const { data, error, refresh } = usePoll((signal) => get<Secret[]>('/secrets', { signal }), 5000, [])
  const [asking, setAsking] = useState<{ what: 'new' | 'value' | 'delete'; secret?: Secret }>()
  useCommands(
    [{ id: 'secret-new', label: 'New secret', group: 'Secrets', keys: 'n', run: () => setAsking({ what: 'new' }) }],
    [],
  )
  if (error && !data) return <Failed error={error} retry={refresh} />
  return (
    <>
      <PageHead title="Secrets" sub="Values that requests of sandboxes use and sandboxes never hold">
        <Button kind="primary" icon="plus" onClick={() => setAsking({ what: 'new' })}>
          New secret
        </Button>
      </PageHead>
      {!data && <Loading />}
      {data?.length === 0 && (
        <Empty icon="lock" title="No secret yet">
          <p>Header rules of a sandbox name one; the server puts its value into requests on their way out.</p>
        </Empty>
      )}
      {data && data.length > 0 && (
        <div class="tablewrap">
          <table class="list stack">
            <thead>
              <tr>
                <th>Name</th>
                <th>Id</th>
                <th>Version</th>
                <th>Changed</th>
                <th class="end">
                  <span class="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.map((s) => (
                <tr key={s.secretID}>
                  <td class="name">{s.name}</td>
                  <td class="mono soft">{s.secretID}</td>
                  <td class="num">{s.currentVersion}</td>
                  <td class="soft num">{dateTime(s.updatedAt)}</td>
                  <td class="end">
                    <Menu
                      label={`Actions of ${s.name}`}
                      items={[
                        { label: 'New value', icon: 'edit', run: () => setAsking({ what: 'value', secret: s }) },
                        {
                          label: 'Delete',
                          icon: 'trash',
                          danger: true,
                          run: () => setAsking({ what: 'delete', secret: s }),
                        },
                      ]}
                    />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {(asking?.what === 'new' || asking?.what === 'value') && (
        <ValueDialog secret={asking.secret} changed={refresh} onClose={() => setAsking(undefined)} />
      )}
      {asking?.what === 'delete' && asking.secret && (
        <Confirm
          title={`Delete ${asking.secret.name}?`}
          word="Delete"
          text="Requests that use it are refused from then on."
          onClose={() => setAsking(undefined)}
          run={() => doing(del(`/secrets/${asking.secret!.secretID}`), 'Deleted').then(refresh)}
        />
      )}
    </>
  )
}
