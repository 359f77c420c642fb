// SPDX-License-Identifier: Apache-2.0
// Building templates: a folder to copy from, a build that keeps its log, and boxes of the result.

import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after } from 'node:test'
import { Sandbox } from 'e2b'
import { unique } from './box.mjs'

export const fresh = (stem) => `${stem}-${unique()}`

// A folder with these files, gone after the tests. Values are contents or [content, mode].
export function folder(files) {
  const path = mkdtempSync(join(tmpdir(), 'cloche-context.'))
  after(() => rmSync(path, { recursive: true }))
  for (const [name, value] of Object.entries(files)) {
    const [content, mode] = Array.isArray(value) ? value : [value, 0o644]
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), content, { mode })
  }
  return path
}

// Builds and returns what the build logged beside what it is.
export async function build(sdk, template, name, opts = {}) {
  const log = []
  const info = await sdk.Template.build(template, name, { onBuildLogs: (entry) => log.push(entry), ...opts })
  return { ...info, log: log.map((entry) => entry.message), entries: log }
}

export async function inBox(name, body, make = (template) => Sandbox.create(template, { timeoutMs: 60_000 })) {
  const box = await make(name)
  try {
    return await body(box)
  } finally {
    await box.kill()
  }
}

export const shell = (name, line) => inBox(name, async (box) => (await box.commands.run(line)).stdout)

// Each part is in the log, in this order.
export function assertTold(log, ...parts) {
  let from = 0
  for (const part of parts) {
    const at = log.findIndex((line, index) => index >= from && line.includes(part))
    assert.ok(at >= 0, `${part} is not in the log after line ${from}:\n${log.join('\n')}`)
    from = at + 1
  }
}
