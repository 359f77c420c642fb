// SPDX-License-Identifier: Apache-2.0
// Volumes: files that outlive sandboxes and are shared by them.

import { ClientFactory, ConnectionConfig, type ConnectionOpts, type Logger, REQUEST_TIMEOUT_MS } from './config.js'
import { envVar } from './env.js'
import { detailed, VolumeError, VolumeNotFoundError, VolumePathNotFoundError } from './errors.js'
import { type ApiAnswer, apiError, type ApiRequest, callApi, fetchOf, needKey, unreachable } from './net/api.js'
import { Deadline } from './net/deadline.js'
import { bodyOf, watched, type WriteData } from './net/transfer.js'

export enum VolumeFileType {
  UNKNOWN = 'unknown',
  FILE = 'file',
  DIRECTORY = 'directory',
  SYMLINK = 'symlink',
}

export type VolumeInfo = {
  volumeId: string
  name: string
}

export type VolumeAndToken = VolumeInfo & {
  /** Bearer of this volume's content. */
  token: string
  domain?: string
}

/** An entry of a volume. */
export type VolumeEntryStat = {
  name: string
  type: VolumeFileType
  path: string
  size: number
  /** Permission bits. */
  mode: number
  uid: number
  gid: number
  atime: Date
  mtime: Date
  ctime: Date
  /** Where a link leads to. */
  target?: string
}

export type VolumeMetadataOpts = {
  uid?: number
  gid?: number
  mode?: number
}

export type VolumeWriteOpts = VolumeMetadataOpts & {
  /** Make missing directories, replace what is there. */
  force?: boolean
}

export type VolumeMetadataOptions = VolumeMetadataOpts
export type VolumeWriteOptions = VolumeWriteOpts

/** Options of calls about a volume's content. */
export interface VolumeApiOpts {
  token?: string
  domain?: string
  debug?: boolean
  apiUrl?: string
  requestTimeoutMs?: number
  logger?: Logger
  headers?: Record<string, string>
  proxy?: string
  signal?: AbortSignal
  fetch?: typeof fetch
}

export type VolumeReadOpts = VolumeApiOpts & {
  /** Longest silence in ms of a stream that is being read. */
  streamIdleTimeoutMs?: number
}

/** Where a volume's content is. */
export class VolumeConnectionConfig {
  readonly domain: string
  readonly debug: boolean
  readonly apiUrl: string
  readonly token?: string
  readonly headers?: Record<string, string>
  readonly logger?: Logger
  readonly requestTimeoutMs: number
  readonly signal?: AbortSignal
  readonly proxy?: string
  readonly fetch?: typeof fetch

  constructor(volume: Volume, opts?: VolumeApiOpts) {
    const base = new ConnectionConfig({ ...volume.connection, ...opts } as ConnectionOpts)
    this.domain = opts?.domain || volume.domain || base.domain
    this.debug = opts?.debug ?? volume.debug ?? base.debug
    const asked = opts?.apiUrl || envVar('E2B_VOLUME_API_URL')
    const near = volume.domain ? undefined : volume.connection?.apiUrl
    this.apiUrl = (asked || near || (this.debug ? 'http://localhost:8080' : `https://api.${this.domain}`)).replace(
      /\/+$/,
      '',
    )
    this.token = opts?.token ?? volume.token
    this.headers = base.headers
    this.logger = base.logger
    this.requestTimeoutMs = opts?.requestTimeoutMs ?? REQUEST_TIMEOUT_MS
    this.signal = opts?.signal
    this.proxy = opts?.proxy ?? volume.proxy
    this.fetch = base.fetch
  }

  getSignal(requestTimeoutMs?: number, signal?: AbortSignal): AbortSignal | undefined {
    return new ConnectionConfig({ requestTimeoutMs: this.requestTimeoutMs }).getSignal(
      requestTimeoutMs,
      signal ?? this.signal,
    )
  }
}

type RawVolume = { volumeID: string; name: string; token: string; domain?: string }
type RawStat = Omit<VolumeEntryStat, 'atime' | 'mtime' | 'ctime'> & { atime: string; mtime: string; ctime: string }

/** A volume. */
export class Volume extends ClientFactory {
  /** @internal */
  connection?: ConnectionConfig

  constructor(
    readonly volumeId: string,
    readonly name: string,
    readonly token: string,
    readonly domain?: string,
    readonly debug?: boolean,
    readonly proxy?: string,
  ) {
    super()
  }

