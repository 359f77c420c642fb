// SPDX-License-Identifier: Apache-2.0
// files.watchDir: streamed events, relative names, entries.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FileNotFoundError, FilesystemEventType, SandboxError } from 'e2b'
import { sharedBox, sleep, unique, until } from '../support/box.mjs'

const box = sharedBox()
const { CREATE, WRITE, CHMOD, REMOVE, RENAME } = FilesystemEventType

async function watching(path, opts, body) {
  const events = []
  const handle = await box.it.files.watchDir(path, (event) => void events.push(event), opts)
  const pairs = async (wanted) => {
    await until(() => events.length >= wanted).catch(() => {})
    await sleep(150) // one event too many has this long to come
    return events.map((event) => [event.type, event.name])
  }
  try {
    await body({ events, pairs })
  } finally {
    await handle.stop()
  }
}

test('an upload of a new file is three events', async () => {
  const dir = unique()
  await box.it.files.makeDir(dir)
  await watching(dir, {}, async ({ pairs }) => {
    await box.it.files.write(`${dir}/new.txt`, 'x')
    assert.deepEqual(await pairs(3), [
      [CREATE, 'new.txt'],
      [CHMOD, 'new.txt'],
      [WRITE, 'new.txt'],
    ])
  })
})

test('recursive names are relative and new directories are watched', async () => {
  const dir = unique()
  await box.it.files.makeDir(`${dir}/nested`)
  await watching(dir, { recursive: true }, async ({ pairs }) => {
    await box.it.files.write(`${dir}/nested/file`, 'x')
    assert.deepEqual((await pairs(3))[0], [CREATE, 'nested/file'])
    await box.it.files.makeDir(`${dir}/later`)
    await pairs(4)
    await box.it.files.write(`${dir}/later/file`, 'x')
    const seen = await pairs(6)
    assert.ok(seen.some(([type, name]) => type === WRITE && name === 'later/file'))
  })
})

test('removing and renaming are told as events', async () => {
  const dir = unique()
  await box.it.commands.run(`mkdir ${dir}; cd ${dir}; touch a b`)
  await watching(dir, {}, async ({ pairs }) => {
    await box.it.files.remove(`${dir}/a`)
    await box.it.files.rename(`${dir}/b`, `${dir}/c`)
    assert.deepEqual(await pairs(3), [
      [REMOVE, 'a'],
      [RENAME, 'b'],
      [CREATE, 'c'],
    ])
  })
})

test('entries come when asked', async () => {
  const dir = unique()
  await box.it.files.makeDir(dir)
  await watching(dir, { includeEntry: true }, async ({ events, pairs }) => {
    await box.it.files.write(`${dir}/file`, 'x')
    await pairs(3)
    const write = events.find((event) => event.type === WRITE)
    assert.equal(write.entry.name, 'file')
    assert.equal(write.entry.path, `/home/user/${dir}/file`)
    assert.equal(write.entry.type, 'file')
  })
})

test('only directories that exist can be watched', async () => {
  const name = unique()
  await assert.rejects(
    box.it.files.watchDir(name, () => {}),
    FileNotFoundError,
  )
  await box.it.files.write(name, 'x')
  await assert.rejects(
    box.it.files.watchDir(name, () => {}),
    SandboxError,
  )
})
