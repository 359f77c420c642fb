// SPDX-License-Identifier: Apache-2.0
// Runs code in the kernels of a sandbox: one request for each cell, answered by lines of JSON as things happen.

import { asyncDispose } from '../dispose.js'
import type { ConnectionConfig } from '../config.js'
import { detailed, InvalidArgumentError, NotFoundError, SandboxError } from '../errors.js'
import { goneError, type Agent } from '../net/agent.js'
import type { CallOpts } from '../net/api.js'
import { Deadline } from '../net/deadline.js'
import { LineReader } from '../net/frames.js'
import { leanFetch } from '../net/lean.js'
import {
  enter,
  Execution,
  type ExecutionError,
  type ExecutionEvent,
  type OutputMessage,
  type Result,
} from './execution.js'

/** A kernel of its own: what one cell defines, the next ones see. */
export type Context = {
  id: string
  language: string
  cwd: string
}

export type RunCodeLanguage = 'python' | 'javascript' | 'typescript' | 'r' | 'java' | 'bash' | (string & {})

export interface RunCodeOpts {
  onStdout?: (output: OutputMessage) => Promise<any> | any
  onStderr?: (output: OutputMessage) => Promise<any> | any
  onResult?: (data: Result) => Promise<any> | any
  onError?: (error: ExecutionError) => Promise<any> | any
  /** Variables for this cell alone. */
  envs?: Record<string, string>
  /** Longest time in ms that the cell runs; 60000 when left out, 0: for ever. It is interrupted then. */
  timeoutMs?: number
  /** Longest time in ms until the server takes the cell. */
  requestTimeoutMs?: number
  /** Aborting it interrupts the cell. */
  signal?: AbortSignal
}

export interface CreateCodeContextOpts extends CallOpts {
  cwd?: string
  language?: RunCodeLanguage
}

/** Which run to interrupt; left out, the default context's. */
export interface InterruptOpts extends CallOpts {
  context?: Context | string
  language?: RunCodeLanguage
  executionId?: string
}

export type RunTarget = { language?: RunCodeLanguage; context?: Context }

const RUN_TIMEOUT_MS = 60_000

/** Where a sandbox's interpreter is, and the headers that lead to it. */
export interface InterpreterAddress {
  url: string
  headers: Record<string, string>
}

export class Interpreter {
  constructor(
    private readonly address: InterpreterAddress,
    private readonly agent: Agent,
    private readonly config: ConnectionConfig,
  ) {}

  /** Runs a cell to its end. */
  async run(code: string, opts: RunCodeOpts & RunTarget = {}): Promise<Execution> {
    const cell = this.#open(code, opts)
    const execution = new Execution()
    try {
      const reader = await cell.reader
      const lines = new LineReader()
      for (;;) {
        const { done, value } = await reader.read()
        for (const line of done ? lines.end() : lines.push(value)) {
          const event = enter(execution, line)
          if (event) {
            const told = tell(event, opts)
            if (told) await told
          }
        }
        if (done) return execution
      }
    } catch (error) {
      throw await this.explain(cell.deadline, error)
    } finally {
      cell.deadline.close()
    }
  }

  /** Starts a cell and hands out what watches it. */
  start(code: string, opts: RunCodeOpts & RunTarget = {}): RunningExecution {
    const cell = this.#open(code, opts)
    return new RunningExecution(cell, opts, {
      interrupt: (executionId, call) =>
        this.interrupt({ ...call, executionId, context: opts.context, language: opts.language }),
      explain: (error) => this.explain(cell.deadline, error),
    })
  }

  /** Interrupts what runs; false when nothing does. */
  async interrupt(opts: InterruptOpts = {}): Promise<boolean> {
    const { context, language, executionId } = opts
    const body = { context_id: idOf(context), language, execution_id: executionId }
    const answer = (await this.#ask('POST', '/interrupt', body, opts)) as { interrupted?: boolean } | null
    return answer?.interrupted === true
  }

  async createContext(opts: CreateCodeContextOpts = {}): Promise<Context> {
    return (await this.#ask('POST', '/contexts', { language: opts.language, cwd: opts.cwd }, opts)) as Context
  }

  async listContexts(opts?: CallOpts): Promise<Context[]> {
    return (await this.#ask('GET', '/contexts', undefined, opts)) as Context[]
  }

  async removeContext(context: Context | string, opts?: CallOpts): Promise<void> {
    await this.#ask('DELETE', `/contexts/${encodeURIComponent(idOf(context)!)}`, undefined, opts)
  }

  async restartContext(context: Context | string, opts?: CallOpts): Promise<void> {
    await this.#ask('POST', `/contexts/${encodeURIComponent(idOf(context)!)}/restart`, undefined, opts)
  }

  #open(code: string, opts: RunCodeOpts & RunTarget): Cell {
    if (opts.context && opts.language) {
      throw new InvalidArgumentError('You can provide context or language, but not both at the same time.')
    }
    const body = JSON.stringify({
      code,
      context_id: opts.context?.id,
      language: opts.language,
      env_vars: opts.envs,
    })
    const deadline = Deadline.of('Request timed out: starting the cell', this.config, opts)
    const cell: Cell = { deadline, reader: Promise.resolve(undefined as never), id: Promise.resolve(undefined) }
    const response = this.#send('POST', '/execute', body, deadline)
    cell.id = response.then((answer) => answer.headers.get('Cloche-Execution-Id') ?? undefined)
    cell.id.catch(() => undefined)
    cell.reader = response.then((answer) => {
      deadline.arm(opts.timeoutMs ?? RUN_TIMEOUT_MS, 'timeoutMs', 'Execution timed out: the cell')
      return answer.body!.getReader()
    })
    return cell
  }

  async #send(method: string, path: string, body: string | undefined, deadline: Deadline): Promise<Response> {
    const init = { method, headers: this.address.headers, body, signal: deadline.signal }
    const source = this.config.requestSource ? `?source=${encodeURIComponent(this.config.requestSource)}` : ''
    const response = await leanFetch(this.config)(this.address.url + path + source, init)
    if (response.ok) return response
    throw await httpError(response)
  }

  async #ask(method: string, path: string, body: unknown, opts?: CallOpts): Promise<unknown> {
    const deadline = Deadline.of(`Request timed out: ${path}`, this.config, opts)
    try {
      const text = body === undefined ? undefined : JSON.stringify(body)
      const response = await this.#send(method, path, text, deadline)
      return await response.json()
    } catch (error) {
      throw await this.explain(deadline, error)
    } finally {
      deadline.close()
    }
  }

