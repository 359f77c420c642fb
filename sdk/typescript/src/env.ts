// SPDX-License-Identifier: Apache-2.0
// What differs between Node, Deno, Bun and browsers, in one place. No module of the runtime is imported: the few that
// building templates from local files needs are asked for by name when they are used, so one bundle runs everywhere.

interface Runtime {
  process?: {
    env?: Record<string, string | undefined>
    versions?: { node?: string }
    getBuiltinModule?: (name: string) => unknown
  }
  Deno?: { env?: { get(name: string): string | undefined } }
  document?: unknown
  location?: { origin?: string }
  WorkerGlobalScope?: unknown
}

const runtime = globalThis as unknown as Runtime

/** True in pages and workers: no environment, no streaming request bodies over HTTP/1.1. */
export const inBrowser: boolean =
  !runtime.process?.versions?.node &&
  !runtime.Deno &&
  (runtime.document !== undefined || 'importScripts' in globalThis)

/** A variable of the environment; undefined where there is none, or where reading it is not allowed. */
export function envVar(name: string): string | undefined {
  try {
    return runtime.process?.env?.[name] ?? runtime.Deno?.env?.get(name)
  } catch {
    return undefined
  }
}

/** The page's own origin, '' outside pages. */
export function pageOrigin(): string {
  const origin = inBrowser ? runtime.location?.origin : undefined
  return origin && origin !== 'null' ? origin : ''
}

/** A module of the runtime, by name; throws where there is none, saying what needed it. */
export function builtin<T>(name: string, purpose: string): T {
  const module = runtime.process?.getBuiltinModule?.(name)
  if (!module)
    throw new Error(`${purpose} needs ${name}: Node 20.16, Deno 2 or Bun 1.2, or newer; there is none here`)
  return module as T
}

interface Base64 {
  fromBase64?: (text: string) => Uint8Array
}
interface BufferLike {
  from(text: string | Uint8Array, encoding?: string): Uint8Array & { toString(encoding: string): string }
}
const buffer = (globalThis as { Buffer?: BufferLike }).Buffer

/** Bytes of a base64 text. */
export function fromBase64(text: string): Uint8Array {
  if (buffer) {
    const bytes = buffer.from(text, 'base64')
    return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  }
  const native = (Uint8Array as unknown as Base64).fromBase64
  if (native) return native.call(Uint8Array, text)
  const binary = atob(text)
  const bytes = new Uint8Array(binary.length)
  for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i)
  return bytes
}

/** Base64 text of bytes. */
export function toBase64(bytes: Uint8Array): string {
  if (buffer) return buffer.from(bytes).toString('base64')
  let binary = ''
  for (let i = 0; i < bytes.length; i += 0x8000) binary += String.fromCharCode(...bytes.subarray(i, i + 0x8000))
  return btoa(binary)
}

/** Compares dotted version numbers: negative when `a` is older than `b`. */
export function compareVersions(a: string, b: string): number {
  const left = a.split('.')
  const right = b.split('.')
  for (let i = 0; i < 3; i++) {
    const difference = (parseInt(left[i] ?? '0', 10) || 0) - (parseInt(right[i] ?? '0', 10) || 0)
    if (difference) return difference
  }
  return 0
}
