// SPDX-License-Identifier: Apache-2.0
// sdk_cell.mjs COUNT: 1+1 through the stock JavaScript SDK, ours and plain HTTP, in turns; see sdk_cell.py.
import http from 'node:http'
import { createRequire } from 'node:module'

const WARM = 30
const require = createRequire(new URL('../tests/e2e/js/package.json', import.meta.url))
const stockSdk = require('@e2b/code-interpreter')
const oursSdk = await import(new URL('../sdk/typescript/dist/index.js', import.meta.url))

const stock = await stockSdk.Sandbox.create({ timeoutMs: 120_000 })
const ours = await oursSdk.Sandbox.create({ timeoutMs: 120_000 })
const agent = new http.Agent({ keepAlive: true })
const base = new URL(process.env.E2B_SANDBOX_URL)
const headers = {
  'E2b-Sandbox-Id': stock.sandboxId, 'E2b-Sandbox-Port': '49999', 'X-Access-Token': stock.envdAccessToken ?? '',
  'Content-Type': 'application/json',
}

function raw() {
  return new Promise((done, fail) => {
    const asked = http.request(new URL('/execute', base), { method: 'POST', agent, headers }, (answer) => {
      const parts = []
      answer.on('data', (part) => parts.push(part))
      answer.on('error', fail)
      answer.on('end', () => {
        const lines = Buffer.concat(parts).toString().trim().split('\n').map((line) => JSON.parse(line))
        done({ text: lines.find((event) => event.type === 'result')?.text })
      })
    })
    asked.on('error', fail)
    asked.end('{"code":"1+1"}')
  })
}

const runs = { stock_ms: () => stock.runCode('1+1'), ours_ms: () => ours.runCode('1+1'), raw_ms: raw }
const samples = { stock_ms: [], ours_ms: [], raw_ms: [] }
for (let turn = 0; turn < WARM + Number(process.argv[2]); turn++) {
  for (const [name, run] of Object.entries(runs)) {
    const began = performance.now()
    const { text } = await run()
    const took = performance.now() - began
    if (text !== '2') throw new Error(`${name}: 1+1 gave ${text}`)
    if (turn >= WARM) samples[name].push(took)
  }
}
await stock.kill()
await ours.kill()
console.log(JSON.stringify(samples))
process.exit(0)
