// SPDX-License-Identifier: Apache-2.0
// A Dockerfile that was typed in, as the steps of a build. What needs files beside it (COPY, ADD) can't be typed.

export interface Step {
  type: string
  args: string[]
}

export interface Recipe {
  from: string
  steps: Step[]
  startCmd?: string
  error?: string
}

/** Lines with their continuations joined, comments and empty ones left out. */
function lines(text: string): string[] {
  const out: string[] = []
  let open = ''
  for (const raw of text.split('\n')) {
    if (!open && /^\s*(#|$)/.test(raw)) continue
    if (open && /^\s*#/.test(raw)) continue
    const more = /\\\s*$/.test(raw)
    open += raw.replace(/\\\s*$/, '') + (more ? '\n' : '')
    if (more) continue
    out.push(open.trim())
    open = ''
  }
  if (open.trim()) out.push(open.trim())
  return out
}

/** ["a", "b"] of the exec form as one command; else the text. */
function command(rest: string): string {
  try {
    const list: unknown = JSON.parse(rest)
    if (Array.isArray(list)) return list.map((w) => `'${String(w).replace(/'/g, `'\\''`)}'`).join(' ')
  } catch {
    // the shell form
  }
  return rest
}

function variables(rest: string): string[] | null {
  if (!/^[A-Za-z_]\w*=/.test(rest)) {
    const m = /^([A-Za-z_]\w*)\s+([\s\S]+)$/.exec(rest)
    return m ? [m[1]!, m[2]!] : null
  }
  const out: string[] = []
  for (const m of rest.matchAll(/([A-Za-z_]\w*)=("(?:[^"\\]|\\.)*"|'[^']*'|\S*)/g))
    out.push(m[1]!, m[2]!.replace(/^(["'])([\s\S]*)\1$/, '$2'))
  return out
}

function step(word: string, rest: string): Step | string {
  switch (word) {
    case 'RUN':
      return { type: 'RUN', args: [command(rest)] }
    case 'ENV':
    case 'ARG': {
      const args = variables(rest)
      return args ? { type: 'ENV', args } : `${word} needs NAME=value`
    }
    case 'WORKDIR':
    case 'USER':
      return { type: word, args: [rest] }
    default:
      return `${word} can’t be built from typed text; use the SDK or the command line for it`
  }
}

export function readDockerfile(text: string): Recipe {
  const r: Recipe = { from: '', steps: [] }
  for (const line of lines(text)) {
    const [, first = '', rest = ''] = /^(\S+)\s*([\s\S]*)$/.exec(line) ?? []
    const word = first.toUpperCase()
    if (word === 'FROM') {
      if (r.from) return { ...r, error: 'only one FROM is possible' }
      r.from = rest.split(/\s+/)[0] ?? ''
    } else if (!r.from && word !== 'ARG') {
      return { ...r, error: 'FROM comes first: the name of a template or an image' }
    } else if (word === 'CMD' || word === 'ENTRYPOINT') {
      r.startCmd = command(rest)
    } else if (!['EXPOSE', 'LABEL'].includes(word)) {
      const s = step(word, rest)
      if (typeof s === 'string') return { ...r, error: s }
      r.steps.push(s)
    }
  }
  return r.from ? r : { ...r, error: 'FROM is missing: the name of a template or an image' }
}
