// SPDX-License-Identifier: Apache-2.0
// A registry of images on loopback for one test file; the program that serves it is the Python suites' own.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { after, before } from 'node:test'

const program = new URL('../../python/support/registry_child.py', import.meta.url).pathname

// What the registry holds, once the tests run: host, one, two, private, username, password.
export function sharedRegistry() {
  const held = {}
  let child, top
  before(async () => {
    top = mkdtempSync(join(tmpdir(), 'cloche-registry.'))
    child = spawn('python3', [program, top], { stdio: ['pipe', 'pipe', 'inherit'] })
    const [line] = await Promise.race([
      createInterface(child.stdout)[Symbol.asyncIterator]().next().then((got) => [got.value]),
      new Promise((resolve) => child.once('exit', () => resolve(['{}']))),
    ])
    Object.assign(held, JSON.parse(line))
    if (!held.host) throw new Error('the registry did not start')
  })
  after(async () => {
    const gone = new Promise((resolve) => child.once('exit', resolve))
    if (child.exitCode === null) {
      child.stdin.end()
      await gone
    }
    rmSync(top, { recursive: true })
  })
  return held
}
