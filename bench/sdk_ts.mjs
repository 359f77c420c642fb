// SPDX-License-Identifier: Apache-2.0
// sdk_ts - what the TypeScript SDKs add to a call of the interpreter.
//
//   scripts/with-server node bench/sdk_ts.mjs [ROUNDS]
//
// In one run and in turn: runCode('1+1') by the stock SDK, by ours, and the same request by node:http on a connection
// that is kept open. Prints every sample in ms as `WHO MS`, then the medians and what each SDK adds to the plain
// request, with its part of the stock one's.

import { Agent, request } from 'node:http'
import { createRequire } from 'node:module'
import { Sandbox as Ours } from '../sdk/typescript/dist/index.js'

const stock = createRequire(new URL('../sdk/typescript/package.json', import.meta.url)).resolve('@e2b/code-interpreter')
const { Sandbox: Stock } = await import(stock)

const rounds = Number(process.argv[2] ?? 300)
const warm = 30
const agent = new Agent({ keepAlive: true, maxSockets: 1 })

function plain(box) {
  const { hostname, port } = new URL(process.env.E2B_SANDBOX_URL)
  const headers = {
    'Content-Type': 'application/json',
    'E2b-Sandbox-Id': box.sandboxId,
    'E2b-Sandbox-Port': '49999',
    'X-Access-Token': box.envdAccessToken,
  }
  const body = JSON.stringify({ code: '1+1' })
  return new Promise((resolve, reject) => {
    const sent = request({ hostname, port, path: '/execute', method: 'POST', headers, agent }, (answer) => {
      let text = ''
      answer.setEncoding('utf8')
      answer.on('data', (piece) => (text += piece))
      answer.on('end', () => resolve(text))
      answer.on('error', reject)
    })
    sent.on('error', reject)
    sent.end(body)
  })
}

async function timed(call) {
  const began = performance.now()
  await call()
  return performance.now() - began
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.floor(sorted.length / 2)]
}

const made = await Ours.create({ timeoutMs: 600_000 })
try {
  const same = await Stock.connect(made.sandboxId)
  const players = {
    plain: () => plain(made),
    stock: () => same.runCode('1+1'),
    ours: () => made.runCode('1+1'),
  }
  const samples = { plain: [], stock: [], ours: [] }
  for (let round = -warm; round < rounds; round++) {
    // Whoever comes after another pays for its garbage: the order goes round.
    const order = Object.entries(players)
    order.push(...order.splice(0, (round + warm) % order.length))
    for (const [name, call] of order) {
      const ms = await timed(call)
      if (round >= 0) samples[name].push(ms)
    }
  }
  for (const [name, values] of Object.entries(samples)) for (const ms of values) console.log(name, ms.toFixed(4))
  const middle = Object.fromEntries(Object.entries(samples).map(([name, values]) => [name, median(values)]))
  const added = { stock: middle.stock - middle.plain, ours: middle.ours - middle.plain }
  for (const [name, ms] of Object.entries(middle)) console.log(`# median ${name} ${ms.toFixed(3)} ms`)
  console.log(`# added stock ${added.stock.toFixed(3)} ms, ours ${added.ours.toFixed(3)} ms`)
  console.log(`# ours / stock ${(added.ours / added.stock).toFixed(2)}`)
} finally {
  agent.destroy()
  await made.kill()
}
