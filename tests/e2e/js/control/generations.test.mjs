// SPDX-License-Identifier: Apache-2.0
// Both generations of the JavaScript SDK against the same server.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { generations, sharedBox, unique, until, withBox } from '../support/box.mjs'

for (const [version, sdk] of Object.entries(generations)) {
  describe(`e2b ${version}`, () => {
    const box = sharedBox(sdk)
    const { Sandbox } = sdk

    test('a box runs commands and keeps files', async () => {
      assert.equal((await box.it.commands.run('echo hi')).stdout, 'hi\n')
      await box.it.files.write('a.txt', 'x')
      assert.equal(await box.it.files.read('a.txt'), 'x')
      assert.equal(await box.it.isRunning(), true)
    })

    test('info tells what was asked', () => {
      const run = unique()
      return withBox(
        () => Sandbox.create({ timeoutMs: 90_500, metadata: { run }, envs: { A: 'b' } }),
        async (made) => {
          const info = await made.getInfo()
          assert.equal(info.sandboxId, made.sandboxId)
          assert.deepEqual(info.metadata, { run })
          assert.equal(info.name, 'base')
          assert.equal(info.state, 'running')
          const lives = info.endAt.getTime() - info.startedAt.getTime()
          assert.ok(Math.abs(lives - 91_000) < 1500, String(lives))
          assert.equal((await made.commands.run('echo $A')).stdout, 'b\n')
        },
      )
    })

    test('connect keeps the box and never shortens it', async () => {
      const before = (await box.it.getInfo()).endAt
      const again = await Sandbox.connect(box.it.sandboxId, { timeoutMs: 10_000 })
      assert.equal((await again.commands.run('echo same')).stdout, 'same\n')
      assert.equal((await box.it.getInfo()).endAt.getTime(), before.getTime())
    })

    test('setTimeout moves the end', async () => {
      await box.it.setTimeout(200_000)
      const left = (await box.it.getInfo()).endAt.getTime() - Date.now()
      assert.ok(Math.abs(left - 200_000) < 2000, String(left))
    })

    test('a box that is not there', async () => {
      const ghost = 'inonexistent00000000x'
      assert.equal(await Sandbox.kill(ghost), false)
      const notFound = (error) => /NotFound/.test(error.name) || error instanceof sdk.NotFoundError
      await assert.rejects(Sandbox.connect(ghost), notFound)
      await assert.rejects(Sandbox.setTimeout(ghost, 1000), notFound)
      await assert.rejects(Sandbox.getInfo(ghost), notFound)
    })

    test('a wrong key is an authentication error', async () => {
      await assert.rejects(
        Sandbox.create({ apiKey: `e2b_${'0'.repeat(40)}` }),
        sdk.AuthenticationError,
      )
    })

    test('an unknown template is told by name', async () => {
      await assert.rejects(Sandbox.create('no-such-template'), /no-such-template/)
    })

    test('lists page by page, filtered by metadata', async () => {
      const run = unique()
      const metadata = { run, 'odd key': 'x&y=z ü' }
      const first = await Sandbox.create({ timeoutMs: 60_000, metadata })
      const second = await Sandbox.create({ timeoutMs: 60_000, metadata })
      try {
        const pages = Sandbox.list({ query: { metadata }, limit: 1 })
        const seen = []
        while (pages.hasNext) seen.push((await pages.nextItems()).map((item) => item.sandboxId))
        assert.deepEqual(seen, [[second.sandboxId], [first.sandboxId]])
      } finally {
        await first.kill()
        await second.kill()
      }
    })

    test('metrics come within half a minute', async () => {
      const metrics = await until(async () => {
        const found = await box.it.getMetrics()
        return found.length > 0 && found
      }, 30_000)
      const { cpuCount, memUsed, memTotal, diskTotal, timestamp } = metrics.at(-1)
      assert.ok(cpuCount >= 1)
      assert.ok(memUsed > 0 && memUsed < memTotal)
      assert.ok(diskTotal > 0)
      assert.ok(timestamp instanceof Date)
    })

    test('a box dies at its time', async () => {
      const made = await Sandbox.create({ timeoutMs: 2000 })
      await until(async () => !(await made.isRunning()), 5000)
      assert.equal(await made.kill(), false)
    })
  })
}
