// SPDX-License-Identifier: Apache-2.0
// Calls about sandboxes by their id. Those that few programs make are loaded with the first one (api_more.ts).

import { ClientFactory, ConnectionConfig, toSeconds } from '../config.js'
import { compareVersions } from '../env.js'
import { InvalidArgumentError, TemplateError } from '../errors.js'
import { apiError, ask } from '../net/api.js'
import { Paginator } from '../paginator.js'
import { askOf, pathOf } from './api_ask.js'
import {
  type CreatedSandbox,
  createdOf,
  type CreateSnapshotOpts,
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
import type { SandboxNetworkUpdate } from './network.js'

const IDEMPOTENCY_KEY = /^[a-z0-9-]{1,255}$/

const more = (): Promise<typeof import('./api_more.js')> => import('./api_more.js')

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
    return (await more()).getInfo(sandboxId, this.resolveOpts(opts))
  }

  /** The same as getInfo(). */
  static async getFullInfo(sandboxId: string, opts?: SandboxApiOpts): Promise<SandboxInfo> {
    return this.getInfo(sandboxId, opts)
  }

  /** Measurements, oldest first. */
  static async getMetrics(sandboxId: string, opts?: SandboxMetricsOpts): Promise<SandboxMetrics[]> {
    const apiOpts = this.resolveOpts(opts)
    return new ConnectionConfig(apiOpts).debug ? [] : (await more()).getMetrics(sandboxId, apiOpts)
  }

  /** Lines of a sandbox's log, oldest first. */
  static async getLogs(sandboxId: string, opts?: SandboxLogsOpts): Promise<SandboxLogEntry[]> {
    return (await more()).getLogs(sandboxId, this.resolveOpts(opts))
  }

  /** What happened to a sandbox, also after its end; newest first unless `orderAsc`. */
  static async getEvents(sandboxId: string, opts?: SandboxEventsOpts): Promise<SandboxEvent[]> {
    return (await more()).getEvents(sandboxId, this.resolveOpts(opts))
  }

  /** Sets a sandbox's end to `timeoutMs` from now. */
  static async setTimeout(sandboxId: string, timeoutMs: number, opts?: SandboxApiOpts): Promise<void> {
    const body = { timeout: toSeconds(timeoutMs) }
    const request = { method: 'POST', path: pathOf(sandboxId, '/timeout'), body }
    await askOf(sandboxId, this.resolveOpts(opts), request)
  }

  /** Replaces what a running sandbox may reach; what is left out is cleared. */
  static async updateNetwork(sandboxId: string, network: SandboxNetworkUpdate, opts?: SandboxApiOpts): Promise<void> {
    return (await more()).updateNetwork(sandboxId, network, this.resolveOpts(opts))
  }

  /** Pauses a sandbox; false when it is paused already. */
  static async pause(sandboxId: string, opts?: SandboxPauseOpts): Promise<boolean> {
    return (await more()).pause(sandboxId, this.resolveOpts(opts))
  }

  /** The same as pause(). */
  static async betaPause(sandboxId: string, opts?: SandboxPauseOpts): Promise<boolean> {
    return this.pause(sandboxId, opts)
  }

  /** Keeps a copy of a running sandbox, to make others from. */
  static async createSnapshot(sandboxId: string, opts?: CreateSnapshotOpts): Promise<SnapshotInfo> {
    return (await more()).createSnapshot(sandboxId, this.resolveOpts(opts))
  }

  /** Snapshots, newest first. */
  static listSnapshots(opts?: SnapshotListOpts): SnapshotPaginator {
    return new SnapshotPaginator(this.resolveOpts(opts))
  }

  /** Deletes a snapshot; false when there is none. */
  static async deleteSnapshot(snapshotId: string, opts?: SandboxApiOpts): Promise<boolean> {
    return (await more()).deleteSnapshot(snapshotId, this.resolveOpts(opts))
  }

  protected static async createSandbox(
    template: string,
    timeoutMs?: number,
    opts?: SandboxOpts,
  ): Promise<CreatedSandbox> {
    const apiOpts = this.resolveOpts(opts)
    const headers = idempotencyHeader(apiOpts?.idempotencyKey)
    const body = await createBody(template, timeoutMs, apiOpts)
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
    return (await more()).fork(sandboxId, { timeout: toSeconds(timeoutMs), count }, this.resolveOpts(opts))
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

function idempotencyHeader(key: string | undefined): Record<string, string> {
  if (key === undefined) return {}
  if (!IDEMPOTENCY_KEY.test(key)) {
    throw new InvalidArgumentError(`idempotencyKey ${JSON.stringify(key)}: give 1 to 255 of a-z, 0-9 and '-'`)
  }
  return { 'Idempotency-Key': key }
}

async function createBody(template: string, timeoutMs?: number, opts: SandboxOpts = {}): Promise<object> {
  const mounts = opts.volumeMounts && Object.entries(opts.volumeMounts)
  const rules = opts.network || opts.iam || opts.lifecycle
  return {
    templateID: template,
    metadata: opts.metadata,
    mcp: opts.mcp,
    envVars: opts.envs,
    timeout: toSeconds(timeoutMs),
    allow_internet_access: opts.allowInternetAccess,
    ...(rules ? (await import('./network_body.js')).createFields(opts) : {}),
    volumeMounts: mounts?.map(([path, volume]) => ({
      name: typeof volume === 'string' ? volume : volume.name,
      path,
    })),
  }
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
    const page = { ...this.#query, order: this.#order, limit: this.limit, nextToken: this.nextToken }
    return this.took(await (await more()).listSandboxes(page, ConnectionConfig.mergeOpts(this.opts, opts)))
  }
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
    return this.took(await (await more()).listSnapshots(query, ConnectionConfig.mergeOpts(this.opts, opts)))
  }
}
