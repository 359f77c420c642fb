// SPDX-License-Identifier: Apache-2.0
// Files: browse, look at, edit, upload by drop, download. What a file holds is shown as text or as a picture, never as
// a document.
import type { ComponentType } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { usePoll } from '../../app/poll'
import { go, query } from '../../app/router'
import type { Box } from '../../lib/box'
import { bytes, dateTime } from '../../lib/format'
import { inside, looksLikeText, parent, pictureType, steps } from '../../lib/paths'
import { save } from '../../lib/save'
import type { EditorProps } from '../../ui/editor'
import { Icon } from '../../ui/icons'
import { NameDialog } from '../../ui/name_dialog'
import { Button, Confirm, Failed, Loading, Menu } from '../../ui/parts'
import { doing, toast } from '../../ui/toast'
import type { TabProps } from './page'

const PREVIEW_MAX = 2_000_000
const HOME = '/home/user'

interface Entry {
  name: string
  type?: string
  path: string
  size: number
  permissions: string
  owner: string
  modifiedTime?: Date
  symlinkTarget?: string
}

const isDir = (e: Entry) => e.type === 'dir'
const order = (a: Entry, b: Entry) => Number(isDir(b)) - Number(isDir(a)) || a.name.localeCompare(b.name)

type Shown = { kind: 'text'; text: string } | { kind: 'picture'; url: string } | { kind: 'other'; why: string }

async function look(box: Box, e: Entry): Promise<Shown> {
  if (e.size > PREVIEW_MAX) return { kind: 'other', why: `${bytes(e.size)} is too much to show; download it` }
  const data = (await box.files.read(e.path, { format: 'bytes' })) as Uint8Array<ArrayBuffer>
  const picture = pictureType(e.name)
  if (picture) return { kind: 'picture', url: URL.createObjectURL(new Blob([data], { type: picture })) }
  if (looksLikeText(data)) return { kind: 'text', text: new TextDecoder().decode(data) }
  return { kind: 'other', why: 'This is neither text nor a picture; download it' }
}

async function download(box: Box, e: Entry) {
  const blob = (await box.files.read(e.path, { format: 'blob', requestTimeoutMs: 0 })) as Blob
  save(e.name, blob)
}

function Preview({
  box,
  entry,
  onClose,
  changed,
}: {
  box: Box
  entry: Entry
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
    look(box, entry).then(
      (s) => {
        if (s.kind === 'picture') url = s.url
        if (over) return
        setShown(s)
        if (s.kind === 'text') {
          setText(s.text)
          void import('../../ui/editor').then((m) => !over && setEditor(m))
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
  const store = async () => {
    setBusy(true)
    if (await doing(box.files.write(entry.path, text), 'Saved')) {
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
          <Button small kind={dirty ? 'primary' : 'plain'} disabled={!dirty} busy={busy} onClick={() => void store()}>
            Save
          </Button>
        )}
        <Button small icon="download" label="Download" onClick={() => void doing(download(box, entry))} />
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
              onSave={() => void store()}
            />
          ) : (
            <pre>{shown.text}</pre>
          ))}
      </div>
    </section>
  )
}

type Asking = { what: 'dir' | 'file' } | { what: 'rename' | 'remove'; entry: Entry }

export default function Files({ box, id }: TabProps) {
  const dir = query.value.get('path') ?? HOME
  const [open, setOpen] = useState<Entry>()
  const [asking, setAsking] = useState<Asking>()
  const [over, setOver] = useState(false)
  const [sending, setSending] = useState(0)
  const picker = useRef<HTMLInputElement>(null)
  const { data, error, refresh } = usePoll(async () => ((await box!.files.list(dir)) as Entry[]).sort(order), 5000, [
    id,
    box,
    dir,
  ])
  const enter = (path: string) => {
    setOpen(undefined)
    go(`/sandboxes/${id}/files?path=${encodeURIComponent(path)}`)
  }
  const upload = async (list: Iterable<File>) => {
    const files = [...list]
    setSending((n) => n + files.length)
    for (const f of files) {
      const done = await doing(box!.files.write(inside(dir, f.name), f, { requestTimeoutMs: 0 }))
      if (done) toast(`${f.name} is there`)
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
              { label: 'Home', icon: 'up', run: () => enter(HOME) },
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
              <button type="button" class="entry" onClick={() => (isDir(e) ? enter(e.path) : setOpen(e))}>
                <Icon name={isDir(e) ? 'folder' : 'file'} />
                <span class="cut">
                  {e.name}
                  {e.symlinkTarget && <span class="soft"> → {e.symlinkTarget}</span>}
                </span>
                <small class="num">{isDir(e) ? '' : bytes(e.size)}</small>
                <small class="when num">{e.modifiedTime ? dateTime(e.modifiedTime.toISOString()) : ''}</small>
              </button>
              <Menu
                label={`Actions of ${e.name}`}
                items={[
                  {
                    label: 'Download',
                    icon: 'download',
                    disabled: isDir(e),
                    run: () => void doing(download(box!, e)),
                  },
                  { label: 'Rename', icon: 'edit', run: () => setAsking({ what: 'rename', entry: e }) },
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
        <Preview key={open.path} box={box!} entry={open} changed={refresh} onClose={() => setOpen(undefined)} />
      )}
      {asking?.what === 'dir' && (
        <NameDialog
          title="New directory"
          word="Make"
          value=""
          onClose={() => setAsking(undefined)}
          run={(n) => box!.files.makeDir(inside(dir, n)).then(refresh)}
        />
      )}
      {asking?.what === 'file' && (
        <NameDialog
          title="New file"
          word="Make"
          value=""
          onClose={() => setAsking(undefined)}
          run={(n) => box!.files.write(inside(dir, n), '').then(refresh)}
        />
      )}
      {asking?.what === 'rename' && (
        <NameDialog
          title={`Rename ${asking.entry.name}`}
          word="Rename"
          value={asking.entry.name}
          onClose={() => setAsking(undefined)}
          run={(n) => box!.files.rename(asking.entry.path, inside(dir, n)).then(refresh)}
        />
      )}
      {asking?.what === 'remove' && (
        <Confirm
          title={`Delete ${asking.entry.name}?`}
          word="Delete"
          text={<code>{asking.entry.path}</code>}
          run={async () => {
            await box!.files.remove(asking.entry.path)
            if (open?.path === asking.entry.path) setOpen(undefined)
            refresh()
          }}
          onClose={() => setAsking(undefined)}
        />
      )}
    </div>
  )
}
