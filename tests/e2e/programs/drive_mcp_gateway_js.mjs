// SPDX-License-Identifier: Apache-2.0
// The option `mcp` of npm's e2b, and MCP's own TypeScript client at the address that it gives.

import assert from 'node:assert/strict'
import { createRequire } from 'node:module'

const require = createRequire(`${process.env.CLOCHE_CLIENT}/`)
const { Sandbox } = require('e2b')
const { Client } = require('@modelcontextprotocol/sdk/client/index.js')
const { StreamableHTTPClientTransport } = require('@modelcontextprotocol/sdk/client/streamableHttp.js')

const box = await Sandbox.create({ mcp: { memory: {}, filesystem: { paths: ['/home/user'] } }, timeoutMs: 120_000 })
try {
  const url = new URL(box.getMcpUrl())
  const headers = { Authorization: `Bearer ${await box.getMcpToken()}` }
  const open = async () => {
    const client = new Client({ name: 'test', version: '1.0.0' })
    const transport = new StreamableHTTPClientTransport(url, { requestInit: { headers } })
    await client.connect(transport)
    return { client, transport }
  }
  const one = await open()
  const two = await open()
  assert.notEqual(one.transport.sessionId, two.transport.sessionId)
  const names = (await one.client.listTools()).tools.map((tool) => tool.name)
  assert(names.includes('create_entities') && names.includes('read_text_file'), names)
  await box.files.write('/home/user/a.txt', 'from outside')
  const read = await two.client.callTool({ name: 'read_text_file', arguments: { path: '/home/user/a.txt' } })
  assert.equal(read.content[0].text, 'from outside')
  await assert.rejects(two.client.callTool({ name: 'nothing', arguments: {} }), /nothing/)
  await one.transport.terminateSession()
  await one.client.close()
  const wrong = { requestInit: { headers: { Authorization: 'Bearer wrong' } } }
  const stranger = new Client({ name: 'test', version: '1.0.0' })
  await assert.rejects(stranger.connect(new StreamableHTTPClientTransport(url, wrong)), /401|token/i)
  await two.client.close()
} finally {
  await box.kill()
}
await assert.rejects(Sandbox.create({ mcp: { notion: {} }, timeoutMs: 60_000 }), /internalIntegrationToken is missing/)
