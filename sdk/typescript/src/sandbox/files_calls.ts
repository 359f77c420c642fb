// SPDX-License-Identifier: Apache-2.0
// The calls behind Filesystem, loaded with the first of them.

import { inBrowser } from '../env.js'
import { FileNotFoundError, InvalidArgumentError, SandboxError, TemplateError } from '../errors.js'
import type { Agent } from '../net/agent.js'
import { Deadline } from '../net/deadline.js'
import { bodyOf, watched, type WriteData } from '../net/transfer.js'
import { type EntryInfo, infoOf, kindOf, type RawEntry } from './entry.js'
import type {
  FilesystemListOpts,
  FilesystemReadOpts,
  FilesystemRequestOpts,
  FilesystemWriteOpts,
  WatchOpts,
  WriteEntry,
  WriteInfo,
} from './files.js'
import { type FilesystemEvent, WatchHandle } from './watch.js'

const METADATA_KEY = /^[A-Za-z0-9!#$%&'*+\-.^_`|~]+$/
const METADATA_VALUE = /^[\x20-\x7e]*$/
const WRITES_AT_ONCE = 8
const WATCH_TIMEOUT_MS = 60_000

export class FileCalls {
  readonly #agent: Agent

  constructor(agent: Agent) {
    this.#agent = agent
  }

  async read(path: string, opts: FilesystemReadOpts & { format?: string } = {}): Promise<unknown> {
    const { format = 'text' } = opts
    const stream = await this.#download(path, opts)
    if (format === 'stream') return stream
    const whole = new Response(stream)
    if (format === 'text') return whole.text()
    if (format === 'blob') return whole.blob()
    if (format === 'bytes') return new Uint8Array(await whole.arrayBuffer())
    await stream.cancel()
    throw new InvalidArgumentError(`format is '${format}'; give text, bytes, blob or stream`)
  }

  async write(
    pathOrFiles: string | WriteEntry[],
    dataOrOpts?: WriteData | FilesystemWriteOpts,
    opts?: FilesystemWriteOpts,
  ): Promise<WriteInfo | WriteInfo[]> {
    if (typeof pathOrFiles === 'string') {
      if (dataOrOpts === undefined || Array.isArray(dataOrOpts)) {
        throw new InvalidArgumentError('write() takes a path and its data, or a list of {path, data}')
      }
      return this.#upload(pathOrFiles, dataOrOpts as WriteData, opts)
    }
    if (!Array.isArray(pathOrFiles)) throw new InvalidArgumentError('a path, or a list of {path, data}, is needed')
    return this.writeFiles(pathOrFiles, dataOrOpts as FilesystemWriteOpts | undefined)
  }

  async writeFiles(files: WriteEntry[], opts?: FilesystemWriteOpts): Promise<WriteInfo[]> {
    const paths = new Set(files.map((file) => file.path))
    if (paths.size < files.length) throw new InvalidArgumentError('the same path is in the list more than once')
    const written: WriteInfo[] = new Array(files.length)
    let at = 0
    const worker = async (): Promise<void> => {
      while (at < files.length) {
        const mine = at++
        const { path, data } = files[mine]!
        written[mine] = await this.#upload(path, data, opts)
      }
    }
    await Promise.all(Array.from({ length: Math.min(WRITES_AT_ONCE, files.length) }, worker))
    return written
  }

  async list(path: string, opts?: FilesystemListOpts): Promise<EntryInfo[]> {
    const depth = opts?.depth ?? 1
    if (depth < 1) throw new InvalidArgumentError(`depth is ${depth}; it should be at least 1`)
    const answer = await this.#call<{ entries?: RawEntry[] }>('ListDir', { path, depth }, opts)
    return (answer.entries ?? []).filter((entry) => kindOf(entry.type)).map(infoOf)
  }

  async makeDir(path: string, opts?: FilesystemRequestOpts): Promise<boolean> {
    try {
      await this.#call('MakeDir', { path }, opts)
      return true
    } catch (error) {
      if (problemCode(error) === 'already_exists') return false
      throw error
    }
  }

  async rename(oldPath: string, newPath: string, opts?: FilesystemRequestOpts): Promise<EntryInfo> {
    const answer = await this.#call<{ entry?: RawEntry }>('Move', { source: oldPath, destination: newPath }, opts)
    return infoOf(answer.entry ?? {})
  }

  async remove(path: string, opts?: FilesystemRequestOpts): Promise<void> {
    await this.#call('Remove', { path }, opts)
  }

  async exists(path: string, opts?: FilesystemRequestOpts): Promise<boolean> {
    try {
      await this.#call('Stat', { path }, opts)
      return true
    } catch (error) {
      if (error instanceof FileNotFoundError) return false
      throw error
    }
  }

  async getInfo(path: string, opts?: FilesystemRequestOpts): Promise<EntryInfo> {
    const answer = await this.#call<{ entry?: RawEntry }>('Stat', { path }, opts)
    return infoOf(answer.entry ?? {})
  }

  async watchDir(
    path: string,
    onEvent?: (event: FilesystemEvent) => void | Promise<void>,
    opts: WatchOpts = {},
  ): Promise<WatchHandle> {
    const { recursive = false, includeEntry = false, allowNetworkMounts = false } = opts
    this.#watchable(recursive, includeEntry, allowNetworkMounts)
    const timeoutMs = opts.timeoutMs ?? WATCH_TIMEOUT_MS
    const message = { path, recursive, includeEntry, allowNetworkMounts }
    const method = 'filesystem.Filesystem/WatchDir'
    const stream = await this.#agent.stream(method, message, { ...opts, timeoutMs }, FileNotFoundError)
    return new WatchHandle(stream, onEvent, opts.onExit)
  }

  #call<T extends object>(method: string, message: object, opts?: FilesystemRequestOpts): Promise<T> {
    return this.#agent.unary(`filesystem.Filesystem/${method}`, message, opts, FileNotFoundError) as Promise<T>
  }

  async #download(path: string, opts: FilesystemReadOpts): Promise<ReadableStream<Uint8Array>> {
    const deadline = new Deadline(opts.signal)
    const limit = opts.requestTimeoutMs ?? this.#agent.config.requestTimeoutMs
    const subject = `reading ${path}: the time without a byte`
    deadline.arm(limit, 'requestTimeoutMs', subject)
    try {
      const headers: Record<string, string> = opts.gzip ? { 'Accept-Encoding': 'gzip' } : {}
      const response = await this.#agent.fetch(`/files${this.#query(path, opts.user)}`, { headers }, deadline)
      if (!response.ok) throw await this.#agent.httpError(response, FileNotFoundError)
      deadline.arm(opts.streamIdleTimeoutMs ?? limit, 'streamIdleTimeoutMs', subject)
      const over = (): void => deadline.close()
      const body = response.body ?? new Response('').body!
      return watched(body, deadline, over, (error) => this.#agent.explain(error, FileNotFoundError))
    } catch (error) {
      deadline.close()
      throw deadline.reason(error)
    }
  }

  async #upload(path: string, data: WriteData, opts: FilesystemWriteOpts = {}): Promise<WriteInfo> {
    const deadline = new Deadline(opts.signal)
    const headers = { 'Content-Type': 'application/octet-stream', ...this.#metadataHeaders(opts.metadata) }
    if (opts.gzip) Object.assign(headers, { 'Content-Encoding': 'gzip' })
    // A page can't see how far an upload is: only a limit that the caller asked for counts there, from the start.
    const limit = opts.requestTimeoutMs ?? (inBrowser ? 0 : this.#agent.config.requestTimeoutMs)
    try {
      const body = await bodyOf(data, deadline, opts.gzip)
      deadline.arm(limit, 'requestTimeoutMs', `writing ${path}: the time without a byte`)
      const init = { method: 'POST', headers, ...body }
      const response = await this.#agent.fetch(`/files${this.#query(path, opts.user)}`, init, deadline)
      if (!response.ok) throw await this.#agent.httpError(response, FileNotFoundError)
      const [written] = (await response.json()) as WriteInfo[]
      if (!written) throw new SandboxError(`the agent told nothing of the file ${path} that it wrote`)
      return written
    } catch (error) {
      throw await this.#agent.explain(deadline.reason(error), FileNotFoundError)
    } finally {
      deadline.close()
    }
  }

  #query(path: string, user?: string): string {
    const params = new URLSearchParams({ path })
    const name = this.#agent.user(user)
    if (name) params.set('username', name)
    return `?${params.toString()}`
  }

  #metadataHeaders(metadata: Record<string, string> = {}): Record<string, string> {
    const headers: Record<string, string> = {}
    for (const [key, value] of Object.entries(metadata)) {
      if (!METADATA_KEY.test(key))
        throw new InvalidArgumentError(`metadata key ${JSON.stringify(key)}: not an HTTP token`)
      if (!METADATA_VALUE.test(value))
        throw new InvalidArgumentError(`metadata value of '${key}': not printable ASCII`)
      headers[`X-Metadata-${key}`] = value
    }
    if (Object.keys(headers).length && !this.#agent.supports('0.6.2')) throw outdated('metadata of files', '0.6.2')
    return headers
  }

  #watchable(recursive: boolean, includeEntry: boolean, network: boolean): void {
    if (recursive && !this.#agent.supports('0.1.4')) throw outdated('recursive watching', '0.1.4')
    if (includeEntry && !this.#agent.supports('0.6.3')) throw outdated('entries in watch events', '0.6.3')
    if (network && !this.#agent.supports('0.6.4')) throw outdated('watching network mounts', '0.6.4')
  }
}

function outdated(what: string, version: string): TemplateError {
  return new TemplateError(`${what} needs agent ${version} or newer: rebuild the template`)
}

/** The agent's code of an error that came from an RPC. */
function problemCode(error: unknown): string | undefined {
  return (error as { cause?: { code?: string } }).cause?.code
}
