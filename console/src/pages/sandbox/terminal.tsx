// SPDX-License-Identifier: Apache-2.0
// A shell in a terminal of the sandbox.
import { FitAddon } from '@xterm/addon-fit'
import { Terminal as Xterm } from '@xterm/xterm'
import '@xterm/xterm/css/xterm.css'
import { useEffect, useRef, useState } from 'preact/hooks'
import { dark } from '../../app/theme'
import type { Box } from '../../lib/box'
import { Button } from '../../ui/parts'
import { strictStyles } from '../../ui/strict_styles'
import type { TabProps } from './page'

const css = (name: string) => getComputedStyle(document.documentElement).getPropertyValue(name).trim()

const theme = () => ({
  background: css('--term-bg'),
  foreground: css('--term-ink'),
  cursor: css('--accent'),
  selectionBackground: '#5fb8a566',
})

/** Keys go out in order, those that come meanwhile together. */
class Typist {
  private waiting = ''
  private busy = false
  constructor(
    private readonly send: (text: string) => Promise<void>,
    private readonly failed: (e: Error) => void,
  ) {}

  type(text: string) {
    this.waiting += text
    void this.flush()
  }

  private async flush() {
    if (this.busy) return
    this.busy = true
    try {
      while (this.waiting) {
        const text = this.waiting
        this.waiting = ''
        await this.send(text)
      }
    } catch (e) {
      this.failed(e as Error)
    } finally {
      this.busy = false
    }
  }
}

async function connect(box: Box, term: Xterm, ended: (why: string) => void) {
  const handle = await box.pty.create({
    cols: term.cols,
    rows: term.rows,
    timeoutMs: 0,
    onData: (data) => new Promise<void>((done) => term.write(data, done)),
  })
  const typist = new Typist(
    (text) => box.pty.sendInput(handle.pid, text),
    (e) => ended(e.message),
  )
  const typed = term.onData((d) => typist.type(d))
  const sized = term.onResize((s) => void box.pty.resize(handle.pid, s).catch(() => undefined))
  handle.wait().then(
    () => ended('the shell ended'),
    (e: Error) => ended(e.message || 'the connection ended'),
  )
  return () => {
    typed.dispose()
    sized.dispose()
    void handle.kill().catch(() => undefined)
    void handle.disconnect()
  }
}

export default function Terminal({ box }: TabProps) {
  const host = useRef<HTMLDivElement>(null)
  const term = useRef<Xterm | undefined>(undefined)
  const [over, setOver] = useState('')
  const [turn, setTurn] = useState(0)
  const isDark = dark.value
  useEffect(() => {
    const t = new Xterm({
      fontFamily: css('--mono'),
      fontSize: 13,
      cursorBlink: true,
      scrollback: 5000,
      theme: theme(),
      screenReaderMode: false,
      allowProposedApi: false,
    })
    const fit = new FitAddon()
    t.loadAddon(fit)
    const dropStyles = strictStyles(document, () => t.open(host.current!))
    fit.fit()
    t.focus()
    term.current = t
    const watch = new ResizeObserver(() => fit.fit())
    watch.observe(host.current!)
    let gone = false
    let leave: (() => void) | undefined
    const ended = (why: string) => !gone && setOver(why)
    setOver('')
    connect(box!, t, ended).then(
      (l) => {
        leave = l
        if (gone) l()
      },
      (e: Error) => ended(e.message),
    )
    return () => {
      gone = true
      watch.disconnect()
      leave?.()
      t.dispose()
      dropStyles()
    }
  }, [box, turn])
  useEffect(() => {
    if (term.current) term.current.options.theme = theme()
  }, [isDark])
  return (
    <section class="card termcard">
      {over && (
        <div class="termover" role="status">
          <span>{over}</span>
          <Button small icon="refresh" onClick={() => setTurn(turn + 1)}>
            New shell
          </Button>
        </div>
      )}
      <div class="termhost" ref={host} role="group" aria-label="Terminal" />
    </section>
  )
}
