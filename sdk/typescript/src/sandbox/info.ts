// SPDX-License-Identifier: Apache-2.0
// Sandboxes as the API describes them, and the options of calls about them.

import type { ConnectionOpts } from '../config.js'
import type { Volume } from '../volume.js'
import type { McpServer } from './mcp.js'
import type { SandboxIamOpts, SandboxLifecycle, SandboxNetworkInfo, SandboxNetworkOpts } from './network.js'

export type SandboxState = 'running' | 'paused'
export type SandboxListOrder = 'asc' | 'desc'
export type SandboxOnResume = 'restore' | 'reboot'

export type SandboxInfoLifecycle = {
  onTimeout: 'pause' | 'kill'
  autoResume: boolean
}

/** Options of every call about sandboxes. */
export interface SandboxApiOpts extends Partial<
  Pick<
    ConnectionOpts,
    | 'apiKey'
    | 'validateApiKey'
    | 'headers'
    | 'apiHeaders'
    | 'debug'
    | 'domain'
    | 'apiUrl'
    | 'requestTimeoutMs'
    | 'retries'
    | 'signal'
    | 'fetch'
  >
> {}

export interface SandboxPauseOpts extends SandboxApiOpts {
  /** false: keep files only; the sandbox starts anew when it is resumed. */
  keepMemory?: boolean
  /** The same in words: `full` or `filesystem`. */
  mode?: 'full' | 'filesystem'
  /** Refuse when the sandbox's agent does not answer. */
  strict?: boolean
}

export interface SandboxForkOpts extends ConnectionOpts {
  /** How many copies, 1 when left out. */
  count?: number
  /** Life of each copy in ms; the server gives 15 s when left out. */
  timeoutMs?: number
}

export interface SandboxOpts extends ConnectionOpts {
  /** Name or id of a template or snapshot. */
  template?: string
  metadata?: Record<string, string>
  /** Variables that every command and cell sees. */
  envs?: Record<string, string>
  /** Life of the sandbox in ms; the server gives 300 s when left out. */
  timeoutMs?: number
  /** Without effect: every sandbox wants its token. */
  secure?: boolean
  allowInternetAccess?: boolean
  /** MCP servers to start behind a gateway in the sandbox. */
  mcp?: McpServer
  network?: SandboxNetworkOpts
  iam?: SandboxIamOpts
  /** Volumes by the path where they appear. */
  volumeMounts?: Record<string, Volume | string>
  sandboxUrl?: string
  lifecycle?: SandboxLifecycle
  /** Creating twice with the same key gives the same sandbox: 1 to 255 of a-z, 0-9 and `-`. */
  idempotencyKey?: string
}

export type SandboxConnectOpts = ConnectionOpts & {
  /** Life from now on in ms; a running sandbox's is never shortened. 300 s when left out. */
  timeoutMs?: number
  /** `reboot`: start a paused sandbox anew from its files. */
  onResume?: SandboxOnResume
}

export interface SandboxListOpts extends Omit<SandboxApiOpts, 'signal'> {
  query?: {
    metadata?: Record<string, string>
    state?: Array<SandboxState>
    startedAfter?: Date
    template?: string
  }
  order?: SandboxListOrder
  /** Items of a page, 1 to 100. */
  limit?: number
  nextToken?: string
}

export interface SandboxMetricsOpts extends SandboxApiOpts {
  start?: Date
  end?: Date
}

export interface SnapshotListOpts extends Omit<SandboxApiOpts, 'signal'> {
  /** Only snapshots of this sandbox. */
  sandboxId?: string
  name?: string
  limit?: number
  nextToken?: string
}

export interface SnapshotInfo {
  /** Use it as the template of a create. */
  snapshotId: string
  names: string[]
}

export interface CreateSnapshotOpts extends SandboxApiOpts {
  name?: string
  /** false: keep files only; what is made from the snapshot starts anew. */
  keepMemory?: boolean
  /** The same in words: `full` or `filesystem`. */
  mode?: 'full' | 'filesystem'
}

/** A sandbox. */
export interface SandboxInfo {
  sandboxId: string
  templateId: string
  /** Name of the template. */
  name?: string
  metadata: Record<string, string>
  startedAt: Date
  endAt: Date
  state: SandboxState
  cpuCount: number
  memoryMB: number
  envdVersion: string
  allowInternetAccess?: boolean | undefined
  network?: SandboxNetworkInfo
  lifecycle?: SandboxInfoLifecycle
  volumeMounts?: Array<{ name: string; path: string }>
  sandboxDomain?: string
  /** How a paused sandbox was kept. */
  pauseMode?: 'full' | 'filesystem'
  /** True when the agent was silent as the sandbox was paused. */
  envdUnresponsiveAtPause?: boolean
}

/** A measurement of a sandbox. */
export interface SandboxMetrics {
  timestamp: Date
  /** Per cent of all CPUs together. */
  cpuUsedPct: number
  cpuCount: number
  /** Bytes. */
  memUsed: number
  memTotal: number
  memCache: number
  diskUsed: number
  diskTotal: number
}

/** Something that happened to a sandbox. */
export interface SandboxEvent {
  id: string
  version: string
  /** `sandbox.lifecycle.created`, `...paused`, `...resumed`, `...killed`, ... */
  type: string
  timestamp: Date
  eventCategory: string
  eventLabel: string
  eventData: Record<string, any> | null
  sandboxId: string
  sandboxExecutionId: string
  sandboxTemplateId: string
  sandboxBuildId: string
  sandboxTeamId: string
}

export interface SandboxEventsOpts extends SandboxApiOpts {
  types?: string[]
  offset?: number
  /** 1 to 100, 10 when left out. */
  limit?: number
  orderAsc?: boolean
}

/** A line of a sandbox's log. */
export interface SandboxLogEntry {
  timestamp: Date
  level: string
  message: string
  fields: Record<string, string>
}

export interface SandboxLogsOpts extends SandboxApiOpts {
  /** Only what is newer. */
  start?: Date
  limit?: number
}

/** What create, connect and fork answer. */
export interface CreatedSandbox {
  sandboxId: string
  sandboxDomain: string | undefined
  envdVersion: string
  envdAccessToken: string | undefined
  trafficAccessToken: string | undefined
}

/** A sandbox as create, connect and fork answer it. */
export interface RawSandbox {
  sandboxID: string
  domain?: string | null
  envdVersion: string
  envdAccessToken?: string
  trafficAccessToken?: string | null
}

/** Answer of create, connect and fork as the classes use it. */
export function createdOf(raw: RawSandbox): CreatedSandbox {
  return {
    sandboxId: raw.sandboxID,
    sandboxDomain: raw.domain || undefined,
    envdVersion: raw.envdVersion,
    envdAccessToken: raw.envdAccessToken,
    trafficAccessToken: raw.trafficAccessToken || undefined,
  }
}
