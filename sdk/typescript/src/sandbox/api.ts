// SPDX-License-Identifier: Apache-2.0
// Calls about sandboxes by their id.

import { ClientFactory, ConnectionConfig, type ConnectionOpts, toSeconds } from '../config.js'
import { compareVersions } from '../env.js'
import {
  detailed,
  InvalidArgumentError,
  NotFoundError,
  SandboxError,
  SandboxNotFoundError,
  TemplateError,
} from '../errors.js'
import { type ApiAnswer, apiError, type ApiRequest, callApi, errorOfCode, needKey } from '../net/api.js'
import { Paginator } from '../paginator.js'
import {
  type CreatedSandbox,
  createdOf,
  type CreateSnapshotOpts,
  infoOf,
  listedOf,
  type RawInfo,
  type RawSandbox,
  type SandboxApiOpts,
  type SandboxConnectOpts,
  type SandboxEvent,
  type SandboxEventsOpts,
  type SandboxForkOpts,
  type SandboxInfo,
  type SandboxListOpts,
  type SandboxLogEntry,
  type SandboxLogsOpts,
  type SandboxMetrics,
  type SandboxMetricsOpts,
  type SandboxOpts,
  type SandboxPauseOpts,
  type SnapshotInfo,
  type SnapshotListOpts,
} from './info.js'
import { iamBody, lifecycleBody, networkBody, networkUpdateBody, type SandboxNetworkUpdate } from './network.js'

type RawSnapshot = { snapshotID: string; names?: string[] }
const IDEMPOTENCY_KEY = /^[a-z0-9-]{1,255}$/

/** Asks the API; answers of any status come back. */
async function ask<T>(opts: ConnectionOpts | undefined, request: ApiRequest): Promise<ApiAnswer<T>> {
  const config = new ConnectionConfig(opts)
  needKey(config)
  return callApi<T>(config, request, opts)
}

/** Asks the API about one sandbox; throws what is not a success. */
async function askOf<T>(id: string, opts: ConnectionOpts | undefined, request: ApiRequest): Promise<T> {
  const answer = await ask<T>(opts, request)
  if (answer.problem) throw problemOf(id, answer)
  return answer.data as T
}

function problemOf(id: string, answer: ApiAnswer<unknown>): Error {
  if (answer.status !== 404) return apiError(answer)
  const text = `Sandbox ${id} not found: ${answer.problem?.message ?? ''}`
  return detailed(new SandboxNotFoundError(text), { statusCode: 404 })
}

const pathOf = (id: string, rest = ''): string => `/sandboxes/${encodeURIComponent(id)}${rest}`

function memoryOf(opts: { keepMemory?: boolean; mode?: string } | undefined): boolean | undefined {
  const { mode } = opts ?? {}
  if (mode === undefined) return opts?.keepMemory
  if (mode !== 'full' && mode !== 'filesystem') {
    throw new InvalidArgumentError(`mode is ${JSON.stringify(mode)}; give 'full' or 'filesystem'`)
  }
  return mode === 'full'
}

/** Static half of Sandbox. */
export class SandboxApi extends ClientFactory {
  protected constructor() {
    super()
  }

  /** Ends a sandbox; false when there is none. */
  static async kill(sandboxId: string, opts?: SandboxApiOpts): Promise<boolean> {
    const apiOpts = this.resolveOpts(opts)
    if (new ConnectionConfig(apiOpts).debug) return true
    const answer = await ask(apiOpts, { method: 'DELETE', path: pathOf(sandboxId) })
    if (answer.status === 404) return false
    if (answer.problem) throw apiError(answer)
    return true
  }

  /** What a sandbox is. */
  static async getInfo(sandboxId: string, opts?: SandboxApiOpts): Promise<SandboxInfo> {
    const request = { method: 'GET', path: pathOf(sandboxId) }
    return infoOf(await askOf<RawInfo>(sandboxId, this.resolveOpts(opts), request))
  }

