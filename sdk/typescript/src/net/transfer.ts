// SPDX-License-Identifier: Apache-2.0
// Bytes on their way to and from a server. A transfer has no time limit while bytes move: the limit counts from the
// last byte, so that it finds dead connections and never cuts a large file.

import { inBrowser } from '../env.js'
import { Deadline } from './deadline.js'

/** What can be written. */
export type WriteData =
  string | ArrayBuffer | Uint8Array | Blob | ReadableStream<Uint8Array> | AsyncIterable<Uint8Array>

/** A request body, and whether it is a stream. */
export interface Body {
  body: BodyInit
  duplex?: 'half'
}

const SLICE = 64 * 1024
/** Up to this size a body is sent in one piece: it is faster, and its progress tells nothing. */
const WHOLE = 256 * 1024

/** Makes a request body of data; each piece that goes out touches the deadline. */
export async function bodyOf(data: WriteData, deadline: Deadline, gzip = false): Promise<Body> {
  const plain = typeof data === 'string' ? new TextEncoder().encode(data) : data
  if (inBrowser) return { body: await new Response(await streamOrBlob(plain, gzip)).blob() }
  if (!gzip && isWhole(plain)) return { body: plain as BodyInit }
  const stream = gzip ? compressed(streamOf(plain)) : streamOf(plain)
  return { body: watched(stream, deadline), duplex: 'half' }
}

/** Size of data that is in memory, undefined for streams. */
export function sizeOf(data: WriteData): number | undefined {
  if (typeof data === 'string') return undefined
  if (data instanceof Blob) return data.size
  return 'byteLength' in data ? data.byteLength : undefined
}

function isWhole(data: Exclude<WriteData, string>): boolean {
  const size = sizeOf(data)
  return size !== undefined && size <= WHOLE
}

async function streamOrBlob(data: Exclude<WriteData, string>, gzip: boolean): Promise<BodyInit> {
  if (!gzip && (data instanceof Blob || 'byteLength' in data)) return data as BodyInit
  return gzip ? compressed(streamOf(data)) : streamOf(data)
}

function compressed(stream: ReadableStream<Uint8Array>): ReadableStream<Uint8Array> {
  return stream.pipeThrough(new CompressionStream('gzip') as unknown as ReadableWritablePair<Uint8Array, Uint8Array>)
}

/** Any data as a stream. */
export function streamOf(data: Exclude<WriteData, string>): ReadableStream<Uint8Array> {
  if (data instanceof Blob) return data.stream()
  if (data instanceof ReadableStream) return data
  if ('byteLength' in data) return slices(data instanceof Uint8Array ? data : new Uint8Array(data))
  return iterated(data)
}

function slices(bytes: Uint8Array): ReadableStream<Uint8Array> {
  let at = 0
  return new ReadableStream({
    pull(controller) {
      if (at < bytes.length) controller.enqueue(bytes.subarray(at, (at += SLICE)))
      else controller.close()
    },
  })
}

function iterated(pieces: AsyncIterable<Uint8Array>): ReadableStream<Uint8Array> {
  const source = pieces[Symbol.asyncIterator]()
  return new ReadableStream({
    async pull(controller) {
      const { done, value } = await source.next()
      if (done) controller.close()
      else controller.enqueue(value)
    },
    async cancel() {
      await source.return?.()
    },
  })
}

/** The same stream; each piece that passes touches the deadline. Cancelling it ends the request. */
export function watched(
  stream: ReadableStream<Uint8Array>,
  deadline: Deadline,
  over: () => void = () => undefined,
  explain: (error: unknown) => Promise<unknown> = async (error) => error,
): ReadableStream<Uint8Array> {
  const reader = stream.getReader()
  return new ReadableStream<Uint8Array>(
    {
      async pull(controller) {
        try {
          const { done, value } = await reader.read()
          deadline.touch()
          if (!done) return controller.enqueue(value)
          over()
          controller.close()
        } catch (error) {
          over()
          controller.error(await explain(deadline.reason(error)))
        }
      },
      async cancel(reason) {
        over()
        await reader.cancel(reason)
      },
    },
    { highWaterMark: 0 },
  )
}
