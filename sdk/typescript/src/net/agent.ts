// SPDX-License-Identifier: Apache-2.0
// Talks to the agent in a sandbox: the Connect protocol with JSON, and plain HTTP for files. Says of every failure
// whether the sandbox is gone (and why), unreachable, or was just asked for something it refuses.

import type { ConnectionConfig } from '../config.js'
import { toBase64, compareVersions } from '../env.js'
import {
  AuthenticationError,
  detailed,
  endCauseOf,
  InvalidArgumentError,
  NotEnoughSpaceError,
  NotFoundError,
  RateLimitError,
  SandboxError,
  SandboxNotRunningError,
  SandboxUnreachableError,
  TimeoutError,
} from '../errors.js'
import { type CallOpts, fetchOf } from './api.js'
import { Deadline } from './deadline.js'
import { envelope, FrameReader } from './frames.js'

const HEALTH_MS = 5000
const KEEPALIVE_SECONDS = '50'
const GRACE_MS = 10_000
const CLOSING_MS = 1000
const CODES: Record<number, string> = {
  400: 'internal',
  401: 'unauthenticated',
  403: 'permission_denied',
  404: 'unimplemented',
  429: 'resource_exhausted',
  502: 'unavailable',
  503: 'unavailable',
  504: 'unavailable',
}

/** What the agent answered instead of a result. */
export class RpcProblem extends Error {
  constructor(
    readonly code: string,
    message: string,
    readonly status?: number,
  ) {
    super(message)
  }
}

type NotFoundClass = new (message: string) => Error
type Message = Record<string, any>

export interface RpcOpts extends CallOpts {
  user?: string | undefined
  headers?: Record<string, string>
}

export interface StreamOpts extends RpcOpts {
  /** Longest life of the stream in ms; 0: none. */
  timeoutMs: number
}

/** Where a sandbox's agent is, and the headers that lead to it. */
export interface AgentAddress {
  url: string
  headers: Record<string, string>
  version: string
}

export class Agent {
  constructor(
    readonly address: AgentAddress,
    readonly config: ConnectionConfig,
  ) {}

  get version(): string {
    return this.address.version
  }

  /** The user to name: since 0.4.0 the agent has a default of its own. */
  user(name?: string): string | undefined {
    return name ?? (compareVersions(this.version, '0.4.0') < 0 ? 'user' : undefined)
  }

  /** Refuses what agents older than `version` can't do. */
  supports(version: string): boolean {
    return compareVersions(this.version, version) >= 0
  }

  /** A plain HTTP request to the agent; an answer of any status is handed back. */
  async fetch(path: string, init: RequestInit & { duplex?: 'half' }, deadline: Deadline): Promise<Response> {
    const headers = { ...this.address.headers, ...(init.headers as Record<string, string>) }
    try {
      return await fetchOf(this.config)(this.address.url + path, { ...init, headers, signal: deadline.signal })
    } catch (error) {
      throw deadline.error ?? (await this.lost(error))
    }
  }

