// SPDX-License-Identifier: Apache-2.0
// API keys of the team. A new one is shown once.
import { useState } from 'preact/hooks'
import { del, get, patch, post } from '../app/api'
import { useCommands } from '../app/commands'
import { usePoll } from '../app/poll'
import { session } from '../app/session'
import { age, dateTime } from '../lib/format'
import { Button, Confirm, Copy, Failed, Loading, Menu, Note, PageHead } from '../ui/parts'
import { NameDialog } from '../ui/name_dialog'
import { doing } from '../ui/toast'

interface Key {
  id: string
  name: string
  mask: { prefix: string; maskedValuePrefix: string; maskedValueSuffix: string }
  createdAt: string
  lastUsed?: string
  expiresAt?: string
}

type Asking = { what: 'new' } | { what: 'rename' | 'delete'; key: Key }

export default function Keys() {
  const { data, error, refresh } = usePoll((signal) => get<Key[]>('/api-keys', { signal }), 5000, [])
  const [asking, setAsking] = useState<Asking>()
  const [made, setMade] = useState('')
  useCommands(
    [{ id: 'key-new', label: 'New API key', group: 'API keys', keys: 'n', run: () => setAsking({ what: 'new' }) }],
    [],
  )
  if (error && !data) return <Failed error={error} retry={refresh} />
  return (
    <>
      <PageHead title="API keys" sub={session.value?.teamName}>
        <Button kind="primary" icon="plus" onClick={() => setAsking({ what: 'new' })}>
          New key
        </Button>
      </PageHead>
      {made && (
        <Note>
          The new key is shown this once: <code>{made}</code> <Copy text={made} label="Copy the key" />{' '}
          <button type="button" class="textlink" onClick={() => setMade('')}>
            Hide it
          </button>
        </Note>
      )}
      {!data ? (
        <Loading />
      ) : (
        <div class="tablewrap">
          <table class="list stack">
            <thead>
              <tr>
                <th>Name</th>
                <th>Key</th>
                <th>Made</th>
                <th>Last used</th>
                <th>Ends</th>
                <th class="end">
                  <span class="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.map((k) => (
                <tr key={k.id}>
                  <td class="name">
                    {k.name} {k.id === session.value?.keyID && <span class="tag">this session</span>}
                  </td>
                  <td class="mono soft">
                    {k.mask.prefix}
                    {k.mask.maskedValuePrefix}…{k.mask.maskedValueSuffix}
                  </td>
                  <td class="soft num">
                    <span class="narrow-only">made </span>
                    {dateTime(k.createdAt)}
                  </td>
                  <td class="soft num">
                    <span class="narrow-only">used </span>
                    {k.lastUsed ? `${age(k.lastUsed)} ago` : 'never'}
                  </td>
                  <td class="soft num">
                    <span class="narrow-only">ends </span>
                    {k.expiresAt ? dateTime(k.expiresAt) : 'never'}
                  </td>
                  <td class="end">
                    <Menu
                      label={`Actions of ${k.name}`}
                      items={[
                        { label: 'Rename', icon: 'edit', run: () => setAsking({ what: 'rename', key: k }) },
                        {
                          label: 'Delete',
                          icon: 'trash',
                          danger: true,
                          run: () => setAsking({ what: 'delete', key: k }),
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
      {asking?.what === 'new' && (
        <NameDialog
          title="New API key"
          word="Make"
          value=""
          onClose={() => setAsking(undefined)}
          run={async (name) => {
            setMade((await post<{ key: string }>('/api-keys', { name })).key)
            refresh()
          }}
        />
      )}
      {asking?.what === 'rename' && (
        <NameDialog
          title="Rename the key"
          word="Rename"
          value={asking.key.name}
          onClose={() => setAsking(undefined)}
          run={(name) => patch(`/api-keys/${asking.key.id}`, { name }).then(refresh)}
        />
      )}
      {asking?.what === 'delete' && (
        <Confirm
          title={`Delete ${asking.key.name}?`}
          word="Delete"
          text="It stops working at once, wherever it is used."
          onClose={() => setAsking(undefined)}
          run={() => doing(del(`/api-keys/${asking.key.id}`), 'Deleted').then(refresh)}
        />
      )}
    </>
  )
}
