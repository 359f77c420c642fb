// SPDX-License-Identifier: Apache-2.0
// What the stock SDK does to a sandbox is told as events; users read them with plain HTTP.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox } from 'e2b'

async function events(id, query = 'orderAsc=true&limit=100') {
  const answer = await fetch(`${process.env.E2B_API_URL}/events/sandboxes/${id}?${query}`, {
    headers: { 'X-API-Key': process.env.E2B_API_KEY },
  })
  assert.equal(answer.status, 200)
  return answer.json()
}

const kinds = (told) => told.map((event) => event.type.replace('sandbox.lifecycle.', '')).join(' ')

test('a whole life is told in order', async () => {
  const box = await Sandbox.create('base', { timeoutMs: 60_000, metadata: { who: 'js' } })
  await box.setTimeout(90_000)
  await box.pause()
  await Sandbox.connect(box.sandboxId, { timeoutMs: 60_000 })
  await box.kill()
  const told = await events(box.sandboxId)
  assert.equal(kinds(told), 'created updated paused resumed killed')
  assert.ok(told.every((event) => event.eventData.sandbox_metadata.who === 'js'))
  const [first, , , second, last] = told.map((event) => event.sandboxExecutionId)
  assert.notEqual(first, second)
  assert.equal(second, last)
  assert.equal(told[4].eventData.kill_reason, 'request')
  const some = 'types=sandbox.lifecycle.paused&types=sandbox.lifecycle.killed'
  assert.equal(kinds(await events(box.sandboxId, some)), 'killed paused')
})
