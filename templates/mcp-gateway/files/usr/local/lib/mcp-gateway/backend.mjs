// SPDX-License-Identifier: Apache-2.0
// backend.mjs - one MCP server behind the gateway: started, asked what it has, started again when it ends.
//
// All sessions share it. What it has (tools, prompts, resources) is read when it comes up and whenever it says that a
// list changed; `changed` is then called with the kind.
import { Client } from '@modelcontextprotocol/sdk/client/index.js'
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js'
import * as types from '@modelcontextprotocol/sdk/types.js'

const START_MS = 45_000 // a first answer; the clients give the whole command 60 s
const LIST_MAX = 2000 // entries of one kind
const BACKOFF_MS = [500, 1000, 2000, 5000, 10_000, 30_000]

const LISTS = {
  tools: ['tools/list', 'tools'],
  prompts: ['prompts/list', 'prompts'],
  resources: ['resources/list', 'resources'],
  templates: ['resources/templates/list', 'resourceTemplates'],
}

export class Backend {
  constructor(server, command, { log, changed, notify }) {
    Object.assign(this, { server, command, log, changed, notify })
    this.key = server.key
    this.have = { tools: [], prompts: [], resources: [], templates: [] }
    this.client = null
    this.failures = 0
    this.ending = false
    this.progress = new Map() // token given to the server -> who is told
    this.tokens = 0
  }

  /** Starts the server; rejects when it does not answer in time. */
  async start(signal) {
    const transport = new StdioClientTransport({
      ...this.command,
      env: { ...process.env, ...this.command.env },
      stderr: 'pipe',
    })
    let said = ''
    transport.stderr.on('data', (chunk) => {
      said = (said + chunk).slice(-2000)
      this.log(`${this.key}: ${String(chunk).trimEnd()}`)
    })
    const client = new Client({ name: 'mcp-gateway', version: '1.0.0' }, { capabilities: {} })
    try {
      await client.connect(transport, { timeout: START_MS, signal })
      this.follow(client)
      this.interceptProgress(transport)
      await this.readAll(client)
    } catch (error) {
      await client.close().catch(() => {})
      const tail = said.trim().split('\n').slice(-5).join('\n')
      throw new Error(`the server does not come up: ${error.message}${tail ? `; it said: ${tail}` : ''}`)
    }
    this.client = client
    this.failures = 0
    client.onclose = () => this.ended(client)
    client.onerror = (error) => this.log(`${this.key}: ${error.message}`)
    this.log(`${this.key}: up, ${this.have.tools.length} tools`)
  }

  // The SDK hands notifications over later than answers, so that progress which came with its answer would be lost.
  interceptProgress(transport) {
    const pass = transport.onmessage
    transport.onmessage = (message, extra) => {
      const told = message.method === 'notifications/progress' && this.progress.get(message.params?.progressToken)
      if (told) told(message.params)
      else pass(message, extra)
    }
  }

  follow(client) {
    const again = (kinds) => async () => {
      try {
        for (const kind of kinds) await this.read(client, kind)
      } catch (error) {
        this.log(`${this.key}: ${error.message}`)
      }
      this.changed(kinds[0])
    }
    client.setNotificationHandler(types.ToolListChangedNotificationSchema, again(['tools']))
    client.setNotificationHandler(types.PromptListChangedNotificationSchema, again(['prompts']))
    client.setNotificationHandler(types.ResourceListChangedNotificationSchema, again(['resources', 'templates']))
    client.setNotificationHandler(types.LoggingMessageNotificationSchema, (message) => this.notify(message))
    client.setNotificationHandler(types.ResourceUpdatedNotificationSchema, (message) => this.notify(message))
  }

  async readAll(client) {
    for (const kind of Object.keys(LISTS)) await this.read(client, kind)
  }

  async read(client, kind) {
    const can = client.getServerCapabilities() ?? {}
    if (!can[kind === 'templates' ? 'resources' : kind]) return
    const [method, field] = LISTS[kind]
    const found = []
    let cursor
    do {
      const params = cursor === undefined ? {} : { cursor }
      let page
      try {
        page = await client.request({ method, params }, types.ResultSchema, { timeout: START_MS })
      } catch (error) {
        if (error.code !== types.ErrorCode.MethodNotFound) throw error
        break
      }
      found.push(...(Array.isArray(page[field]) ? page[field] : []))
      cursor = page.nextCursor
    } while (cursor !== undefined && cursor !== null && found.length < LIST_MAX)
    this.have[kind] = found.slice(0, LIST_MAX)
  }

  ended(client) {
    if (this.client !== client) return
    this.client = null
    if (this.ending) return
    const wait = BACKOFF_MS[Math.min(this.failures++, BACKOFF_MS.length - 1)]
    this.log(`${this.key}: ended; starting it again in ${wait} ms`)
    setTimeout(() => this.restart(), wait)
  }

  async restart() {
    if (this.ending) return
    try {
      await this.start()
      this.changed('tools')
    } catch (error) {
      const wait = BACKOFF_MS[Math.min(this.failures++, BACKOFF_MS.length - 1)]
      this.log(`${this.key}: ${error.message}; trying again in ${wait} ms`)
      setTimeout(() => this.restart(), wait)
    }
  }

  /** Passes a request on. Progress and cancellation pass too. */
  async request(method, params, extra) {
    if (!this.client) {
      const message = `the server '${this.key}' is not running; it is being started again`
      throw new types.McpError(types.ErrorCode.InternalError, message)
    }
    const options = { signal: extra.signal, timeout: 2 ** 31 - 1 }
    const progressToken = params?._meta?.progressToken
    if (progressToken === undefined) return this.client.request({ method, params }, types.ResultSchema, options)
    const own = `gateway-${++this.tokens}`
    this.progress.set(own, (told) => {
      const notification = { method: 'notifications/progress', params: { ...told, progressToken } }
      extra.sendNotification(notification).catch(() => {})
    })
    try {
      const meant = { ...params, _meta: { ...params._meta, progressToken: own } }
      return await this.client.request({ method, params: meant }, types.ResultSchema, options)
    } finally {
      this.progress.delete(own)
    }
  }

  can(capability) {
    return Boolean(this.client?.getServerCapabilities()?.[capability])
  }

  async close() {
    this.ending = true
    await this.client?.close().catch(() => {})
  }
}
