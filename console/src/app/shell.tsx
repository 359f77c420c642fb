// SPDX-License-Identifier: Apache-2.0
// The frame around pages: navigation, palette, what the server is doing, who is signed in.
import type { ComponentType } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { match, type Params } from '../lib/match'
import { pages, type Page } from '../pages/registry'
import { Icon, Logo } from '../ui/icons'
import { Button, Failed, Link, Loading, Menu } from '../ui/parts'
import { Toasts, toast } from '../ui/toast'
import { online, signOut } from './api'
import { addCommands, helpOpen, onKey, paletteOpen } from './commands'
import { Palette } from './palette'
import { go, path } from './router'
import { remember, remembered, session } from './session'
import { dark, toggleTheme } from './theme'

const GROUPS = ['Work', 'Team', 'Server'] as const

function useShortcuts() {
  useEffect(() => {
    const nav = pages.flatMap((p) =>
      p.nav ? [{ id: p.path, label: p.title, group: 'Go to', keys: p.nav.keys, run: () => go(p.path) }] : [],
    )
    const off = addCommands([
      ...nav,
      { id: 'theme', label: 'Dark or light', group: 'Look', keys: 't', run: toggleTheme },
      { id: 'help', label: 'Show all keys', group: 'Help', keys: '?', run: () => (helpOpen.value = true) },
      { id: 'out', label: 'Sign out', group: 'Session', run: () => void signOut() },
    ])
    addEventListener('keydown', onKey)
    return () => {
      off()
      removeEventListener('keydown', onKey)
    }
  }, [])
}

function Nav({ onGo }: { onGo: () => void }) {
  const now = path.value
  return (
    <nav class="side" aria-label="Pages" onClick={onGo}>
      <Link to="/sandboxes" class="brand" label="Cloche, sandboxes">
        <Logo /> <b>Cloche</b>
      </Link>
      {GROUPS.map((g) => {
        const rows = pages.filter((p) => p.nav?.group === g)
        return (
          rows.length > 0 && (
            <div class="group" key={g}>
              <h2>{g}</h2>
              {rows.map((p) => (
                <Link key={p.path} to={p.path} current={now === p.path || now.startsWith(p.path + '/')}>
                  <Icon name={p.nav!.icon} /> {p.title}
                </Link>
              ))}
            </div>
          )
        )
      })}
    </nav>
  )
}

function Account() {
  const s = session.value
  return (
    <Menu
      label="Account"
      items={[
        {
          label: remembered() ? 'Forget the key in this browser' : 'Keep the key in this browser',
          icon: 'key',
          run: () => {
            const keep = !remembered()
            remember(keep)
            toast(keep ? 'The key stays in this browser’s storage' : 'The key is in memory only')
          },
        },
        { label: 'All keys', icon: 'list', run: () => (helpOpen.value = true) },
        { label: 'Sign out', icon: 'out', run: () => void signOut() },
      ]}
    >
      <span class="who">{s?.teamName || 'Team'}</span>
      <Icon name="down" size={12} />
    </Menu>
  )
}

function find(at: string): { page: Page; params: Params } | null {
  for (const page of pages) {
    const params = match(page.path, at)
    if (params) return { page, params }
  }
  return null
}

function Content() {
  const at = path.value
  const found = find(at)
  const [shown, setShown] = useState<{ page: Page; view: ComponentType<{ params: Params }> }>()
  const [error, setError] = useState<Error>()
  useEffect(() => {
    if (!found) {
      go('/sandboxes', true)
      return
    }
    setError(undefined)
    document.title = `${found.page.title} · Cloche`
    let over = false
    found.page.load().then(
      (m) => !over && setShown({ page: found.page, view: m.default }),
      (e: Error) => !over && setError(e),
    )
    return () => {
      over = true
    }
  }, [found?.page])
  if (error) return <Failed error={error} retry={() => location.reload()} />
  if (!found || !shown || shown.page !== found.page) return <Loading />
  const View = shown.view
  return <View params={found.params} />
}

export function Shell() {
  const [open, setOpen] = useState(false)
  useShortcuts()
  useEffect(() => setOpen(false), [path.value])
  return (
    <div class={`shell${open ? ' navopen' : ''}`}>
      <a
        class="skip"
        href="#content"
        onClick={(e) => (e.preventDefault(), document.getElementById('content')?.focus())}
      >
        Skip to the content
      </a>
      <Nav onGo={() => setOpen(false)} />
      <div class="veil" onClick={() => setOpen(false)} />
      <div class="main">
        <header class="top">
          <div class="burger">
            <Button kind="ghost" icon="menu" label="Pages" onClick={() => setOpen(!open)} />
          </div>
          <button type="button" class="find" title="Search or jump to" onClick={() => (paletteOpen.value = true)}>
            <Icon name="search" /> <span>Search or jump to…</span> <kbd>Ctrl K</kbd>
          </button>
          <span class="grow" />
          {!online.value && (
            <span class="offline" role="status">
              <span class="spinner" /> Server not reachable
            </span>
          )}
          <Button
            kind="ghost"
            icon={dark.value ? 'sun' : 'moon'}
            label={dark.value ? 'Light' : 'Dark'}
            onClick={toggleTheme}
          />
          <Account />
        </header>
        <main id="content" tabIndex={-1}>
          <Content />
        </main>
      </div>
      <Palette />
      <Toasts />
    </div>
  )
}
