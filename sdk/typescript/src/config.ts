// SPDX-License-Identifier: Apache-2.0
// Where the server is and how it is talked to. A call's own options win over a client's bound ones, these over the
// environment (E2B_API_KEY, E2B_API_URL, E2B_SANDBOX_URL, E2B_DOMAIN, E2B_DEBUG), the environment over the defaults.

import { envVar, inBrowser, pageOrigin } from './env.js'
import { InvalidArgumentError } from './errors.js'
import { Deadline } from './net/deadline.js'

/** Version of this package. */
export const VERSION = '0.1.0'

/** Receives what the package does; every method is optional, `console` fits. */
export interface Logger {
  debug?: (...args: any[]) => void
  info?: (...args: any[]) => void
  warn?: (...args: any[]) => void
  error?: (...args: any[]) => void
}

/** Options that every call takes. */
export interface ConnectionOpts {
  /** Team's key; `E2B_API_KEY` when left out. */
  apiKey?: string
  /** Without effect: any key is sent, the server judges it. */
  validateApiKey?: boolean
  /** Domain that `api.` and the sandboxes' hosts are below; `E2B_DOMAIN` when left out. */
  domain?: string
  /** Origin of the API; `E2B_API_URL` when left out, else `https://api.<domain>`. */
  apiUrl?: string
  /** Origin of all sandboxes; `E2B_SANDBOX_URL` when left out, else a host for each sandbox. */
  sandboxUrl?: string
  /** Talk to an agent on localhost without an API; `E2B_DEBUG` when left out. */
  debug?: boolean
  /** Longest time in ms until a request is answered, 60000 when left out, 0 for ever. See the table of timeouts. */
  requestTimeoutMs?: number
  /** How often an API request that the server refused for the moment is sent again, 3 when left out. */
  retries?: number
  logger?: Logger
  /** Headers that go along with every API request. */
  headers?: Record<string, string>
  /** Without effect here: fetch takes its proxy from the runtime (`NODE_USE_ENV_PROXY=1`). */
  proxy?: string
  /** Further headers for API requests; they win over `headers`. */
  apiHeaders?: Record<string, string>
  /** Ends the call when it is aborted. */
  signal?: AbortSignal
  /** The `fetch` to use, the runtime's when left out. */
  fetch?: typeof fetch
}

export type ConnectionConfigOpts = ConnectionOpts

/** Name of a user in the sandbox. */
export type Username = string

export const REQUEST_TIMEOUT_MS = 60_000
const RETRIES = 3
const SHARED_HOST_DOMAINS = ['e2b.app', 'e2b.dev', 'e2b.pro', 'e2b-staging.dev']
const SOURCE = /^[A-Za-z0-9][A-Za-z0-9._-]{0,31}$/

/** Connection settings with everything that was left out filled in. */
export class ConnectionConfig {
  static envdPort = 49983
  private static integration?: string

  readonly debug: boolean
  readonly domain: string
  readonly apiUrl: string
  readonly sandboxUrl?: string
  readonly logger?: Logger
  readonly requestTimeoutMs: number
  readonly retries: number
  readonly apiKey?: string
  readonly validateApiKey?: boolean
  readonly headers?: Record<string, string>
  readonly requestSource?: string
  readonly proxy?: string
  readonly fetch?: typeof fetch

  constructor(opts?: ConnectionOpts) {
    const source = envVar('E2B_USER_AGENT_SOURCE')
    this.apiKey = opts?.apiKey || envVar('E2B_API_KEY')
    this.validateApiKey = opts?.validateApiKey
    this.debug = opts?.debug ?? (envVar('E2B_DEBUG') ?? '').toLowerCase() === 'true'
    this.domain = opts?.domain || envVar('E2B_DOMAIN') || 'e2b.app'
    this.requestTimeoutMs = opts?.requestTimeoutMs ?? REQUEST_TIMEOUT_MS
    this.retries = checkedRetries(opts?.retries ?? RETRIES)
    this.logger = opts?.logger
    this.requestSource = source && SOURCE.test(source) ? source : undefined
    this.headers = { ...opts?.headers, ...opts?.apiHeaders }
    this.headers['User-Agent'] ??= this.#userAgent()
    this.proxy = opts?.proxy
    this.fetch = opts?.fetch
    const page = opts?.domain ? '' : pageOrigin()
    const url = opts?.apiUrl || envVar('E2B_API_URL') || this.#defaultApiUrl(page)
    this.apiUrl = url.replace(/\/+$/, '')
    this.sandboxUrl = (opts?.sandboxUrl || envVar('E2B_SANDBOX_URL') || page || undefined)?.replace(/\/+$/, '')
  }

