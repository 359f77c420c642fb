// SPDX-License-Identifier: Apache-2.0
// Requests to the control plane: JSON in, JSON out, errors as this package's classes. What the server refuses for the
// moment (429, 502, 503, 504, or whatever carries `Should-Retry: true`) is sent again a few times with pauses that
// grow; `Should-Retry: false` makes an answer final, whatever its status.

import { ConnectionConfig, type ConnectionOpts } from '../config.js'
import { inBrowser } from '../env.js'
import {
  AuthenticationError,
  detailed,
  GuestUnresponsiveError,
  RateLimitError,
  SandboxError,
  ServiceBusyError,
} from '../errors.js'
import { Deadline, sleep } from './deadline.js'

/** Error object of the API. */
export interface ApiProblem {
  code?: number | string
  message?: string
  error_code?: string
}

/** An answer of the API, whether it is an error or not. */
export interface ApiAnswer<T> {
  status: number
  statusText: string
  headers: Headers
  data?: T
  problem?: ApiProblem
}

export interface ApiRequest {
  method: string
  path: string
  query?: Record<string, string | number | boolean | undefined>
  body?: unknown
  headers?: Record<string, string>
  /** Leave the key out: a token in `headers` speaks for itself. */
  keyless?: boolean
  /** Another origin than the API's. */
  origin?: string
}

export type CallOpts = Pick<ConnectionOpts, 'requestTimeoutMs' | 'signal'>

const FIRST_PAUSE_MS = 100
const LONGEST_PAUSE_MS = 10_000
const BUDGET_MS = 60_000
const MAX_RETRY_AFTER = 2147483647

/** The fetch of a configuration, else the runtime's, looked up at each call: tests and tracers replace it. */
export function fetchOf(config: { fetch?: typeof fetch }): typeof fetch {
  return config.fetch ?? globalThis.fetch
}

/** Sends a request and reads the whole answer. */
export async function callApi<T>(
  config: ConnectionConfig,
  request: ApiRequest,
  opts?: CallOpts,
): Promise<ApiAnswer<T>> {
  const deadline = new Deadline(opts?.signal)
  const limit = opts?.requestTimeoutMs ?? config.requestTimeoutMs
  deadline.arm(limit, 'requestTimeoutMs', `${request.method} ${request.path}`)
  const giveUp = Date.now() + (limit || BUDGET_MS)
  try {
    for (let attempt = 0; ; attempt++) {
      const answer = await sendOnce<T>(config, request, deadline)
      const pause = attempt < config.retries ? pauseBefore(answer, attempt) : undefined
      if (pause === undefined || Date.now() + pause >= giveUp) return answer
      config.logger?.debug?.(`${request.method} ${request.path}: ${answer.status}, again in ${Math.round(pause)} ms`)
      await sleep(pause, deadline.signal)
    }
  } catch (error) {
    throw deadline.reason(error)
  } finally {
    deadline.close()
  }
}

async function sendOnce<T>(config: ConnectionConfig, request: ApiRequest, deadline: Deadline): Promise<ApiAnswer<T>> {
  const url = (request.origin ?? config.apiUrl) + request.path + queryOf(request.query)
  const headers: Record<string, string> = { ...config.headers, ...request.headers }
  if (!request.keyless && config.apiKey) headers['X-API-KEY'] = config.apiKey
  const init: RequestInit = { method: request.method, headers, signal: deadline.signal }
  if (request.body !== undefined) {
    headers['Content-Type'] = 'application/json'
    init.body = JSON.stringify(request.body)
  }
  config.logger?.debug?.(`${request.method} ${url}`)
  let response: Response
  try {
    response = await fetchOf(config)(url, init)
  } catch (error) {
    throw deadline.error ?? unreachable(request.origin ?? config.apiUrl, error)
  }
  return readAnswer<T>(response)
}

async function readAnswer<T>(response: Response): Promise<ApiAnswer<T>> {
  const { status, statusText, headers } = response
  const text = await response.text()
  let value: unknown
  try {
    value = text ? JSON.parse(text) : undefined
  } catch {
    value = response.ok ? undefined : { message: text }
  }
  return response.ok
    ? { status, statusText, headers, data: value as T }
    : { status, statusText, headers, problem: (value ?? {}) as ApiProblem }
}

/** Turns a failed fetch into an error that says what could not be reached. */
export function unreachable(origin: string, error: unknown): SandboxError {
  const cause = error as { message?: string; cause?: { message?: string; code?: string } }
  const why = cause.cause?.code ?? cause.cause?.message ?? cause.message ?? String(error)
  return detailed(new SandboxError(`cannot reach ${origin}: ${why}`), { cause: error })
}

