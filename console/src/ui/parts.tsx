// SPDX-License-Identifier: Apache-2.0
// The parts that pages are made of. Text from boxes and from other people is only ever put in as text.
import type { ComponentChildren, JSX } from 'preact'
import { useEffect, useId, useRef, useState } from 'preact/hooks'
import { go, href, isPlainClick } from '../app/router'
import { toast } from './toast'
import { Icon, type IconName } from './icons'

type Kids = { children?: ComponentChildren }

export function Button(
  p: Kids & {
    kind?: 'primary' | 'plain' | 'danger' | 'ghost'
    icon?: IconName
    small?: boolean
    busy?: boolean
    disabled?: boolean
    title?: string
    type?: 'button' | 'submit'
    onClick?: (e: MouseEvent) => void
    label?: string // for buttons of an icon alone
    pressed?: boolean
  },
) {
  return (
    <button
      type={p.type ?? 'button'}
      class={`btn ${p.kind ?? 'plain'}${p.small ? ' small' : ''}${!p.children ? ' square' : ''}`}
      disabled={p.disabled || p.busy}
      aria-busy={p.busy || undefined}
      aria-label={p.label}
      aria-pressed={p.pressed}
      title={p.title ?? p.label}
      onClick={p.onClick}
    >
      {p.busy ? <span class="spinner" /> : p.icon && <Icon name={p.icon} />}
      {p.children}
    </button>
  )
}

export function Link(p: Kids & { to: string; class?: string; title?: string; current?: boolean; label?: string }) {
  return (
    <a
      href={href(p.to)}
      class={p.class}
      title={p.title}
      aria-current={p.current ? 'page' : undefined}
      aria-label={p.label}
      onClick={(e) => {
        if (!isPlainClick(e)) return
        e.preventDefault()
        go(p.to)
      }}
    >
      {p.children}
    </a>
  )
}

/** A dot and a word. */
export function State({ is, word }: { is: 'good' | 'warm' | 'bad' | 'off'; word: string }) {
  return (
    <span class={`state ${is}`}>
      <i />
      {word}
    </span>
  )
}

export function Note({ kind = 'info', children }: Kids & { kind?: 'info' | 'bad' | 'warm' }) {
  return (
    <div class={`note ${kind}`} role={kind === 'bad' ? 'alert' : 'status'}>
      {kind !== 'info' && <Icon name="warn" />}
      <div>{children}</div>
    </div>
  )
}

export function Failed({ error, retry }: { error: Error; retry?: () => void }) {
  return (
    <Note kind="bad">
      {error.message}{' '}
      {retry && (
        <button type="button" class="textlink" onClick={retry}>
          Try again
        </button>
      )}
    </Note>
  )
}

export function Empty({ icon, title, children }: Kids & { icon: IconName; title: string }) {
  return (
    <div class="empty">
      <Icon name={icon} size={28} />
      <h2>{title}</h2>
      <div>{children}</div>
    </div>
  )
}

export function Loading({ what = 'Loading' }: { what?: string }) {
  return (
    <div class="loading" role="status">
      <span class="spinner" /> {what}
    </div>
  )
}

export function PageHead({ title, sub, children }: Kids & { title: ComponentChildren; sub?: ComponentChildren }) {
  return (
    <header class="pagehead">
      <div class="titles">
        <h1>{title}</h1>
        {sub && <div class="sub">{sub}</div>}
      </div>
      <div class="actions">{children}</div>
    </header>
  )
}

export function Tabs({ tabs, now }: { tabs: { to: string; name: string; label: string }[]; now: string }) {
  const ref = useRef<HTMLElement>(null)
  useEffect(() => {
    const nav = ref.current
    const link = nav?.querySelector<HTMLElement>('[aria-current]')
    if (!nav || !link) return
    // Where they do not all fit the chosen one is in sight; the page itself stays where it is.
    nav.scrollLeft = link.offsetLeft - nav.offsetLeft - (nav.clientWidth - link.offsetWidth) / 2
  }, [now, tabs.length])
  return (
    <nav class="tabs" aria-label="Sections" ref={ref}>
      {tabs.map((t) => (
        <Link key={t.name} to={t.to} current={t.name === now}>
          {t.label}
        </Link>
      ))}
    </nav>
  )
}

export function Copy({ text, label = 'Copy' }: { text: string; label?: string }) {
  const [done, setDone] = useState(false)
  return (
    <Button
      kind="ghost"
      small
      icon={done ? 'check' : 'copy'}
      label={label}
      onClick={() => {
        navigator.clipboard.writeText(text).then(
          () => {
            setDone(true)
            setTimeout(() => setDone(false), 1200)
          },
          () => toast('The browser did not allow copying', 'bad'),
        )
      }}
    />
  )
}

/** Its child must be one control, which gets the id. */
export function Field(p: {
  label: string
  hint?: ComponentChildren
  error?: string
  children: (id: string) => JSX.Element
}) {
  const id = useId()
  return (
    <div class="field">
      <label for={id}>{p.label}</label>
      {p.children(id)}
      {p.error ? (
        <p class="hint bad" role="alert">
          {p.error}
        </p>
      ) : (
        p.hint && <p class="hint">{p.hint}</p>
      )}
    </div>
  )
}

