// SPDX-License-Identifier: Apache-2.0
// What the stock JavaScript SDK waits for: a warm cell and a create. Prints one JSON object of samples in milliseconds.
import { createRequire } from 'node:module'

const require = createRequire(new URL('../tests/e2e/js/package.json', import.meta.url))
const { Sandbox } = require('@e2b/code-interpreter')

async function timed(count, work) {
  const samples = []
  for (let i = 0; i < count; i++) {
    const began = performance.now()
    await work()
    samples.push(performance.now() - began)
  }
  return samples
}

const box = await Sandbox.create({ timeoutMs: 120_000 })
const cell = async () => {
  const done = await box.runCode('1+1')
  if (done.text !== '2') throw new Error(`1+1 gave ${done.text}`)
}
await timed(100, cell)
const run = await timed(500, cell)
await box.kill()

const create = []
for (let i = 0; i < 15; i++) {
  await new Promise((done) => setTimeout(done, 150))
  const began = performance.now()
  const one = await Sandbox.create({ timeoutMs: 60_000 })
  create.push(performance.now() - began)
  await one.kill()
}
console.log(JSON.stringify({ run_ms: run, create_ms: create }))
