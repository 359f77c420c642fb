// SPDX-License-Identifier: Apache-2.0
// The calls behind Volume, loaded with the first of them.

import { ConnectionConfig, type ConnectionOpts } from './config.js'
import { detailed, VolumeError, VolumeNotFoundError, VolumePathNotFoundError } from './errors.js'
import { type ApiAnswer, apiError, type ApiRequest, askApi, callApi, fetchOf, unreachable } from './net/api.js'
import { Deadline } from './net/deadline.js'
import { bodyOf, watched, type WriteData } from './net/transfer.js'
import {
  type Volume,
  type VolumeAndToken,
  type VolumeApiOpts,
  VolumeConnectionConfig,
  type VolumeEntryStat,
  type VolumeInfo,
  type VolumeMetadataOpts,
  type VolumeReadOpts,
  type VolumeWriteOpts,
} from './volume.js'

type RawVolume = { volumeID: string; name: string; token: string; domain?: string }
type RawStat = Omit<VolumeEntryStat, 'atime' | 'mtime' | 'ctime'> & { atime: string; mtime: string; ctime: string }
type Query = Record<string, string | number | boolean | undefined>

const pathOf = (volumeId: string): string => `/volumes/${encodeURIComponent(volumeId)}`

export async function createVolume(name: string, opts?: ConnectionOpts): Promise<VolumeAndToken> {
  const request = { method: 'POST', path: '/volumes', body: { name } }
  return volumeOf((await askApi<RawVolume>(opts, request, VolumeError)).data!)
}

export async function getVolume(volumeId: string, opts?: ConnectionOpts): Promise<VolumeAndToken> {
  const answer = await askApi<RawVolume>(opts, { method: 'GET', path: pathOf(volumeId) }, VolumeError, [404])
  if (answer.status === 404) throw missing(new VolumeNotFoundError(`Volume ${volumeId} not found`))
  return volumeOf(answer.data!)
}

export async function listVolumes(opts?: ConnectionOpts): Promise<VolumeInfo[]> {
  const answer = await askApi<RawVolume[]>(opts, { method: 'GET', path: '/volumes' }, VolumeError)
  return (answer.data ?? []).map(({ volumeID, name }) => ({ volumeId: volumeID, name }))
}

export async function destroyVolume(volumeId: string, opts?: ConnectionOpts): Promise<boolean> {
  return (await askApi(opts, { method: 'DELETE', path: pathOf(volumeId) }, VolumeError, [404])).status !== 404
}

/** Content of one volume. */
export class VolumeContent {
  constructor(private readonly volume: Volume) {}

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

  async readFile(path: string, opts: VolumeReadOpts & { format?: string } = {}): Promise<unknown> {
    const deadline = new Deadline(opts.signal)
    const response = await this.#transfer('GET', path, { path }, deadline, opts)
    const stream = watched(response.body ?? new Response('').body!, deadline, () => deadline.close())
    if (opts.format === 'stream') return stream
    const whole = new Response(stream)
    if (opts.format === 'blob') return whole.blob()
    return opts.format === 'bytes' ? new Uint8Array(await whole.arrayBuffer()) : whole.text()
  }

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

  async remove(path: string, opts?: VolumeApiOpts): Promise<void> {
    await this.#ask('DELETE', 'path', path, opts)
  }

  private path(kind: string): string {
    return `/volumecontent/${encodeURIComponent(this.volume.volumeId)}/${kind}`
  }

  async #ask<T = RawStat>(
    method: string,
    kind: string,
    path: string,
    opts?: VolumeApiOpts,
    query: ApiRequest['query'] = { path },
    body?: unknown,
  ): Promise<T> {
    const config = new VolumeConnectionConfig(this.volume, opts)
    const plain = this.volume.connection ?? new ConnectionConfig({ debug: config.debug, domain: config.domain })
    const headers = { ...config.headers, Authorization: `Bearer ${config.token}` }
    const request = { method, path: this.path(kind), query, body, headers, keyless: true, origin: config.apiUrl }
    const answer = await callApi<T>(plain, request, opts)
    if (answer.problem) throw pathError(path, answer)
    return answer.data as T
  }

  async #transfer(
    method: string,
    path: string,
    query: Query,
    deadline: Deadline,
    opts: VolumeReadOpts,
    body?: object,
  ): Promise<Response> {
    const config = new VolumeConnectionConfig(this.volume, opts)
    const limit = opts.streamIdleTimeoutMs ?? config.requestTimeoutMs
    deadline.arm(limit, 'requestTimeoutMs', `${path} of volume ${this.volume.name}: the time without a byte`)
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

function writeQuery(path: string, opts?: VolumeWriteOpts): Query {
  return { path, uid: opts?.uid, gid: opts?.gid, mode: opts?.mode, force: opts?.force }
}
