// SPDX-License-Identifier: Apache-2.0
// What the REST API answers, as far as the console reads it.

export interface Sandbox {
  sandboxID: string
  templateID: string
  alias?: string
  startedAt: string
  endAt: string
  state: 'running' | 'paused'
  cpuCount: number
  memoryMB: number
  diskSizeMB: number
  metadata?: Record<string, string>
  volumeMounts?: { name: string; path: string }[]
}

export interface SandboxDetail extends Sandbox {
  envdVersion: string
  envdAccessToken?: string
  domain?: string | null
  allowInternetAccess?: boolean | null
  lifecycle?: { autoResume: boolean; onTimeout: 'kill' | 'pause' }
  network?: unknown
}

export interface Metric {
  timestamp: string
  timestampUnix: number
  cpuCount: number
  cpuUsedPct: number
  memUsed: number
  memTotal: number
  memCache: number
  diskUsed: number
  diskTotal: number
}

export interface Template {
  templateID: string
  buildID: string
  names?: string[]
  aliases?: string[]
  cpuCount: number
  memoryMB: number
  diskSizeMB?: number
  public: boolean
  createdAt: string
  updatedAt: string
  lastSpawnedAt: string | null
  spawnCount: number
  buildCount: number
  buildStatus?: string
  isDefault?: boolean
}

export interface LifecycleEvent {
  id: string
  type: string
  timestamp: string
  eventLabel?: string
  eventData: (Record<string, unknown> & { kill_cause?: string; kill_reason?: string }) | null
  sandboxId: string
  sandboxTemplateId: string
}

export interface LogEntry {
  timestamp: string
  level: string
  message: string
  fields?: Record<string, string>
}

/** The name a person gave a template, else its id. */
export function templateName(t: Template): string {
  return t.aliases?.[0] ?? t.names?.[0] ?? t.templateID
}
