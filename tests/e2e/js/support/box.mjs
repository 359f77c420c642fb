// SPDX-License-Identifier: Apache-2.0
// Boxes for a whole file, and small things every suite needs.

import { after, before } from 'node:test'
import { randomUUID } from 'node:crypto'
import * as interpreter from '@e2b/code-interpreter'
import * as current from 'e2b'
import * as older from 'e2b-v1'

// The SDK generations that must work at the same time: 2.51 creates and
// connects on the v2 paths, 2.45 on the first ones.
export const generations = { '2.51': current, 2.45: older }

// Makes one box before the file's tests and kills it after them. The object
// that is returned gets the box as its member `it` once the tests run.
export function shared(make) {
  const held = {}
  before(async () => {
    held.it = await make()
  })
  after(async () => {
    await held.it?.kill()
  })
  return held
}

export const sharedBox = (sdk = current) =>
  shared(() => sdk.Sandbox.create({ timeoutMs: 300_000 }))

export const sharedCell = (opts = {}) =>
  shared(() => interpreter.Sandbox.create({ timeoutMs: 300_000, ...opts }))

export const unique = () => randomUUID().replaceAll('-', '').slice(0, 12)

export const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

// The first truthy answer of probe; throws when none comes in time.
export async function until(probe, ms = 60_000) {
  const end = Date.now() + ms
  for (;;) {
    const answer = await probe()
    if (answer) return answer
    if (Date.now() > end) throw new Error(`did not happen within ${ms} ms`)
    await sleep(50)
  }
}

// Runs body with a box of its own.
export async function withBox(make, body) {
  const box = await make()
  try {
    return await body(box)
  } finally {
    await box.kill()
  }
}
