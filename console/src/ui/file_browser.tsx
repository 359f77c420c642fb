// SPDX-License-Identifier: Apache-2.0
// Files of a sandbox or a volume: browse, look at, edit, upload by drop, download. What a file holds is shown as text or
// as a picture, never as a document.
import type { ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { usePoll } from '../app/poll'
import { bytes, dateTime } from '../lib/format'
import { inside, looksLikeText, parent, pictureType, steps } from '../lib/paths'
import { save } from '../lib/save'
import type { EditorProps } from './editor'
import './file_browser.css'
import { Icon } from './icons'
import { NameDialog } from './name_dialog'
import { Button, Confirm, Failed, Loading, Menu } from './parts'
import { doing } from './toast'

const PREVIEW_MAX = 2_000_000

export interface FileEntry {
  name: string
  path: string
  directory: boolean
  size: number
  changed?: string
  target?: string // of a link
}

/** Where files are. */
export interface FileStore {
  list: (dir: string, signal: AbortSignal) => Promise<FileEntry[]>
  read: (path: string) => Promise<Blob>
  write: (path: string, data: Blob) => Promise<unknown>
  makeDir: (path: string) => Promise<unknown>
  remove: (path: string) => Promise<unknown>
  rename?: (from: string, to: string) => Promise<unknown>
}

const order = (a: FileEntry, b: FileEntry) =>
  Number(b.directory) - Number(a.directory) || a.name.localeCompare(b.name)

type Shown = { kind: 'text'; text: string } | { kind: 'picture'; url: string } | { kind: 'other'; why: string }

async function look(store: FileStore, e: FileEntry): Promise<Shown> {
  if (e.size > PREVIEW_MAX) return { kind: 'other', why: `${bytes(e.size)} is too much to show; download it` }
  const data = new Uint8Array(await (await store.read(e.path)).arrayBuffer())
  const picture = pictureType(e.name)
  if (picture) return { kind: 'picture', url: URL.createObjectURL(new Blob([data], { type: picture })) }
  if (looksLikeText(data)) return { kind: 'text', text: new TextDecoder().decode(data) }
  return { kind: 'other', why: 'This is neither text nor a picture; download it' }
}

const download = async (store: FileStore, e: FileEntry) => save(e.name, await store.read(e.path))

function Preview({
  store,
  entry,
  onClose,
  changed,
}: {
  store: FileStore
  entry: FileEntry
  onClose: () => void
  changed: () => void
}) {
  const [shown, setShown] = useState<Shown>()
  const [error, setError] = useState<Error>()
  const [text, setText] = useState('')
  const [editor, setEditor] = useState<{ Editor: ComponentType<EditorProps>; languageOf: (n: string) => string }>()
  const [busy, setBusy] = useState(false)
  useEffect(() => {
    let over = false
    let url = ''
    look(store, entry).then(
      (s) => {
        if (s.kind === 'picture') url = s.url
        if (over) return
        setShown(s)
        if (s.kind === 'text') {
          setText(s.text)
          void import('./editor').then((m) => !over && setEditor(m))
        }
      },
      (e: Error) => !over && setError(e),
    )
    return () => {
      over = true
      if (url) URL.revokeObjectURL(url)
    }
  }, [entry.path])
  const dirty = shown?.kind === 'text' && text !== shown.text
  const keep = async () => {
    setBusy(true)
    const done = await doing(
      store.write(entry.path, new Blob([text])).then(() => true),
      'Saved',
    )
    if (done) {
      setShown({ kind: 'text', text })
      changed()
    }
    setBusy(false)
  }
  return (
    <section class="card preview" aria-label={`File ${entry.name}`}>
      <header>
        <Icon name="file" />
        <h2 class="cut">{entry.name}</h2>
        <small>{bytes(entry.size)}</small>
        <span class="grow" />
        {shown?.kind === 'text' && (
          <Button small kind={dirty ? 'primary' : 'plain'} disabled={!dirty} busy={busy} onClick={() => void keep()}>
            Save
          </Button>
        )}
        <Button small icon="download" label="Download" onClick={() => void doing(download(store, entry))} />
        <Button small kind="ghost" icon="close" label="Close the file" onClick={onClose} />
      </header>
      <div class="content">
        {error && <Failed error={error} />}
        {!shown && !error && <Loading />}
        {shown?.kind === 'other' && <p class="none soft">{shown.why}</p>}
        {shown?.kind === 'picture' && <img src={shown.url} alt={entry.name} />}
        {shown?.kind === 'text' &&
          (editor ? (
            <editor.Editor
              value={text}
              language={editor.languageOf(entry.name)}
              label={`Text of ${entry.name}`}
              numbers
              onChange={setText}
              onSave={() => void keep()}
            />
          ) : (
            <pre>{shown.text}</pre>
          ))}
      </div>
    </section>
  )
}

type Asking = { what: 'dir' | 'file' } | { what: 'rename' | 'remove'; entry: FileEntry }

interface Props {
  store: FileStore
  dir: string
  home: string
  go: (dir: string) => void
}

export function FileBrowser({ store, dir, home, go }: Props) {
  const [open, setOpen] = useState<FileEntry>()
  const [asking, setAsking] = useState<Asking>()
  const [over, setOver] = useState(false)
  const [sending, setSending] = useState(0)
  const picker = useRef<HTMLInputElement>(null)
  const { data, error, refresh } = usePoll(
    async (signal) => (await store.list(dir, signal)).sort(order),
    5000,
    [store, dir],
  )
  const enter = (path: string) => {
    setOpen(undefined)
    go(path)
  }
  const upload = async (list: Iterable<File>) => {
    const files = [...list]
    setSending((n) => n + files.length)
    for (const f of files) {
      await doing(
        store.write(inside(dir, f.name), f),
        `${f.name} is there`,
      )
      setSending((n) => n - 1)
    }
    refresh()
  }
  return (
    <div class={`files${open ? ' withpreview' : ''}`}>
      <section
        class={`card browser${over ? ' dropping' : ''}`}
        aria-label="Files"
        onDragOver={(e) => {
          e.preventDefault()
          setOver(true)
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(e) => {
          e.preventDefault()
          setOver(false)
          if (e.dataTransfer?.files.length) void upload(e.dataTransfer.files)
        }}
      >
        <header>
          <nav class="steps" aria-label="Directory">
            {steps(dir).map((s, i) => (
              <button key={s.path} type="button" onClick={() => enter(s.path)}>
                {i > 1 && <span class="soft">/</span>}
                {s.name}
              </button>
            ))}
          </nav>
          <span class="grow" />
          {sending > 0 && (
            <small>
              <span class="spinner" /> {sending} to send
            </small>
          )}
          <Button small icon="upload" onClick={() => picker.current?.click()}>
            Upload
          </Button>
          <Menu
            label="More for this directory"
            items={[
              { label: 'New file', icon: 'file', run: () => setAsking({ what: 'file' }) },
              { label: 'New directory', icon: 'folder', run: () => setAsking({ what: 'dir' }) },
              { label: 'Home', icon: 'up', run: () => enter(home) },
            ]}
          />
          <input
            ref={picker}
            type="file"
            multiple
            hidden
            aria-label="Files to upload"
            onChange={(e) => {
              if (e.currentTarget.files) void upload(e.currentTarget.files)
              e.currentTarget.value = ''
            }}
          />
        </header>
        {error && <Failed error={error} retry={refresh} />}
        {!data && !error && <Loading />}
        <ul class="entries">
          {dir !== '/' && (
            <li>
              <button type="button" class="entry" onClick={() => enter(parent(dir))}>
                <Icon name="up" /> <span>..</span>
              </button>
            </li>
          )}
          {data?.map((e) => (
            <li key={e.path} class={open?.path === e.path ? 'open' : ''}>
              <button type="button" class="entry" onClick={() => (e.directory ? enter(e.path) : setOpen(e))}>
                <Icon name={e.directory ? 'folder' : 'file'} />
                <span class="cut">
                  {e.name}
                  {e.target && <span class="soft"> → {e.target}</span>}
                </span>
                <small class="num">{e.directory ? '' : bytes(e.size)}</small>
                <small class="when num">{e.changed ? dateTime(e.changed) : ''}</small>
              </button>
              <Menu
                label={`Actions of ${e.name}`}
                items={[
                  {
                    label: 'Download',
                    icon: 'download',
                    disabled: e.directory,
                    run: () => void doing(download(store, e)),
                  },
                  ...(store.rename
                    ? [
                        {
                          label: 'Rename',
                          icon: 'edit' as const,
                          run: () => setAsking({ what: 'rename', entry: e }),
                        },
                      ]
                    : []),
                  {
                    label: 'Delete',
                    icon: 'trash',
                    danger: true,
                    run: () => setAsking({ what: 'remove', entry: e }),
                  },
                ]}
              />
            </li>
          ))}
        </ul>
        {data?.length === 0 && <p class="none soft">Empty. Drop files here to upload them.</p>}
        {over && <div class="dropnote">Drop to upload to {dir}</div>}
      </section>
      {open && (
        <Preview key={open.path} store={store} entry={open} changed={refresh} onClose={() => setOpen(undefined)} />
      )}
      {asking?.what === 'dir' && (
        <NameDialog
          title="New directory"
          word="Make"
          value=""
          onClose={() => setAsking(undefined)}
          run={(n) => store.makeDir(inside(dir, n)).then(refresh)}
        />
      )}
      {asking?.what === 'file' && (
        <NameDialog
          title="New file"
          word="Make"
          value=""
          onClose={() => setAsking(undefined)}
          run={(n) => store.write(inside(dir, n), new Blob()).then(refresh)}
        />
      )}
      {asking?.what === 'rename' && (
        <NameDialog
          title={`Rename ${asking.entry.name}`}
          word="Rename"
          value={asking.entry.name}
          onClose={() => setAsking(undefined)}
          run={(n) => store.rename!(asking.entry.path, inside(dir, n)).then(refresh)}
        />
      )}
      {asking?.what === 'remove' && (
        <Confirm
          title={`Delete ${asking.entry.name}?`}
          word="Delete"
          text={<code>{asking.entry.path}</code>}
          run={async () => {
            await store.remove(asking.entry.path)
            if (open?.path === asking.entry.path) setOpen(undefined)
            refresh()
          }}
          onClose={() => setAsking(undefined)}
        />
      )}
    </div>
  )
}
