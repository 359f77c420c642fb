// SPDX-License-Identifier: Apache-2.0
// Reads a Dockerfile of one stage into the steps of a template.

import { TemplateError } from '../errors.js'
import { shellQuote } from '../sandbox/shell.js'
import { waitForTimeout } from './ready.js'
import type { TemplateBuilder } from './types.js'

interface Line {
  keyword: string
  rest: string
  /** Texts that `<<NAME` brought in. */
  documents: Array<{ name: string; text: string }>
}

const IGNORED = ['FROM', 'EXPOSE', 'VOLUME', 'LABEL', 'MAINTAINER', 'STOPSIGNAL', 'HEALTHCHECK', 'SHELL', 'ONBUILD']

/** Adds a Dockerfile's steps to a builder and tells its base image. */
export function applyDockerfile(text: string, builder: TemplateBuilder): string {
  const lines = linesOf(text)
  const froms = lines.filter(({ keyword }) => keyword === 'FROM')
  if (froms.length > 1) throw new TemplateError('Multi-stage Dockerfiles are not supported')
  if (!froms.length) throw new TemplateError('Dockerfile must contain a FROM instruction')
  builder.setUser('root').setWorkdir('/')
  const start: { entry?: string | string[]; cmd?: string | string[] } = {}
  for (const line of lines) apply(line, builder, start)
  const has = (keyword: string): boolean => lines.some((line) => line.keyword === keyword)
  if (!has('USER')) builder.setUser('user')
  if (!has('WORKDIR')) builder.setWorkdir('/home/user')
  const command = startCommand(start.entry, start.cmd)
  if (command) builder.setStartCmd(command, waitForTimeout(20_000))
  const [image] = words(froms[0]!.rest).filter((word) => !word.startsWith('--'))
  return image ?? 'e2bdev/base'
}

function apply(line: Line, builder: TemplateBuilder, start: { entry?: unknown; cmd?: unknown }): void {
  const { keyword, rest } = line
  const list = listOf(rest)
  if (keyword === 'RUN') builder.runCmd(runText(line, list))
  else if (keyword === 'COPY' || keyword === 'ADD') copy(line, builder)
  else if (keyword === 'WORKDIR') builder.setWorkdir(unquoted(rest))
  else if (keyword === 'USER') builder.setUser(unquoted(rest))
  else if (keyword === 'ENV' || keyword === 'ARG') builder.setEnvs(pairs(rest, keyword === 'ARG'))
  else if (keyword === 'CMD') start.cmd = list ?? rest
  else if (keyword === 'ENTRYPOINT') start.entry = list ?? rest
  else if (!IGNORED.includes(keyword)) throw new TemplateError(`Unsupported Dockerfile instruction: ${keyword}`)
}

function startCommand(entry: string | string[] | undefined, cmd: string | string[] | undefined): string {
  const text = (part: string | string[] | undefined): string =>
    Array.isArray(part) ? part.map(shellQuote).join(' ') : (part ?? '')
  // What a shell form of ENTRYPOINT starts takes no arguments from CMD.
  return entry === undefined ? text(cmd) : Array.isArray(entry) ? `${text(entry)} ${text(cmd)}`.trim() : entry
}

