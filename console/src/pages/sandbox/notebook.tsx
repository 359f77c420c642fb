// SPDX-License-Identifier: Apache-2.0
// A notebook on the sandbox's kernels. Cells stay in the tab's memory while the page is open, also when other pages are
// looked at; they leave by export.
import { signal, type Signal } from '@preact/signals'
import { useEffect, useState } from 'preact/hooks'
import { useCommands } from '../../app/commands'
import type { Box } from '../../lib/box'
import { duration } from '../../lib/format'
import { append, LANGUAGES, toIpynb, toPy, type Cell, type Language } from '../../lib/notebook'
import { save } from '../../lib/save'
import { Editor } from '../../ui/editor'
import { Markdown } from '../../ui/markdown'
import { Button, Menu, type MenuItem } from '../../ui/parts'
import { doing, toast } from '../../ui/toast'
import type { TabProps } from './page'
import { OutputView } from './results'

const LABELS: Record<Language, string> = {
  python: 'Python',
  javascript: 'JavaScript',
  typescript: 'TypeScript',
  bash: 'Bash',
  r: 'R',
  java: 'Java',
  markdown: 'Markdown',
}

interface Running {
  interrupt: () => Promise<boolean>
}

interface Context {
  id: string
  language: string
  cwd: string
}

interface Book {
  cells: Signal<Cell[]>
  context: Signal<Context | null> // null: the default one of each cell's language
  running: Map<string, Running>
  queue: Promise<void>
}

const books = new Map<string, Book>()

function newCell(language: Language = 'python', source = ''): Cell {
  return { id: crypto.randomUUID().slice(0, 8), language, source, outputs: [], running: false }
}

function bookOf(id: string): Book {
  let b = books.get(id)
  if (!b) {
    b = { cells: signal([newCell()]), context: signal(null), running: new Map(), queue: Promise.resolve() }
    books.set(id, b)
  }
  return b
}

function change(b: Book, id: string, f: (c: Cell) => Cell) {
  b.cells.value = b.cells.value.map((c) => (c.id === id ? f(c) : c))
}

async function runCell(b: Book, box: Box, id: string) {
  const cell = b.cells.value.find((c) => c.id === id)
  if (!cell || cell.running || cell.language === 'markdown' || !cell.source.trim()) return
  const began = Date.now()
  change(b, id, (c) => ({
    ...c,
    outputs: [],
    running: true,
    startedAt: began,
    tookMs: undefined,
    count: undefined,
    dropped: false,
  }))
  const where =
    b.context.value && b.context.value.language === cell.language
      ? { context: b.context.value }
      : { language: cell.language }
  try {
    const run = box.runCode(cell.source, { ...where, stream: true, timeoutMs: 0, requestTimeoutMs: 0 })
    b.running.set(id, run)
    for await (const e of run) {
      if (e.type === 'stdout' || e.type === 'stderr')
        change(b, id, (c) => append(c, { kind: 'stream', name: e.type, text: e.text }))
      else if (e.type === 'result')
        change(b, id, (c) => append(c, { kind: 'result', forms: { ...e.result.raw }, main: e.result.isMainResult }))
      else if (e.type === 'error')
        change(b, id, (c) =>
          append(c, { kind: 'error', name: e.error.name, value: e.error.value, traceback: e.error.traceback }),
        )
      else if (e.type === 'count') change(b, id, (c) => ({ ...c, count: e.executionCount }))
    }
  } catch (e) {
    change(b, id, (c) =>
      append(c, { kind: 'error', name: 'Not finished', value: (e as Error).message, traceback: '' }),
    )
  } finally {
    b.running.delete(id)
    change(b, id, (c) => ({ ...c, running: false, tookMs: Date.now() - began }))
  }
}

async function interrupt(b: Book, id: string) {
  const run = b.running.get(id)
  if (run && !(await run.interrupt())) toast('It had ended already')
}

function Clock({ since }: { since: number }) {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const t = setInterval(() => setNow(Date.now()), 500)
    return () => clearInterval(t)
  }, [])
  return <small class="num">{duration(now - since)}</small>
}

const took = (ms: number) => (ms < 1000 ? `${ms} ms` : ms < 60000 ? `${(ms / 1000).toFixed(1)} s` : duration(ms))

interface CellProps {
  b: Book
  box: Box
  cell: Cell
  index: number
  focus: boolean
  next: (id: string) => void
  focusOn: (id: string) => void
}

