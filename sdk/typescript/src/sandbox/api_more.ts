// SPDX-License-Identifier: Apache-2.0
// Calls about sandboxes beyond making, connecting and ending them: pausing, copying, listing, measurements, logs,
// events, snapshots. Loaded with the first of them.

import type { ConnectionOpts } from '../config.js'
import { InvalidArgumentError, NotFoundError, SandboxError } from '../errors.js'
import { apiError, ask, askApi, type ApiRequest, errorOfCode } from '../net/api.js'
import type { Page } from '../paginator.js'
import { askOf, pathOf, problemOf } from './api_ask.js'
import {
  type CreatedSandbox,
  createdOf,
  type CreateSnapshotOpts,
  type RawSandbox,
  type SandboxEvent,
  type SandboxEventsOpts,
  type SandboxInfo,
  type SandboxInfoLifecycle,
  type SandboxListOpts,
  type SandboxLogEntry,
  type SandboxLogsOpts,
  type SandboxMetrics,
  type SandboxMetricsOpts,
  type SandboxPauseOpts,
  type SandboxState,
  type SnapshotInfo,
} from './info.js'
import type { SandboxNetworkInfo, SandboxNetworkUpdate } from './network.js'

type RawSnapshot = { snapshotID: string; names?: string[] }

export async function getInfo(sandboxId: string, opts?: ConnectionOpts): Promise<SandboxInfo> {
  return infoOf(await askOf<RawInfo>(sandboxId, opts, { method: 'GET', path: pathOf(sandboxId) }))
}

/** A sandbox as get and list answer it. */
interface RawInfo {
  sandboxID: string
  templateID: string
  alias?: string
  metadata?: Record<string, string>
  startedAt: string
  endAt: string
  state: SandboxState
  cpuCount: number
  memoryMB: number
  envdVersion: string
  allowInternetAccess?: boolean | null
  network?: SandboxNetworkInfo | null
  lifecycle?: SandboxInfoLifecycle | null
  volumeMounts?: Array<{ name: string; path: string }> | null
  domain?: string | null
  pauseMode?: 'full' | 'filesystem'
  envdUnresponsiveAtPause?: boolean
}

/** What get and list have in common. */
function listedOf(raw: RawInfo): SandboxInfo {
  return {
    sandboxId: raw.sandboxID,
    templateId: raw.templateID,
    ...(raw.alias ? { name: raw.alias } : {}),
    metadata: raw.metadata ?? {},
    startedAt: new Date(raw.startedAt),
    endAt: new Date(raw.endAt),
    state: raw.state,
    cpuCount: raw.cpuCount,
    memoryMB: raw.memoryMB,
    envdVersion: raw.envdVersion,
    volumeMounts: raw.volumeMounts ?? [],
    ...(raw.envdUnresponsiveAtPause ? { envdUnresponsiveAtPause: true } : {}),
  }
}

/** A sandbox as get answers it. */
function infoOf(raw: RawInfo): SandboxInfo {
  const { network, lifecycle, pauseMode } = raw
  return {
    ...listedOf(raw),
    allowInternetAccess: raw.allowInternetAccess ?? undefined,
    network: network ? networkOf(network) : undefined,
    lifecycle: lifecycle ? { onTimeout: lifecycle.onTimeout, autoResume: lifecycle.autoResume } : undefined,
    sandboxDomain: raw.domain || undefined,
    ...(pauseMode ? { pauseMode } : {}),
  }
}

function networkOf(raw: SandboxNetworkInfo): SandboxNetworkInfo {
  const { allowOut, denyOut, rules, egressProxy, allowPublicTraffic, maskRequestHost, httpsPorts, dnsServers } = raw
  return {
    allowOut,
    denyOut,
    rules: rules ?? undefined,
    egressProxy: egressProxy ?? undefined,
    allowPublicTraffic: allowPublicTraffic ?? undefined,
    maskRequestHost,
    httpsPorts,
    ...(dnsServers ? { dnsServers } : {}),
  }
}

export async function pause(sandboxId: string, opts?: SandboxPauseOpts): Promise<boolean> {
  const body = { memory: memoryOf(opts), requireHealthyGuest: opts?.strict ? true : undefined }
  const answer = await ask(opts, { method: 'POST', path: pathOf(sandboxId, '/pause'), body })
  if (answer.status === 409) return false
  if (answer.problem) throw problemOf(sandboxId, answer)
  return true
}

function memoryOf(opts: { keepMemory?: boolean; mode?: string } | undefined): boolean | undefined {
  const { mode } = opts ?? {}
  if (mode === undefined) return opts?.keepMemory
  if (mode !== 'full' && mode !== 'filesystem') {
    throw new InvalidArgumentError(`mode is ${JSON.stringify(mode)}; give 'full' or 'filesystem'`)
  }
  return mode === 'full'
}

export async function updateNetwork(
  sandboxId: string,
  network: SandboxNetworkUpdate,
  opts?: ConnectionOpts,
): Promise<void> {
  const body = (await import('./network_body.js')).networkUpdateBody(network)
  await askOf(sandboxId, opts, { method: 'PUT', path: pathOf(sandboxId, '/network'), body })
}

