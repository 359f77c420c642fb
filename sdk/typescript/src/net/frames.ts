// SPDX-License-Identifier: Apache-2.0
// Readers of the two streams a sandbox sends: envelopes of the Connect protocol (flags, length, JSON) and lines of
// JSON. Both come from inside the sandbox, so lengths are checked before anything is kept.

import { SandboxError } from '../errors.js'

const HEADER = 5
const FLAG_COMPRESSED = 1
const FLAG_END = 2
/** Largest envelope taken. The agent sends chunks of 32 KiB and directory listings. */
export const MAX_FRAME = 64 * 1024 * 1024
/** Largest line taken. A result of one cell is one line: pictures and tables of tens of MB are normal. */
export const MAX_LINE = 256 * 1024 * 1024

export interface Frame {
  end: boolean
  payload: Uint8Array
}

/** Cuts bytes into envelopes; what is not whole yet waits for the next bytes. */
export class FrameReader {
  #rest: Uint8Array[] = []
  #length = 0
  #wanted = HEADER

  /** Adds bytes and hands out the envelopes that are whole. */
  push(chunk: Uint8Array): Frame[] {
    this.#rest.push(chunk)
    this.#length += chunk.length
    if (this.#length < this.#wanted) return []
    const bytes = this.#joined()
    const frames: Frame[] = []
    let at = 0
    this.#wanted = HEADER
    while (bytes.length - at >= HEADER) {
      const size = sizeOf(bytes, at)
      if (bytes.length - at - HEADER < size) {
        this.#wanted = HEADER + size
        break
      }
      frames.push(frameOf(bytes, at, size))
      at += HEADER + size
    }
    this.#rest = at < bytes.length ? [bytes.subarray(at)] : []
    this.#length = bytes.length - at
    return frames
  }

  /** True when bytes of an envelope are waiting for the others. */
  get partial(): boolean {
    return this.#length > 0
  }

  #joined(): Uint8Array {
    return this.#rest.length === 1 ? this.#rest[0]! : concat(this.#rest, this.#length)
  }
}

function sizeOf(bytes: Uint8Array, at: number): number {
  const size = bytes[at + 1]! * 0x1000000 + ((bytes[at + 2]! << 16) | (bytes[at + 3]! << 8) | bytes[at + 4]!)
  if (size > MAX_FRAME) throw new SandboxError(`the agent sent an envelope of ${size} bytes, more than ${MAX_FRAME}`)
  return size
}

function frameOf(bytes: Uint8Array, at: number, size: number): Frame {
  const flags = bytes[at]!
  if (flags & FLAG_COMPRESSED) throw new SandboxError('the agent sent a compressed envelope, which nobody asked for')
  return { end: (flags & FLAG_END) !== 0, payload: bytes.subarray(at + HEADER, at + HEADER + size) }
}

/** One envelope around a message. */
export function envelope(message: unknown): Uint8Array<ArrayBuffer> {
  const payload = new TextEncoder().encode(JSON.stringify(message))
  const out = new Uint8Array(HEADER + payload.length)
  new DataView(out.buffer).setUint32(1, payload.length)
  out.set(payload, HEADER)
  return out
}

/** Joins pieces into one array. */
export function concat(pieces: readonly Uint8Array[], length?: number): Uint8Array<ArrayBuffer> {
  const out = new Uint8Array(length ?? pieces.reduce((sum, piece) => sum + piece.length, 0))
  let at = 0
  for (const piece of pieces) {
    out.set(piece, at)
    at += piece.length
  }
  return out
}

/** Cuts text into lines; the last one counts at the end even without its newline. */
export class LineReader {
  #rest = ''
  readonly #decoder = new TextDecoder()

  push(chunk: Uint8Array): string[] {
    return this.#cut(this.#decoder.decode(chunk, { stream: true }))
  }

  end(): string[] {
    const lines = this.#cut(this.#decoder.decode())
    if (this.#rest) lines.push(this.#rest)
    this.#rest = ''
    return lines
  }

  #cut(text: string): string[] {
    const last = text.lastIndexOf('\n')
    if (last < 0) {
      this.#rest += text
      if (this.#rest.length > MAX_LINE) throw new SandboxError(`the sandbox sent a line longer than ${MAX_LINE}`)
      return []
    }
    const lines = (this.#rest + text.slice(0, last)).split('\n')
    this.#rest = text.slice(last + 1)
    return lines
  }
}