function CellView({ b, box, cell, index, focus, next, focusOn }: CellProps) {
  const [reading, setReading] = useState(cell.language === 'markdown' && cell.source !== '')
  const markdown = cell.language === 'markdown'
  const run = (then: 'stay' | 'next') => {
    if (markdown) setReading(true)
    else void runCell(b, box, cell.id)
    if (then === 'next') next(cell.id)
  }
  const move = (by: number) => {
    const list = b.cells.value.slice()
    const to = index + by
    if (to < 0 || to >= list.length) return
    list.splice(index, 1)
    list.splice(to, 0, cell)
    b.cells.value = list
  }
  const remove = () => {
    const rest = b.cells.value.filter((c) => c.id !== cell.id)
    b.cells.value = rest.length ? rest : [newCell()]
  }
  const below = (language: Language) => {
    const made = newCell(language)
    const list = b.cells.value.slice()
    list.splice(index + 1, 0, made)
    b.cells.value = list
    focusOn(made.id)
  }
  const state = cell.running
    ? 'runs'
    : cell.outputs.some((o) => o.kind === 'error')
      ? 'bad'
      : cell.count
        ? 'done'
        : ''
  return (
    <section class={`cell ${state}`} aria-label={`Cell ${index + 1}`} data-cell={cell.id}>
      <div class="gutter">
        {!markdown &&
          (cell.running ? (
            <Button
              small
              kind="danger"
              icon="stop"
              label="Interrupt"
              onClick={() => void doing(interrupt(b, cell.id))}
            />
          ) : (
            <Button small kind="ghost" icon="play" label="Run" onClick={() => run('stay')} />
          ))}
        <span class="count num">{markdown ? '' : `[${cell.running ? '*' : (cell.count ?? ' ')}]`}</span>
      </div>
      <div class="cellbody">
        <div class="cellbar">
          <select
            aria-label={`Language of cell ${index + 1}`}
            value={cell.language}
            onChange={(e) => {
              const language = e.currentTarget.value as Language
              change(b, cell.id, (c) => ({ ...c, language }))
              if (language !== 'markdown') setReading(false)
            }}
          >
            {[...LANGUAGES, 'markdown' as const].map((l) => (
              <option key={l} value={l}>
                {LABELS[l]}
              </option>
            ))}
          </select>
          <span class="grow" />
          {cell.running && cell.startedAt && <Clock since={cell.startedAt} />}
          {!cell.running && cell.tookMs !== undefined && <small class="num">{took(cell.tookMs)}</small>}
          <Menu
            label={`Actions of cell ${index + 1}`}
            items={[
              {
                label: 'Add a cell below',
                icon: 'plus',
                run: () => below(cell.language === 'markdown' ? 'python' : cell.language),
              },
              { label: 'Move up', icon: 'up', disabled: index === 0, run: () => move(-1) },
              { label: 'Move down', icon: 'down', disabled: index === b.cells.value.length - 1, run: () => move(1) },
              {
                label: 'Clear its output',
                icon: 'close',
                run: () => change(b, cell.id, (c) => ({ ...c, outputs: [], count: undefined })),
              },
              { label: 'Delete', icon: 'trash', danger: true, run: remove },
            ]}
          />
        </div>
        {markdown && reading ? (
          <div class="mdview" onDblClick={() => setReading(false)}>
            <Markdown source={cell.source} />
            <Button small kind="ghost" icon="edit" label="Edit the text" onClick={() => setReading(false)} />
          </div>
        ) : (
          <Editor
            value={cell.source}
            language={cell.language}
            label={`Code of cell ${index + 1}`}
            focus={focus}
            hint={markdown ? 'Text in Markdown; Shift Enter shows it' : 'Code; Shift Enter runs it'}
            onChange={(source) => change(b, cell.id, (c) => ({ ...c, source }))}
            onRun={run}
          />
        )}
        {cell.outputs.length > 0 && (
          <div class="outputs" aria-label={`Output of cell ${index + 1}`} role="group">
            {cell.dropped && <small>The beginning of this output was let go.</small>}
            {cell.outputs.map((o, i) => (
              <OutputView key={i} o={o} />
            ))}
          </div>
        )}
      </div>
    </section>
  )
}

