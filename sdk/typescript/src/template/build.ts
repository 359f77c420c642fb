// SPDX-License-Identifier: Apache-2.0
// Calls that build templates and move their tags.

import { ConnectionConfig, type ConnectionOpts } from '../config.js'
import { BuildError, FileUploadError, TemplateError } from '../errors.js'
import { apiError, type ApiAnswer, type ApiRequest, callApi, fetchOf, needKey } from '../net/api.js'
import { Deadline, sleep } from '../net/deadline.js'
import type { BuildContext } from './context.js'
import { LogEntry, type LogEntryLevel } from './logs.js'
import type {
  BasicBuildOptions,
  BuildInfo,
  Instruction,
  TemplateBuildStatus,
  TemplateBuildStatusResponse,
} from './types.js'

const POLL_MS = 200
const UPLOAD_MS = 3_600_000

type Class = typeof BuildError | typeof TemplateError
type RawEntry = { timestamp: string; level: LogEntryLevel; message: string }
type RawStatus = {
  buildID: string
  templateID: string
  status: TemplateBuildStatus
  logEntries?: RawEntry[]
  logs?: string[]
  reason?: { message: string; step?: string; logEntries?: RawEntry[] }
}

/** A template as it is sent, and where its steps come from in the caller's program. */
export interface Recipe {
  steps: Instruction[]
  body: (steps: Instruction[]) => object
  context: () => BuildContext
  traces: string[]
}

type Opts = ConnectionOpts & Omit<BasicBuildOptions, 'alias'>

/** Asks the API; answers with one of the `allowed` statuses come back, other errors are thrown. */
export async function ask<T>(
  opts: ConnectionOpts | undefined,
  request: ApiRequest,
  Error: Class,
  allowed: number[] = [],
  stackTrace?: string,
): Promise<ApiAnswer<T>> {
  const config = new ConnectionConfig(opts)
  needKey(config)
  const answer = await callApi<T>(config, request, opts)
  if (answer.problem && !allowed.includes(answer.status)) throw apiError(answer, Error, stackTrace)
  return answer
}

export const templatePath = (id: string, rest = ''): string => `/templates/${encodeURIComponent(id)}${rest}`

/** Sends a template and starts its build. */
export async function startBuild(recipe: Recipe, name: string, opts: Opts): Promise<BuildInfo> {
  const { tags, cpuCount, memoryMB, minFreeDiskMb } = opts
  const say = (message: string): void => opts.onBuildLogs?.(new LogEntry(new Date(), 'info', message))
  say(`Requesting build for template: ${name}${tags?.length ? ` with tags ${tags.join(', ')}` : ''}`)
  type Made = { templateID: string; buildID: string; tags: string[] }
  const body = { name, tags, cpuCount, memoryMB, minFreeDiskMb }
  const { data } = await ask<Made>(opts, { method: 'POST', path: '/v3/templates', body }, BuildError)
  const { templateID, buildID } = data!
  say(`Template created with ID: ${templateID}, Build ID: ${buildID}`)
  const steps = hashed(recipe)
  await Promise.all(steps.map((step, i) => step.filesHash && upload(recipe, step, i, templateID, opts, say)))
  say('All file uploads completed')
  say('Starting building...')
  const path = `/v2${templatePath(templateID, `/builds/${buildID}`)}`
  await ask(opts, { method: 'POST', path, body: recipe.body(steps) }, BuildError)
  return { alias: name, name, tags: data!.tags, templateId: templateID, buildId: buildID }
}

/** Steps with the hashes of the files that they copy. */
export function hashed(recipe: Recipe): Instruction[] {
  return recipe.steps.map((step) => {
    if (step.type !== 'COPY') return step
    const filesHash = recipe.context().hash(step.args[0]!, step.args[1]!, step.resolveSymlinks ?? false)
    return { ...step, filesHash }
  })
}

async function upload(
  recipe: Recipe,
  step: Instruction,
  index: number,
  templateID: string,
  opts: Opts,
  say: (message: string) => void,
): Promise<void> {
  const trace = recipe.traces[index + 1]
  type Link = { present: boolean; url?: string; headers?: Record<string, string> }
  const request = { method: 'GET', path: templatePath(templateID, `/files/${step.filesHash}`) }
  const { present, url, headers } = (await ask<Link>(opts, request, FileUploadError, [], trace)).data!
  const source = step.args[0]!
  if (!url || (present && !step.forceUpload)) return say(`Skipping upload of '${source}', already cached`)
  const deadline = new Deadline(opts.signal)
  deadline.arm(opts.requestTimeoutMs ?? UPLOAD_MS, 'requestTimeoutMs', `uploading '${source}'`)
  try {
    const body = await recipe.context().archive(source, step.resolveSymlinks ?? false, step.gzip ?? true)
    const kept = Object.entries(headers ?? {}).filter(([name]) => name.toLowerCase() !== 'content-length')
    const init = { method: 'PUT', body, headers: Object.fromEntries(kept), signal: deadline.signal }
    const response = await fetchOf(opts)(url, init)
    if (!response.ok) throw new Error(`${response.status} ${response.statusText} ${await response.text()}`)
  } catch (error) {
    if (opts.signal?.aborted) throw deadline.reason(error)
    throw new FileUploadError(`Failed to upload '${source}': ${String(deadline.reason(error))}`, trace)
  } finally {
    deadline.close()
  }
  say(`Uploaded '${source}'`)
}

const entryOf = ({ timestamp, level, message }: RawEntry): LogEntry =>
  new LogEntry(new Date(timestamp), level, message)

/** How a build stands, with its log from `logsOffset` on. */
export async function buildStatus(
  templateId: string,
  buildId: string,
  logsOffset: number | undefined,
  opts?: ConnectionOpts,
): Promise<TemplateBuildStatusResponse> {
  const path = templatePath(templateId, `/builds/${encodeURIComponent(buildId)}/status`)
  const answer = await ask<RawStatus>(opts, { method: 'GET', path, query: { logsOffset } }, BuildError)
  const { buildID, templateID, status, logEntries = [], logs = [], reason } = answer.data!
  return {
    buildID,
    templateID,
    status,
    logEntries: logEntries.map(entryOf),
    logs,
    reason: reason && { ...reason, logEntries: (reason.logEntries ?? []).map(entryOf) },
  }
}

/** Follows a build to its end; throws where it fails, with the place in the caller's program. */
export async function followBuild(info: BuildInfo, traces: string[], opts: Opts): Promise<void> {
  let offset = 0
  for (;;) {
    const { status, logEntries, reason } = await buildStatus(info.templateId, info.buildId, offset, opts)
    offset += logEntries.length
    for (const entry of logEntries) opts.onBuildLogs?.(entry)
    const over = status === 'ready' || status === 'error'
    // The last lines may come after the last status.
    if (over && logEntries.length) continue
    if (status === 'ready') return
    if (status === 'error') throw new BuildError(reason?.message ?? 'Unknown error', traceOf(reason?.step, traces))
    await sleep(POLL_MS, opts.signal)
  }
}

function traceOf(step: string | undefined, traces: string[]): string | undefined {
  if (step === undefined) return undefined
  return traces[step === 'base' ? 0 : step === 'finalize' ? traces.length - 1 : Number(step)]
}
