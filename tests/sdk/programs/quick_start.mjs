// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert'
import { Sandbox } from '@e2b/code-interpreter'

const sandbox = await Sandbox.create()
await sandbox.runCode('x = 1')
const execution = await sandbox.runCode('x += 1; x')
assert.equal(execution.text, '2')
assert((await sandbox.files.list('/')).length)
await sandbox.kill()
console.log('done')
process.exit(0)
