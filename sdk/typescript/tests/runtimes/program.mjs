// SPDX-License-Identifier: Apache-2.0
// The same few things in every runtime.
import { Sandbox, Template } from 'cloche'

const box = await Sandbox.create({ timeoutMs: 60_000 })
try {
  console.log((await box.runCode('6 * 7')).text)
  let streamed = ''
  for await (const event of box.runCode('print("a", flush=True)\nprint("b")', { stream: true })) {
    if (event.type === 'stdout') streamed += event.text
  }
  console.log(JSON.stringify(streamed))
  const bytes = new Uint8Array(1_000_000).fill(7)
  await box.files.write('big', new Blob([bytes]).stream())
  const read = await box.files.read('big', { format: 'bytes' })
  console.log(
    read.length,
    read.every((byte) => byte === 7),
  )
  const handle = await box.commands.run('cat', { background: true, stdin: true })
  await handle.sendStdin('hi')
  await handle.closeStdin()
  console.log((await handle.wait()).stdout)
  const terminal = await box.pty.create({ cols: 80, rows: 24 })
  await terminal.sendStdin('echo $((40 + 2)); exit\n')
  let text = ''
  for await (const event of terminal) text += new TextDecoder().decode(event.data)
  console.log(/\r42\r\n/.test(text))
  console.log(
    JSON.parse(await Template.toJSON(Template().fromBaseImage().copy('program.mjs', '/x'))).steps[0].filesHash.length,
  )
} finally {
  await box.kill()
}
try {
  await box.runCode('1')
} catch (error) {
  console.log(error.name, error.endCause.reason)
}