  /** The same as getInfo(). */
  static async getFullInfo(sandboxId: string, opts?: SandboxApiOpts): Promise<SandboxInfo> {
    return this.getInfo(sandboxId, opts)
  }

  /** Measurements, oldest first. */
  static async getMetrics(sandboxId: string, opts?: SandboxMetricsOpts): Promise<SandboxMetrics[]> {
    const apiOpts = this.resolveOpts(opts)
    if (new ConnectionConfig(apiOpts).debug) return []
    const seconds = (date?: Date): number | undefined => (date ? Math.round(date.getTime() / 1000) : undefined)
    const query = { start: seconds(apiOpts?.start), end: seconds(apiOpts?.end) }
    type Raw = Omit<SandboxMetrics, 'timestamp'> & { timestamp: string }
    const raw = await askOf<Raw[]>(sandboxId, apiOpts, { method: 'GET', path: pathOf(sandboxId, '/metrics'), query })
    return (raw ?? []).map(
      ({ cpuUsedPct, cpuCount, memUsed, memTotal, memCache, diskUsed, diskTotal, timestamp }) => ({
        timestamp: new Date(timestamp),
        cpuUsedPct,
        cpuCount,
        memUsed,
        memTotal,
        memCache,
        diskUsed,
        diskTotal,
      }),
    )
  }

  /** Lines of a sandbox's log, oldest first. */
  static async getLogs(sandboxId: string, opts?: SandboxLogsOpts): Promise<SandboxLogEntry[]> {
    const apiOpts = this.resolveOpts(opts)
    const query = { start: apiOpts?.start?.getTime(), limit: apiOpts?.limit }
    type Raw = { timestamp: string; level: string; message: string; fields?: Record<string, string> }
    const request = { method: 'GET', path: pathOf(sandboxId, '/logs'), query }
    const raw = await askOf<{ logEntries?: Raw[] }>(sandboxId, apiOpts, request)
    return (raw?.logEntries ?? []).map(({ timestamp, level, message, fields }) => ({
      timestamp: new Date(timestamp),
      level,
      message,
      fields: fields ?? {},
    }))
  }

  /** What happened to a sandbox, also after its end; newest first unless `orderAsc`. */
  static async getEvents(sandboxId: string, opts?: SandboxEventsOpts): Promise<SandboxEvent[]> {
    const apiOpts = this.resolveOpts(opts)
    const { offset, limit, orderAsc } = apiOpts ?? {}
    const types = (apiOpts?.types ?? []).map((type) => `types=${encodeURIComponent(type)}`).join('&')
    const path = `/events${pathOf(sandboxId)}${types && `?${types}`}`
    const query = types ? undefined : { offset, limit, orderAsc }
    const more = types ? moreQuery({ offset, limit, orderAsc }) : ''
    type Raw = Omit<SandboxEvent, 'timestamp'> & { timestamp: string }
    const raw = await askOf<Raw[]>(sandboxId, apiOpts, { method: 'GET', path: path + more, query })
    return (raw ?? []).map((event) => ({ ...event, timestamp: new Date(event.timestamp) }))
  }

  /** Sets a sandbox's end to `timeoutMs` from now. */
  static async setTimeout(sandboxId: string, timeoutMs: number, opts?: SandboxApiOpts): Promise<void> {
    const body = { timeout: toSeconds(timeoutMs) }
    const request = { method: 'POST', path: pathOf(sandboxId, '/timeout'), body }
    await askOf(sandboxId, this.resolveOpts(opts), request)
  }

  /** Replaces what a running sandbox may reach; what is left out is cleared. */
  static async updateNetwork(sandboxId: string, network: SandboxNetworkUpdate, opts?: SandboxApiOpts): Promise<void> {
    const request = { method: 'PUT', path: pathOf(sandboxId, '/network'), body: networkUpdateBody(network) }
    await askOf(sandboxId, this.resolveOpts(opts), request)
  }

