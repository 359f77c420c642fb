// SPDX-License-Identifier: Apache-2.0
// Pause, resume, fork and snapshot with the JavaScript SDK: what was in memory is there again.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import * as interpreter from '@e2b/code-interpreter'
import { Sandbox } from 'e2b'
import { generations, sleep, unique, until, withBox } from '../support/box.mjs'
import { e2b } from '../support/cli.mjs'

const cell = (opts = {}) => () => interpreter.Sandbox.create({ timeoutMs: 120_000, ...opts })
const counting = 'n=0; while :; do n=$((n+1)); echo $n > /tmp/next; mv /tmp/next /tmp/count; sleep 0.05; done'

async function countsOn(box) {
  const now = async () => Number((await box.commands.run('cat /tmp/count 2>/dev/null || echo 0')).stdout)
  const first = await now()
  await until(async () => (await now()) > first)
}

for (const [version, sdk] of Object.entries(generations)) {
  describe(`e2b ${version}`, () => {
    const make = (opts = {}) => () => sdk.Sandbox.create({ timeoutMs: 120_000, ...opts })

    test('processes, files and ports outlive a pause', () =>
      withBox(make({ envs: { GIVEN: 'yes' } }), async (box) => {
        const running = await box.commands.run(counting, { background: true, timeoutMs: 0 })
        await box.commands.run('python3 -m http.server 8910', { background: true, timeoutMs: 0, cwd: '/tmp' })
        await box.commands.run('until curl -s -o /dev/null http://127.0.0.1:8910/; do sleep 0.05; done')
        await box.files.write('kept.txt', 'kept')
        await countsOn(box)
        assert.equal(await box.pause(), true)
        assert.equal(await box.isRunning(), false)
        await sleep(500) // so long it stays paused
        const again = await sdk.Sandbox.connect(box.sandboxId, { timeoutMs: 60_000 })
        assert.equal(await again.files.read('kept.txt'), 'kept')
        await countsOn(again)
        assert.ok((await again.commands.list()).some((process) => process.pid === running.pid))
        const curl = 'curl -s -o /dev/null -w "%{http_code}" http://127.0.0.1:8910/'
        const said = await again.commands.run(`${curl}; echo $GIVEN`)
        assert.equal(said.stdout, '200yes\n')
        assert.equal((await box.commands.run('echo the old handle')).stdout, 'the old handle\n')
      }))

    test('time up means sleep, and a command wakes it with its processes', () =>
      withBox(
        make({ lifecycle: { onTimeout: 'pause', autoResume: true } }),
        async (box) => {
          await box.commands.run(counting, { background: true, timeoutMs: 0 })
          await box.setTimeout(0)
          const state = async () => (await sdk.Sandbox.getInfo(box.sandboxId)).state
          await until(async () => (await state()) === 'paused')
          await countsOn(box)
          assert.equal(await state(), 'running')
        },
      ))

    test('forks run on from where the source was', () =>
      withBox(make({ metadata: { of: 'source' } }), async (box) => {
        await box.commands.run(counting, { background: true, timeoutMs: 0 })
        await box.files.write('who.txt', 'source')
        const forks = await box.fork({ count: 2, timeoutMs: 60_000 })
        assert.equal(forks.length, 2)
        try {
          for (const [number, fork] of forks.entries()) {
            assert.ok(!(fork instanceof Error), fork)
            assert.equal(await fork.files.read('who.txt'), 'source')
            await fork.files.write('who.txt', String(number))
            await countsOn(fork)
            assert.deepEqual((await sdk.Sandbox.getInfo(fork.sandboxId)).metadata, { of: 'source' })
          }
          assert.equal(await box.files.read('who.txt'), 'source')
          assert.deepEqual(await Promise.all(forks.map((fork) => fork.files.read('who.txt'))), ['0', '1'])
          await countsOn(box)
        } finally {
          for (const fork of forks) if (!(fork instanceof Error)) await fork.kill()
        }
        await box.pause()
        await assert.rejects(box.fork())
      }))

    test('snapshots: made, listed, used, deleted', () =>
      withBox(make(), async (box) => {
        await box.commands.run(counting, { background: true, timeoutMs: 0 })
        await box.files.write('kept.txt', 'then')
        const name = `js-${unique()}`
        const plain = await box.createSnapshot()
        const named = await box.createSnapshot({ name })
        assert.match(plain.snapshotId, /^[a-z0-9]{20}:default$/)
        assert.ok(named.snapshotId.endsWith(`/${name}:default`))
        const pages = box.listSnapshots({ limit: 1 })
        const seen = []
        while (pages.hasNext) seen.push(...(await pages.nextItems()))
        assert.deepEqual(seen.map((item) => item.snapshotId), [named.snapshotId, plain.snapshotId])
        await box.files.write('kept.txt', 'now')
        for (const { snapshotId } of [plain, named])
          await withBox(
            () => sdk.Sandbox.create(snapshotId, { timeoutMs: 60_000 }),
            async (child) => {
              assert.equal(await child.files.read('kept.txt'), 'then')
              await countsOn(child)
            },
          )
        for (const { snapshotId } of [plain, named]) {
          assert.equal(await sdk.Sandbox.deleteSnapshot(snapshotId), true)
          assert.equal(await sdk.Sandbox.deleteSnapshot(snapshotId), false)
        }
        await assert.rejects(sdk.Sandbox.create(named.snapshotId))
      }))
  })
}

