// SPDX-License-Identifier: Apache-2.0
// A sandbox: files, commands, terminals, git, code.

import { asyncDispose } from '../dispose.js'
import { type CreateCodeContextOpts, type Context, Interpreter, type InterruptOpts } from '../code/interpreter.js'
import type { RunCodeLanguage, RunCodeOpts, RunningExecution } from '../code/interpreter.js'
import type { Execution } from '../code/execution.js'
import { ConnectionConfig, type ConnectionOpts, type Username } from '../config.js'
import { TemplateError } from '../errors.js'
import { Agent } from '../net/agent.js'
import type { CallOpts } from '../net/api.js'
import { Deadline } from '../net/deadline.js'
import { SandboxApi, SandboxPaginator, type SnapshotPaginator } from './api.js'
import { Commands } from './commands.js'
import { Filesystem } from './files.js'
import { Git } from './git.js'
import type {
  CreateSnapshotOpts,
  SandboxConnectOpts,
  SandboxEvent,
  SandboxEventsOpts,
  SandboxForkOpts,
  SandboxInfo,
  SandboxListOpts,
  SandboxLogEntry,
  SandboxLogsOpts,
  SandboxMetrics,
  SandboxMetricsOpts,
  SandboxOpts,
  SandboxPauseOpts,
  SnapshotInfo,
  SnapshotListOpts,
} from './info.js'
import type { SandboxNetworkUpdate } from './network.js'
import { Pty } from './pty.js'

/** Options of links to files. */
export interface SandboxUrlOpts {
  /** Seconds until the link stops working, never when left out. */
  useSignatureExpiration?: number
  user?: Username
}

const DEBUG_VERSION = '99.99.99'
const INTERPRETER_PORT = 49999

/**
 * A sandbox.
 *
 * ```ts
 * await using box = await Sandbox.create()
 * const execution = await box.runCode('1 + 1')
 * ```
 */
export class Sandbox extends SandboxApi {
  protected static readonly defaultTemplate: string = 'code-interpreter-v1'
  protected static readonly defaultMcpTemplate: string = 'mcp-gateway'

  readonly files: Filesystem
  readonly commands: Commands
  readonly pty: Pty
  readonly git: Git
  readonly sandboxId: string
  readonly sandboxDomain: string
  /** What requests to a sandbox without public traffic carry as `E2B-Traffic-Access-Token`. */
  readonly trafficAccessToken?: string

  protected readonly envdPort = 49983
  protected readonly mcpPort = 50005
  protected readonly connectionConfig: ConnectionConfig
  protected readonly envdAccessToken?: string

  readonly #config: ConnectionConfig
  readonly #agent: Agent
  readonly #interpreter: Interpreter
  #mcpToken?: string