  /** Makes a volume. */
  static async create<V extends typeof Volume>(
    this: V,
    name: string,
    opts?: ConnectionOpts,
  ): Promise<InstanceType<V>> {
    const apiOpts = this.resolveOpts(opts)
    const answer = await ask<RawVolume>(apiOpts, { method: 'POST', path: '/volumes', body: { name } })
    return this.made(volumeOf(answer.data!), apiOpts) as InstanceType<V>
  }

  /** A volume that exists. */
  static async connect<V extends typeof Volume>(
    this: V,
    volumeId: string,
    opts?: ConnectionOpts,
  ): Promise<InstanceType<V>> {
    return this.made(await this.getInfo(volumeId, opts), this.resolveOpts(opts)) as InstanceType<V>
  }

  static async getInfo(volumeId: string, opts?: ConnectionOpts): Promise<VolumeAndToken> {
    const path = `/volumes/${encodeURIComponent(volumeId)}`
    const answer = await ask<RawVolume>(this.resolveOpts(opts), { method: 'GET', path }, 404)
    if (answer.status === 404) throw missing(new VolumeNotFoundError(`Volume ${volumeId} not found`))
    return volumeOf(answer.data!)
  }

  /** Volumes of the team. */
  static async list(opts?: ConnectionOpts): Promise<VolumeInfo[]> {
    const answer = await ask<RawVolume[]>(this.resolveOpts(opts), { method: 'GET', path: '/volumes' })
    return (answer.data ?? []).map(({ volumeID, name }) => ({ volumeId: volumeID, name }))
  }

  /** Deletes a volume with all in it; false when there is none. */
  static async destroy(volumeId: string, opts?: ConnectionOpts): Promise<boolean> {
    const path = `/volumes/${encodeURIComponent(volumeId)}`
    return (await ask(this.resolveOpts(opts), { method: 'DELETE', path }, 404)).status !== 404
  }