/** Copies of a sandbox; an error stands for one that did not start. */
export async function fork(
  sandboxId: string,
  body: { timeout: number | undefined; count: number | undefined },
  opts?: ConnectionOpts,
): Promise<Array<CreatedSandbox | Error>> {
  type Entry = { sandbox?: RawSandbox; error?: { code: number; message: string } }
  const request = { method: 'POST', path: pathOf(sandboxId, '/fork'), body }
  const entries = await askOf<Entry[]>(sandboxId, opts, request)
  return (entries ?? []).map(({ sandbox, error }) => {
    if (sandbox && !error) return createdOf(sandbox)
    if (!error) return new SandboxError('a fork did not start, and the server did not say why')
    if (error.code === 404) return new NotFoundError(`404: ${error.message}`)
    return errorOfCode(error.code, error.message)
  })
}

export async function getMetrics(sandboxId: string, opts?: SandboxMetricsOpts): Promise<SandboxMetrics[]> {
  const seconds = (date?: Date): number | undefined => (date ? Math.round(date.getTime() / 1000) : undefined)
  const query = { start: seconds(opts?.start), end: seconds(opts?.end) }
  type Raw = Omit<SandboxMetrics, 'timestamp'> & { timestamp: string }
  const raw = await askOf<Raw[]>(sandboxId, opts, { method: 'GET', path: pathOf(sandboxId, '/metrics'), query })
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

export async function getLogs(sandboxId: string, opts?: SandboxLogsOpts): Promise<SandboxLogEntry[]> {
  const query = { start: opts?.start?.getTime(), limit: opts?.limit }
  type Raw = { timestamp: string; level: string; message: string; fields?: Record<string, string> }
  const request = { method: 'GET', path: pathOf(sandboxId, '/logs'), query }
  const raw = await askOf<{ logEntries?: Raw[] }>(sandboxId, opts, request)
  return (raw?.logEntries ?? []).map(({ timestamp, level, message, fields }) => ({
    timestamp: new Date(timestamp),
    level,
    message,
    fields: fields ?? {},
  }))
}

export async function getEvents(sandboxId: string, opts?: SandboxEventsOpts): Promise<SandboxEvent[]> {
  const { offset, limit, orderAsc } = opts ?? {}
  const types = (opts?.types ?? []).map((type) => `types=${encodeURIComponent(type)}`).join('&')
  const path = `/events${pathOf(sandboxId)}${types && `?${types}`}`
  const query = types ? undefined : { offset, limit, orderAsc }
  const more = types ? moreQuery({ offset, limit, orderAsc }) : ''
  type Raw = Omit<SandboxEvent, 'timestamp'> & { timestamp: string }
  const raw = await askOf<Raw[]>(sandboxId, opts, { method: 'GET', path: path + more, query })
  return (raw ?? []).map((event) => ({ ...event, timestamp: new Date(event.timestamp) }))
}

function moreQuery(query: Record<string, unknown>): string {
  return Object.entries(query)
    .filter(([, value]) => value !== undefined)
    .map(([key, value]) => `&${key}=${encodeURIComponent(String(value))}`)
    .join('')
}

export async function createSnapshot(sandboxId: string, opts?: CreateSnapshotOpts): Promise<SnapshotInfo> {
  const body = { name: opts?.name || undefined, memory: memoryOf(opts) }
  const request = { method: 'POST', path: pathOf(sandboxId, '/snapshots'), body }
  return snapshotOf(await askOf<RawSnapshot>(sandboxId, opts, request))
}

export async function deleteSnapshot(snapshotId: string, opts?: ConnectionOpts): Promise<boolean> {
  const answer = await ask(opts, { method: 'DELETE', path: `/templates/${encodeURIComponent(snapshotId)}` })
  if (answer.status === 404) return false
  if (answer.problem) throw apiError(answer)
  return true
}

function snapshotOf(raw: RawSnapshot): SnapshotInfo {
  return { snapshotId: raw.snapshotID, names: raw.names ?? [] }
}

type ListQuery = NonNullable<SandboxListOpts['query']> & Pick<SandboxListOpts, 'order' | 'limit' | 'nextToken'>

/** A page of sandboxes. */
export async function listSandboxes(asked: ListQuery, opts?: ConnectionOpts): Promise<Page<SandboxInfo>> {
  const { metadata, state, startedAfter, template, order, limit, nextToken } = asked
  const query = {
    metadata: metadata && metadataQuery(metadata),
    state: state?.join(',') || undefined,
    startedAfter: startedAfter?.toISOString(),
    template: template || undefined,
    order,
    limit,
    nextToken,
  }
  const { data, headers } = await askApi<RawInfo[]>(opts, { method: 'GET', path: '/v2/sandboxes', query })
  return { items: (data ?? []).map(listedOf), headers }
}

/** The API decodes keys and values once more than the query itself. */
function metadataQuery(metadata: Record<string, string>): string {
  const pairs = Object.entries(metadata).map(([key, value]) => [encodeURIComponent(key), encodeURIComponent(value)])
  return new URLSearchParams(pairs).toString()
}

/** A page of snapshots. */
export async function listSnapshots(query: ApiRequest['query'], opts?: ConnectionOpts): Promise<Page<SnapshotInfo>> {
  const { data, headers } = await askApi<RawSnapshot[]>(opts, { method: 'GET', path: '/snapshots', query })
  return { items: (data ?? []).map(snapshotOf), headers }
}
