// SPDX-License-Identifier: Apache-2.0
// The time that a request may take, and the caller's own signal, as one AbortSignal. A deadline counts either from the
// moment it is armed, or from the last byte that moved: touch() keeps it away. What ended the request is kept, because
// runtimes differ in what they make of an abort's reason.

import { TimeoutError } from '../errors.js'

export class Deadline {
  /** What ended the request early; undefined while nothing did. */
  error?: Error

  readonly #controller = new AbortController()
  readonly #outer: AbortSignal | undefined
  #timer?: ReturnType<typeof setTimeout>
  #last = 0
  #limit = 0
  #what = ''

  constructor(outer?: AbortSignal) {
    this.#outer = outer
    if (!outer) return
    if (outer.aborted) this.#onOuterAbort()
    else outer.addEventListener('abort', this.#onOuterAbort)
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** Ends the request `ms` from now or from the last touch(); 0 or undefined: never. `option` is named in the error. */
  arm(ms: number | undefined, option: string, subject: string): void {
    this.disarm()
    if (!ms || ms === Infinity) return
    this.#limit = ms
    this.#what = `${subject} took longer than ${option} (${ms} ms)`
    this.#last = Date.now()
    this.#schedule(ms)
  }

  /** A deadline that runs already: the call's own requestTimeoutMs, else the connection's. */
  static of(
    what: string,
    config: { requestTimeoutMs: number },
    opts?: { requestTimeoutMs?: number; signal?: AbortSignal },
  ): Deadline {
    const deadline = new Deadline(opts?.signal)
    deadline.arm(opts?.requestTimeoutMs ?? config.requestTimeoutMs, 'requestTimeoutMs', what)
    return deadline
  }

  /** Bytes moved: the time starts again. */
  touch(): void {
    this.#last = Date.now()
  }

  disarm(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
  }

  /** Ends the request with this error. */
  abort(error: Error): void {
    this.error ??= error
    this.#controller.abort(error)
  }

  /** The request is over: forget the timer and the caller's signal. */
  close(): void {
    this.disarm()
    this.#outer?.removeEventListener('abort', this.#onOuterAbort)
  }

  /** What to throw for an error that a request or its stream raised. */
  reason(error: unknown): unknown {
    return this.error ?? error
  }

  readonly #onOuterAbort = (): void => {
    this.abort(abortReason(this.#outer!))
  }

  #schedule(ms: number): void {
    // setTimeout takes 31 bits: longer ones are slept in slices.
    this.#timer = setTimeout(() => this.#onTimer(), Math.min(ms, 0x7fffffff))
  }

  #onTimer(): void {
    const left = this.#limit - (Date.now() - this.#last)
    if (left > 0) this.#schedule(left)
    else this.abort(new TimeoutError(`${this.#what}; give a larger one, or 0 for none`))
  }
}

/** What a caller's aborted signal says, as an error. */
export function abortReason(signal: AbortSignal): Error {
  const reason: unknown = signal.reason
  if (reason instanceof Error) return reason
  return Object.assign(new Error(reason === undefined ? 'aborted' : String(reason)), { name: 'AbortError' })
}

/** Waits, unless the signal is aborted first. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(abortReason(signal!))
    }
    if (signal?.aborted) return reject(abortReason(signal))
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', stop)
      resolve()
    }, ms)
    signal?.addEventListener('abort', stop)
  })
}
