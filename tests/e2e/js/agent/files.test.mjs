// SPDX-License-Identifier: Apache-2.0
// files: read, write, list, info, move, remove, metadata, signed URLs.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { FileNotFoundError, FileType, InvalidArgumentError } from 'e2b'
import { sharedBox, unique } from '../support/box.mjs'

const box = sharedBox()
const LARGE = '0123456789'.repeat(23_000)

async function drained(stream) {
  const parts = []
  for await (const part of stream) parts.push(part)
  return Buffer.concat(parts)
}

test('text, bytes, blobs and streams come back as they were written', async () => {
  const { files } = box.it
  for (const content of ['', 'grüße\n漢字\0end', LARGE]) {
    const name = unique()
    const info = await files.write(name, content)
    assert.deepEqual(JSON.parse(JSON.stringify(info)), { name, path: `/home/user/${name}`, type: 'file' })
    assert.equal(await files.read(name), content)
    assert.equal(Buffer.from(await files.read(name, { format: 'bytes' })).toString(), content)
    assert.equal(await (await files.read(name, { format: 'blob' })).text(), content)
    assert.equal((await drained(await files.read(name, { format: 'stream' }))).toString(), content)
  }
})

test('every kind of data can be written', async () => {
  const { files } = box.it
  const name = unique()
  const bytes = Uint8Array.from({ length: 1000 }, (_, i) => i % 256)
  await files.write(name, bytes.buffer)
  assert.deepEqual(new Uint8Array(await files.read(name, { format: 'bytes' })), bytes)
  await files.write(name, new Blob(['blob']))
  assert.equal(await files.read(name), 'blob')
  await files.write(name, new Blob([LARGE]).stream())
  assert.equal(await files.read(name), LARGE)
})

test('many files in one call keep their order and paths', async () => {
  const { files } = box.it
  const dir = unique()
  const infos = await files.write([
    { path: `${dir}/one.txt`, data: '1' },
    { path: `/${dir}/0/two.txt`, data: '2' },
  ])
  assert.deepEqual(
    infos.map((info) => info.path),
    [`/home/user/${dir}/one.txt`, `/${dir}/0/two.txt`],
  )
  assert.equal(await files.read(`/${dir}/0/two.txt`), '2')
})

test('files are written and read with gzip', async () => {
  const name = unique()
  await box.it.files.write(name, LARGE, { gzip: true })
  assert.equal((await box.it.files.getInfo(name)).size, LARGE.length)
  assert.equal(await box.it.files.read(name, { gzip: true }), LARGE)
})

test('the user decides home and owner', async () => {
  const name = unique()
  const info = await box.it.files.write(name, 'x', { user: 'root' })
  assert.equal(info.path, `/root/${name}`)
  assert.equal((await box.it.files.getInfo(`/root/${name}`)).owner, 'root')
  await assert.rejects(box.it.files.read(name), FileNotFoundError)
})

test('a missing file is told as such', async () => {
  const name = unique()
  await assert.rejects(box.it.files.read(name), (error) => {
    assert.ok(error instanceof FileNotFoundError)
    return error.message.includes(`path '/home/user/${name}' does not exist`)
  })
  await assert.rejects(box.it.files.read(name, { format: 'stream' }), FileNotFoundError)
  await assert.rejects(box.it.files.getInfo(name), FileNotFoundError)
  await assert.rejects(box.it.files.list(name), FileNotFoundError)
  await assert.rejects(box.it.files.rename(name, `${name}2`), FileNotFoundError)
  await assert.rejects(box.it.files.read('/home/user'), InvalidArgumentError)
})

test('entries tell everything about themselves', async () => {
  const name = unique()
  await box.it.files.write(name, 'test')
  await box.it.commands.run(`ln -s ${name} ${name}.link`)
  const info = await box.it.files.getInfo(name)
  assert.equal(info.size, 4)
  assert.equal(info.mode, 0o644)
  assert.equal(info.permissions, '-rw-r--r--')
  assert.equal(info.owner, 'user')
  assert.equal(info.group, 'user')
  assert.equal(info.type, FileType.FILE)
  assert.equal(info.symlinkTarget, undefined)
  assert.equal(info.metadata, undefined)
  assert.ok(Math.abs(Date.now() - info.modifiedTime.getTime()) < 30_000)
  const link = await box.it.files.getInfo(`${name}.link`)
  assert.equal(link.symlinkTarget, `/home/user/${name}`)
  assert.equal(link.type, FileType.FILE)
})

test('directories are made, listed, moved and removed', async () => {
  const { files } = box.it
  const top = unique()
  assert.equal(await files.makeDir(`${top}/b/c`), true)
  assert.equal(await files.makeDir(`${top}/b/c`), false)
  await files.write(`${top}/a`, 'x')
  const names = async (depth) => (await files.list(top, { depth })).map((entry) => entry.path)
  const home = `/home/user/${top}`
  assert.deepEqual(await names(undefined), [`${home}/a`, `${home}/b`])
  assert.deepEqual(await names(2), [`${home}/a`, `${home}/b`, `${home}/b/c`])
  const moved = await files.rename(`${top}/a`, `${top}/z`)
  assert.deepEqual([moved.name, moved.path, moved.type], ['z', `${home}/z`, 'file'])
  assert.equal(await files.exists(`${top}/a`), false)
  await files.remove(top)
  assert.equal(await files.exists(top), false)
  await files.remove(top)
})

test('metadata travels with the file', async () => {
  const { files } = box.it
  const name = unique()
  const wanted = { author: 'me', kind: 'a b' }
  assert.deepEqual((await files.write(name, 'x', { metadata: wanted })).metadata, wanted)
  assert.deepEqual((await files.getInfo(name)).metadata, wanted)
  await files.write(name, 'x')
  assert.equal((await files.getInfo(name)).metadata, undefined)
})

test('signed urls work without any header', async () => {
  const name = unique()
  const form = new FormData()
  form.append('file', 'uploaded')
  const up = await fetch(await box.it.uploadUrl(name), { method: 'POST', body: form })
  assert.equal(up.status, 200)
  assert.deepEqual(await up.json(), [{ name, path: `/home/user/${name}`, type: 'file' }])
  const down = await fetch(await box.it.downloadUrl(name, { useSignatureExpiration: 60 }))
  assert.equal(await down.text(), 'uploaded')
  const forged = (await box.it.downloadUrl(name)).replace(name, 'other')
  assert.equal((await fetch(forged)).status, 401)
  const late = await box.it.downloadUrl(name, { useSignatureExpiration: -60 })
  assert.equal((await fetch(late)).status, 401)
})
