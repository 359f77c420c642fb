// SPDX-License-Identifier: Apache-2.0
// The stock command line, run with a home of its own so that nobody's login gets in the way.

import { spawn } from 'node:child_process'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'

const program = join(import.meta.dirname, '../node_modules/@e2b/cli/dist/index.js')
const home = mkdtempSync(join(tmpdir(), 'cloche-cli.'))
after(() => rmSync(home, { recursive: true }))

// { code, stdout, stderr, said }, where `said` is both outputs as they came.
export function e2b(args, { input = '', cwd, timeout = 60_000 } = {}) {
  return new Promise((resolve, reject) => {
    const env = { ...process.env, HOME: home, NO_COLOR: '1' }
    const child = spawn(process.execPath, [program, ...args], { env, cwd, timeout })
    const heard = { stdout: '', stderr: '', said: '' }
    for (const name of ['stdout', 'stderr'])
      child[name].on('data', (data) => {
        heard[name] += data
        heard.said += data
      })
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, ...heard }))
    child.stdin.end(input)
  })
}
