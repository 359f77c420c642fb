// SPDX-License-Identifier: Apache-2.0
// Terminals in a sandbox.

import type { ConnectionOpts, Username } from '../config.js'
import type { Agent, AgentStream } from '../net/agent.js'
import { openProcess, pidOf, privateHeader, sendKill, STREAM_TIMEOUT_MS, writeInput } from './commands.js'
import { CommandHandle } from './handle.js'

type RequestOpts = Pick<ConnectionOpts, 'requestTimeoutMs' | 'signal'>

export interface PtyCreateOpts extends RequestOpts {
  cols: number
  rows: number
  /** Receives the terminal's bytes; may be left out when the handle is iterated over. */
  onData?: (data: Uint8Array) => void | Promise<void>
  /** The shell is killed after this many ms; 60000 when left out, 0: never. */
  timeoutMs?: number
  user?: Username
  envs?: Record<string, string>
  /** Keep `envs` out of what `commands.list()` shows; true when left out. */
  privateEnvs?: boolean
  cwd?: string
}

export type PtyConnectOpts = Pick<PtyCreateOpts, 'onData' | 'timeoutMs'> & RequestOpts

/** Terminals: a login shell each, with a size. */
export class Pty {
  readonly #agent: Agent

  constructor(agent: Agent) {
    this.#agent = agent
  }

  /** Starts a shell in a terminal of its own. */
  async create(opts: PtyCreateOpts): Promise<CommandHandle> {
    const { cols, rows, cwd, timeoutMs = STREAM_TIMEOUT_MS } = opts
    const envs = { TERM: 'xterm-256color', LANG: 'C.UTF-8', LC_ALL: 'C.UTF-8', ...opts.envs }
    const message = { process: { cmd: '/bin/bash', args: ['-i', '-l'], envs, cwd }, pty: { size: { cols, rows } } }
    const headers = privateHeader(opts.envs, opts.privateEnvs)
    return this.#handle(await openProcess(this.#agent, 'Start', message, { ...opts, timeoutMs, headers }), opts)
  }

  /** Listens to a terminal that runs. */
  async connect(pid: number, opts: PtyConnectOpts = {}): Promise<CommandHandle> {
    const timeoutMs = opts.timeoutMs ?? STREAM_TIMEOUT_MS
    return this.#handle(await openProcess(this.#agent, 'Connect', { process: { pid } }, { ...opts, timeoutMs }), opts)
  }

  /** Types into a terminal. */
  async sendInput(pid: number, data: Uint8Array | string, opts?: RequestOpts): Promise<void> {
    await writeInput(this.#agent, pid, 'pty', data, opts)
  }

  /** Types every piece of `data` as it comes. */
  async streamInput(
    pid: number,
    data: Iterable<string | Uint8Array> | AsyncIterable<string | Uint8Array>,
    opts?: RequestOpts,
  ): Promise<void> {
    for await (const piece of data) await this.sendInput(pid, piece, opts)
  }

  /** Gives a terminal another size. */
  async resize(pid: number, size: { cols: number; rows: number }, opts?: RequestOpts): Promise<void> {
    const { cols, rows } = size
    await this.#agent.unary('process.Process/Update', { process: { pid }, pty: { size: { cols, rows } } }, opts)
  }

  /** Ends a terminal's shell with SIGKILL; false when there is none of this pid. */
  async kill(pid: number, opts?: RequestOpts): Promise<boolean> {
    return sendKill(this.#agent, pid, opts)
  }

  #handle(stream: AgentStream, opts: PtyConnectOpts): CommandHandle {
    const pid = pidOf(stream)
    return new CommandHandle({
      pid,
      stream,
      onPty: opts.onData,
      kill: (opts) => this.kill(pid, opts),
      sendInput: (data, inputOpts) => this.sendInput(pid, data, inputOpts),
    })
  }
}
