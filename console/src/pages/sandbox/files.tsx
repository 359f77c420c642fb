// SPDX-License-Identifier: Apache-2.0
// The sandbox's files.
import { useMemo } from 'preact/hooks'
import { go, query } from '../../app/router'
import type { Box } from '../../lib/box'
import { FileBrowser, type FileStore } from '../../ui/file_browser'
import type { TabProps } from './page'

const HOME = '/home/user'

function storeOf(box: Box): FileStore {
  return {
    list: async (dir) =>
      (await box.files.list(dir)).map((e) => ({
        name: e.name,
        path: e.path,
        directory: e.type === 'dir',
        size: e.size,
        changed: e.modifiedTime?.toISOString(),
        target: e.symlinkTarget,
      })),
    read: (path) => box.files.read(path, { format: 'blob', requestTimeoutMs: 0 }),
    write: (path, data) => box.files.write(path, data, { requestTimeoutMs: 0 }),
    makeDir: (path) => box.files.makeDir(path),
    remove: (path) => box.files.remove(path),
    rename: (from, to) => box.files.rename(from, to),
  }
}

export default function Files({ box, id }: TabProps) {
  const store = useMemo(() => storeOf(box!), [box])
  return (
    <FileBrowser
      store={store}
      dir={query.value.get('path') ?? HOME}
      home={HOME}
      go={(dir) => go(`/sandboxes/${id}/files?path=${encodeURIComponent(dir)}`)}
    />
  )
}
