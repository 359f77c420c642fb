// SPDX-License-Identifier: Apache-2.0
// Calls that build templates and move their tags, loaded with the first of them.

import type { ConnectionOpts } from '../config.js'
import { BuildError, FileUploadError, TemplateError } from '../errors.js'
import { askApi, fetchOf } from '../net/api.js'
import { Deadline, sleep } from '../net/deadline.js'
import { BuildContext } from './context.js'
import { LogEntry, LogEntryEnd, LogEntryStart, type LogEntryLevel } from './logs.js'
import type {
  BasicBuildOptions,
  BuildInfo,
  Instruction,
  TemplateBuildStatus,
  TemplateBuildStatusResponse,
  TemplateTag,
  TemplateTagInfo,
} from './types.js'

const POLL_MS = 200
const UPLOAD_MS = 3_600_000

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
  /** Directory of the files that are copied, and patterns of those that are not. */
  files: [root: string, ignore: string[]]
  traces: string[]
}

type Opts = ConnectionOpts & Omit<BasicBuildOptions, 'alias'>

const templatePath = (id: string, rest = ''): string => `/templates/${encodeURIComponent(id)}${rest}`

/** Sends a template and starts its build. */
export async function startBuild(recipe: Recipe, name: string, opts: Opts): Promise<BuildInfo> {
  const { tags, cpuCount, memoryMB, minFreeDiskMb } = opts
  const say = (message: string): void => opts.onBuildLogs?.(new LogEntry(new Date(), 'info', message))
  say(`Requesting build for template: ${name}${tags?.length ? ` with tags ${tags.join(', ')}` : ''}`)
  type Made = { templateID: string; buildID: string; tags: string[] }
  const body = { name, tags, cpuCount, memoryMB, minFreeDiskMb }
  const { data } = await askApi<Made>(opts, { method: 'POST', path: '/v3/templates', body }, BuildError)
  const { templateID, buildID } = data!
  say(`Template created with ID: ${templateID}, Build ID: ${buildID}`)
  const context = contextOf(recipe)
  const steps = hashed(recipe, context)
  const { traces } = recipe
  await Promise.all(
    steps.map((step, i) => step.filesHash && upload(context(), step, traces[i + 1], templateID, opts, say)),
  )
  say('All file uploads completed')
  say('Starting building...')
  const path = `/v2${templatePath(templateID, `/builds/${buildID}`)}`
  await askApi(opts, { method: 'POST', path, body: recipe.body(steps) }, BuildError)
  return { alias: name, name, tags: data!.tags, templateId: templateID, buildId: buildID }
}

/** The files of a recipe, looked for when they are needed. */
function contextOf({ files }: Recipe): () => BuildContext {
  let context: BuildContext | undefined
  return () => (context ??= new BuildContext(...files))
}

/** Steps with the hashes of the files that they copy. */
function hashed(recipe: Recipe, context: () => BuildContext): Instruction[] {
  return recipe.steps.map((step) => {
    if (step.type !== 'COPY') return step
    return { ...step, filesHash: context().hash(step.args[0]!, step.args[1]!, step.resolveSymlinks ?? false) }
  })
}

/** A template as the API takes it, with the hashes of its files. */
export function bodyOf(recipe: Recipe): object {
  return recipe.body(hashed(recipe, contextOf(recipe)))
}

/** Builds a template and waits for its end. */
export async function build(recipe: Recipe, name: string, opts: Opts): Promise<BuildInfo> {
  opts.onBuildLogs?.(new LogEntryStart(new Date(), 'Build started'))
  try {
    const info = await startBuild(recipe, name, opts)
    opts.onBuildLogs?.(new LogEntry(new Date(), 'info', 'Waiting for logs...'))
    await followBuild(info, recipe.traces, opts)
    return info
  } finally {
    opts.onBuildLogs?.(new LogEntryEnd(new Date(), 'Build finished'))
  }
}

async function upload(
  context: BuildContext,
  step: Instruction,
  trace: string | undefined,
  templateID: string,
  opts: Opts,
  say: (message: string) => void,
): Promise<void> {
  type Link = { present: boolean; url?: string; headers?: Record<string, string> }
  const request = { method: 'GET', path: templatePath(templateID, `/files/${step.filesHash}`) }
  const { present, url, headers } = (await askApi<Link>(opts, request, FileUploadError, [], trace)).data!
  const source = step.args[0]!
  if (!url || (present && !step.forceUpload)) return say(`Skipping upload of '${source}', already cached`)
  const deadline = new Deadline(opts.signal)
  deadline.arm(opts.requestTimeoutMs ?? UPLOAD_MS, 'requestTimeoutMs', `uploading '${source}'`)
  try {
    const body = await context.archive(source, step.resolveSymlinks ?? false, step.gzip ?? true)
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
  const answer = await askApi<RawStatus>(opts, { method: 'GET', path, query: { logsOffset } }, BuildError)
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
async function followBuild(info: BuildInfo, traces: string[], opts: Opts): Promise<void> {
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

/** Whether a template of this name exists, of this team or another. */
export async function exists(name: string, opts?: ConnectionOpts): Promise<boolean> {
  const path = `/templates/aliases/${encodeURIComponent(name)}`
  return (await askApi(opts, { method: 'GET', path }, TemplateError, [403, 404])).status !== 404
}

export async function assignTags(target: string, tags: string[], opts?: ConnectionOpts): Promise<TemplateTagInfo> {
  type Raw = { buildID: string; tags: string[] }
  const request = { method: 'POST', path: '/templates/tags', body: { target, tags } }
  const { data } = await askApi<Raw>(opts, request, TemplateError)
  return { buildId: data!.buildID, tags: data!.tags }
}

export async function removeTags(name: string, tags: string[], opts?: ConnectionOpts): Promise<void> {
  await askApi(opts, { method: 'DELETE', path: '/templates/tags', body: { name, tags } }, TemplateError)
}

export async function getTags(templateId: string, opts?: ConnectionOpts): Promise<TemplateTag[]> {
  type Raw = { tag: string; buildID: string; createdAt: string }
  const request = { method: 'GET', path: templatePath(templateId, '/tags') }
  const { data } = await askApi<Raw[]>(opts, request, TemplateError)
  return data!.map(({ tag, buildID, createdAt }) => ({ tag, buildId: buildID, createdAt: new Date(createdAt) }))
}
