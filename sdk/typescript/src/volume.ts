// SPDX-License-Identifier: Apache-2.0
// Volumes: files that outlive sandboxes and are shared by them. Their calls are loaded with the first one
// (volume_calls.ts).

import { ClientFactory, ConnectionConfig, type ConnectionOpts, type Logger, REQUEST_TIMEOUT_MS } from './config.js'
import { envVar } from './env.js'
import type { WriteData } from './net/transfer.js'
import type { VolumeContent } from './volume_calls.js'

const load = (): Promise<typeof import('./volume_calls.js')> => import('./volume_calls.js')

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
    return this.made(await (await load()).createVolume(name, apiOpts), apiOpts) as InstanceType<V>
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
    return (await load()).getVolume(volumeId, this.resolveOpts(opts))
  }

  /** Volumes of the team. */
  static async list(opts?: ConnectionOpts): Promise<VolumeInfo[]> {
    return (await load()).listVolumes(this.resolveOpts(opts))
  }

  /** Deletes a volume with all in it; false when there is none. */
  static async destroy(volumeId: string, opts?: ConnectionOpts): Promise<boolean> {
    return (await load()).destroyVolume(volumeId, this.resolveOpts(opts))
  }

  /** Entries of a directory, and of those below it down to `depth`. */
  async list(path: string, opts?: VolumeApiOpts & { depth?: number }): Promise<VolumeEntryStat[]> {
    return (await this.#content()).list(path, opts)
  }

  async makeDir(path: string, opts?: VolumeWriteOpts & VolumeApiOpts): Promise<VolumeEntryStat> {
    return (await this.#content()).makeDir(path, opts)
  }

  async getInfo(path: string, opts?: VolumeApiOpts): Promise<VolumeEntryStat> {
    return (await this.#content()).getInfo(path, opts)
  }

  async exists(path: string, opts?: VolumeApiOpts): Promise<boolean> {
    return (await this.#content()).exists(path, opts)
  }

  async updateMetadata(path: string, metadata: VolumeMetadataOpts, opts?: VolumeApiOpts): Promise<VolumeEntryStat> {
    return (await this.#content()).updateMetadata(path, metadata, opts)
  }

  /** Reads a file, as text unless `format` says otherwise. No time limit while bytes move. */
  async readFile(path: string, opts?: VolumeReadOpts & { format?: 'text' }): Promise<string>
  async readFile(path: string, opts?: VolumeReadOpts & { format: 'bytes' }): Promise<Uint8Array>
  async readFile(path: string, opts?: VolumeReadOpts & { format: 'blob' }): Promise<Blob>
  async readFile(path: string, opts?: VolumeReadOpts & { format: 'stream' }): Promise<ReadableStream<Uint8Array>>
  async readFile(path: string, opts?: VolumeReadOpts & { format?: string }): Promise<unknown> {
    return (await this.#content()).readFile(path, opts)
  }

  /** Writes a file. No time limit while bytes move. */
  async writeFile(
    path: string,
    data: WriteData,
    opts?: VolumeWriteOpts & VolumeApiOpts,
  ): Promise<VolumeEntryStat> {
    return (await this.#content()).writeFile(path, data, opts)
  }

  /** Removes a file, or a directory with all in it. */
  async remove(path: string, opts?: VolumeApiOpts): Promise<void> {
    await (await this.#content()).remove(path, opts)
  }

  private static made(info: VolumeAndToken, opts: ConnectionOpts | undefined): Volume {
    const config = new ConnectionConfig(opts)
    const volume = new this(info.volumeId, info.name, info.token, info.domain, opts?.debug, opts?.proxy)
    Object.defineProperty(volume, 'connection', { value: config, enumerable: false })
    return volume
  }

  async #content(): Promise<VolumeContent> {
    return new (await load()).VolumeContent(this)
  }
}
