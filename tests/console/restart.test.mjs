// SPDX-License-Identifier: Apache-2.0
// restart.test.mjs - the server is stopped and started again while the page is open: boxes live on, and the page says
// what happens and goes on by itself.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { cpSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { api, closeBrowser, openBrowser, openTab, runCell, signedIn } from './lab.mjs'

const dir = mkdtempSync(join(tmpdir(), 'cloche-console-restart.'))
let server

async function start(listen, env = {}) {
  const ready = join(dir, 'ready.json')
  rmSync(ready, { force: true })
  server = spawn(
    process.env.CLOCHE_BIN,
    [
      'serve',
      '--listen',
      listen,
      '--data',
      join(dir, 'data'),
      '--exit-with',
      String(process.pid),
      '--ready-file',
      ready,
    ],
    { stdio: 'ignore', env: { ...process.env, CLOCHE_DATA: join(dir, 'data'), ...env } },
  )
  for (let i = 0; i < 600 && !existsSync(ready); i++) {
    assert.equal(server.exitCode, null, 'the server ended')
    await pause(100)
  }
  return JSON.parse(readFileSync(ready, 'utf8'))
}

async function stop(signal) {
  if (!server || server.exitCode !== null) return
  const ended = once(server, 'exit')
  server.kill(signal)
  await ended
}

before(openBrowser)
after(async () => {
  await closeBrowser()
  await stop('SIGINT')
  rmSync(dir, { recursive: true, force: true })
})

test('a restart of the server is seen, survived, and the page goes on', async () => {
  const { url, apiKey: key } = await start('127.0.0.1:0')
  const box = await api('POST', '/v2/sandboxes', { templateID: 'code-interpreter-v1', timeout: 300 }, { url, key })
  const lab = await signedIn({ url, key })
  const { page } = lab
  await openTab(page, box, 'notebook')
  await (await runCell(page, 'kept = 41; kept')).locator('.outputs:has-text("41")').waitFor()
  await stop('SIGTERM')
  await page.waitForSelector('.offline')
  await start(new URL(url).host)
  await page.waitForSelector('.offline', { state: 'detached' })
  await page.waitForSelector('.pagehead .state:has-text("running")')
  const again = await runCell(page, 'kept + 1')
  await again.locator('.outputs:has-text("42")').waitFor()
  await lab.close()
})

test('where npm is out of reach the console is left out, and the build goes on', () => {
  const root = new URL('../..', import.meta.url).pathname
  const copy = join(dir, 'tree')
  for (const part of ['console/package.json', 'console/package-lock.json', 'scripts/console', 'scripts/deps'])
    cpSync(join(root, part), join(copy, part))
  const build = () =>
    spawnSync(join(copy, 'scripts/console'), [join(copy, 'build/console')], {
      encoding: 'utf8',
      env: { ...process.env, npm_config_registry: 'http://127.0.0.1:9/', npm_config_cache: join(dir, 'npm') },
    })
  const first = build()
  assert.equal(first.status, 0, first.stderr)
  assert.match(first.stderr, /the server is built without the web console/)
  assert.ok(!existsSync(join(copy, 'build/console')))
  assert.equal(build().stderr, '', 'it is not tried again at once')
})

test('a server without the console says so, and one where it is off has nothing at /', async () => {
  await stop('SIGINT')
  const without = await start('127.0.0.1:0', { CLOCHE_CONSOLE: join(dir, 'none') })
  const page = await fetch(without.url + '/')
  assert.equal(page.status, 200)
  assert.match(await page.text(), /built without its web console/)
  assert.equal((await fetch(without.url + '/health')).status, 200)
  await stop('SIGINT')
  const off = await start('127.0.0.1:0', { CLOCHE_CONSOLE: 'off' })
  assert.equal((await fetch(off.url + '/')).status, 404)
})
