// SPDX-License-Identifier: Apache-2.0
// Why a sandbox is gone reaches people who use the stock SDK.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox } from 'e2b'
import { until } from '../support/box.mjs'

async function reason(box) {
  try {
    await box.files.read('/etc/hostname')
  } catch (error) {
    return error.message
  }
  return ''
}

test('a kill says that it was a request', async () => {
  const box = await Sandbox.create('base', { timeoutMs: 60_000 })
  await box.kill()
  assert.match(await reason(box), /was not found: it ended at \S+, killed: by request/)
})

test('a timeout names the time', async () => {
  const box = await Sandbox.create('base', { timeoutMs: 1_000 })
  await until(async () => !(await box.isRunning()), 20_000)
  assert.match(await reason(box), /was not found: it ended at \S+, timeout: its lifetime of 1 s was over/)
})
