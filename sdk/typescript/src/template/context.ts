// SPDX-License-Identifier: Apache-2.0
// Local files that a template copies: which ones a pattern means, their hash and their archive. Loaded
// with the first build or hash.

import { builtin } from '../env.js'
import { TemplateError } from '../errors.js'
import { concat } from '../net/frames.js'
import { fs, purpose, readText, type Stats } from './local.js'

interface Hash {
  update(data: string | Uint8Array): Hash
  digest(encoding: 'hex'): string
}

/** A file of the context. */
interface Entry {
  path: string
  stats: Stats
  /** Where a link leads to, when it is copied as a link. */
  link?: string
}

/** Files of a context directory. */
export class BuildContext {
  readonly #ignored: (path: string) => boolean

  constructor(
    private readonly root: string,
    patterns: string[],
  ) {
    const lines = (readText(`${root}/.dockerignore`) ?? '').split('\n').map((line) => line.trim())
    this.#ignored = ignoreRules([...patterns, ...lines.filter((line) => line && !line.startsWith('#'))])
  }

  /** What a pattern means: each match, directories with all in them, in the order of their paths. */
  entries(pattern: string, follow = false): Entry[] {
    const wanted = clean(pattern)
    const match = wanted ? globPattern(wanted) : /^$/
    const found: Entry[] = []
    this.#walk('', match, !wanted, follow, found)
    if (!found.length) throw new TemplateError(`No files found in ${this.root}/${pattern}`)
    return found.sort((a, b) => (a.path < b.path ? -1 : 1))
  }

  /** What the server keeps the files under: it changes when anything in them does. */
  hash(pattern: string, dest: string, follow: boolean): string {
    const crypto: { createHash(name: string): Hash } = builtin('node:crypto', purpose)
    const hash = crypto.createHash('sha256').update(`COPY ${pattern} ${dest}`)
    for (const { path, stats, link } of this.entries(pattern, follow)) {
      hash.update(path).update(String(stats.mode))
      if (link !== undefined) hash.update(link)
      else if (stats.isFile()) hash.update(String(stats.size)).update(fs().readFileSync(`${this.root}/${path}`))
    }
    return hash.digest('hex')
  }

  /** The files as a tar archive. */
  async archive(pattern: string, follow: boolean, gzip: boolean): Promise<Blob> {
    const entries = this.entries(pattern, follow).values()
    const tar = new ReadableStream<Uint8Array>({
      pull: (controller) => {
        const { done, value } = entries.next()
        controller.enqueue(done ? new Uint8Array(1024) : this.#member(value))
        if (done) controller.close()
      },
    })
    const packed = gzip ? tar.pipeThrough(new CompressionStream('gzip') as never) : tar
    return new Response(packed as ReadableStream<Uint8Array<ArrayBuffer>>).blob()
  }

  #walk(path: string, match: RegExp, inside: boolean, follow: boolean, found: Entry[]): void {
    for (const name of fs().readdirSync(`${this.root}/${path}`)) {
      const child = path ? `${path}/${name}` : name
      if (this.#ignored(child)) continue
      const entry = this.#entry(child, follow)
      const taken = inside || match.test(child)
      if (taken) found.push(entry)
      if (entry.stats.isDirectory()) this.#walk(child, match, taken, follow, found)
    }
  }

  #entry(path: string, follow: boolean): Entry {
    const full = `${this.root}/${path}`
    const stats = fs().lstatSync(full, { throwIfNoEntry: false })!
    if (!stats.isSymbolicLink()) return { path, stats }
    const target = fs().statSync(full, { throwIfNoEntry: false })
    if (follow && (target?.isFile() || target?.isDirectory())) return { path, stats: target }
    return { path, stats, link: fs().readlinkSync(full) }
  }

  #member({ path, stats, link }: Entry): Uint8Array {
    const content =
      link === undefined && stats.isFile() ? fs().readFileSync(`${this.root}/${path}`) : new Uint8Array()
    const type = link !== undefined ? '2' : stats.isDirectory() ? '5' : '0'
    const name = type === '5' ? `${path}/` : path
    const bytes = (text: string): number => new TextEncoder().encode(text).length
    const pieces: Uint8Array[] = []
    if (bytes(name) > 100 || bytes(link ?? '') > 100) {
      const extra = new TextEncoder().encode(record('path', name) + (link ? record('linkpath', link) : ''))
      pieces.push(header('pax', 0o644, extra.length, 0, 'x', ''), padded(extra))
    }
    pieces.push(header(name, stats.mode, content.length, stats.mtimeMs, type, link ?? ''), padded(content))
    return concat(pieces)
  }
}