  /** Names a program that builds on this package in the User-Agent of all its requests. */
  static setIntegration(integration: string | undefined): void {
    ConnectionConfig.integration = integration
  }

  /** Lays a call's options over bound ones; what is undefined in the call counts as left out. */
  static mergeOpts<T extends ConnectionOpts>(boundOpts: ConnectionOpts | undefined, opts?: T): T | undefined {
    if (!boundOpts) return opts
    const merged: Record<string, unknown> = { ...boundOpts }
    for (const [key, value] of Object.entries(opts ?? {})) if (value !== undefined) merged[key] = value
    return merged as T
  }

  /** A signal that ends a request after its time or when the caller's own signal does. */
  getSignal(requestTimeoutMs?: number, signal?: AbortSignal): AbortSignal | undefined {
    const limit = requestTimeoutMs ?? this.requestTimeoutMs
    if (!limit) return signal
    const deadline = new Deadline(signal)
    deadline.arm(limit, 'requestTimeoutMs', 'the request')
    return deadline.signal
  }

  /** Origin that the agent of a sandbox is reached at. */
  getSandboxUrl(sandboxId: string, opts: { sandboxDomain: string; envdPort: number }): string {
    if (!this.sandboxUrl && !this.debug && !inBrowser && SHARED_HOST_DOMAINS.includes(opts.sandboxDomain)) {
      return `https://sandbox.${opts.sandboxDomain}`
    }
    return this.getSandboxDirectUrl(sandboxId, opts)
  }

  /** Origin of one port of a sandbox, for links that others follow. */
  getSandboxDirectUrl(sandboxId: string, opts: { sandboxDomain: string; envdPort: number }): string {
    if (this.sandboxUrl) return this.sandboxUrl
    const scheme = this.debug ? 'http' : 'https'
    return `${scheme}://${this.getHost(sandboxId, opts.envdPort, opts.sandboxDomain)}`
  }

  /** Host name of one port of a sandbox, without a scheme. */
  getHost(sandboxId: string, port: number, sandboxDomain: string): string {
    if (this.debug) return `localhost:${port}`
    return `${port}-${sandboxId}.${sandboxDomain ?? this.domain}`
  }

  #defaultApiUrl(page: string): string {
    return this.debug ? 'http://localhost:3000' : page || `https://api.${this.domain}`
  }

  #userAgent(): string {
    const parts = [`cloche-js/${VERSION}`]
    if (ConnectionConfig.integration) parts.push(ConnectionConfig.integration)
    if (this.requestSource) parts.push(`source/${this.requestSource}`)
    return parts.join(' ')
  }
}

function checkedRetries(retries: number): number {
  if (!Number.isInteger(retries) || retries < 0) {
    throw new InvalidArgumentError(`retries is ${retries}; give a whole number from 0`)
  }
  return retries
}

/** Parent of classes whose static methods take their defaults from a client's bound options. */
export class ClientFactory {
  protected static readonly boundOpts?: Omit<ConnectionOpts, 'signal'>

  protected static resolveOpts<T extends ConnectionOpts>(opts?: T): T | undefined {
    return ConnectionConfig.mergeOpts(this.boundOpts, opts)
  }
}

/** Milliseconds as the whole seconds that the API takes, rounded up. */
export function toSeconds(ms: number | undefined): number | undefined {
  return ms === undefined ? undefined : Math.ceil(ms / 1000)
}
