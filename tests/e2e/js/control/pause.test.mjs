// SPDX-License-Identifier: Apache-2.0
// Sleep and wake with both generations of the JavaScript SDK and the stock command line.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { Sandbox } from 'e2b'
import { generations, until, withBox } from '../support/box.mjs'
import { e2b } from '../support/cli.mjs'

for (const [version, sdk] of Object.entries(generations)) {
  describe(`e2b ${version}`, () => {
    const make = (opts = {}) => () => sdk.Sandbox.create({ timeoutMs: 60_000, ...opts })

    test('a paused box is not running, and connecting wakes it', () =>
      withBox(make(), async (box) => {
        await box.commands.run('echo kept > /tmp/kept')
        const running = await box.commands.run('sleep 300', { background: true })
        assert.equal(await box.pause(), true)
        assert.equal(await box.pause(), false)
        assert.equal(await box.isRunning(), false)
        assert.equal((await sdk.Sandbox.getInfo(box.sandboxId)).state, 'paused')
        const again = await sdk.Sandbox.connect(box.sandboxId)
        assert.equal(await again.isRunning(), true)
        assert.equal((await again.commands.run('cat /tmp/kept')).stdout, 'kept\n')
        const pids = (await again.commands.list()).map((process) => process.pid)
        assert.ok(pids.includes(running.pid))
        assert.equal((await box.commands.run('echo same handle')).stdout, 'same handle\n')
      }))

    test('a running command is cut with words about the sandbox', () =>
      withBox(make(), async (box) => {
        const running = await box.commands.run('sleep 300', { background: true })
        const cut = assert.rejects(running.wait())
        await box.pause()
        await cut
      }))

    test('time up means sleep, and a request wakes it', () =>
      withBox(
        make({ timeoutMs: 1000, lifecycle: { onTimeout: 'pause', autoResume: true } }),
        async (box) => {
          const state = async () => (await sdk.Sandbox.getInfo(box.sandboxId)).state
          await until(async () => (await state()) === 'paused', 5000)
          assert.equal((await box.commands.run('echo awake')).stdout, 'awake\n')
          assert.equal(await state(), 'running')
        },
      ))
  })
}

test('the command line pauses and resumes', () =>
  withBox(
    () => Sandbox.create({ timeoutMs: 60_000 }),
    async (box) => {
      const paused = await e2b(['sandbox', 'pause', box.sandboxId])
      assert.equal(paused.code, 0, paused.said)
      assert.equal(await box.isRunning(), false)
      const resumed = await e2b(['sandbox', 'resume', box.sandboxId])
      assert.equal(resumed.code, 0, resumed.said)
      assert.equal(await box.isRunning(), true)
    },
  ))
