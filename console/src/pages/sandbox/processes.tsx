// SPDX-License-Identifier: Apache-2.0
// What was started through the agent and still runs.
import { useState } from 'preact/hooks'
import { usePoll } from '../../app/poll'
import { Button, Confirm, Failed, Loading } from '../../ui/parts'
import { toast } from '../../ui/toast'
import type { TabProps } from './page'

interface Row {
  pid: number
  tag?: string
  cmd: string
  args: string[]
  cwd?: string
}

export default function Processes({ box, id }: TabProps) {
  const [ending, setEnding] = useState<Row>()
  const { data, error, refresh } = usePoll(async () => (await box!.commands.list()) as Row[], 3000, [id, box])
  if (error && !data) return <Failed error={error} retry={refresh} />
  if (!data) return <Loading />
  return (
    <>
      <div class="tablewrap">
        <table class="list">
          <thead>
            <tr>
              <th>Pid</th>
              <th>Command</th>
              <th>Directory</th>
              <th class="end">
                <span class="visually-hidden">Actions</span>
              </th>
            </tr>
          </thead>
          <tbody>
            {data.map((p) => (
              <tr key={p.pid}>
                <td class="num mono">{p.pid}</td>
                <td class="mono break">
                  {[p.cmd, ...p.args].join(' ')} {p.tag && <span class="tag">{p.tag}</span>}
                </td>
                <td class="mono soft">{p.cwd ?? ''}</td>
                <td class="end">
                  <Button
                    small
                    kind="ghost"
                    icon="close"
                    label={`End process ${p.pid}`}
                    onClick={() => setEnding(p)}
                  />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        {data.length === 0 && <p class="none">No command or terminal that was started through the API runs</p>}
      </div>
      {ending && (
        <Confirm
          title={`End process ${ending.pid}?`}
          word="End it"
          text={<code>{[ending.cmd, ...ending.args].join(' ')}</code>}
          run={async () => {
            await box!.commands.kill(ending.pid)
            toast('Ended')
            refresh()
          }}
          onClose={() => setEnding(undefined)}
        />
      )}
    </>
  )
}