  /** Entries of a directory, and of those below it down to `depth`. */
  async list(path: string, opts?: VolumeApiOpts & { depth?: number }): Promise<VolumeEntryStat[]> {
    const query = { path, depth: opts?.depth }
    return (await this.#ask<RawStat[]>('GET', 'dir', path, opts, query)).map(statOf)
  }

  async makeDir(path: string, opts?: VolumeWriteOpts & VolumeApiOpts): Promise<VolumeEntryStat> {
    return statOf(await this.#ask('POST', 'dir', path, opts, writeQuery(path, opts)))
  }

  async getInfo(path: string, opts?: VolumeApiOpts): Promise<VolumeEntryStat> {
    return statOf(await this.#ask('GET', 'path', path, opts))
  }

  async exists(path: string, opts?: VolumeApiOpts): Promise<boolean> {
    try {
      await this.getInfo(path, opts)
      return true
    } catch (error) {
      if (error instanceof VolumePathNotFoundError) return false
      throw error
    }
  }

  async updateMetadata(path: string, metadata: VolumeMetadataOpts, opts?: VolumeApiOpts): Promise<VolumeEntryStat> {
    const { uid, gid, mode } = metadata
    return statOf(await this.#ask('PATCH', 'path', path, opts, { path }, { uid, gid, mode }))
  }

  /** Reads a file, as text unless `format` says otherwise. No time limit while bytes move. */
  async readFile(path: string, opts?: VolumeReadOpts & { format?: 'text' }): Promise<string>
  async readFile(path: string, opts?: VolumeReadOpts & { format: 'bytes' }): Promise<Uint8Array>
  async readFile(path: string, opts?: VolumeReadOpts & { format: 'blob' }): Promise<Blob>
  async readFile(path: string, opts?: VolumeReadOpts & { format: 'stream' }): Promise<ReadableStream<Uint8Array>>
  async readFile(path: string, opts: VolumeReadOpts & { format?: string } = {}): Promise<unknown> {
    const deadline = new Deadline(opts.signal)
    const response = await this.#transfer('GET', path, { path }, deadline, opts)
    const stream = watched(response.body ?? new Response('').body!, deadline, () => deadline.close())
    if (opts.format === 'stream') return stream
    const whole = new Response(stream)
    if (opts.format === 'blob') return whole.blob()
    return opts.format === 'bytes' ? new Uint8Array(await whole.arrayBuffer()) : whole.text()
  }

  /** Writes a file. No time limit while bytes move. */
  async writeFile(
    path: string,
    data: WriteData,
    opts: VolumeWriteOpts & VolumeApiOpts = {},
  ): Promise<VolumeEntryStat> {
    const deadline = new Deadline(opts.signal)
    const body = await bodyOf(data, deadline)
    const response = await this.#transfer('PUT', path, writeQuery(path, opts), deadline, opts, body)
    try {
      return statOf((await response.json()) as RawStat)
    } finally {
      deadline.close()
    }
  }

  /** Removes a file, or a directory with all in it. */
  async remove(path: string, opts?: VolumeApiOpts): Promise<void> {
    await this.#ask('DELETE', 'path', path, opts)
  }

  private static made(info: VolumeAndToken, opts: ConnectionOpts | undefined): Volume {
    const config = new ConnectionConfig(opts)
    const volume = new this(info.volumeId, info.name, info.token, info.domain, opts?.debug, opts?.proxy)
    Object.defineProperty(volume, 'connection', { value: config, enumerable: false })
    return volume
  }

  private path(kind: string): string {
    return `/volumecontent/${encodeURIComponent(this.volumeId)}/${kind}`
  }

  async #ask<T = RawStat>(
    method: string,
    kind: string,
    path: string,
    opts?: VolumeApiOpts,
    query: ApiRequest['query'] = { path },
    body?: unknown,
  ): Promise<T> {
    const config = new VolumeConnectionConfig(this, opts)
    const plain = this.connection ?? new ConnectionConfig({ debug: config.debug, domain: config.domain })
    const headers = { ...config.headers, Authorization: `Bearer ${config.token}` }
    const request = { method, path: this.path(kind), query, body, headers, keyless: true, origin: config.apiUrl }
    const answer = await callApi<T>(plain, request, opts)
    if (answer.problem) throw pathError(path, answer)
    return answer.data as T
  }

  async #transfer(
    method: string,
    path: string,
    query: Record<string, string | number | boolean | undefined>,
    deadline: Deadline,
    opts: VolumeReadOpts,
    body?: object,
  ): Promise<Response> {
    const config = new VolumeConnectionConfig(this, opts)
    const limit = opts.streamIdleTimeoutMs ?? config.requestTimeoutMs
    deadline.arm(limit, 'requestTimeoutMs', `${path} of volume ${this.name}: the time without a byte`)
    const pairs = Object.entries(query).filter(([, value]) => value !== undefined)
    const params = new URLSearchParams(pairs.map(([key, value]) => [key, String(value)]))
    const headers: Record<string, string> = { ...config.headers, Authorization: `Bearer ${config.token}` }
    if (body) headers['Content-Type'] = 'application/octet-stream'
    try {
      const init = { method, headers, signal: deadline.signal, ...body }
      const response = await fetchOf(config)(`${config.apiUrl}${this.path('file')}?${params.toString()}`, init)
      if (response.ok) return response
      const problem = (await response.json().catch(() => ({}))) as object
      throw pathError(path, {
        status: response.status,
        statusText: response.statusText,
        headers: response.headers,
        problem,
      })
    } catch (error) {
      deadline.close()
      throw error instanceof TypeError && !deadline.error ? unreachable(config.apiUrl, error) : deadline.reason(error)
    }
  }
}

async function ask<T>(
  opts: ConnectionOpts | undefined,
  request: ApiRequest,
  allowed?: number,
): Promise<ApiAnswer<T>> {
  const config = new ConnectionConfig(opts)
  needKey(config)
  const answer = await callApi<T>(config, request, opts)
  if (answer.problem && answer.status !== allowed) throw apiError(answer, VolumeError)
  return answer
}

function missing<E extends Error>(error: E): E {
  return detailed(error, { statusCode: 404 })
}

function pathError(path: string, answer: ApiAnswer<unknown>): Error {
  if (answer.status === 404)
    return missing(new VolumePathNotFoundError(answer.problem?.message ?? `Path ${path} not found`))
  return apiError(answer, VolumeError)
}

function volumeOf(raw: RawVolume): VolumeAndToken {
  return { volumeId: raw.volumeID, name: raw.name, token: raw.token, ...(raw.domain ? { domain: raw.domain } : {}) }
}

function statOf(raw: RawStat): VolumeEntryStat {
  return { ...raw, atime: new Date(raw.atime), mtime: new Date(raw.mtime), ctime: new Date(raw.ctime) }
}

function writeQuery(path: string, opts?: VolumeWriteOpts): Record<string, string | number | boolean | undefined> {
  return { path, uid: opts?.uid, gid: opts?.gid, mode: opts?.mode, force: opts?.force }
}