  /** Pauses a sandbox; false when it is paused already. */
  static async pause(sandboxId: string, opts?: SandboxPauseOpts): Promise<boolean> {
    const apiOpts = this.resolveOpts(opts)
    const body = { memory: memoryOf(apiOpts), requireHealthyGuest: apiOpts?.strict ? true : undefined }
    const answer = await ask(apiOpts, { method: 'POST', path: pathOf(sandboxId, '/pause'), body })
    if (answer.status === 409) return false
    if (answer.problem) throw problemOf(sandboxId, answer)
    return true
  }

  /** The same as pause(). */
  static async betaPause(sandboxId: string, opts?: SandboxPauseOpts): Promise<boolean> {
    return this.pause(sandboxId, opts)
  }

  /** Keeps a copy of a running sandbox, to make others from. */
  static async createSnapshot(sandboxId: string, opts?: CreateSnapshotOpts): Promise<SnapshotInfo> {
    const apiOpts = this.resolveOpts(opts)
    const body = { name: apiOpts?.name || undefined, memory: memoryOf(apiOpts) }
    const request = { method: 'POST', path: pathOf(sandboxId, '/snapshots'), body }
    return snapshotOf(await askOf<RawSnapshot>(sandboxId, apiOpts, request))
  }

  /** Snapshots, newest first. */
  static listSnapshots(opts?: SnapshotListOpts): SnapshotPaginator {
    return new SnapshotPaginator(this.resolveOpts(opts))
  }

  /** Deletes a snapshot; false when there is none. */
  static async deleteSnapshot(snapshotId: string, opts?: SandboxApiOpts): Promise<boolean> {
    const path = `/templates/${encodeURIComponent(snapshotId)}`
    const answer = await ask(this.resolveOpts(opts), { method: 'DELETE', path })
    if (answer.status === 404) return false
    if (answer.problem) throw apiError(answer)
    return true
  }

  protected static async createSandbox(
    template: string,
    timeoutMs?: number,
    opts?: SandboxOpts,
  ): Promise<CreatedSandbox> {
    const apiOpts = this.resolveOpts(opts)
    const headers = idempotencyHeader(apiOpts?.idempotencyKey)
    const body = createBody(template, timeoutMs, apiOpts)
    const answer = await ask<RawSandbox>(apiOpts, { method: 'POST', path: '/v2/sandboxes', body, headers })
    if (answer.problem) throw apiError(answer)
    const created = createdOf(answer.data!)
    if (compareVersions(created.envdVersion, '0.1.0') < 0) {
      await this.kill(created.sandboxId, apiOpts)
      throw new TemplateError(`the template's agent ${created.envdVersion} is too old: rebuild the template`)
    }
    return created
  }

  protected static async forkSandbox(
    sandboxId: string,
    timeoutMs?: number,
    count?: number,
    opts?: SandboxForkOpts,
  ): Promise<Array<CreatedSandbox | Error>> {
    const body = { timeout: toSeconds(timeoutMs), count }
    type Entry = { sandbox?: RawSandbox; error?: { code: number; message: string } }
    const request = { method: 'POST', path: pathOf(sandboxId, '/fork'), body }
    const entries = await askOf<Entry[]>(sandboxId, this.resolveOpts(opts), request)
    return (entries ?? []).map(({ sandbox, error }) => {
      if (sandbox && !error) return createdOf(sandbox)
      if (!error) return new SandboxError('a fork did not start, and the server did not say why')
      if (error.code === 404) return new NotFoundError(`404: ${error.message}`)
      return errorOfCode(error.code, error.message)
    })
  }

  protected static async connectSandbox(sandboxId: string, opts?: SandboxConnectOpts): Promise<CreatedSandbox> {
    const apiOpts = this.resolveOpts(opts)
    const onResume = apiOpts?.onResume
    if (onResume != null && onResume !== 'restore' && onResume !== 'reboot') {
      throw new InvalidArgumentError(`onResume is ${JSON.stringify(onResume)}; give 'restore' or 'reboot'`)
    }
    const body = { timeout: toSeconds(apiOpts?.timeoutMs), memory: onResume === 'reboot' ? false : undefined }
    const path = `/v2${pathOf(sandboxId, '/connect')}`
    return createdOf(await askOf<RawSandbox>(sandboxId, apiOpts, { method: 'POST', path, body }))
  }
}

