// SPDX-License-Identifier: Apache-2.0
// Output as it comes, as a user of the stock SDK writes it.
import { CommandExitError, Sandbox, TimeoutError } from '@e2b/code-interpreter'

const sandbox = await Sandbox.create({ timeoutMs: 120_000 })
try {
  const lines = []
  const execution = await sandbox.runCode('for i in range(3):\n  print(f"line {i}", flush=True)\ni', {
    onStdout: (message) => lines.push(message.line),
    onResult: (result) => lines.push(`result ${result.text}`),
  })
  console.log(lines.join('').split('\n').join(' / '), execution.text, execution.logs.stdout.length > 0)
  let output = ''
  const command = await sandbox.commands.run('for i in 1 2 3; do echo $i; done; echo err >&2', {
    background: true,
    onStdout: (data) => {
      output += data
    },
  })
  const done = await command.wait()
  console.log(JSON.stringify(output), JSON.stringify(done), command.exitCode)
  try {
    await sandbox.commands.run('exit 9')
  } catch (error) {
    console.log(error instanceof CommandExitError, error.exitCode)
  }
  try {
    await sandbox.runCode('import time; time.sleep(30)', { timeoutMs: 300 })
  } catch (error) {
    console.log(error instanceof TimeoutError)
  }
  const context = await sandbox.createCodeContext({ language: 'python', cwd: '/tmp' })
  console.log((await sandbox.runCode('import os; os.getcwd()', { context })).text)
  const seen = []
  await sandbox.files.makeDir('/tmp/seen')
  const watch = await sandbox.files.watchDir('/tmp/seen', (event) => seen.push(`${event.type} ${event.name}`))
  await sandbox.files.write('/tmp/seen/a.txt', 'x')
  while (!seen.includes('write a.txt')) await new Promise((resolve) => setTimeout(resolve, 20))
  await watch.stop()
  console.log(seen[0])
} finally {
  await sandbox.kill()
}
