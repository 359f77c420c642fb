// SPDX-License-Identifier: Apache-2.0
// Services that listen in the sandbox, with links to them.
import { usePoll } from '../../app/poll'
import { listeners } from '../../lib/ports'
import { Copy, Empty, Failed, Loading } from '../../ui/parts'
import type { TabProps } from './page'

export default function Ports({ box, detail, id }: TabProps) {
  const { data, error, refresh } = usePoll(
    async () => {
      const tables = ['/proc/net/tcp', '/proc/net/tcp6'].map((path) => box!.files.read(path).catch(() => ''))
      return listeners((await Promise.all(tables)).join('\n'))
    },
    5000,
    [id, box],
  )
  const byName = (port: number) => `${location.protocol}//${port}-${id}.${detail?.domain}`
  const byPath = (port: number) => `${location.origin}/box/${id}/${port}/`
  if (error && !data) return <Failed error={error} retry={refresh} />
  if (!data) return <Loading />
  if (data.length === 0)
    return (
      <Empty icon="link" title="Nothing listens yet">
        <p>
          Start a server in the sandbox, for example <code>python3 -m http.server 8000</code>, and its link appears
          here.
        </p>
      </Empty>
    )
  return (
    <div class="tablewrap">
      <table class="list">
        <thead>
          <tr>
            <th>Port</th>
            <th>Links</th>
            <th>Listens on</th>
          </tr>
        </thead>
        <tbody>
          {data.map((l) => {
            const url = detail?.domain ? byName(l.port) : byPath(l.port)
            return (
              <tr key={l.port}>
                <td class="num name">{l.port}</td>
                <td>
                  <div class="row">
                    <a href={url} target="_blank" rel="noopener noreferrer" class="mono break">
                      {url}
                    </a>
                    <Copy text={url} label="Copy the link" />
                    {detail?.domain && (
                      <a href={byPath(l.port)} target="_blank" rel="noopener noreferrer" class="soft">
                        by path
                      </a>
                    )}
                  </div>
                </td>
                <td class="soft">{l.all ? 'all addresses' : 'loopback'}</td>
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}
