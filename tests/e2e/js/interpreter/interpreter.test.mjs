// SPDX-License-Identifier: Apache-2.0
// runCode: results, streams, callbacks, contexts, interrupts, a killed box.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { InvalidArgumentError, NotFoundError, Sandbox, TimeoutError } from '@e2b/code-interpreter'
import { sharedCell, until, withBox } from '../support/box.mjs'

const cell = sharedCell()
const run = (code, opts) => cell.it.runCode(code, opts)

test('the last expression is the result', async () => {
  assert.equal((await run('x =1; x')).text, '1')
  assert.deepEqual((await run('1;')).results, [])
  assert.equal((await run("'hello'")).text, 'hello')
})

test('callbacks come exactly once', async () => {
  const seen = { out: [], err: [], results: [], errors: [] }
  const opts = {
    onStdout: (message) => seen.out.push(message.line),
    onStderr: (message) => seen.err.push(message.line),
    onResult: (result) => seen.results.push(result.text),
    onError: (error) => seen.errors.push(error.name),
  }
  await run("import sys; print('hello'); print('This is an error message', file=sys.stderr)\n1", opts)
  assert.deepEqual(seen, { out: ['hello\n'], err: ['This is an error message\n'], results: ['1'], errors: [] })
  await run('undefined_name', opts)
  assert.deepEqual(seen.errors, ['NameError'])
})

test('unicode survives every border', async () => {
  const text = 'é漢字😀\u2028\u0085'.repeat(3000)
  const done = await run(`print(${JSON.stringify(text)})`)
  assert.equal(done.logs.stdout.join(''), `${text}\n`)
})

test('cells are counted and shell lines run at home', () =>
  withBox(
    () => Sandbox.create({ timeoutMs: 60_000 }),
    async (box) => {
      assert.equal((await box.runCode('!pwd')).executionCount, 1)
      const done = await box.runCode('!pwd')
      assert.equal(done.executionCount, 2)
      assert.equal(done.logs.stdout.join('').trim(), '/home/user')
    },
  ))

test('a figure has png, text and an empty extra', async () => {
  const done = await run(`
    import matplotlib.pyplot as plt
    import numpy as np
    x = np.linspace(0, 20, 100)
    plt.plot(x, np.sin(x))
    plt.show()
  `)
  const [result] = done.results
  assert.ok(result.png)
  assert.ok(result.text)
  assert.deepEqual(result.extra, {})
  assert.deepEqual(result.formats(), ['png'])
})

test('a shown figure and an expression are two results', async () => {
  const seen = []
  await run('import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()\n5', {
    onResult: (result) => seen.push(result.isMainResult),
  })
  assert.deepEqual(seen, [false, true])
})

test('an image is a result however it is displayed', async () => {
  const make = "from PIL import Image\nim = Image.new('RGBA', (16, 16), 'red')\n"
  for (const code of ['im.show()', 'im', "im.save('test.png')"]) {
    const done = await run(make + code)
    assert.equal(done.error, undefined)
    assert.ok(done.results[0].png, code)
  }
})

test('contexts are listed and keep their state apart', async () => {
  const made = await cell.it.createCodeContext()
  assert.deepEqual((await cell.it.listCodeContexts()).at(-1), made)
  const rooted = await cell.it.createCodeContext({ cwd: '/root', language: 'python' })
  assert.deepEqual([rooted.cwd, rooted.language], ['/root', 'python'])
  const languages = (await cell.it.listCodeContexts()).map((context) => context.language)
  assert.ok(languages.includes('python') && languages.includes('javascript'))
  await run('only_here = 1', { context: made })
  const other = await run('only_here', { context: rooted })
  assert.equal(other.error.value, "name 'only_here' is not defined")
  await cell.it.restartCodeContext(made)
  const after = await run('only_here', { context: made })
  assert.equal(after.error.value, "name 'only_here' is not defined")
  await cell.it.removeCodeContext(made)
  assert.ok(!(await cell.it.listCodeContexts()).some((context) => context.id === made.id))
  await assert.rejects(run('1', { context: made }), NotFoundError)
  await assert.rejects(run('1', { context: rooted, language: 'python' }), InvalidArgumentError)
})

test('contexts of a box with closed traffic', () =>
  withBox(
    () => Sandbox.create({ timeoutMs: 60_000, network: { allowPublicTraffic: false } }),
    async (box) => {
      assert.equal((await box.runCode('x =1; x')).text, '1')
      const made = await box.createCodeContext()
      assert.equal((await box.listCodeContexts()).at(-1).id, made.id)
      await box.restartCodeContext(made)
      await box.removeCodeContext(made)
    },
  ))

test('an abandoned cell is interrupted', async () => {
  await run('kept = 1')
  await assert.rejects(run('import time; time.sleep(300)', { timeoutMs: 2000 }), TimeoutError)
  assert.equal((await run('1 + 1', { timeoutMs: 60_000 })).text, '2')
  assert.equal((await run('kept')).text, '1')
})

test('reconnecting finds the same kernel', async () => {
  await run('here = 7')
  const again = await Sandbox.connect(cell.it.sandboxId)
  assert.equal((await again.runCode('here')).text, '7')
})

test('a box killed during a cell is a timeout that says so', async () => {
  const doomed = await Sandbox.create({ timeoutMs: 60_000 })
  const running = doomed.runCode("import time; open('/tmp/begun', 'w').close(); time.sleep(300)")
  const verdict = assert.rejects(running, (error) => {
    assert.ok(error instanceof TimeoutError, String(error))
    return /sandbox was killed while the request was in progress/.test(error.message)
  })
  await until(() => doomed.files.exists('/tmp/begun'))
  await doomed.kill()
  await verdict
})
