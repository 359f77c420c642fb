// SPDX-License-Identifier: Apache-2.0
// The first moment of truth: the stock code-interpreter SDK, from create to kill.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { inflateSync } from 'node:zlib'
import { CommandExitError, Sandbox } from '@e2b/code-interpreter'
import { sharedCell } from '../support/box.mjs'

const root = join(import.meta.dirname, '../../../..')
const cell = sharedCell()

const SAID = `x is 2
table columns: {"a":[1,2],"b":[3,4]}
table is html: true
chart type: line
error: ZeroDivisionError - division by zero
traceback has the line: true
file: hello from outside
command: 18 bytes, exit code 0
listed: true
running after kill: false
`

// Width, height and number of pixel bytes of a PNG, inflated for real.
function measure(png) {
  assert.equal(png.subarray(0, 8).toString('latin1'), '\x89PNG\r\n\x1a\n')
  const [width, height] = [png.readUInt32BE(16), png.readUInt32BE(20)]
  const data = []
  for (let at = 8; at < png.length; ) {
    const size = png.readUInt32BE(at)
    if (png.toString('latin1', at + 4, at + 8) === 'IDAT') data.push(png.subarray(at + 8, at + 8 + size))
    at += 12 + size
  }
  return { width, height, bytes: inflateSync(Buffer.concat(data)).length }
}

test('the readme script prints what it promises', async () => {
  const dir = mkdtempSync(join(tmpdir(), 'cloche-quickstart.'))
  try {
    cpSync(join(root, 'scripts/quickstart.mjs'), join(dir, 'quickstart.mjs'))
    symlinkSync(join(import.meta.dirname, '../node_modules'), join(dir, 'node_modules'))
    const { stdout } = await promisify(execFile)(process.execPath, ['quickstart.mjs'], {
      cwd: dir,
      timeout: 100_000,
    })
    assert.equal(stdout, SAID)
    const { width, height, bytes } = measure(readFileSync(join(dir, 'chart.png')))
    assert.ok(width > 200)
    assert.ok(bytes >= width * height * 3)
  } finally {
    rmSync(dir, { recursive: true })
  }
})

test('state lives between cells', async () => {
  assert.equal((await cell.it.runCode('x = 1')).text, undefined)
  assert.equal((await cell.it.runCode('x+=1; x')).text, '2')
})

test('a pandas table has html, text and data', async () => {
  const { results } = await cell.it.runCode("import pandas as pd\npd.DataFrame({'a': [1, 2]})")
  assert.ok(results[0].isMainResult)
  assert.match(results[0].html, /<table/)
  assert.deepEqual(results[0].data, { a: [1, 2] })
})

test('an exception has name, value and traceback', async () => {
  const { error } = await cell.it.runCode("raise KeyError('missing')")
  assert.equal(error.name, 'KeyError')
  assert.equal(error.value, "'missing'")
  assert.match(error.traceback, /raise KeyError/)
})

test('files and commands see the same disk', async () => {
  await cell.it.files.write('/home/user/js.txt', 'from outside')
  assert.equal(await cell.it.files.read('/home/user/js.txt'), 'from outside')
  assert.equal((await cell.it.commands.run('cat js.txt')).stdout, 'from outside')
  await assert.rejects(cell.it.commands.run('exit 7'), (error) => {
    assert.ok(error instanceof CommandExitError)
    return error.exitCode === 7
  })
})

test('list shows a box while it lives', async () => {
  const listed = async () => {
    const pages = Sandbox.list()
    const found = []
    while (pages.hasNext) found.push(...(await pages.nextItems()))
    return found.map((item) => item.sandboxId)
  }
  const box = await Sandbox.create({ timeoutMs: 60_000 })
  try {
    assert.ok((await listed()).includes(box.sandboxId))
    assert.equal(await box.isRunning(), true)
  } finally {
    assert.equal(await Sandbox.kill(box.sandboxId), true)
  }
  assert.ok(!(await listed()).includes(box.sandboxId))
  assert.equal(await box.isRunning(), false)
  assert.equal(await Sandbox.kill(box.sandboxId), false)
})
