// SPDX-License-Identifier: Apache-2.0
// Cells on a real server.
import assert from 'node:assert/strict'
import { before, after, test } from 'node:test'
import * as cloche from '../../dist/index.js'
import { rejection } from '../support/server.mjs'

let box
before(async () => (box = await cloche.Sandbox.create({ timeoutMs: 120_000 })))
after(() => box.kill())

test('cells share a kernel, give results, output and counts', async () => {
  await box.runCode('x = 20')
  const told = []
  const execution = await box.runCode('print("out"); import sys; print("err", file=sys.stderr); x + 1', {
    onStdout: (message) => told.push(['out', message.line, message.error]),
    onStderr: (message) => told.push(['err', message.line, message.error]),
    onResult: (result) => told.push(['result', result.text]),
  })
  assert.equal(execution.text, '21')
  assert.equal(execution.executionCount, 2)
  assert.deepEqual(execution.logs, { stdout: ['out\n'], stderr: ['err\n'] })
  assert.deepEqual(told.sort(), [
    ['err', 'err\n', true],
    ['out', 'out\n', false],
    ['result', '21'],
  ])
})

test('an exception is data', async () => {
  const { error } = await box.runCode('1 / 0')
  assert.equal(error.name, 'ZeroDivisionError')
  assert.match(error.traceback, /1 \/ 0/)
})

test('output is iterated over while the cell runs', async () => {
  const code = 'import time\nfor i in range(3):\n  print(i, flush=True)\n  time.sleep(0.3)\n"done"'
  const times = []
  const run = box.runCode(code, { stream: true })
  for await (const event of run) if (event.type === 'stdout') times.push(Date.now())
  assert.equal(times.length, 3)
  assert.ok(times[2] - times[0] > 400, 'the lines came all at once')
  assert.equal((await run.wait()).text, 'done')
})

test('a running cell is interrupted, and the kernel keeps its variables', async () => {
  await box.runCode('kept = 7')
  const run = box.runCode('import time\nprint("started", flush=True)\ntime.sleep(60)', { stream: true })
  for await (const event of run) {
    if (event.type !== 'stdout') continue
    assert.match(await run.id, /\S/)
    assert.equal(await run.interrupt(), true)
    // Leaving the loop would end the request as well; the rest is read by wait().
    for (;;) {
      const execution = await run.wait()
      assert.equal(execution.error.name, 'KeyboardInterrupt')
      break
    }
  }
  assert.equal((await box.runCode('kept')).text, '7')
  assert.equal(await box.interrupt(), false)
})

test('a cell that takes too long is stopped, and the next one runs', async () => {
  const error = await rejection(box.runCode('import time; time.sleep(60)', { timeoutMs: 500 }))
  assert.ok(error instanceof cloche.TimeoutError)
  assert.equal((await box.runCode('1 + 1', { timeoutMs: 20_000 })).text, '2')
})

test('contexts have variables, folders and languages of their own', async () => {
  const context = await box.createCodeContext({ cwd: '/tmp' })
  assert.deepEqual([context.language, context.cwd], ['python', '/tmp'])
  await box.runCode('mine = 1', { context })
  assert.equal((await box.runCode('mine')).error.name, 'NameError')
  assert.equal((await box.runCode('import os; os.getcwd()', { context })).text, '/tmp')
  await box.restartCodeContext(context)
  assert.equal((await box.runCode('mine', { context })).error.name, 'NameError')
  assert.ok((await box.listCodeContexts()).some(({ id }) => id === context.id))
  await box.removeCodeContext(context.id)
  assert.ok((await rejection(box.runCode('1', { context }))) instanceof cloche.NotFoundError)
  assert.equal((await box.runCode('1 + 2', { language: 'js' })).text, '3')
  const both = await rejection(box.runCode('1', { context, language: 'js' }))
  assert.ok(both instanceof cloche.InvalidArgumentError)
})

test('charts and tables are data', async () => {
  const table = await box.runCode("import pandas as pd; pd.DataFrame({'a': [1, 2]})")
  assert.deepEqual(table.results[0].data, { a: [1, 2] })
  assert.ok(table.results[0].formats().includes('html'))
  const figure = await box.runCode('import matplotlib.pyplot as plt; plt.bar(["a", "b"], [1, 2]); plt.show()')
  assert.equal(figure.results[0].chart.type, cloche.ChartType.BAR)
  assert.equal(figure.results[0].chart.elements.length, 2)
  assert.match(figure.results[0].png, /^iVBOR/)
})

test('variables of a cell are its own', async () => {
  const read = 'import os; os.environ.get("ONLY")'
  assert.equal((await box.runCode(read, { envs: { ONLY: 'here' } })).text, 'here')
  assert.equal((await box.runCode(read)).text, undefined)
})