function Contexts({ b, box }: { b: Book; box: Box }) {
  const [list, setList] = useState<Context[]>([])
  const refresh = () =>
    box.listCodeContexts().then(
      (l) => setList(l as Context[]),
      () => setList([]),
    )
  useEffect(() => void refresh(), [box])
  const now = b.context.value
  const make = async (language: string) => {
    const made = await doing(box.createCodeContext({ language }), `A new ${LABELS[language as Language]} context`)
    if (made) b.context.value = made as Context
    void refresh()
  }
  const items: MenuItem[] = [
    ...LANGUAGES.map((l) => ({ label: `New ${LABELS[l]} context`, icon: 'plus' as const, run: () => void make(l) })),
    {
      label: now ? 'Restart this context' : 'Restart all contexts',
      icon: 'refresh',
      run: () =>
        void doing(
          Promise.all((now ? [now] : list).map((c) => box.restartCodeContext(c.id))),
          'Restarted: its variables are gone',
        ),
    },
    {
      label: 'Delete this context',
      icon: 'trash',
      danger: true,
      disabled: !now,
      run: () => {
        if (!now) return
        b.context.value = null
        void doing(box.removeCodeContext(now.id), 'Deleted').then(refresh)
      },
    },
  ]
  return (
    <>
      <select
        class="narrow"
        aria-label="Context"
        value={now?.id ?? ''}
        onFocus={() => void refresh()}
        onChange={(e) => (b.context.value = list.find((c) => c.id === e.currentTarget.value) ?? null)}
      >
        <option value="">Default contexts</option>
        {list.map((c) => (
          <option key={c.id} value={c.id}>
            {LABELS[c.language as Language] ?? c.language} {c.id.slice(0, 8)}
          </option>
        ))}
      </select>
      <Menu label="Contexts" items={items} />
    </>
  )
}

export default function Notebook({ id, box: given }: TabProps) {
  const box = given!
  const b = bookOf(id)
  const cells = b.cells.value
  const [focus, setFocus] = useState(cells.length === 1 ? cells[0]!.id : '')
  const busy = cells.some((c) => c.running)
  const add = () => {
    const made = newCell(cells[cells.length - 1]?.language ?? 'python')
    b.cells.value = [...b.cells.value, made]
    setFocus(made.id)
  }
  const next = (from: string) => {
    const list = b.cells.value
    const i = list.findIndex((c) => c.id === from)
    if (list[i + 1]) setFocus(list[i + 1]!.id)
    else add()
  }
  const runAll = async () => {
    for (const c of b.cells.value) {
      await runCell(b, box, c.id)
      if (b.cells.value.find((x) => x.id === c.id)?.outputs.some((o) => o.kind === 'error')) break
    }
  }
  const stopAll = () => void doing(Promise.all([...b.running.keys()].map((c) => interrupt(b, c))))
  useCommands(
    [
      { id: 'nb-all', label: 'Run all cells', group: 'Notebook', keys: 'r', run: () => void runAll() },
      { id: 'nb-add', label: 'Add a cell', group: 'Notebook', keys: 'a', run: add },
      { id: 'nb-stop', label: 'Interrupt', group: 'Notebook', keys: 'i', run: stopAll },
      {
        id: 'nb-ipynb',
        label: 'Export as .ipynb',
        group: 'Notebook',
        run: () => save(`${id}.ipynb`, toIpynb(b.cells.value)),
      },
      { id: 'nb-py', label: 'Export as .py', group: 'Notebook', run: () => save(`${id}.py`, toPy(b.cells.value)) },
    ],
    [id, box],
  )
  return (
    <div class="notebook">
      <div class="row nbbar">
        <Button icon="play" disabled={busy} onClick={() => void runAll()}>
          Run all
        </Button>
        <Button icon="stop" disabled={!busy} onClick={stopAll}>
          Interrupt
        </Button>
        <span class="grow" />
        <Contexts b={b} box={box} />
        <Menu
          label="Export"
          items={[
            { label: 'As .ipynb', icon: 'download', run: () => save(`${id}.ipynb`, toIpynb(b.cells.value)) },
            { label: 'As .py', icon: 'download', run: () => save(`${id}.py`, toPy(b.cells.value)) },
          ]}
        >
          Export
        </Menu>
      </div>
      {cells.map((c, i) => (
        <CellView
          key={c.id}
          b={b}
          box={box}
          cell={c}
          index={i}
          focus={focus === c.id}
          next={next}
          focusOn={setFocus}
        />
      ))}
      <div class="addcell">
        <Button kind="ghost" icon="plus" onClick={add}>
          Add a cell
        </Button>
      </div>
    </div>
  )
}
