// SPDX-License-Identifier: Apache-2.0
// One sandbox: its state on top, a tab for each side of it.
import type { ComponentType } from 'preact'
import { useEffect, useMemo, useState } from 'preact/hooks'
import { ApiError, get } from '../../app/api'
import { useCommands } from '../../app/commands'
import { usePoll } from '../../app/poll'
import { go } from '../../app/router'
import { openBox, type Box } from '../../lib/box'
import { age, duration } from '../../lib/format'
import type { Params } from '../../lib/match'
import type { SandboxDetail } from '../../lib/types'
import { Button, Copy, Empty, Failed, Link, Loading, Note, PageHead, State, Tabs } from '../../ui/parts'
import { doing } from '../../ui/toast'
import { resume, SandboxActions } from './actions'
import '../../ui/code_colours.css'
import './sandbox.css'

export interface TabProps {
  id: string
  detail: SandboxDetail | undefined // undefined: it has ended
  box: Box | undefined // undefined: it does not run
}

interface Tab {
  name: string
  label: string
  load: () => Promise<{ default: ComponentType<TabProps> }>
  needs?: 'running'
}

const TABS: Tab[] = [
  { name: 'overview', label: 'Overview', load: () => import('./overview') },
  { name: 'notebook', label: 'Notebook', load: () => import('./notebook'), needs: 'running' },
  { name: 'terminal', label: 'Terminal', load: () => import('./terminal'), needs: 'running' },
  { name: 'files', label: 'Files', load: () => import('./files'), needs: 'running' },
  { name: 'processes', label: 'Processes', load: () => import('./processes'), needs: 'running' },
  { name: 'ports', label: 'Ports', load: () => import('./ports'), needs: 'running' },
  { name: 'logs', label: 'Logs', load: () => import('./logs') },
  { name: 'events', label: 'Events', load: () => import('./events') },
  { name: 'network', label: 'Network', load: () => import('./network') },
]

/** Ended sandboxes are told with the reason, which is the server's word. */
async function read(id: string, signal: AbortSignal): Promise<SandboxDetail | { ended: string }> {
  try {
    return await get<SandboxDetail>(`/sandboxes/${encodeURIComponent(id)}`, { signal })
  } catch (e) {
    if (e instanceof ApiError && (e.status === 404 || e.status === 400)) return { ended: e.message }
    throw e
  }
}

const endedWords = (message: string) => /(it ended at .*)$/.exec(message)?.[1] ?? message

function Asleep({ detail, changed }: { detail: SandboxDetail; changed: () => void }) {
  const [busy, setBusy] = useState(false)
  const wake = async () => {
    setBusy(true)
    await doing(resume(detail.sandboxID), 'Resumed')
    setBusy(false)
    changed()
  }
  return (
    <Empty icon="pause" title="This sandbox is paused">
      <p>Files and memory are kept. Resume it to go on where it was.</p>
      <Button kind="primary" icon="play" busy={busy} onClick={wake}>
        Resume
      </Button>
    </Empty>
  )
}

function TabView({ tab, ...props }: TabProps & { tab: Tab }) {
  const [shown, setShown] = useState<{ tab: Tab; view: ComponentType<TabProps> }>()
  const [error, setError] = useState<Error>()
  useEffect(() => {
    let over = false
    setError(undefined)
    tab.load().then(
      (m) => !over && setShown({ tab, view: m.default }),
      (e: Error) => !over && setError(e),
    )
    return () => {
      over = true
    }
  }, [tab])
  if (error) return <Failed error={error} retry={() => location.reload()} />
  if (shown?.tab !== tab) return <Loading />
  const View = shown.view
  return <View {...props} />
}

function Title({ detail, now }: { detail: SandboxDetail; now: number }) {
  const running = detail.state === 'running'
  const left = Date.parse(detail.endAt) - now
  return (
    <>
      <State is={running ? 'good' : 'warm'} word={detail.state} />
      <span>{detail.alias || detail.templateID}</span>
      <span>up {age(detail.startedAt, now)}</span>
      {running && <span class={left < 60000 ? 'urgent' : ''}>{duration(left)} left</span>}
    </>
  )
}

export default function SandboxPage({ params }: { params: Params }) {
  const id = params['id']!
  const tab = TABS.find((t) => t.name === (params['tab'] ?? 'overview')) ?? TABS[0]!
  const { data, error, refresh } = usePoll((signal) => read(id, signal), 2500, [id])
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const t = setInterval(() => setNow(Date.now()), 1000)
    return () => clearInterval(t)
  }, [])
  const ended = data && 'ended' in data ? data.ended : undefined
  const detail = data && !('ended' in data) ? data : undefined
  const runs = detail?.state === 'running'
  const box = useMemo(
    () => (detail && runs ? openBox(detail) : undefined),
    [id, runs, detail?.envdAccessToken, detail?.startedAt],
  )
  const to = (name: string) => `/sandboxes/${id}${name === 'overview' ? '' : `/${name}`}`
  useCommands(
    TABS.map((t, i) => ({
      id: `tab-${t.name}`,
      label: t.label,
      group: 'Sandbox',
      keys: String(i + 1),
      run: () => go(to(t.name)),
    })),
    [id],
  )
  if (error && !data) return <Failed error={error} retry={refresh} />
  if (!data) return <Loading />
  return (
    <>
      <PageHead
        title={
          <span class="crumbs">
            <Link to="/sandboxes">Sandboxes</Link> <span class="soft">/</span> <span class="mono id">{id}</span>
            <Copy text={id} label="Copy the id" />
          </span>
        }
        sub={detail ? <Title detail={detail} now={now} /> : <State is="off" word="ended" />}
      >
        {detail && <SandboxActions box={detail} changed={refresh} buttons />}
      </PageHead>
      {ended !== undefined && (
        <Note kind="warm">This sandbox is gone: {endedWords(ended)}. Its logs and events are kept for a while.</Note>
      )}
      <Tabs
        tabs={TABS.filter((t) => detail || !t.needs).map((t) => ({ to: to(t.name), name: t.name, label: t.label }))}
        now={tab.name}
      />
      {tab.needs && !runs ? (
        detail ? (
          <Asleep detail={detail} changed={refresh} />
        ) : (
          <Empty icon="box" title="Nothing runs here any more" />
        )
      ) : (
        <TabView key={id} tab={tab} id={id} detail={detail} box={box} />
      )}
    </>
  )
}
