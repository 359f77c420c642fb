// SPDX-License-Identifier: Apache-2.0
// Where in the caller's program a step of a template stands: files are looked for beside it, and a step that fails
// when it is built shows that place as its stack.

import { inBrowser } from '../env.js'

const FRAME = /(?:\(|@|at )((?:file:\/\/)?[^()\s@][^()@]*?):\d+(?::\d+)?\)?$/

function frames(): Array<{ line: string; file: string }> {
  const lines = (new Error().stack ?? '').split('\n')
  return lines.flatMap((line) => {
    const file = FRAME.exec(line.trim())?.[1]
    return file ? [{ line, file }] : []
  })
}

/** The file that this code is in, whatever bundle that is. */
const self = frames()[0]?.file

function callers(): Array<{ line: string; file: string }> {
  return frames().filter(({ file }) => file !== self && !/^node:|^internal\b|<anonymous>/.test(file))
}

/** Stack of the caller, without this package's own frames. */
export function callerTrace(): string {
  return ['Error', ...callers().map(({ line }) => line)].join('\n')
}

/** Directory of the calling file, '.' where there is none. */
export function callerDirectory(): string {
  const file = inBrowser ? undefined : callers()[0]?.file
  if (!file) return '.'
  const path = file.startsWith('file://') ? decodeURIComponent(new URL(file).pathname) : file
  return path.replace(/\/[^/]*$/, '') || '/'
}
