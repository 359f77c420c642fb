// SPDX-License-Identifier: Apache-2.0
// Commands in a sandbox.

import type { ConnectionOpts, Username } from '../config.js'
import { toBase64 } from '../env.js'
import { NotFoundError, SandboxError, SandboxNotFoundError, SandboxNotRunningError } from '../errors.js'
import { detailed } from '../errors.js'
import type { Agent, AgentStream, StreamOpts } from '../net/agent.js'
import { CommandHandle, type CommandResult } from './handle.js'

/** Options of every call about commands. */
export interface CommandRequestOpts extends Partial<Pick<ConnectionOpts, 'requestTimeoutMs' | 'signal'>> {}

export interface CommandStartOpts extends CommandRequestOpts {
  /** Return a handle as soon as it runs, instead of its result. */
  background?: boolean
  cwd?: string
  user?: Username
  envs?: Record<string, string>
  /**
   * Keep `envs` out of what `commands.list()` shows; true when left out. The command sees them either way.
   */
  privateEnvs?: boolean
  onStdout?: (data: string) => void | Promise<void>
  onStderr?: (data: string) => void | Promise<void>
  /** Keep standard input open for sendStdin(). */
  stdin?: boolean
  /** The command is killed after this many ms; 60000 when left out, 0: never. */
  timeoutMs?: number
  /** false: keep no output, for commands that write without end. */
  retainOutput?: boolean
}

export type CommandConnectOpts = Pick<CommandStartOpts, 'onStderr' | 'onStdout' | 'timeoutMs' | 'retainOutput'> &
  CommandRequestOpts

/** A running process as `commands.list()` tells it. */
export interface ProcessInfo {
  pid: number
  tag?: string
  cmd: string
  args: string[]
  envs: Record<string, string>
  cwd?: string
}

export const STREAM_TIMEOUT_MS = 60_000

/** Asks that the variables of a start are shown to nobody. */
export function privateHeader(envs: object | undefined, wanted = true): Record<string, string> {
  return wanted && envs && Object.keys(envs).length ? { 'Cloche-Private-Env': 'true' } : {}
}

/** Starts or joins a process; a sandbox that is not there is named as such. */
export async function openProcess(
  agent: Agent,
  method: string,
  message: object,
  opts: StreamOpts,
): Promise<AgentStream> {
  try {
    return await agent.stream(`process.Process/${method}`, message, opts)
  } catch (error) {
    if (!(error instanceof SandboxNotRunningError)) throw error
    throw detailed(new SandboxNotFoundError(error.message), {
      endCause: error.endCause,
      statusCode: 502,
      cause: error,
    })
  }
}

/** pid of the process whose stream began. */
export function pidOf(stream: AgentStream): number {
  const pid: unknown = stream.first['event']?.start?.pid
  if (typeof pid === 'number') return pid
  stream.close()
  throw new SandboxError('the agent began the stream without a pid')
}

/** Sends a signal; false when there is no such process. */
export async function sendKill(agent: Agent, pid: number, opts?: CommandRequestOpts): Promise<boolean> {
  try {
    await agent.unary('process.Process/SendSignal', { process: { pid }, signal: 'SIGNAL_SIGKILL' }, opts)
    return true
  } catch (error) {
    if (error instanceof NotFoundError) return false
    throw error
  }
}

/** Writes to a process. */
export async function writeInput(
  agent: Agent,
  pid: number,
  kind: 'stdin' | 'pty',
  data: string | Uint8Array,
  opts?: CommandRequestOpts,
): Promise<void> {
  const bytes = typeof data === 'string' ? new TextEncoder().encode(data) : data
  await agent.unary('process.Process/SendInput', { process: { pid }, input: { [kind]: toBase64(bytes) } }, opts)
}

/** Runs commands and talks to those that run. */
export class Commands {
  private readonly agent: Agent

  constructor(agent: Agent) {
    this.agent = agent
  }

