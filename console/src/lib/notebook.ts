// SPDX-License-Identifier: Apache-2.0
// Cells and what they gave, and how they leave as .ipynb and .py.

export const LANGUAGES = ['python', 'javascript', 'typescript', 'bash', 'r', 'java'] as const
export type Language = (typeof LANGUAGES)[number] | 'markdown'

/** The forms of one result, as the interpreter names them. */
export type Forms = Record<string, unknown>

export type Output =
  | { kind: 'stream'; name: 'stdout' | 'stderr'; text: string }
  | { kind: 'result'; forms: Forms; main: boolean }
  | { kind: 'error'; name: string; value: string; traceback: string }

export interface Cell {
  id: string
  language: Language
  source: string
  outputs: Output[]
  count?: number
  startedAt?: number
  tookMs?: number
  running: boolean
  dropped?: boolean // older output was let go
}

const STREAM_MAX = 400_000 // characters of one cell's output that are kept

/** Appends output; what is of the same stream joins, and what is too long loses its beginning. */
export function append(cell: Cell, o: Output): Cell {
  const outputs = cell.outputs.slice()
  const last = outputs[outputs.length - 1]
  if (o.kind === 'stream' && last?.kind === 'stream' && last.name === o.name) {
    let text = last.text + o.text
    let dropped = cell.dropped
    if (text.length > STREAM_MAX) {
      text = text.slice(-STREAM_MAX)
      dropped = true
    }
    outputs[outputs.length - 1] = { ...last, text }
    return { ...cell, outputs, dropped }
  }
  outputs.push(o)
  return { ...cell, outputs }
}

const MIME: Record<string, string> = {
  text: 'text/plain',
  html: 'text/html',
  markdown: 'text/markdown',
  svg: 'image/svg+xml',
  png: 'image/png',
  jpeg: 'image/jpeg',
  pdf: 'application/pdf',
  latex: 'text/latex',
  json: 'application/json',
  javascript: 'application/javascript',
  data: 'e2b/data',
  chart: 'e2b/chart',
}

function bundle(forms: Forms): Record<string, unknown> {
  const out: Record<string, unknown> = {}
  for (const [name, value] of Object.entries(forms)) if (MIME[name] && value !== undefined) out[MIME[name]] = value
  const extra = forms['extra']
  if (extra && typeof extra === 'object') Object.assign(out, extra)
  return out
}

function ipynbOutput(o: Output, count: number | null): Record<string, unknown> {
  if (o.kind === 'stream') return { output_type: 'stream', name: o.name, text: o.text }
  if (o.kind === 'error')
    return { output_type: 'error', ename: o.name, evalue: o.value, traceback: o.traceback.split('\n') }
  const data = bundle(o.forms)
  return o.main
    ? { output_type: 'execute_result', execution_count: count, metadata: {}, data }
    : { output_type: 'display_data', metadata: {}, data }
}

const MAGIC: Partial<Record<Language, string>> = {
  javascript: '%%javascript',
  typescript: '%%typescript',
  bash: '%%bash',
  r: '%%R',
  java: '%%java',
}

/** Cells of other languages than Python get the magic line that notebooks have for them. */
function sourceOf(c: Cell): string {
  const magic = MAGIC[c.language]
  return magic ? `${magic}\n${c.source}` : c.source
}

export function toIpynb(cells: Cell[]): string {
  const document = {
    nbformat: 4,
    nbformat_minor: 5,
    metadata: {
      kernelspec: { name: 'python3', display_name: 'Python 3', language: 'python' },
      language_info: { name: 'python' },
    },
    cells: cells.map((c) =>
      c.language === 'markdown'
        ? { id: c.id, cell_type: 'markdown', metadata: {}, source: c.source }
        : {
            id: c.id,
            cell_type: 'code',
            metadata: c.language === 'python' ? {} : { vscode: { languageId: c.language } },
            execution_count: c.count ?? null,
            source: sourceOf(c),
            outputs: c.outputs.map((o) => ipynbOutput(o, c.count ?? null)),
          },
    ),
  }
  return JSON.stringify(document, null, 1) + '\n'
}

const comment = (text: string) =>
  text
    .split('\n')
    .map((l) => (l ? `# ${l}` : '#'))
    .join('\n')

/** Python as it is, everything else as comments, with the marks that editors know as cells. */
export function toPy(cells: Cell[]): string {
  return (
    cells
      .map((c) => {
        if (c.language === 'python') return `# %%\n${c.source}`
        if (c.language === 'markdown') return `# %% [markdown]\n${comment(c.source)}`
        return `# %% [${c.language}]\n${comment(c.source)}`
      })
      .join('\n\n') + '\n'
  )
}