function moreQuery(query: Record<string, unknown>): string {
  return Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `&${key}=${encodeURIComponent(String(value))}`)
    .join('')
}

function idempotencyHeader(key: string | undefined): Record<string, string> {
  if (key === undefined) return {}
  if (!IDEMPOTENCY_KEY.test(key)) {
    throw new InvalidArgumentError(`idempotencyKey ${JSON.stringify(key)}: give 1 to 255 of a-z, 0-9 and '-'`)
  }
  return { 'Idempotency-Key': key }
}

function createBody(template: string, timeoutMs: number | undefined, opts: SandboxOpts | undefined): object {
  const iam = iamBody(opts?.iam)
  const mounts = opts?.volumeMounts && Object.entries(opts.volumeMounts)
  return {
    templateID: template,
    metadata: opts?.metadata,
    mcp: opts?.mcp,
    envVars: opts?.envs,
    timeout: toSeconds(timeoutMs),
    allow_internet_access: opts?.allowInternetAccess,
    network: networkBody(opts?.network, iam),
    iam,
    ...lifecycleBody(opts?.lifecycle),
    volumeMounts: mounts?.map(([path, volume]) => ({
      name: typeof volume === 'string' ? volume : volume.name,
      path,
    })),
  }
}

function snapshotOf(raw: RawSnapshot): SnapshotInfo {
  return { snapshotId: raw.snapshotID, names: raw.names ?? [] }
}

/** Sandboxes, page by page. */
export class SandboxPaginator extends Paginator<SandboxInfo, SandboxApiOpts> {
  readonly #query: SandboxListOpts['query']
  readonly #order: SandboxListOpts['order']

  constructor(opts?: SandboxListOpts) {
    super(opts, opts?.limit, opts?.nextToken)
    this.#query = opts?.query
    this.#order = opts?.order
  }

  async nextItems(opts?: SandboxApiOpts): Promise<SandboxInfo[]> {
    this.needNext()
    const { metadata, state, startedAfter, template } = this.#query ?? {}
    const query = {
      metadata: metadata && metadataQuery(metadata),
      state: state?.join(',') || undefined,
      startedAfter: startedAfter?.toISOString(),
      template: template || undefined,
      order: this.#order,
      limit: this.limit,
      nextToken: this.nextToken,
    }
    const answer = await ask<RawInfo[]>(ConnectionConfig.mergeOpts(this.opts, opts), {
      method: 'GET',
      path: '/v2/sandboxes',
      query,
    })
    if (answer.problem) throw apiError(answer)
    this.updatePagination(answer)
    return (answer.data ?? []).map(listedOf)
  }
}

/** The API decodes keys and values once more than the query itself. */
function metadataQuery(metadata: Record<string, string>): string {
  const pairs = Object.entries(metadata).map(([key, value]) => [encodeURIComponent(key), encodeURIComponent(value)])
  return new URLSearchParams(pairs).toString()
}

/** Snapshots, page by page. */
export class SnapshotPaginator extends Paginator<SnapshotInfo, SandboxApiOpts> {
  readonly #sandboxId?: string
  readonly #name?: string

  constructor(opts?: SnapshotListOpts) {
    super(opts, opts?.limit, opts?.nextToken)
    this.#sandboxId = opts?.sandboxId
    this.#name = opts?.name
  }

  async nextItems(opts?: SandboxApiOpts): Promise<SnapshotInfo[]> {
    this.needNext()
    const query = { sandboxID: this.#sandboxId, name: this.#name, limit: this.limit, nextToken: this.nextToken }
    const merged = ConnectionConfig.mergeOpts(this.opts, opts)
    const answer = await ask<RawSnapshot[]>(merged, { method: 'GET', path: '/snapshots', query })
    if (answer.problem) throw apiError(answer)
    this.updatePagination(answer)
    return (answer.data ?? []).map(snapshotOf)
  }
}