  /** Whether standard input can be closed from outside. */
  get supportsStdinClose(): boolean {
    return this.agent.supports('0.5.2')
  }

  /** Commands and terminals that run now. */
  async list(opts?: CommandRequestOpts): Promise<ProcessInfo[]> {
    type Listed = { pid: number; tag?: string; config?: Partial<ProcessInfo> }
    const answer = await this.agent.unary<{ processes?: Listed[] }>('process.Process/List', {}, opts)
    return (answer.processes ?? []).map(({ pid, tag, config }) => ({
      pid,
      ...(tag === undefined ? {} : { tag }),
      args: config?.args ?? [],
      envs: config?.envs ?? {},
      cmd: config?.cmd ?? '',
      ...(config?.cwd ? { cwd: config.cwd } : {}),
    }))
  }

  /** Writes to a command's standard input. */
  async sendStdin(pid: number, data: string | Uint8Array, opts?: CommandRequestOpts): Promise<void> {
    await writeInput(this.agent, pid, 'stdin', data, opts)
  }

  /** Writes every piece of `data` as it comes. */
  async streamInput(
    pid: number,
    data: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
    opts?: CommandRequestOpts,
  ): Promise<void> {
    for await (const piece of data) await this.sendStdin(pid, piece, opts)
  }

  /** Closes a command's standard input. */
  async closeStdin(pid: number, opts?: CommandRequestOpts): Promise<void> {
    if (!this.supportsStdinClose) {
      throw new SandboxError(
        `the sandbox's agent ${this.agent.version} can't close standard input; rebuild the template`,
      )
    }
    await this.agent.unary('process.Process/CloseStdin', { process: { pid } }, opts)
  }

  /** Ends a command with SIGKILL; false when there is none of this pid. */
  async kill(pid: number, opts?: CommandRequestOpts): Promise<boolean> {
    return sendKill(this.agent, pid, opts)
  }

  /** Listens to a command that runs. Output from before is not told again. */
  async connect(pid: number, opts: CommandConnectOpts = {}): Promise<CommandHandle> {
    const timeoutMs = opts.timeoutMs ?? STREAM_TIMEOUT_MS
    const stream = await openProcess(this.agent, 'Connect', { process: { pid } }, { ...opts, timeoutMs })
    return this.#handle(stream, opts)
  }

  /** Runs a shell command and waits for its end; with `background: true` returns a handle as soon as it runs. */
  async run(cmd: string, opts?: CommandStartOpts & { background?: false }): Promise<CommandResult>
  async run(cmd: string, opts: CommandStartOpts & { background: true }): Promise<CommandHandle>
  async run(cmd: string, opts?: CommandStartOpts & { background?: boolean }): Promise<CommandHandle | CommandResult>
  async run(cmd: string, opts: CommandStartOpts = {}): Promise<CommandHandle | CommandResult> {
    const handle = await this.#start(cmd, opts)
    return opts.background ? handle : handle.wait()
  }

  async #start(cmd: string, opts: CommandStartOpts): Promise<CommandHandle> {
    const { cwd, envs, stdin = false, timeoutMs = STREAM_TIMEOUT_MS } = opts
    const process = { cmd: '/bin/bash', args: ['-l', '-c', cmd], cwd, envs }
    const headers = privateHeader(envs, opts.privateEnvs)
    const stream = await openProcess(this.agent, 'Start', { process, stdin }, { ...opts, timeoutMs, headers })
    return this.#handle(stream, opts)
  }

  #handle(stream: AgentStream, opts: CommandConnectOpts): CommandHandle {
    const pid = pidOf(stream)
    return new CommandHandle({
      pid,
      stream,
      onStdout: opts.onStdout,
      onStderr: opts.onStderr,
      forget: opts.retainOutput === false,
      kill: (opts) => this.kill(pid, opts),
      sendInput: (data, inputOpts) => this.sendStdin(pid, data, inputOpts),
      closeStdin: (inputOpts) => this.closeStdin(pid, inputOpts),
    })
  }
}