/** Milliseconds to wait before the same request goes out again; undefined: the answer is final. */
export function pauseBefore(answer: { status: number; headers: Headers }, attempt: number): number | undefined {
  const word = answer.headers.get('Should-Retry')?.trim().toLowerCase()
  const asked = word === undefined ? [429, 502, 503, 504].includes(answer.status) : word === 'true'
  if (!asked) return undefined
  const after = answer.headers.get('Retry-After')?.trim() ?? ''
  if (/^\d{1,10}$/.test(after) && Number(after) <= MAX_RETRY_AFTER) return Number(after) * 1000
  return Math.min(FIRST_PAUSE_MS * 2 ** attempt, LONGEST_PAUSE_MS) * (0.5 + Math.random() / 2)
}

function queryOf(query: ApiRequest['query']): string {
  const params = new URLSearchParams()
  for (const [key, value] of Object.entries(query ?? {})) if (value !== undefined) params.append(key, String(value))
  const text = params.toString()
  return text && `?${text}`
}

/** Refuses to ask the API without a key: the answer would be 401, and later. A page may have a session instead. */
export function needKey(config: ConnectionConfig): void {
  if (config.apiKey || inBrowser || config.headers?.['Authorization']) return
  throw new AuthenticationError('no API key: set E2B_API_KEY, or pass apiKey')
}

type ErrorClass = new (message: string, stackTrace?: string) => Error

/** The error that an answer stands for. */
export function apiError(answer: ApiAnswer<unknown>, Class: ErrorClass = SandboxError, stackTrace?: string): Error {
  const content = answer.problem?.message || answer.statusText || 'no message'
  return errorOfCode(answer.status, content, Class, stackTrace, answer.problem?.error_code)
}

/** The error of a status of the API, also inside an answer (one of several forks). */
export function errorOfCode(
  code: number,
  content: string,
  Class: ErrorClass = SandboxError,
  stackTrace?: string,
  errorCode?: string,
): Error {
  const details = { statusCode: code, errorCode }
  const error =
    errorCode === 'sandbox_snapshot_guest_agent_unresponsive'
      ? new GuestUnresponsiveError(`${content}; connect with onResume: 'reboot' to start it anew from its files`)
      : code === 401
        ? new AuthenticationError(`Unauthorized, please check your credentials. - ${content}`)
        : code === 429
          ? new RateLimitError(`Rate limit exceeded, please try again later - ${content}`)
          : code === 503
            ? new ServiceBusyError(`Service temporarily unavailable, please retry - ${content}`)
            : new Class(`${code}: ${content}`, stackTrace)
  return detailed(error, details)
}

/** Asks with a call's options; answers of any status come back. */
export async function ask<T>(opts: ConnectionOpts | undefined, request: ApiRequest): Promise<ApiAnswer<T>> {
  const config = new ConnectionConfig(opts)
  needKey(config)
  return callApi<T>(config, request, opts)
}

/** Asks with a call's options. Answers that are no error, or have an `allowed` status, come back; others are thrown. */
export async function askApi<T>(
  opts: ConnectionOpts | undefined,
  request: ApiRequest,
  Class?: ErrorClass,
  allowed: number[] = [],
  stackTrace?: string,
): Promise<ApiAnswer<T>> {
  const answer = await ask<T>(opts, request)
  if (answer.problem && !allowed.includes(answer.status)) throw apiError(answer, Class, stackTrace)
  return answer
}

type Params = { path?: Record<string, string>; query?: ApiRequest['query'] }
type RawRequest = { params?: Params; body?: unknown; headers?: Record<string, string>; signal?: AbortSignal }
type RawAnswer = { data?: any; error?: any; response: { ok: boolean; status: number; headers: Headers } }
type RawMethod = (path: string, request?: RawRequest) => Promise<RawAnswer>

/** The control plane's routes as they are, for what no class of this package wraps. */
export class ApiClient {
  readonly api: Record<'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE', RawMethod>

  constructor(config: ConnectionConfig, opts: { requireApiKey?: boolean } = {}) {
    if (opts.requireApiKey ?? true) needKey(config)
    const method =
      (verb: string): RawMethod =>
      async (template, request) => {
        const path = template.replace(/\{(\w+)\}/g, (_, name: string) =>
          encodeURIComponent(request?.params?.path?.[name] ?? ''),
        )
        const { body, headers } = request ?? {}
        const answer = await callApi<unknown>(
          config,
          { method: verb, path, query: request?.params?.query, body, headers },
          { signal: request?.signal },
        )
        const { status } = answer
        const response = { ok: status >= 200 && status < 300, status, headers: answer.headers }
        return { data: answer.data, error: answer.problem, response }
      }
    this.api = {
      GET: method('GET'),
      POST: method('POST'),
      PUT: method('PUT'),
      PATCH: method('PATCH'),
      DELETE: method('DELETE'),
    }
  }
}
