// SPDX-License-Identifier: Apache-2.0
// One volume: its files, through the content API with the volume's own token.
import { useMemo } from 'preact/hooks'
import { call, get } from '../app/api'
import { usePoll } from '../app/poll'
import { go, query } from '../app/router'
import type { Params } from '../lib/match'
import { FileBrowser, type FileStore } from '../ui/file_browser'
import { Copy, Failed, Link, Loading, PageHead } from '../ui/parts'

interface Volume {
  volumeID: string
  name: string
  token: string
}

interface Entry {
  name: string
  path: string
  type: 'file' | 'directory' | 'symlink' | 'unknown'
  size: number
  mtime: string
  target?: string
}

function storeOf(id: string, token: string): FileStore {
  const at = (what: string, path: string, more = '') =>
    `/volumecontent/${id}/${what}?path=${encodeURIComponent(path)}${more}`
  return {
    list: async (dir, signal) =>
      (await get<Entry[]>(at('dir', dir), { token, signal })).map((e) => ({
        name: e.name,
        path: e.path,
        directory: e.type === 'directory',
        size: e.size,
        changed: e.mtime,
        target: e.target,
      })),
    read: async (path) => (await call('GET', at('file', path), { token })).blob(),
    write: (path, raw) => call('PUT', at('file', path, '&force=true'), { token, raw }),
    makeDir: (path) => call('POST', at('dir', path), { token }),
    remove: (path) => call('DELETE', at('path', path), { token }),
  }
}

export default function VolumePage({ params }: { params: Params }) {
  const id = params['id']!
  const { data, error, refresh } = usePoll((signal) => get<Volume>(`/volumes/${id}`, { signal }), 30_000, [id])
  const store = useMemo(() => (data ? storeOf(id, data.token) : undefined), [id, data?.token])
  if (error && !data) return <Failed error={error} retry={refresh} />
  if (!data || !store) return <Loading />
  return (
    <>
      <PageHead
        title={
          <span class="crumbs">
            <Link to="/volumes">Volumes</Link> <span class="soft">/</span> {data.name}
          </span>
        }
        sub={
          <>
            <code>{id}</code> <Copy text={id} label="Copy the id" />
          </>
        }
      />
      <FileBrowser
        store={store}
        dir={query.value.get('path') ?? '/'}
        home="/"
        go={(dir) => go(`/volumes/${id}?path=${encodeURIComponent(dir)}`)}
      />
    </>
  )
}