  constructor(
    opts: SandboxConnectOpts & {
      sandboxId: string
      sandboxDomain?: string
      envdVersion: string
      envdAccessToken?: string
      trafficAccessToken?: string
    },
  ) {
    super()
    this.#config = this.connectionConfig = new ConnectionConfig(opts)
    this.sandboxId = opts.sandboxId
    this.sandboxDomain = opts.sandboxDomain ?? this.#config.domain
    this.envdAccessToken = opts.envdAccessToken
    this.trafficAccessToken = opts.trafficAccessToken
    this.#agent = this.#makeAgent(opts.envdVersion)
    this.#interpreter = this.#makeInterpreter()
    this.files = new Filesystem(this.#agent)
    this.commands = new Commands(this.#agent)
    this.pty = new Pty(this.#agent)
    this.git = new Git(this.commands)
  }

  /** Sandboxes of the team, newest first. */
  static list(opts?: SandboxListOpts): SandboxPaginator {
    return new SandboxPaginator(this.resolveOpts(opts))
  }

  /** Makes a sandbox. */
  static async create<S extends typeof Sandbox>(this: S, opts?: SandboxOpts): Promise<InstanceType<S>>
  static async create<S extends typeof Sandbox>(
    this: S,
    template: string,
    opts?: SandboxOpts,
  ): Promise<InstanceType<S>>
  static async create<S extends typeof Sandbox>(
    this: S,
    templateOrOpts?: string | SandboxOpts,
    maybeOpts?: SandboxOpts,
  ): Promise<InstanceType<S>> {
    const named = typeof templateOrOpts === 'string'
    const opts = named ? maybeOpts : templateOrOpts
    const fallback = opts?.mcp ? this.defaultMcpTemplate : this.defaultTemplate
    const template = named ? templateOrOpts : (opts?.template ?? fallback)
    const apiOpts = this.resolveOpts(opts)
    const config = new ConnectionConfig(apiOpts)
    const created = config.debug
      ? { sandboxId: 'debug_sandbox_id', envdVersion: DEBUG_VERSION }
      : await this.createSandbox(template, apiOpts?.timeoutMs, apiOpts)
    const sandbox = new this({ ...created, ...config }) as InstanceType<S>
    if (opts?.mcp && !config.debug) await sandbox.startMcp(opts.mcp)
    return sandbox
  }

  /** Connects to a sandbox; a paused one is resumed. */
  static async connect<S extends typeof Sandbox>(
    this: S,
    sandboxId: string,
    opts?: SandboxConnectOpts,
  ): Promise<InstanceType<S>> {
    const apiOpts = this.resolveOpts(opts)
    const config = new ConnectionConfig(apiOpts)
    const found = config.debug ? { envdVersion: DEBUG_VERSION } : await this.connectSandbox(sandboxId, apiOpts)
    return new this({ ...found, sandboxId, ...config }) as InstanceType<S>
  }

  /** Copies a running sandbox with its memory. An entry is an error where a copy did not start. */
  static async fork<S extends typeof Sandbox>(
    this: S,
    sandboxId: string,
    opts?: SandboxForkOpts,
  ): Promise<Array<InstanceType<S> | Error>> {
    const apiOpts = this.resolveOpts(opts)
    const config = new ConnectionConfig(apiOpts)
    const made = await this.forkSandbox(sandboxId, apiOpts?.timeoutMs, apiOpts?.count, apiOpts)
    return made.map((one) => (one instanceof Error ? one : (new this({ ...one, ...config }) as InstanceType<S>)))
  }

  /** Ends the sandbox at the end of an `await using` block. */
  async [asyncDispose](): Promise<void> {
    await this.kill()
  }

  /** Resumes this sandbox if it is paused, and gives it time. */
  async connect(opts?: SandboxConnectOpts): Promise<this> {
    if (!this.#config.debug) await SandboxApi.connectSandbox(this.sandboxId, this.#apiOpts(opts))
    return this
  }

  /** Resumes this sandbox if it is paused: connect() by its other name. */
  async resume(opts?: SandboxConnectOpts): Promise<this> {
    return this.connect(opts)
  }

  /** Copies this sandbox with its memory. */
  async fork(opts?: SandboxForkOpts): Promise<Array<this | Error>> {
    const Class = this.constructor as typeof Sandbox
    return (await Class.fork(this.sandboxId, this.#apiOpts(opts))) as Array<this | Error>
  }

  /** Host name of a port of the sandbox, without a scheme. */
  getHost(port: number): string {
    return this.#config.getHost(this.sandboxId, port, this.sandboxDomain)
  }

  /** Whether the sandbox answers. */
  async isRunning(opts?: CallOpts): Promise<boolean> {
    const deadline = Deadline.of('the health check', this.#config, opts)
    try {
      const response = await this.#agent.fetch('/health', { method: 'GET' }, deadline)
      if (response.status === 502) {
        await response.text()
        return false
      }
      if (!response.ok) throw await this.#agent.httpError(response)
      return true
    } catch (error) {
      throw deadline.reason(error)
    } finally {
      deadline.close()
    }
  }

  /** Sets the sandbox's end to `timeoutMs` from now. */
  async setTimeout(timeoutMs: number, opts?: CallOpts): Promise<void> {
    if (!this.#config.debug) await SandboxApi.setTimeout(this.sandboxId, timeoutMs, this.#apiOpts(opts))
  }

  /** Replaces what the sandbox may reach; what is left out is cleared. */
  async updateNetwork(network: SandboxNetworkUpdate, opts?: CallOpts): Promise<void> {
    await SandboxApi.updateNetwork(this.sandboxId, network, this.#apiOpts(opts))
  }

  /** Ends the sandbox; false when it had ended already. */
  async kill(opts?: CallOpts): Promise<boolean> {
    return this.#config.debug ? true : SandboxApi.kill(this.sandboxId, this.#apiOpts(opts))
  }

  /** Pauses the sandbox; false when it is paused already. */
  async pause(opts?: SandboxPauseOpts): Promise<boolean> {
    return SandboxApi.pause(this.sandboxId, this.#apiOpts(opts))
  }

  /** The same as pause(). */
  async betaPause(opts?: SandboxPauseOpts): Promise<boolean> {
    return this.pause(opts)
  }

  /** Keeps a copy of the sandbox, to make others from. */
  async createSnapshot(opts?: CreateSnapshotOpts): Promise<SnapshotInfo> {
    return SandboxApi.createSnapshot(this.sandboxId, this.#apiOpts(opts))
  }

  /** Snapshots of this sandbox. */
  listSnapshots(opts?: Omit<SnapshotListOpts, 'sandboxId'>): SnapshotPaginator {
    return SandboxApi.listSnapshots({ ...this.#apiOpts(opts), sandboxId: this.sandboxId })
  }

  /** Where the MCP gateway of the sandbox is. */
  getMcpUrl(): string {
    return `https://${this.getHost(this.mcpPort)}/mcp`
  }

  /** What requests to the MCP gateway carry as `Authorization: Bearer`. */
  async getMcpToken(opts?: CallOpts): Promise<string | undefined> {
    this.#mcpToken ??= await this.files.read('/etc/mcp-gateway/.token', { ...opts, user: 'root' })
    return this.#mcpToken
  }

  /** A link that files can be posted to as form data. */
  async uploadUrl(path?: string, opts?: SandboxUrlOpts): Promise<string> {
    return this.#fileUrl('write', path ?? '', opts)
  }

  /** A link that a file can be fetched from. */
  async downloadUrl(path: string, opts?: SandboxUrlOpts): Promise<string> {
    return this.#fileUrl('read', path, opts)
  }

  /** What this sandbox is. */
  async getInfo(opts?: CallOpts): Promise<SandboxInfo> {
    return SandboxApi.getInfo(this.sandboxId, this.#apiOpts(opts))
  }

  /** Measurements of this sandbox, oldest first. */
  async getMetrics(opts?: SandboxMetricsOpts): Promise<SandboxMetrics[]> {
    if (this.#config.debug) return []
    if (!this.#agent.supports('0.1.5')) throw new TemplateError('metrics need a newer agent: rebuild the template')
    return SandboxApi.getMetrics(this.sandboxId, this.#apiOpts(opts))
  }

  /** Lines of this sandbox's log, oldest first. */
  async getLogs(opts?: SandboxLogsOpts): Promise<SandboxLogEntry[]> {
    return SandboxApi.getLogs(this.sandboxId, this.#apiOpts(opts))
  }

  /** What happened to this sandbox, also after its end. */
  async getEvents(opts?: SandboxEventsOpts): Promise<SandboxEvent[]> {
    return SandboxApi.getEvents(this.sandboxId, this.#apiOpts(opts))
  }

  /** Runs a cell. With `stream: true` what watches it comes back at once, to be iterated over or interrupted. */
  runCode(code: string, opts: RunCodeOpts & { language?: RunCodeLanguage; stream: true }): RunningExecution
  runCode(code: string, opts: RunCodeOpts & { context?: Context; stream: true }): RunningExecution
  runCode(code: string, opts?: RunCodeOpts & { language?: RunCodeLanguage; stream?: false }): Promise<Execution>
  runCode(code: string, opts?: RunCodeOpts & { context?: Context; stream?: false }): Promise<Execution>
  runCode(
    code: string,
    opts?: RunCodeOpts & { language?: RunCodeLanguage; context?: Context; stream?: boolean },
  ): Promise<Execution> | RunningExecution {
    return opts?.stream ? this.#interpreter.start(code, opts) : this.#interpreter.run(code, opts)
  }

  /** Interrupts what runs in the default context, or in the one that is named; false when nothing does. */
  async interrupt(opts?: InterruptOpts): Promise<boolean> {
    return this.#interpreter.interrupt(opts)
  }

  /** Makes a kernel of its own. */
  async createCodeContext(opts?: CreateCodeContextOpts): Promise<Context> {
    return this.#interpreter.createContext(opts)
  }

  /** Ends a kernel. */
  async removeCodeContext(context: Context | string, opts?: CallOpts): Promise<void> {
    return this.#interpreter.removeContext(context, opts)
  }

  /** Kernels of the sandbox, the default ones first. */
  async listCodeContexts(opts?: CallOpts): Promise<Context[]> {
    return this.#interpreter.listContexts(opts)
  }

  /** Starts a kernel anew: its variables are gone. */
  async restartCodeContext(context: Context | string, opts?: CallOpts): Promise<void> {
    return this.#interpreter.restartContext(context, opts)
  }

  protected get jupyterUrl(): string {
    const { sandboxId, sandboxDomain } = this
    return this.#config.getSandboxDirectUrl(sandboxId, { sandboxDomain, envdPort: INTERPRETER_PORT })
  }

  #makeAgent(version: string): Agent {
    const { sandboxId, sandboxDomain, envdPort } = this
    const url = this.#config.getSandboxUrl(sandboxId, { sandboxDomain, envdPort })
    const headers = this.#routing(envdPort)
    if (this.envdAccessToken) headers['X-Access-Token'] = this.envdAccessToken
    return new Agent({ url, headers, version }, this.#config)
  }

  #makeInterpreter(): Interpreter {
    const headers: Record<string, string> = { ...this.#routing(INTERPRETER_PORT), 'Content-Type': 'application/json' }
    if (this.trafficAccessToken) headers['E2B-Traffic-Access-Token'] = this.trafficAccessToken
    if (this.envdAccessToken) headers['X-Access-Token'] = this.envdAccessToken
    return new Interpreter({ url: this.jupyterUrl, headers }, this.#agent, this.#config)
  }

  #routing(port: number): Record<string, string> {
    return {
      'User-Agent': this.#config.headers?.['User-Agent'] ?? '',
      'E2b-Sandbox-Id': this.sandboxId,
      'E2b-Sandbox-Port': String(port),
    }
  }

  #apiOpts<T extends ConnectionOpts>(opts?: T): T {
    return ConnectionConfig.mergeOpts(this.#config, opts) as T
  }

  private async startMcp(mcp: object): Promise<void> {
    this.#mcpToken = await (await import('./mcp_gateway.js')).startGateway(this, mcp)
  }

  async #fileUrl(operation: 'read' | 'write', path: string, opts: SandboxUrlOpts = {}): Promise<string> {
    const { sandboxId, sandboxDomain, envdPort, envdAccessToken } = this
    const base = this.#config.getSandboxDirectUrl(sandboxId, { sandboxDomain, envdPort })
    const link = { operation, path, user: this.#agent.user(opts.user), envdAccessToken }
    return (await import('./links.js')).fileUrl(base, { ...link, expirationInSeconds: opts.useSignatureExpiration })
  }
}
