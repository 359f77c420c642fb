// SPDX-License-Identifier: Apache-2.0
// The server's own MCP tools, with MCP's TypeScript client: `cloche mcp` on standard input and output, and /mcp.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const require = createRequire(`${process.env.CLOCHE_CLIENT}/`)
const { Client } = require('@modelcontextprotocol/sdk/client/index.js')
const { StdioClientTransport } = require('@modelcontextprotocol/sdk/client/stdio.js')
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js')

const { CLOCHE_BIN, E2B_API_URL, E2B_API_KEY, PATH } = process.env
const texts = (result) => result.content.filter((part) => part.type === 'text').map((part) => part.text).join('\n')
const call = (client, name, args, options) => client.callTool({ name, arguments: args }, undefined, options)

async function open(transport) {
  const client = new Client({ name: 'test', version: '1.0.0' })
  await client.connect(transport)
  return client
}

const stdio = () => open(new StdioClientTransport({
  command: CLOCHE_BIN, args: ['mcp'], env: { CLOCHE_URL: E2B_API_URL, CLOCHE_KEY: E2B_API_KEY, PATH },
}))

async function work(client) {
  const { tools } = await client.listTools()
  assert.equal(tools.length, 12)
  assert.equal(texts(await call(client, 'run_code', { code: '6 * 7' })), '42')
  const plot = await call(client, 'run_code', {
    code: "import matplotlib.pyplot as plt\nplt.bar(['a', 'b'], [1, 2]); plt.show()",
  })
  assert(plot.content.some((part) => part.type === 'image' && part.mimeType === 'image/png'))
  const chart = plot.structuredContent.results.find((result) => result.chart).chart
  assert.equal(chart.type, 'bar')
  const heard = []
  const slow = await call(client, 'run_command', { command: 'for i in 1 2 3; do echo step $i; sleep 0.3; done' },
    { onprogress: (note) => heard.push(note.message) })
  assert(texts(slow).includes('step 3') && heard.some((note) => note.includes('step 1')), heard)
  const stop = new AbortController()
  const loop = { code: 'import time\nwhile True: time.sleep(0.1)' }
  const endless = call(client, 'run_code', loop, { signal: stop.signal })
  setTimeout(() => stop.abort('enough'), 1000)
  await assert.rejects(endless, /enough|abort/i)
  assert.equal(texts(await call(client, 'run_code', { code: '1 + 1' })), '2') // the interpreter was interrupted
  const built = await call(client, 'build_template', {
    name: 'mcp-built', dockerfile: 'FROM e2bdev/base\nRUN echo built > /etc/built\n', timeout: 200,
  })
  assert(!built.isError, texts(built))
  const made = await call(client, 'create_sandbox', { template: 'mcp-built', internet: false })
  const read = await call(client, 'read_file', { path: '/etc/built' })
  assert.equal(texts(read), 'built\n')
  await call(client, 'kill_sandbox', { sandbox: made.structuredContent.sandbox })
}

const one = await stdio()
await work(one)
await one.close()

const headers = { Authorization: `Bearer ${E2B_API_KEY}` }
const transport = new StreamableHTTPClientTransport(new URL(`${E2B_API_URL}/mcp`), { requestInit: { headers } })
const two = await open(transport)
await work(two)
await transport.terminateSession()
await two.close()