test('kernels keep their state', () =>
  withBox(cell(), async (box) => {
    await box.runCode('import numpy; x = numpy.arange(10)')
    await box.runCode('const list = [1, 2]; globalThis.n = 40', { language: 'javascript' })
    await box.runCode('let typed: number = 5', { language: 'typescript' })
    await box.pause()
    await box.connect()
    assert.equal((await box.runCode('int(x.sum())')).text, '45')
    assert.equal((await box.runCode('n + list.length', { language: 'javascript' })).text, '42')
    assert.equal((await box.runCode('typed + 1', { language: 'typescript' })).text, '6')
  }))

test('a running cell is cut for the client and goes on in the box', () =>
  withBox(cell(), async (box) => {
    let begun = false
    const code = 'import time\nprint("begun")\ntotal = 0\nfor i in range(150):\n    total += i\n    time.sleep(0.05)'
    const cut = assert.rejects(box.runCode(code, { onStdout: () => (begun = true) }))
    await until(() => begun)
    await box.pause()
    await cut
    await box.connect()
    assert.equal((await box.runCode('total')).text, String((149 * 150) / 2))
  }))

test('forked kernels do not draw the same', () =>
  withBox(cell(), async (box) => {
    await box.runCode('import random; random.seed(3); shared = [0]')
    await box.runCode('Math.random()', { language: 'javascript' })
    const forks = await box.fork({ count: 2, timeoutMs: 60_000 })
    try {
      const python = []
      const node = []
      for (const one of [box, ...forks]) {
        assert.equal((await one.runCode('shared.append(1); len(shared)')).text, '2')
        python.push((await one.runCode('random.random()')).text)
        node.push((await one.runCode('crypto.randomUUID()', { language: 'javascript' })).text)
      }
      assert.equal(new Set(python).size, 3, python.join())
      assert.equal(new Set(node).size, 3, node.join())
    } finally {
      for (const fork of forks) if (!(fork instanceof Error)) await fork.kill()
    }
  }))

test('a pause without memory keeps files only', () =>
  withBox(
    () => Sandbox.create({ timeoutMs: 60_000 }),
    async (box) => {
      await box.files.write('kept.txt', 'kept')
      await box.commands.run('sleep 997', { background: true, timeoutMs: 0 })
      assert.equal(await box.pause({ keepMemory: false }), true)
      assert.equal(await box.isRunning(), false)
      await box.connect()
      assert.equal(await box.files.read('kept.txt'), 'kept')
      assert.equal((await box.commands.run("pgrep -fx 'sleep 997' || echo nobody")).stdout, 'nobody\n')
    },
  ))

test('the command line pauses, resumes and takes snapshots', () =>
  withBox(
    () => Sandbox.create({ timeoutMs: 60_000 }),
    async (box) => {
      await box.commands.run(counting, { background: true, timeoutMs: 0 })
      for (const command of ['pause', 'resume']) {
        const done = await e2b(['sandbox', command, box.sandboxId])
        assert.equal(done.code, 0, done.said)
      }
      await countsOn(box)
      const made = await e2b(['sandbox', 'snapshot', 'create', box.sandboxId])
      assert.equal(made.code, 0, made.said)
      const listed = await e2b(['sandbox', 'snapshot', 'list'])
      assert.equal(listed.code, 0, listed.said)
      const id = /[a-z0-9]{20}:default/.exec(made.said)?.[0]
      assert.ok(id, made.said)
      assert.ok(listed.said.includes(id.split(':')[0]), listed.said)
      assert.equal(await Sandbox.deleteSnapshot(id), true)
    },
  ))
