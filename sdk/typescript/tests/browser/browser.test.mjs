// SPDX-License-Identifier: Apache-2.0
// The package in a page of Chromium, on the origin of the server.
import assert from 'node:assert/strict'
import { readFileSync } from 'node:fs'
import { createServer, request } from 'node:http'
import { after, before, test } from 'node:test'
import { build } from 'esbuild'
import { chromium } from 'playwright-core'

let browser, page, origin, front
const fetched = []

// A page and the server under one origin, as an installation behind a proxy has them.
before(async () => {
  const target = new URL(process.env.E2B_API_URL)
  const { outputFiles } = await build({
    stdin: { contents: "export * from './index.js'", resolveDir: new URL('../../dist', import.meta.url).pathname },
    bundle: true,
    format: 'iife',
    globalName: 'cloche',
    platform: 'browser',
    write: false,
  })
  front = createServer((incoming, outgoing) => {
    if (incoming.url === '/page') {
      outgoing.writeHead(200, { 'Content-Type': 'text/html' })
      return outgoing.end(
        `<!doctype html><script>${outputFiles[0].text.replaceAll('</script', '<\\/script')}</script>`,
      )
    }
    if (incoming.url.startsWith('/package/')) {
      fetched.push(incoming.url)
      outgoing.writeHead(200, { 'Content-Type': 'text/javascript' })
      return outgoing.end(readFileSync(new URL(`../../dist/${incoming.url.slice(9)}`, import.meta.url)))
    }
    const { method, url, headers } = incoming
    const onward = request({ host: target.hostname, port: target.port, method, path: url, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode, answer.headers)
      answer.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    outgoing.on('close', () => onward.destroy())
    incoming.pipe(onward)
  })
  await new Promise((resolve) => front.listen(0, '127.0.0.1', resolve))
  origin = `http://127.0.0.1:${front.address().port}`
  browser = await chromium.launch({ executablePath: '/usr/bin/chromium', args: ['--no-sandbox'] })
  page = await browser.newPage()
  await page.goto(`${origin}/page`)
})
after(async () => {
  await browser?.close()
  front?.closeAllConnections()
  await new Promise((resolve) => front.close(resolve))
})

test('a page makes a sandbox on its own origin, runs code, and sees output as it comes', async () => {
  const seen = await page.evaluate(async (apiKey) => {
    const box = await globalThis.cloche.Sandbox.create({ apiKey, timeoutMs: 60_000 })
    try {
      const times = []
      const code = 'import time\nfor i in range(3):\n  print(i, flush=True)\n  time.sleep(0.3)'
      for await (const event of box.runCode(code, { stream: true })) {
        if (event.type === 'stdout') times.push(Date.now())
      }
      return { text: (await box.runCode('6 * 7')).text, lines: times.length, spread: times[2] - times[0] }
    } finally {
      await box.kill()
    }
  }, process.env.E2B_API_KEY)
  assert.equal(seen.text, '42')
  assert.equal(seen.lines, 3)
  assert.ok(seen.spread > 400, `the lines came within ${seen.spread} ms`)
})

test('a page writes, reads and watches files, runs a command and types into a terminal', async () => {
  const seen = await page.evaluate(async (apiKey) => {
    const { Sandbox } = globalThis.cloche
    const box = await Sandbox.create('base', { apiKey, timeoutMs: 60_000 })
    try {
      const bytes = new Uint8Array(600_000).fill(9)
      await box.files.makeDir('seen')
      const watch = await box.files.watchDir('seen')
      await box.files.write('seen/big', new Blob([bytes]).stream())
      let event
      for await (event of watch) break
      const read = await box.files.read('seen/big', { format: 'bytes' })
      const { stdout } = await box.commands.run('echo $A', { envs: { A: 'b' } })
      const terminal = await box.pty.create({ cols: 80, rows: 24 })
      await terminal.sendStdin('echo $((40 + 2)); exit\n')
      let text = ''
      for await (const { data } of terminal) text += new TextDecoder().decode(data)
      return { event: event.name, size: read.length, same: read.every((byte) => byte === 9), stdout, text }
    } finally {
      await box.kill()
    }
  }, process.env.E2B_API_KEY)
  assert.deepEqual([seen.event, seen.size, seen.same, seen.stdout], ['big', 600_000, true, 'b\n'])
  assert.match(seen.text, /\r42\r\n/)
})

test('a page is told why a sandbox is gone', async () => {
  const reason = await page.evaluate(async (apiKey) => {
    const box = await globalThis.cloche.Sandbox.create('base', { apiKey, timeoutMs: 60_000 })
    await box.kill()
    return box.files.read('x').catch((error) => [error.name, error.endCause?.reason])
  }, process.env.E2B_API_KEY)
  assert.deepEqual(reason, ['SandboxNotRunningError', 'killed'])
})

test('a page that loads the package as modules fetches the chunk of a call when it is made', async () => {
  const calls = () => fetched.flatMap((url) => /(files_calls|git_commands)-/.exec(url)?.[1] ?? [])
  const [box, told] = await page.evaluate(async (apiKey) => {
    const { Sandbox } = await import('/package/index.js')
    globalThis.box = await Sandbox.create('base', { apiKey, timeoutMs: 60_000 })
    return [globalThis.box.sandboxId, (await globalThis.box.commands.run('echo here')).stdout]
  }, process.env.E2B_API_KEY)
  assert.ok(box)
  assert.equal(told, 'here\n')
  assert.deepEqual(calls(), [])
  const seen = await page.evaluate(async () => {
    const { box } = globalThis
    try {
      await box.files.write('a', 'b')
      await box.git.init('repo', { initialBranch: 'first' })
      return [await box.files.read('a'), (await box.git.status('repo')).currentBranch]
    } finally {
      await box.kill()
    }
  })
  assert.deepEqual(seen, ['b', 'first'])
  assert.deepEqual(calls(), ['files_calls', 'git_commands'])
})
