// SPDX-License-Identifier: Apache-2.0
import assert from 'node:assert'
import { Sandbox } from '@e2b/code-interpreter'

const code = `
import sys, time
for step in range(3):
    print("step", step)
    time.sleep(0.1)
print("warning", file=sys.stderr)
raise ValueError("at the end")
`
const sandbox = await Sandbox.create()
const told = []
const execution = await sandbox.runCode(code, {
  onStdout: (message) => told.push(['out', message.line]),
  onStderr: (message) => told.push(['err', message.line]),
  onError: (error) => told.push(['error', error.name]),
})
assert.equal(told.filter(([kind]) => kind === 'out').map(([, line]) => line).join(''), 'step 0\nstep 1\nstep 2\n')
assert.deepEqual(told.at(-1), ['error', 'ValueError'])
assert.equal(execution.error.value, 'at the end')
const command = await sandbox.commands.run('for i in 1 2 3; do echo $i; done')
assert.equal(command.stdout, '1\n2\n3\n')
await sandbox.kill()
console.log('done')
process.exit(0)
