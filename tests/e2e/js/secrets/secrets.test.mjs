// SPDX-License-Identifier: Apache-2.0
// Secrets by the stock SDK.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Secret, SecretNotFoundError } from 'e2b'
import { unique } from '../support/box.mjs'

test('a secret is made, changed, listed and deleted', async () => {
  const name = `Key-${unique()}`
  const made = await Secret.create(name, 'first', { metadata: { owner: 'me' } })
  assert.equal(made.name, name.toLowerCase())
  assert.equal(made.version, 1)
  assert.deepEqual(made.metadata, { owner: 'me' })
  const changed = await Secret.update(made.secretId, 'second')
  assert.equal(changed.version, 2)
  assert.deepEqual(changed.metadata, { owner: 'me' })
  assert.deepEqual((await Secret.update(name, 'third', { metadata: {} })).metadata, {})
  const pages = Secret.list({ limit: 1 })
  const names = []
  while (pages.hasNext) names.push(...(await pages.nextItems()).map((s) => s.name))
  assert.ok(names.includes(made.name))
  assert.equal(await Secret.exists(name), true)
  assert.equal(await Secret.destroy(name), true)
  assert.equal(await Secret.destroy(name), false)
  assert.equal(await Secret.exists(name), false)
  await assert.rejects(Secret.getInfo(name), SecretNotFoundError)
})

test('a name that is taken is an error that does not repeat the value', async () => {
  const name = `Key-${unique()}`
  await Secret.create(name, 'a')
  await assert.rejects(Secret.create(name, 'h1dden'), (error) => !String(error.message).includes('h1dden'))
  await Secret.destroy(name)
})