function runText({ rest, documents }: Line, list: string[] | undefined): string {
  if (list) return list.map(shellQuote).join(' ')
  const body = rest.replace(/^(--\S+\s+)+/, '')
  const [document] = documents
  if (!document) return body
  if (!/^<<-?["']?\w+["']?$/.test(body))
    return [body, ...documents.map(({ name, text }) => `${text}${name}`)].join('\n')
  const shebang = /^#!\s*(.+)\n/.exec(document.text)
  return shebang ? `${shebang[1]} <<'${document.name}'\n${document.text}${document.name}` : document.text
}

function copy({ rest, documents }: Line, builder: TemplateBuilder): void {
  const flags: Record<string, string> = {}
  const body = rest.replace(/--(\w+)(?:=(\S+))?\s+/g, (_, name: string, value = '') => ((flags[name] = value), ''))
  if (flags['from']) throw new TemplateError('COPY --from: Multi-stage Dockerfiles are not supported')
  const parts = listOf(body) ?? words(body)
  const dest = parts.pop()
  if (!dest || !parts.length) throw new TemplateError(`COPY needs a source and a destination: ${rest}`)
  const mode = flags['chmod'] ? parseInt(flags['chmod'], 8) : undefined
  for (const part of parts) {
    const document = documents.find(({ name }) => /^<<-?/.test(part) && part.replace(/^<<-?|["']/g, '') === name)
    if (document) writeDocument(document, dest, flags, builder)
    else builder.copy(part, dest, { user: flags['chown'], mode })
  }
}

function writeDocument(
  { name, text }: { name: string; text: string },
  dest: string,
  flags: Record<string, string>,
  builder: TemplateBuilder,
): void {
  const path = shellQuote(dest.endsWith('/') ? dest + name : dest)
  const commands = [`mkdir -p "$(dirname ${path})" && cat > ${path} <<'${name}'\n${text}${name}`]
  if (flags['chown']) commands.push(`chown ${shellQuote(flags['chown'])} ${path}`)
  if (flags['chmod']) commands.push(`chmod ${shellQuote(flags['chmod'])} ${path}`)
  builder.runCmd(commands.join('\n'), { user: 'root' })
}

function pairs(rest: string, arg: boolean): Record<string, string> {
  const all = words(rest)
  const envs: Record<string, string> = {}
  if (!arg && !/^[^\s=]+=/.test(rest)) {
    const [, key = '', value = ''] = /^(\S+)\s+(.*)$/s.exec(rest) ?? []
    return key ? { [key]: unquoted(value) } : {}
  }
  for (const word of all) {
    const equals = word.indexOf('=')
    if (equals > 0) envs[word.slice(0, equals)] = word.slice(equals + 1)
    else if (arg && word) envs[word] = ''
  }
  return envs
}

/** Words of a line, without their quotes. */
function words(text: string): string[] {
  return (text.match(/(?:[^\s"'\\]|\\.|"(?:[^"\\]|\\.)*"|'[^']*')+/gs) ?? []).map(unquoted)
}

function unquoted(word: string): string {
  return word
    .trim()
    .replace(/"((?:[^"\\]|\\.)*)"|'([^']*)'|\\(\s)/gs, (_, double?: string, single?: string, space?: string) =>
      double === undefined ? (single ?? space ?? '') : double.replace(/\\(["\\])/g, '$1'),
    )
}

/** Strings of a JSON list; undefined for text that is none. */
function listOf(text: string): string[] | undefined {
  if (!text.startsWith('[')) return undefined
  try {
    const list = JSON.parse(text) as unknown
    return Array.isArray(list) && list.every((item) => typeof item === 'string') ? (list as string[]) : undefined
  } catch {
    return undefined
  }
}

/** Instructions with their continuations joined and their documents read. */
function linesOf(text: string): Line[] {
  const raw = text.split(/\r?\n/)
  const escape = /^#\s*escape\s*=\s*(\S)/im.exec(raw[0] ?? '')?.[1] ?? '\\'
  const lines: Line[] = []
  for (let i = 0; i < raw.length; i++) {
    if (/^\s*(#|$)/.test(raw[i]!)) continue
    let joined = ''
    for (; i < raw.length; i++) {
      if (joined && /^\s*(#|$)/.test(raw[i]!)) continue
      const part = raw[i]!.trimEnd()
      if (!part.endsWith(escape)) {
        joined += part
        break
      }
      joined += part.slice(0, -1)
    }
    const [, keyword = '', rest = ''] = /^\s*(\w+)\s*(.*)$/s.exec(joined) ?? []
    const documents: Line['documents'] = []
    if (/^(RUN|COPY|ADD)$/i.test(keyword)) {
      for (const [, dash, , name] of rest.matchAll(/<<(-?)(["']?)(\w+)\2/g)) {
        let body = ''
        while (++i < raw.length && raw[i]!.replace(dash ? /^\t+/ : /^$/, '') !== name) {
          body += `${dash ? raw[i]!.replace(/^\t+/, '') : raw[i]!}\n`
        }
        documents.push({ name: name!, text: body })
      }
    }
    lines.push({ keyword: keyword.toUpperCase(), rest: rest.trim(), documents })
  }
  return lines
}
