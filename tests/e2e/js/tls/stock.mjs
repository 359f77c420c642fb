// SPDX-License-Identifier: Apache-2.0
// What a user's program does with the stock SDK; run as a child with https in
// its environment. Prints one JSON object of what it saw. The only thing here
// that knows about TLS listens to what undici tells of its connections.

import { createHash, randomBytes } from 'node:crypto'
import { channel } from 'node:diagnostics_channel'
import { Sandbox } from '@e2b/code-interpreter'
import * as older from 'e2b-v1'

const size = 100 << 20
const seen = { protocols: [] }
channel('undici:client:connected').subscribe(({ socket }) => {
  seen.protocols.push(socket.alpnProtocol || 'none')
})

const box = await Sandbox.create({ timeoutMs: 300_000 })
try {
  seen.domain = box.sandboxDomain
  seen.sum = (await box.runCode('print(20 + 22)')).logs.stdout

  const lines = []
  await box.commands.run('for i in 1 2 3; do echo $i; sleep 1.2; done', {
    onStdout: (line) => lines.push([performance.now(), line.trim()]),
  })
  seen.lines = lines.map(([, line]) => line)
  seen.spread = lines.at(-1)[0] - lines[0][0]

  const commands = Array.from({ length: 40 }, (_, i) => box.commands.run(`sleep 1; echo ${i}`))
  seen.many = (await Promise.all(commands)).map((each) => Number(each.stdout))

  const part = randomBytes(1 << 20)
  const data = Buffer.concat(Array(size / part.length).fill(part))
  await box.files.write('/home/user/large', new Blob([data]))
  const there = await box.commands.run('sha256sum /home/user/large')
  const hash = createHash('sha256').update(data).digest('hex')
  seen.uploaded = there.stdout.split(' ')[0] === hash
  const back = await box.files.read('/home/user/large', { format: 'bytes' })
  seen.downloaded = Buffer.from(back).equals(data)

  // The generation before, which creates and connects on other paths.
  const again = await older.Sandbox.connect(box.sandboxId)
  seen.older = (await again.commands.run('echo older')).stdout.trim()

  const handle = await box.commands.run('sleep 60', { background: true })
  const ended = handle.wait().then(
    () => 'no error',
    (error) => error.name,
  )
  await new Promise((resolve) => setTimeout(resolve, 500))
  const began = performance.now()
  seen.killed = await Sandbox.kill(box.sandboxId)
  seen.error = await ended
  seen.noticed = performance.now() - began
  seen.running = await box.isRunning()
} finally {
  await box.kill()
}
console.log(JSON.stringify(seen))
