// SPDX-License-Identifier: Apache-2.0
import { useState } from 'preact/hooks'
import { del, get, post } from '../app/api'
import { useCommands } from '../app/commands'
import { usePoll } from '../app/poll'
import { Button, Confirm, Copy, Empty, Failed, Link, Loading, PageHead } from '../ui/parts'
import { NameDialog } from '../ui/name_dialog'
import { toast } from '../ui/toast'

interface Volume {
  volumeID: string
  name: string
}

export default function Volumes() {
  const { data, error, refresh } = usePoll((signal) => get<Volume[]>('/volumes', { signal }), 5000, [])
  const [making, setMaking] = useState(false)
  const [ending, setEnding] = useState<Volume>()
  useCommands(
    [{ id: 'vol-new', label: 'New volume', group: 'Volumes', keys: 'n', run: () => setMaking(true) }],
    [],
  )
  if (error && !data) return <Failed error={error} retry={refresh} />
  return (
    <>
      <PageHead title="Volumes" sub="Directory trees that outlive sandboxes; many mount one at once">
        <Button kind="primary" icon="plus" onClick={() => setMaking(true)}>
          New volume
        </Button>
      </PageHead>
      {!data && <Loading />}
      {data?.length === 0 && (
        <Empty icon="disk" title="No volume yet">
          <p>A sandbox mounts one by its name when it is created.</p>
        </Empty>
      )}
      {data && data.length > 0 && (
        <div class="tablewrap">
          <table class="list">
            <thead>
              <tr>
                <th>Name</th>
                <th>Id</th>
                <th class="end">
                  <span class="visually-hidden">Actions</span>
                </th>
              </tr>
            </thead>
            <tbody>
              {data.map((v) => (
                <tr key={v.volumeID}>
                  <td class="name">
                    <Link to={`/volumes/${v.volumeID}`}>{v.name}</Link>
                  </td>
                  <td class="mono soft break">
                    {v.volumeID} <Copy text={v.volumeID} label="Copy the id" />
                  </td>
                  <td class="end">
                    <Button small kind="ghost" icon="trash" label={`Delete ${v.name}`} onClick={() => setEnding(v)} />
                  </td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {making && (
        <NameDialog
          title="New volume"
          word="Make"
          value=""
          hint="Letters, digits, - and _"
          onClose={() => setMaking(false)}
          run={(name) => post('/volumes', { name }).then(refresh)}
        />
      )}
      {ending && (
        <Confirm
          title={`Delete ${ending.name}?`}
          word="Delete"
          text="All its files are lost. A volume that a sandbox mounts can’t be deleted."
          onClose={() => setEnding(undefined)}
          run={() =>
            del(`/volumes/${ending.volumeID}`).then(() => {
              toast('Deleted')
              refresh()
            })
          }
        />
      )}
    </>
  )
}
