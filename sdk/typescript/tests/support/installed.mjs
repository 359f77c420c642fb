// SPDX-License-Identifier: Apache-2.0
// A folder in which the packed package is installed as a user would have it.

import { execFile, execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'

const run = promisify(execFile)

// Unpacks the tarball into node_modules of a new folder, which is gone when the test is over.
export function installed(test) {
  const folder = mkdtempSync(join(tmpdir(), 'cloche-ts-installed.'))
  test.after(() => rmSync(folder, { recursive: true }))
  const target = join(folder, 'node_modules/cloche')
  mkdirSync(target, { recursive: true })
  execFileSync('tar', ['-xzf', process.env.CLOCHE_TARBALL, '-C', target, '--strip-components=1'])
  return folder
}

// Runs a program and gives what it printed; what it wrote to standard error is in the error when it fails.
export async function output(command, args, cwd) {
  const { stdout } = await run(command, args, { cwd, timeout: 90_000, maxBuffer: 1 << 24 })
  return stdout
}
