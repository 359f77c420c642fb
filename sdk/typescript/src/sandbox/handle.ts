// SPDX-License-Identifier: Apache-2.0
// A command or a terminal that runs in a sandbox. One pump reads its events, hands them to callbacks in order and
// keeps the output; iterating over the handle gives the same events, from the first one on.

import { asyncDispose } from '../dispose.js'
import { fromBase64 } from '../env.js'
import { SandboxError } from '../errors.js'
import type { AgentStream } from '../net/agent.js'

declare const brand: unique symbol
type Branded<T, B> = T & { [brand]: B }

export type Stdout = Branded<string, 'stdout'>
export type Stderr = Branded<string, 'stderr'>
export type PtyOutput = Branded<Uint8Array, 'pty'>

/** How a command ended. */
export interface CommandResult {
  /** 0 on success, -1 when a signal ended it. */
  exitCode: number
  /** `exit status 2`, `signal: killed`, ... */
  error?: string
  stdout: string
  stderr: string
}

/** One piece of output, as it came. */
export type OutputEvent =
  { type: 'stdout'; text: string } | { type: 'stderr'; text: string } | { type: 'pty'; data: Uint8Array }

/** A command ended with something else than 0. */
export class CommandExitError extends SandboxError implements CommandResult {
  readonly #result: CommandResult

  constructor(result: CommandResult) {
    super(result.error ?? `exit status ${result.exitCode}`)
    this.name = 'CommandExitError'
    this.#result = result
  }

  get exitCode(): number {
    return this.#result.exitCode
  }

  get error(): string | undefined {
    return this.#result.error
  }

  get stdout(): string {
    return this.#result.stdout
  }

  get stderr(): string {
    return this.#result.stderr
  }
}

type Input = { requestTimeoutMs?: number; signal?: AbortSignal }

/** What a handle needs from the module that made it. */
export interface HandleParts {
  pid: number
  stream: AgentStream
  kill: (opts?: Input) => Promise<boolean>
  onStdout?: ((text: string) => void | Promise<void>) | undefined
  onStderr?: ((text: string) => void | Promise<void>) | undefined
  onPty?: ((data: Uint8Array) => void | Promise<void>) | undefined
  sendInput: (data: string | Uint8Array, opts?: Input) => Promise<void>
  closeStdin?: (opts?: Input) => Promise<void>
  /** Keep no output beside what is being iterated over. */
  forget?: boolean | undefined
}

const QUEUE = 256

