// SPDX-License-Identifier: Apache-2.0
// Requests by Node's own HTTP client, for lean.ts, which loads this in Node alone.

import { builtin } from '../env.js'

interface Incoming {
  statusCode: number
  statusMessage: string
  headers: Record<string, string | undefined>
  complete: boolean
  on(event: string, listener: (value: never) => void): void
  pause(): void
  resume(): void
  destroy(): void
}

interface Outgoing {
  on(event: 'error', listener: (error: Error) => void): void
  end(body?: string): void
  destroy(error: Error): void
}

interface Http {
  request(url: string, opts: object, answer: (incoming: Incoming) => void): Outgoing
  Agent: new (opts: object) => object
}

const agents: Record<string, object> = {}
const HIGH_WATER = 1024 * 1024

/** Sends a request as fetch would; its body is a string or none. */
export function lean(
  url: string,
  init: { method: string; headers: object; body?: string; signal: AbortSignal },
): Promise<object> {
  const name = url.startsWith('https:') ? 'node:https' : 'node:http'
  const http: Http = builtin(name, 'a request')
  const agent = (agents[name] ??= new http.Agent({ keepAlive: true }))
  const { method, headers, body, signal } = init
  return new Promise((resolve, reject) => {
    const outgoing = http.request(url, { method, headers, agent }, (incoming) => resolve(answerOf(incoming)))
    // Node's own option `signal` costs more than the listener of a signal that lives as long as the request.
    if (signal.aborted) outgoing.destroy(signal.reason as Error)
    else signal.addEventListener('abort', () => outgoing.destroy(signal.reason as Error))
    outgoing.on('error', reject)
    outgoing.end(body)
  })
}

/** What callers use of a Response. */
function answerOf(incoming: Incoming): object {
  const reader = new BodyReader(incoming)
  const status = incoming.statusCode
  const text = async (): Promise<string> => {
    const decoder = new TextDecoder()
    let whole = ''
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return whole + decoder.decode()
      whole += decoder.decode(value, { stream: true })
    }
  }
  return {
    ok: status >= 200 && status < 300,
    status,
    statusText: incoming.statusMessage,
    headers: { get: (name: string) => incoming.headers[name.toLowerCase()] ?? null },
    body: { getReader: () => reader },
    text,
    json: async () => JSON.parse(await text()) as unknown,
  }
}

type Piece = { done: boolean; value?: Uint8Array }

/** A reader as those of web streams, without one. */
class BodyReader {
  readonly #ready: Uint8Array[] = []
  #held = 0
  #over = false
  #error?: Error
  private asked?: { resolve: (piece: Piece) => void; reject: (error: Error) => void }

  constructor(private readonly incoming: Incoming) {
    incoming.on('data', (piece: Uint8Array) => this.#take(piece))
    incoming.on('end', () => this.#finish())
    incoming.on('error', (error: Error) => this.#finish(error))
    incoming.on('close', () => this.#finish(incoming.complete ? undefined : cut()))
  }

  read(): Promise<Piece> {
    const value = this.#ready.shift()
    if (value) {
      this.#held -= value.length
      if (this.#held < HIGH_WATER) this.incoming.resume()
      return Promise.resolve({ done: false, value })
    }
    if (this.#error) return Promise.reject(this.#error)
    if (this.#over) return Promise.resolve({ done: true })
    return new Promise((resolve, reject) => (this.asked = { resolve, reject }))
  }

  async cancel(): Promise<void> {
    this.incoming.destroy()
  }

  #take(value: Uint8Array): void {
    const { asked } = this
    this.asked = undefined
    if (asked) return asked.resolve({ done: false, value })
    this.#ready.push(value)
    this.#held += value.length
    if (this.#held > HIGH_WATER) this.incoming.pause()
  }

  #finish(error?: Error): void {
    if (this.#over) return
    this.#over = true
    this.#error = error
    if (error) this.asked?.reject(error)
    else this.asked?.resolve({ done: true })
  }
}

function cut(): Error {
  return Object.assign(new Error('the connection was closed in the middle of the answer'), { code: 'ECONNRESET' })
}