  private async explain(deadline: Deadline, error: unknown): Promise<unknown> {
    return this.agent.explain(deadline.reason(error))
  }
}

function idOf(context: Context | string | undefined): string | undefined {
  return typeof context === 'string' ? context : context?.id
}

async function httpError(response: Response): Promise<Error> {
  const { status, statusText } = response
  const text = await response.text().catch(() => '')
  let message = text
  try {
    const { message: told, detail } = JSON.parse(text) as { message?: string; detail?: unknown }
    message = told ?? (detail === undefined ? text : JSON.stringify(detail))
  } catch {
    // Plain text is what it is.
  }
  const error =
    status === 404
      ? new NotFoundError(message)
      : status === 502
        ? goneError(message, message)
        : new SandboxError(`${status} ${statusText}${message && `: ${message}`}`)
  return detailed(error, { statusCode: status })
}

/** A cell that was sent. */
interface Cell {
  deadline: Deadline
  reader: Promise<ReadableStreamDefaultReader<Uint8Array>>
  id: Promise<string | undefined>
}

function tell(event: ExecutionEvent, opts: RunCodeOpts): Promise<any> | any {
  switch (event.type) {
    case 'stdout':
      return opts.onStdout?.(event.message)
    case 'stderr':
      return opts.onStderr?.(event.message)
    case 'result':
      return opts.onResult?.(event.result)
    case 'error':
      return opts.onError?.(event.error)
  }
}

interface Means {
  interrupt: (executionId: string | undefined, opts?: CallOpts) => Promise<boolean>
  explain: (error: unknown) => Promise<unknown>
}

/**
 * A cell that runs. Iterate over it for its events, or wait() for its execution, or both in this order. Events are
 * read as they are asked for; leaving the loop early ends the request, which interrupts the cell.
 */
export class RunningExecution implements AsyncIterable<ExecutionEvent> {
  /** What the cell has given until now. */
  readonly execution = new Execution()

  readonly #lines = new LineReader()
  #waiting: string[] = []
  #over = false
  #failure?: unknown
  #turn: Promise<unknown>

  constructor(
    private readonly cell: Cell,
    private readonly opts: RunCodeOpts,
    private readonly means: Means,
  ) {
    this.#turn = cell.reader.catch(() => undefined)
  }

  /** The server's name for this run; undefined when it gave none. */
  get id(): Promise<string | undefined> {
    return this.cell.id
  }

  /** Interrupts the cell: it ends with a KeyboardInterrupt or what its language has. False when it had ended. */
  async interrupt(opts?: CallOpts): Promise<boolean> {
    if (this.#over) return false
    return this.means.interrupt(await this.cell.id, opts)
  }

  /** Waits for the end and gives the whole execution. */
  async wait(): Promise<Execution> {
    while (await this.#next()) continue
    return this.execution
  }

  /** Ends the request at once; what the cell still gives is lost. */
  cancel(): void {
    if (this.#over) return
    this.#over = true
    this.#failure = Object.assign(new Error('the execution was cancelled'), { name: 'AbortError' })
    this.cell.deadline.abort(this.#failure as Error)
    this.cell.deadline.close()
  }

  async [asyncDispose](): Promise<void> {
    this.cancel()
  }

  [Symbol.asyncIterator](): AsyncIterator<ExecutionEvent> {
    return {
      next: async () => {
        const value = await this.#next()
        return value ? { done: false, value } : { done: true, value: undefined }
      },
      return: async () => {
        this.cancel()
        return { done: true, value: undefined }
      },
    }
  }

  /** The next event. Callers are served in turn: several may ask at once. */
  #next(): Promise<ExecutionEvent | undefined> {
    const mine = this.#turn.then(() => this.#advance())
    this.#turn = mine.catch(() => undefined)
    return mine
  }

  async #advance(): Promise<ExecutionEvent | undefined> {
    try {
      for (;;) {
        const line = this.#waiting.shift()
        const event = line === undefined ? undefined : enter(this.execution, line)
        if (event) {
          await tell(event, this.opts)
          return event
        }
        if (line !== undefined) continue
        if (this.#failure) throw this.#failure
        if (this.#over) return undefined
        await this.#read()
      }
    } catch (error) {
      if (!this.#over) this.#failure = await this.means.explain(error)
      this.#over = true
      this.cell.deadline.close()
      throw this.#failure
    }
  }

  async #read(): Promise<void> {
    const reader = await this.cell.reader
    const { done, value } = await reader.read()
    this.#waiting = done ? this.#lines.end() : this.#lines.push(value)
    if (!done) return
    this.#over = true
    this.cell.deadline.close()
  }
}