/** Running command or terminal. */
export class CommandHandle
  implements Omit<CommandResult, 'exitCode' | 'error'>, Partial<Pick<CommandResult, 'exitCode' | 'error'>>
{
  readonly pid: number

  readonly #parts: HandleParts
  readonly #decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() }
  readonly #text = { stdout: '', stderr: '' }
  readonly #events: OutputEvent[] = []
  readonly #pumped: Promise<void>
  #dropped = 0
  #readers = 0
  #over = false
  #result?: CommandResult
  #failure?: unknown
  #wake: Array<() => void> = []

  constructor(parts: HandleParts) {
    this.#parts = parts
    this.pid = parts.pid
    this.#pumped = this.#pump()
  }

  /** Exit code, undefined while it runs. */
  get exitCode(): number | undefined {
    return this.#result?.exitCode
  }

  get error(): string | undefined {
    return this.#result?.error
  }

  /** What it has written to standard output until now. */
  get stdout(): string {
    return this.#text.stdout
  }

  get stderr(): string {
    return this.#text.stderr
  }

  /** Waits for the end. Throws CommandExitError when the exit code is not 0. */
  async wait(): Promise<CommandResult> {
    await this.#pumped
    if (this.#failure) throw this.#failure
    if (!this.#result) throw new SandboxError(`process ${this.pid} was disconnected from before it ended`)
    if (this.#result.exitCode !== 0) throw new CommandExitError(this.#result)
    return this.#result
  }

  /** Stops listening; the command goes on. */
  async disconnect(): Promise<void> {
    this.#parts.stream.close()
  }

  /** Ends it with SIGKILL; false when it had ended already. */
  async kill(opts?: Input): Promise<boolean> {
    return this.#parts.kill(opts)
  }

  /** Writes to its standard input, or to its terminal. */
  async sendStdin(data: string | Uint8Array, opts?: Input): Promise<void> {
    await this.#parts.sendInput(data, opts)
  }

  /** Closes its standard input. */
  async closeStdin(opts?: Input): Promise<void> {
    if (!this.#parts.closeStdin)
      throw new SandboxError('a terminal has no standard input to close; send \\x04 instead')
    await this.#parts.closeStdin(opts)
  }

  /** Disconnects at the end of an `await using` block. */
  async [asyncDispose](): Promise<void> {
    await this.disconnect()
  }

  /** Output as it comes; ends with the command, throws where wait() would, except for exit codes. */
  async *[Symbol.asyncIterator](): AsyncGenerator<OutputEvent, void, undefined> {
    let at = this.#dropped
    this.#readers++
    try {
      for (;;) {
        const event = this.#events[at - this.#dropped]
        if (event) {
          at++
          if (this.#parts.forget && this.#readers === 1) this.#drop(at)
          yield event
        } else if (this.#over) {
          if (this.#failure) throw this.#failure
          return
        } else {
          await this.#change()
        }
      }
    } finally {
      this.#readers--
      this.#changed()
    }
  }

  async #pump(): Promise<void> {
    try {
      for (;;) {
        const message = await this.#parts.stream.next()
        if (!message) break
        await this.#take(message['event'] ?? {})
      }
    } catch (error) {
      this.#failure = error
    }
    this.#over = true
    this.#changed()
  }

  async #take(event: Record<string, any>): Promise<void> {
    if (event['data']) await this.#data(event['data'])
    if (!event['end']) return
    await this.#flush('stdout')
    await this.#flush('stderr')
    const { exitCode = 0, error } = event['end'] as { exitCode?: number; error?: string }
    this.#result = { exitCode, ...(error === undefined ? {} : { error }), ...this.#text }
  }

  async #data(data: { stdout?: string; stderr?: string; pty?: string }): Promise<void> {
    if (data.pty !== undefined) {
      const bytes = fromBase64(data.pty)
      this.#keep({ type: 'pty', data: bytes })
      await this.#parts.onPty?.(bytes)
    } else {
      const type = data.stdout === undefined ? 'stderr' : 'stdout'
      await this.#wrote(type, this.#decoders[type].decode(fromBase64(data[type] ?? ''), { stream: true }))
    }
    while (this.#parts.forget && this.#readers > 0 && this.#events.length > QUEUE && !this.#over) await this.#change()
  }

  async #flush(type: 'stdout' | 'stderr'): Promise<void> {
    await this.#wrote(type, this.#decoders[type].decode())
  }

  async #wrote(type: 'stdout' | 'stderr', text: string): Promise<void> {
    if (!text) return
    if (!this.#parts.forget) this.#text[type] += text
    this.#keep({ type, text })
    await (type === 'stdout' ? this.#parts.onStdout : this.#parts.onStderr)?.(text)
  }

  #keep(event: OutputEvent): void {
    // Bytes of a terminal are kept only for somebody who reads them: a session may last for days.
    const wanted = this.#readers > 0 || (!this.#parts.forget && event.type !== 'pty')
    if (wanted || this.#events.length < QUEUE) this.#events.push(event)
    else this.#drop(this.#dropped + 1, event)
    this.#changed()
  }

  #drop(until: number, added?: OutputEvent): void {
    this.#events.splice(0, until - this.#dropped)
    this.#dropped = until
    if (added) this.#events.push(added)
    else this.#changed()
  }

  #change(): Promise<void> {
    return new Promise((resolve) => this.#wake.push(resolve))
  }

  #changed(): void {
    const waiting = this.#wake
    this.#wake = []
    for (const resolve of waiting) resolve()
  }
}