export function Check(p: {
  label: ComponentChildren
  checked: boolean
  onChange: (v: boolean) => void
  hint?: string
}) {
  return (
    <label class="check">
      <input type="checkbox" checked={p.checked} onChange={(e) => p.onChange(e.currentTarget.checked)} />
      <span>
        {p.label}
        {p.hint && <small>{p.hint}</small>}
      </span>
    </label>
  )
}

export function Dialog(p: Kids & { title: string; onClose: () => void; wide?: boolean }) {
  const ref = useRef<HTMLDialogElement>(null)
  useEffect(() => {
    const d = ref.current
    if (d && !d.open) d.showModal()
  }, [])
  return (
    <dialog
      ref={ref}
      class={p.wide ? 'wide' : ''}
      aria-label={p.title}
      onClose={p.onClose}
      onCancel={p.onClose}
      onMouseDown={(e) => e.target === ref.current && p.onClose()}
    >
      <div class="sheet">
        <header>
          <h2>{p.title}</h2>
          <Button kind="ghost" small icon="close" label="Close" onClick={p.onClose} />
        </header>
        {p.children}
      </div>
    </dialog>
  )
}

export interface MenuItem {
  label: string
  icon?: IconName
  danger?: boolean
  disabled?: boolean
  run: () => void
}

export function Menu({ items, label, children }: Kids & { items: MenuItem[]; label: string }) {
  const [open, setOpen] = useState(false)
  const ref = useRef<HTMLDivElement>(null)
  useEffect(() => {
    if (!open) return
    const away = (e: Event) => !ref.current?.contains(e.target as Node) && setOpen(false)
    document.addEventListener('mousedown', away)
    ref.current?.querySelector<HTMLButtonElement>('.items button:not(:disabled)')?.focus()
    return () => document.removeEventListener('mousedown', away)
  }, [open])
  const move = (e: KeyboardEvent) => {
    const all = [...(ref.current?.querySelectorAll<HTMLButtonElement>('.items button:not(:disabled)') ?? [])]
    const i = all.indexOf(document.activeElement as HTMLButtonElement)
    if (e.key === 'Escape') {
      setOpen(false)
      ref.current?.querySelector('button')?.focus()
      e.stopPropagation()
    } else if (e.key === 'ArrowDown') all[(i + 1) % all.length]?.focus()
    else if (e.key === 'ArrowUp') all[(i - 1 + all.length) % all.length]?.focus()
    else return
    e.preventDefault()
  }
  return (
    <div class="menu" ref={ref} onKeyDown={open ? move : undefined}>
      <button
        type="button"
        class={`btn ghost small${children ? '' : ' square'}`}
        aria-haspopup="menu"
        aria-expanded={open}
        aria-label={children ? undefined : label}
        title={label}
        onClick={(e) => {
          e.stopPropagation()
          setOpen(!open)
        }}
      >
        {children ?? <Icon name="more" />}
      </button>
      {open && (
        <div class="items" role="menu">
          {items.map((i) => (
            <button
              key={i.label}
              type="button"
              role="menuitem"
              class={i.danger ? 'danger' : ''}
              disabled={i.disabled}
              onClick={(e) => {
                e.stopPropagation()
                setOpen(false)
                i.run()
              }}
            >
              {i.icon && <Icon name={i.icon} />}
              {i.label}
            </button>
          ))}
        </div>
      )}
    </div>
  )
}

/** Asks before something that can't be undone; `word` names what the button does. */
export function Confirm(p: {
  title: string
  word: string
  text: ComponentChildren
  run: () => Promise<unknown>
  onClose: () => void
}) {
  const [busy, setBusy] = useState(false)
  return (
    <Dialog title={p.title} onClose={p.onClose}>
      <div class="body">{p.text}</div>
      <footer>
        <Button onClick={p.onClose}>Cancel</Button>
        <Button
          kind="danger"
          busy={busy}
          onClick={() => {
            setBusy(true)
            p.run().then(p.onClose, (e: Error) => {
              toast(e.message, 'bad')
              setBusy(false)
            })
          }}
        >
          {p.word}
        </Button>
      </footer>
    </Dialog>
  )
}

/** A line of numbers; null where there is none. */
export function Spark({ values, max, label }: { values: number[]; max?: number; label: string }) {
  const w = 72
  const h = 20
  const top = Math.max(max ?? 0, ...values, 1e-9)
  const step = values.length > 1 ? w / (values.length - 1) : 0
  const points = values.map((v, i) => `${(i * step).toFixed(1)},${(h - 1.5 - (v / top) * (h - 3)).toFixed(1)}`)
  return (
    <svg class="spark" width={w} height={h} viewBox={`0 0 ${w} ${h}`} role="img" aria-label={label}>
      {values.length > 1 && <polygon points={`0,${h} ${points.join(' ')} ${w},${h}`} />}
      {values.length > 1 && <polyline points={points.join(' ')} />}
    </svg>
  )
}
