// SPDX-License-Identifier: Apache-2.0
// Volumes with the stock JavaScript client.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Volume } from 'e2b'

const name = () => `js-${randomBytes(6).toString('hex')}`

async function withVolume(use) {
  const volume = await Volume.create(name())
  try {
    await use(volume)
  } finally {
    await Volume.destroy(volume.volumeId)
  }
}

test('a volume is created, found, listed and destroyed', async () => {
  const made = await Volume.create(name())
  const again = await Volume.connect(made.volumeId)
  assert.equal(again.name, made.name)
  assert.ok((await Volume.list()).some((one) => one.volumeId === made.volumeId))
  assert.equal(await Volume.destroy(made.volumeId), true)
  assert.equal(await Volume.destroy(made.volumeId), false)
})

test('texts, bytes and streams come back', () =>
  withVolume(async (volume) => {
    await volume.writeFile('/a b.txt', 'Hello, wörld')
    assert.equal(await volume.readFile('/a b.txt'), 'Hello, wörld')
    const data = new Uint8Array(randomBytes(3 << 20))
    await volume.writeFile('/bytes', data)
    const back = await volume.readFile('/bytes', { format: 'bytes' })
    assert.ok(Buffer.from(back).equals(Buffer.from(data)))
    const stream = new ReadableStream({
      start(controller) {
        for (let i = 0; i < 20; i++) controller.enqueue(new Uint8Array(50_000).fill(65))
        controller.close()
      },
    })
    const info = await volume.writeFile('/stream', stream)
    assert.equal(info.size, 1_000_000)
    assert.equal(await volume.exists('/stream'), true)
    assert.equal(await volume.exists('/none'), false)
  }))

test('directories, owners and removal', () =>
  withVolume(async (volume) => {
    const made = await volume.makeDir('/d/e', { force: true, uid: 1000, gid: 1000, mode: 0o750 })
    assert.deepEqual([made.type, made.mode, made.uid], ['directory', 0o750, 1000])
    await volume.writeFile('/d/e/f', 'x', { mode: 0o600 })
    assert.deepEqual((await volume.list('/', { depth: 3 })).map((one) => one.path), ['/d', '/d/e', '/d/e/f'])
    const changed = await volume.updateMetadata('/d/e/f', { mode: 0o444 })
    assert.equal(changed.mode, 0o444)
    await assert.rejects(volume.writeFile('/d/e/f', 'y', { force: false }))
    await assert.rejects(volume.makeDir('/p/q'))
    await volume.remove('/d')
    assert.equal(await volume.exists('/d'), false)
    await assert.rejects(volume.remove('/d'))
  }))
