// SPDX-License-Identifier: Apache-2.0
// The file system of Node, Deno or Bun, asked for when it is used, and what describing a template needs of it.

import { builtin } from '../env.js'
import { TemplateError } from '../errors.js'

export interface Stats {
  mode: number
  size: number
  mtimeMs: number
  isFile(): boolean
  isDirectory(): boolean
  isSymbolicLink(): boolean
}

interface Fs {
  readdirSync(path: string): string[]
  readFileSync(path: string): Uint8Array
  readFileSync(path: string, encoding: 'utf8'): string
  readlinkSync(path: string): string
  lstatSync(path: string, opts: { throwIfNoEntry: false }): Stats | undefined
  statSync(path: string, opts: { throwIfNoEntry: false }): Stats | undefined
}

export const purpose = 'building a template from local files'
export const fs = (): Fs => builtin('node:fs', purpose)

/** Text of a file, undefined when there is none. */
export function readText(path: string): string | undefined {
  return fs().statSync(path, { throwIfNoEntry: false })?.isFile() ? fs().readFileSync(path, 'utf8') : undefined
}

/** Refuses paths that leave the context. */
export function checkInside(path: string, stackTrace?: string): void {
  const why = /^([/\\]|[A-Za-z]:)/.test(path)
    ? 'absolute paths are not allowed'
    : escapes(path) && 'path escapes the context directory'
  if (why)
    throw new TemplateError(
      `Invalid source path "${path}": ${why}; name one relative to it and within it`,
      stackTrace,
    )
}

function escapes(path: string): boolean {
  let depth = 0
  for (const part of path.split(/[/\\]/)) {
    if (part === '..') depth--
    else if (part && part !== '.') depth++
    if (depth < 0) return true
  }
  return false
}