  /** A call with one answer. */
  async unary<T extends Message>(
    method: string,
    message: Message,
    opts?: RpcOpts,
    Missing?: NotFoundClass,
  ): Promise<T> {
    const deadline = Deadline.of(method, this.config, opts)
    try {
      const headers = { ...this.#rpcHeaders(opts), 'Content-Type': 'application/json' }
      const init = { method: 'POST', headers, body: JSON.stringify(message) }
      const response = await this.fetch(`/${method}`, init, deadline)
      const text = await response.text()
      if (response.status !== 200) throw problemOf(response.status, text)
      return JSON.parse(text) as T
    } catch (error) {
      throw await this.explain(deadline.reason(error), Missing)
    } finally {
      deadline.close()
    }
  }

  /** A call with a stream of answers. The first one has come when this returns. */
  async stream(method: string, message: Message, opts: StreamOpts, Missing?: NotFoundClass): Promise<AgentStream> {
    const deadline = Deadline.of(`the start of ${method}`, this.config, opts)
    const headers: Record<string, string> = {
      ...this.#rpcHeaders(opts),
      'Content-Type': 'application/connect+json',
      'Keepalive-Ping-Interval': KEEPALIVE_SECONDS,
    }
    if (opts.timeoutMs) headers['Connect-Timeout-Ms'] = String(Math.ceil(opts.timeoutMs))
    try {
      const init = { method: 'POST', headers, body: envelope(message) }
      const response = await this.fetch(`/${method}`, init, deadline)
      if (response.status !== 200) throw problemOf(response.status, await response.text())
      const stream = new AgentStream(this, response, deadline, opts.timeoutMs)
      await stream.start()
      return stream
    } catch (error) {
      deadline.close()
      throw await this.explain(deadline.reason(error), Missing)
    }
  }

  /** True: running, false: not, undefined: nobody knows. Throws nothing. */
  async health(): Promise<{ running?: boolean; message: string }> {
    try {
      const init = { headers: this.address.headers, signal: AbortSignal.timeout(HEALTH_MS) }
      const response = await fetchOf(this.config)(`${this.address.url}/health`, init)
      const message = messageOf(await response.text())
      if (response.status === 502) return { running: false, message }
      return response.ok ? { running: true, message } : { message }
    } catch {
      return { message: '' }
    }
  }

  /** The error for a connection that failed or was cut: asks whether the sandbox is still there. */
  async lost(error: unknown): Promise<Error> {
    if (!(error instanceof TypeError) && !isConnectionError(error)) return error as Error
    const health = await this.health()
    const why = connectionMessage(error)
    if (health.running === false) return goneError(health.message, why, error)
    if (health.running)
      return detailed(new SandboxError(`${why}: the connection was lost; the sandbox runs`), { cause: error })
    return detailed(new SandboxUnreachableError(`${why}: the sandbox can't be reached`), { cause: error })
  }

  /** The error of this package for a problem that a call had. */
  async explain(error: unknown, Missing: NotFoundClass = NotFoundError): Promise<unknown> {
    if (!(error instanceof RpcProblem)) return isConnectionError(error) ? this.lost(error) : error
    return detailed(await this.#errorOf(error, Missing), { statusCode: error.status, cause: error })
  }

  /** The error of an HTTP answer that is not a success. */
  async httpError(response: Response, Missing: NotFoundClass = NotFoundError): Promise<Error> {
    const message = messageOf(await response.text().catch(() => '')) || response.statusText
    const { status } = response
    const known: Record<number, () => Error> = {
      400: () => new InvalidArgumentError(message),
      401: () => new AuthenticationError(message),
      404: () => new Missing(message),
      429: () => new RateLimitError(`${message}: The requests are being rate limited.`),
      502: () => goneError(message, message),
      507: () => new NotEnoughSpaceError(message),
    }
    return detailed(known[status]?.() ?? new SandboxError(`${status}: ${message}`), { statusCode: status })
  }

  async #errorOf(problem: RpcProblem, Missing: NotFoundClass): Promise<Error> {
    const { code, message } = problem
    switch (code) {
      case 'invalid_argument':
        return new InvalidArgumentError(message)
      case 'unauthenticated':
        return new AuthenticationError(message)
      case 'not_found':
        return new Missing(message)
      case 'resource_exhausted':
        return new RateLimitError(`${message}: Rate limit exceeded, please try again later.`)
      case 'unavailable':
        return this.#unavailable(message)
      case 'canceled':
        return new TimeoutError(`${message}: the request was cancelled, likely after requestTimeoutMs`)
      case 'deadline_exceeded':
        return new TimeoutError(`${message}: longer than timeoutMs; give a larger one, or 0 for none`)
      default:
        return new SandboxError(`${code}: ${message}`)
    }
  }

  async #unavailable(message: string): Promise<Error> {
    if (/was not found|port is not open/.test(message)) return goneError(message, message)
    const health = await this.health()
    return health.running === false ? goneError(health.message, message) : new SandboxUnreachableError(message)
  }

  #rpcHeaders(opts?: RpcOpts): Record<string, string> {
    const user = this.user(opts?.user)
    const headers: Record<string, string> = { 'Connect-Protocol-Version': '1', ...opts?.headers }
    if (user) headers['Authorization'] = `Basic ${toBase64(new TextEncoder().encode(`${user}:`))}`
    return headers
  }
}

/** The error of an edge answer: the sandbox is gone, or only a port of it. */
export function goneError(edgeMessage: string, why: string, cause?: unknown): TimeoutError {
  if (/port is not open/.test(edgeMessage)) return detailed(new SandboxUnreachableError(why), { cause })
  const hint = "likely the sandbox's timeout; raise it with timeoutMs at create or with setTimeout()"
  const endCause = endCauseOf(edgeMessage)
  const text = endCause ? `${edgeMessage}` : `${why}: the sandbox was killed or reached its end of life, ${hint}`
  return detailed(new SandboxNotRunningError(text), { endCause, cause })
}

