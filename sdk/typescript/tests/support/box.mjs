// SPDX-License-Identifier: Apache-2.0
// Boxes of tests on a real server.

import { Sandbox } from '../../dist/index.js'

// A box that is gone when the test is over.
export async function box(test, template, opts = {}) {
  const made = await Sandbox.create(template, { timeoutMs: 120_000, ...opts })
  test.after(() => made.kill())
  return made
}

export const unique = () => Math.random().toString(36).slice(2, 10)

// Waits for something to become true, at most `seconds`.
export async function until(check, seconds = 20) {
  const end = Date.now() + seconds * 1000
  for (;;) {
    const value = await check()
    if (value) return value
    if (Date.now() > end) throw new Error(`it did not happen within ${seconds} s: ${check}`)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
}
