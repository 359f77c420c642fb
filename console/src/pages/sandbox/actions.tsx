// SPDX-License-Identifier: Apache-2.0
// What can be done to a sandbox, as a menu and as functions.
import { useState } from 'preact/hooks'
import { del, post } from '../../app/api'
import { go } from '../../app/router'
import type { Sandbox } from '../../lib/types'
import { Button, Confirm, Dialog, Field, Menu, type MenuItem } from '../../ui/parts'
import { doing, toast } from '../../ui/toast'

const TIMES = [
  ['300', '5 minutes'],
  ['900', '15 minutes'],
  ['3600', '1 hour'],
  ['14400', '4 hours'],
  ['86400', '24 hours'],
] as const

interface ForkRow {
  sandbox?: { sandboxID: string }
  error?: { message: string }
}

export const pause = (id: string) => post(`/sandboxes/${id}/pause`)
export const resume = (id: string, timeout = 300) => post(`/v2/sandboxes/${id}/connect`, { timeout })
export const kill = (id: string) => del(`/sandboxes/${id}`)

export async function fork(id: string): Promise<string> {
  const rows = await post<ForkRow[]>(`/sandboxes/${id}/fork`, { count: 1 })
  const row = rows[0]
  if (!row?.sandbox) throw new Error(row?.error?.message ?? 'the fork failed')
  return row.sandbox.sandboxID
}

function ExtendDialog({ id, onClose, changed }: { id: string; onClose: () => void; changed: () => void }) {
  const [seconds, setSeconds] = useState('3600')
  const [busy, setBusy] = useState(false)
  const run = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    await doing(post(`/sandboxes/${id}/timeout`, { timeout: Number(seconds) }), 'The time is set')
    changed()
    onClose()
  }
  return (
    <Dialog title="Time left" onClose={onClose}>
      <form onSubmit={run}>
        <div class="body">
          <Field label="It ends in, counted from now">
            {(fid) => (
              <select id={fid} value={seconds} onChange={(e) => setSeconds(e.currentTarget.value)}>
                {TIMES.map(([v, label]) => (
                  <option key={v} value={v}>
                    {label}
                  </option>
                ))}
              </select>
            )}
          </Field>
        </div>
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy}>
            Set
          </Button>
        </footer>
      </form>
    </Dialog>
  )
}

function SnapshotDialog({ id, onClose }: { id: string; onClose: () => void }) {
  const [name, setName] = useState('')
  const [busy, setBusy] = useState(false)
  const run = async (e: Event) => {
    e.preventDefault()
    setBusy(true)
    const made = await doing(
      post<{ snapshotID: string }>(`/sandboxes/${id}/snapshots`, name.trim() ? { name: name.trim() } : {}),
    )
    if (made) toast(`Snapshot ${made.snapshotID} is kept: create sandboxes from it by that name`)
    onClose()
  }
  return (
    <Dialog title="Keep a snapshot" onClose={onClose}>
      <form onSubmit={run}>
        <div class="body">
          <Field label="Name" hint="Files and memory are kept; the sandbox goes on. Without a name it gets an id.">
            {(fid) => (
              <input
                id={fid}
                type="text"
                value={name}
                placeholder="after-setup"
                onInput={(e) => setName(e.currentTarget.value)}
              />
            )}
          </Field>
        </div>
        <footer>
          <Button onClick={onClose}>Cancel</Button>
          <Button kind="primary" type="submit" busy={busy}>
            Keep
          </Button>
        </footer>
      </form>
    </Dialog>
  )
}

/** A menu with everything; `buttons` shows the first ones as buttons beside it. */
export function SandboxActions({ box, changed, buttons }: { box: Sandbox; changed: () => void; buttons?: boolean }) {
  const [asking, setAsking] = useState<'kill' | 'extend' | 'snapshot'>()
  const [busy, setBusy] = useState('')
  const id = box.sandboxID
  const run = async (what: string, p: Promise<unknown>, done: string) => {
    setBusy(what)
    await doing(p, done)
    setBusy('')
    changed()
  }
  const doFork = async () => {
    setBusy('fork')
    const made = await doing(fork(id), 'Forked')
    setBusy('')
    changed()
    if (made && buttons) go(`/sandboxes/${made}`)
  }
  const running = box.state === 'running'
  const toggle: MenuItem = running
    ? { label: 'Pause', icon: 'pause', run: () => void run('pause', pause(id), 'Paused') }
    : { label: 'Resume', icon: 'play', run: () => void run('pause', resume(id), 'Resumed') }
  const copy: MenuItem = { label: 'Fork', icon: 'fork', disabled: !running, run: () => void doFork() }
  const rest: MenuItem[] = [
    { label: 'Keep a snapshot', icon: 'camera', disabled: !running, run: () => setAsking('snapshot') },
    { label: 'Change time left', icon: 'clock', disabled: !running, run: () => setAsking('extend') },
    { label: 'Kill', icon: 'trash', danger: true, run: () => setAsking('kill') },
  ]
  return (
    <>
      {buttons && (
        <>
          <Button icon={toggle.icon} busy={busy === 'pause'} onClick={toggle.run}>
            {toggle.label}
          </Button>
          <Button icon="fork" busy={busy === 'fork'} disabled={!running} onClick={copy.run}>
            Fork
          </Button>
        </>
      )}
      {!buttons && busy && <span class="spinner" />}
      <Menu label={`Actions of ${id}`} items={buttons ? rest : [toggle, copy, ...rest]} />
      {asking === 'kill' && (
        <Confirm
          title="Kill this sandbox?"
          word="Kill"
          text={
            <p>
              Everything in <code>{id}</code> is lost: files, memory, processes. A snapshot or a pause would keep it.
            </p>
          }
          run={async () => {
            await kill(id)
            toast('Killed')
            changed()
          }}
          onClose={() => setAsking(undefined)}
        />
      )}
      {asking === 'extend' && <ExtendDialog id={id} changed={changed} onClose={() => setAsking(undefined)} />}
      {asking === 'snapshot' && <SnapshotDialog id={id} onClose={() => setAsking(undefined)} />}
    </>
  )
}