function problemOf(status: number, text: string): RpcProblem {
  try {
    const body = JSON.parse(text) as { code?: unknown; message?: string }
    const code = typeof body.code === 'string' ? body.code : (CODES[status] ?? 'unknown')
    return new RpcProblem(code, body.message ?? `HTTP ${status}`, status)
  } catch {
    return new RpcProblem(CODES[status] ?? 'unknown', text || `HTTP ${status}`, status)
  }
}

function messageOf(text: string): string {
  try {
    const body = JSON.parse(text) as { message?: unknown }
    return typeof body?.message === 'string' ? body.message : text
  } catch {
    return text
  }
}

/** True for errors of fetch and of its streams that mean a broken connection; runtimes word them differently. */
export function isConnectionError(error: unknown): boolean {
  if (!(error instanceof Error) || error instanceof SandboxError || error.name === 'AbortError') return false
  const { code } = error as { code?: unknown }
  if (error instanceof TypeError && !/is not a function|undefined|null/.test(error.message)) return true
  if (typeof code === 'string' && /^(E[A-Z]+|UND_ERR_\w+|ConnectionClosed|ConnectionRefused)$/.test(code)) return true
  return (
    /^Connection(Reset|Closed|Refused|Aborted)$|^Http$/.test(error.name) ||
    /connection|network|socket/i.test(error.message)
  )
}

function connectionMessage(error: unknown): string {
  const { message, cause } = error as { message?: string; cause?: { message?: string } }
  return cause?.message || message || 'connection failed'
}

/** Messages of one streaming call, in order. Pulling is what reads from the connection. */
export class AgentStream {
  /** The first message: start of a process or of a watch. */
  first: Message = {}

  readonly #frames = new FrameReader()
  readonly #reader: ReadableStreamDefaultReader<Uint8Array>
  readonly #decoder = new TextDecoder()
  #ready: Message[] = []
  #ended = false
  #failed?: RpcProblem

  constructor(
    readonly agent: Agent,
    response: Response,
    readonly deadline: Deadline,
    private readonly timeoutMs: number,
  ) {
    this.#reader = response.body!.getReader()
  }

  async start(): Promise<void> {
    const first = await this.#pull()
    if (!first) throw new SandboxError('the agent ended the stream before it began')
    this.first = first
    // The agent keeps the time itself; this only ends streams whose agent has stopped doing so.
    if (!this.#ended) this.deadline.arm(this.timeoutMs && this.timeoutMs + GRACE_MS, 'timeoutMs', 'the stream')
  }

  /** The next message, undefined at the end. Errors are this package's. */
  async next(): Promise<Message | undefined> {
    try {
      return await this.#pull()
    } catch (error) {
      if (this.#ended && !this.#failed) return undefined
      const reason = this.deadline.reason(error)
      this.close()
      throw await this.agent.explain(reason)
    }
  }

  /** Leaves the stream; what runs in the sandbox goes on. */
  close(): void {
    if (this.#ended) return
    this.#ended = true
    this.deadline.close()
    this.#reader.cancel().catch(() => undefined)
    this.deadline.abort(Object.assign(new Error('disconnected'), { name: 'AbortError' }))
  }

  async #pull(): Promise<Message | undefined> {
    for (;;) {
      const message = this.#ready.shift()
      if (message) return message
      if (this.#failed) throw this.#failed
      if (this.#ended) return undefined
      const { done, value } = await this.#reader.read()
      if (done) throw new TypeError('the connection ended in the middle of the stream')
      for (const frame of this.#frames.push(value)) this.#take(frame.end, this.#decoder.decode(frame.payload))
    }
  }

  #take(end: boolean, text: string): void {
    const message = JSON.parse(text) as Message
    if (!end) {
      this.#ready.push(message)
      return
    }
    const { error } = message as { error?: { code?: string; message?: string } }
    this.#ended = true
    this.deadline.close()
    finish(this.#reader)
    if (error) this.#failed = new RpcProblem(error.code ?? 'unknown', error.message ?? '')
  }
}

/** Reads the end of an answer that is over, so that its connection is used again; one that does not end is cut. */
export function finish(reader: ReadableStreamDefaultReader<Uint8Array>): void {
  const cut = (): void => void reader.cancel().catch(() => undefined)
  const timer = setTimeout(cut, CLOSING_MS)
  reader.read().then(
    ({ done }) => {
      clearTimeout(timer)
      if (!done) cut()
    },
    () => clearTimeout(timer),
  )
}