function clean(path: string): string {
  return path
    .replaceAll('\\', '/')
    .replace(/^(\.?\/)+|\/+$/g, '')
    .replace(/^\.$/, '')
    .replaceAll('/./', '/')
}

/** A pattern as an expression: `*` and `?` stay within a name, `**` does not, `{a,b}` and `[a-z]` as in a shell. */
export function globPattern(pattern: string): RegExp {
  let out = ''
  let braces = 0
  for (let i = 0; i < pattern.length; i++) {
    const char = pattern[i]!
    const set = char === '[' ? /^\[!?\]?[^\]]*\]/.exec(pattern.slice(i))?.[0] : undefined
    if (pattern.startsWith('**', i)) {
      const slash = pattern[i + 2] === '/'
      out += slash ? '(?:[^/]+/)*' : '.*'
      i += slash ? 2 : 1
    } else if (char === '*') out += '[^/]*'
    else if (char === '?') out += '[^/]'
    else if (set) {
      out += set.replace(/^\[!/, '[^').replaceAll('\\', '\\\\')
      i += set.length - 1
    } else if (char === '{') {
      braces++
      out += '(?:'
    } else if (char === '}' && braces) {
      braces--
      out += ')'
    } else if (char === ',' && braces) out += '|'
    else out += char.replace(/[\\^$.*+?()[\]{}|]/, '\\$&')
  }
  return new RegExp(`^${out}$`)
}

/** Rules of a .dockerignore file: a match covers all below it, `!` takes back, the last one counts. */
function ignoreRules(patterns: string[]): (path: string) => boolean {
  const rules = patterns.map((pattern) => {
    const kept = pattern.startsWith('!')
    return { kept, match: globPattern(clean(kept ? pattern.slice(1) : pattern)) }
  })
  const back = rules.some(({ kept }) => kept)
  const decides = (path: string): boolean => {
    let ignored = false
    for (const { kept, match } of rules) {
      const parts = path.split('/')
      if (parts.some((_, i) => match.test(parts.slice(0, i + 1).join('/')))) ignored = !kept
    }
    return ignored
  }
  // A directory that is ignored is still entered when a later rule may take back something in it.
  return (path) => decides(path) && !(back && rules.some(({ kept, match }) => kept && mayBeBelow(match, path)))
}

function mayBeBelow(match: RegExp, path: string): boolean {
  return match.source.slice(1).startsWith(path.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&') + '/')
}

function record(key: string, value: string): string {
  const rest = ` ${key}=${value}\n`
  const size = new TextEncoder().encode(rest).length
  let length = size + String(size).length
  if (String(length).length > String(size).length) length++
  return length + rest
}

function padded(content: Uint8Array): Uint8Array {
  const rest = content.length % 512
  return rest ? concat([content, new Uint8Array(512 - rest)]) : content
}

function header(name: string, mode: number, size: number, mtimeMs: number, type: string, link: string): Uint8Array {
  const block = new Uint8Array(512)
  const put = (at: number, text: string, max: number): void =>
    block.set(new TextEncoder().encode(text).subarray(0, max), at)
  const octal = (value: number, digits: number): string => Math.floor(value).toString(8).padStart(digits, '0')
  put(0, name, 100)
  put(100, octal(mode & 0o7777, 7), 7)
  put(108, octal(0, 7), 7)
  put(116, octal(0, 7), 7)
  put(124, octal(size, 11), 11)
  put(136, octal(mtimeMs / 1000, 11), 11)
  put(148, ' '.repeat(8), 8)
  put(156, type, 1)
  put(157, link, 100)
  put(257, 'ustar\u000000', 8)
  put(
    148,
    `${octal(
      block.reduce((sum, byte) => sum + byte, 0),
      6,
    )}\0 `,
    8,
  )
  return block
}
