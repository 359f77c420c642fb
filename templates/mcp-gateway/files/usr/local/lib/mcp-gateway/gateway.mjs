// SPDX-License-Identifier: Apache-2.0
// gateway.mjs - the gateway's process: the servers of its configuration behind one address, http://HOST:50005/mcp.
//
// Started by main.mjs: the checked configuration and the token come on descriptor 0, and one line of JSON goes out on
// descriptor 3, {"ready": true} or {"error": "..."}. Every request must carry the token. A client has a session of its
// own; the servers are shared by all, so what one of them asks of its client (sampling, elicitation, roots) is refused.
import { createHash, randomUUID, timingSafeEqual } from 'node:crypto'
import { appendFileSync, readFileSync, renameSync, rmSync, statSync, writeFileSync, writeSync } from 'node:fs'
import http from 'node:http'
import { Server } from '@modelcontextprotocol/sdk/server/index.js'
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js'
import * as types from '@modelcontextprotocol/sdk/types.js'
import { Backend } from './backend.mjs'
import { fetchServer } from './fetch.mjs'

const PORT = 50005
const LOG = '/var/log/mcp-gateway/gateway.log'
const LOG_MAX = 8 << 20
const PID = '/run/mcp-gateway.pid'
const SESSIONS_MAX = 64
const SESSION_IDLE_MS = 3600_000
const BODY_MAX = 32 << 20
const STATUS_FD = 3

const { servers, token } = JSON.parse(readFileSync(0, 'utf8'))
const expected = createHash('sha256').update(`Bearer ${token}`).digest()
const sessions = new Map() // id -> { server, transport, used }
const backends = []

let logged = (() => {
  try {
    return statSync(LOG).size
  } catch {
    return 0
  }
})()
function log(text) {
  const line = `${new Date().toISOString()} ${text}\n`
  try {
    if (logged + line.length > LOG_MAX) {
      renameSync(LOG, `${LOG}.1`)
      logged = 0
    }
    appendFileSync(LOG, line)
    logged += line.length
  } catch {
    // a full disk must not end the gateway
  }
}

function tell(status) {
  try {
    writeSync(STATUS_FD, `${JSON.stringify(status)}\n`)
  } catch {
    // the command that started us is gone
  }
}

// --- one list of what all servers have ---------------------------------------------------------

/** Names as clients see them. A name that an earlier server has too gets its server's key in front. */
function named(kind) {
  const result = new Map()
  for (const backend of backends)
    for (const entry of backend.have[kind]) {
      let name = entry.name
      if (result.has(name)) name = `${backend.key.replace(/[^A-Za-z0-9_-]+/g, '_')}_${entry.name}`
      if (!result.has(name)) result.set(name, { backend, original: entry.name, shown: { ...entry, name } })
    }
  return result
}

function find(kind, name) {
  const entry = named(kind).get(name)
  if (!entry) throw new types.McpError(types.ErrorCode.InvalidParams, `there is no ${kind.slice(0, -1)} '${name}'`)
  return entry
}

/** Who has a resource: the server that lists it, else the first whose templates may name it, tried in turn. */
async function readResource(params, extra) {
  const owner = backends.find((backend) => backend.have.resources.some((resource) => resource.uri === params.uri))
  if (owner) return owner.request('resources/read', params, extra)
  for (const backend of backends.filter((candidate) => candidate.have.templates.length))
    try {
      return await backend.request('resources/read', params, extra)
    } catch (error) {
      log(`${backend.key}: ${error.message}`)
    }
  throw new types.McpError(types.ErrorCode.InvalidParams, `there is no resource '${params.uri}'`)
}

function complete(params, extra) {
  const { ref } = params
  if (ref.type === 'ref/prompt') {
    const { backend, original } = find('prompts', ref.name)
    return backend.request('completion/complete', { ...params, ref: { ...ref, name: original } }, extra)
  }
  const owner = backends.find((backend) => backend.have.templates.some((template) => template.uriTemplate === ref.uri))
  if (!owner) throw new types.McpError(types.ErrorCode.InvalidParams, `there is no resource template '${ref.uri}'`)
  return owner.request('completion/complete', params, extra)
}

async function setLevel(params, extra) {
  const loud = backends.filter((backend) => backend.can('logging'))
  await Promise.allSettled(loud.map((backend) => backend.request('logging/setLevel', params, extra)))
  return {}
}

function sessionServer() {
  const capabilities = {
    tools: { listChanged: true },
    prompts: { listChanged: true },
    resources: { listChanged: true },
    completions: {},
    logging: {},
  }
  const server = new Server({ name: 'mcp-gateway', version: '1.0.0' }, { capabilities })
  const list = (kind) => () => ({ [kind]: [...named(kind).values()].map((entry) => entry.shown) })
  const pass = (kind, method) => ({ params }, extra) => {
    const { backend, original } = find(kind, params.name)
    return backend.request(method, { ...params, name: original }, extra)
  }
  server.setRequestHandler(types.ListToolsRequestSchema, list('tools'))
  server.setRequestHandler(types.ListPromptsRequestSchema, list('prompts'))
  server.setRequestHandler(types.ListResourcesRequestSchema, () =>
    ({ resources: backends.flatMap((backend) => backend.have.resources) }))
  server.setRequestHandler(types.ListResourceTemplatesRequestSchema, () =>
    ({ resourceTemplates: backends.flatMap((backend) => backend.have.templates) }))
  server.setRequestHandler(types.CallToolRequestSchema, pass('tools', 'tools/call'))
  server.setRequestHandler(types.GetPromptRequestSchema, pass('prompts', 'prompts/get'))
  server.setRequestHandler(types.ReadResourceRequestSchema, ({ params }, extra) => readResource(params, extra))
  server.setRequestHandler(types.CompleteRequestSchema, ({ params }, extra) => complete(params, extra))
  server.setRequestHandler(types.SetLevelRequestSchema, ({ params }, extra) => setLevel(params, extra))
  server.onerror = (error) => log(`session: ${error.message}`)
  return server
}

const CHANGED = { tools: 'sendToolListChanged', prompts: 'sendPromptListChanged', resources: 'sendResourceListChanged' }
function changed(kind) {
  for (const { server } of sessions.values()) server[CHANGED[kind]]().catch(() => {})
}

function notify(message) {
  for (const { server } of sessions.values()) server.notification(message).catch(() => {})
}

// --- HTTP --------------------------------------------------------------------------------------

function authorized(request) {
  const given = createHash('sha256').update(request.headers.authorization ?? '').digest()
  return timingSafeEqual(given, expected)
}

function refuse(response, status, message, headers = {}) {
  response.writeHead(status, { 'Content-Type': 'application/json', Connection: 'close', ...headers })
  response.end(JSON.stringify({ jsonrpc: '2.0', error: { code: -32000, message }, id: null }))
}

async function readBody(request) {
  const chunks = []
  let size = 0
  for await (const chunk of request) {
    size += chunk.length
    if (size > BODY_MAX) throw Object.assign(new Error(`the body is larger than ${BODY_MAX} bytes`), { status: 413 })
    chunks.push(chunk)
  }
  try {
    return JSON.parse(Buffer.concat(chunks).toString('utf8'))
  } catch {
    throw Object.assign(new Error('the body is not JSON'), { status: 400 })
  }
}

async function closeSession(id) {
  const session = sessions.get(id)
  sessions.delete(id)
  await session?.server.close().catch(() => {})
}

/** A place for one more: the session that was not used for longest goes when there are too many. */
async function makeRoom() {
  if (sessions.size < SESSIONS_MAX) return
  const [oldest] = [...sessions.entries()].sort((a, b) => a[1].used - b[1].used)[0]
  log(`session ${oldest}: ended, there are ${SESSIONS_MAX}`)
  await closeSession(oldest)
}

async function newSession(request, response, body) {
  await makeRoom()
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: (id) => sessions.set(id, { server, transport, used: Date.now() }),
  })
  const server = sessionServer()
  transport.onclose = () => sessions.delete(transport.sessionId)
  await server.connect(transport)
  await transport.handleRequest(request, response, body)
}

async function handle(request, response) {
  if (!authorized(request)) {
    refuse(response, 401, 'the bearer token is missing or wrong', { 'WWW-Authenticate': 'Bearer' })
    return
  }
  const path = new URL(request.url, 'http://localhost').pathname
  if (path !== '/mcp' && path !== '/mcp/') {
    refuse(response, 404, `there is nothing at ${path}; MCP is at /mcp`)
    return
  }
  if (!['GET', 'POST', 'DELETE'].includes(request.method)) {
    refuse(response, 405, `${request.method} is not served`, { Allow: 'GET, POST, DELETE' })
    return
  }
  const body = request.method === 'POST' ? await readBody(request) : undefined
  const id = request.headers['mcp-session-id']
  const session = id === undefined ? null : sessions.get(id)
  if (session) {
    session.used = Date.now()
    await session.transport.handleRequest(request, response, body)
  } else if (id !== undefined) {
    refuse(response, 404, 'the session is not known; begin a new one')
  } else if ((Array.isArray(body) ? body : [body]).some((message) => types.isInitializeRequest(message))) {
    await newSession(request, response, body)
  } else {
    refuse(response, 400, 'no session: the first request must be initialize')
  }
}

const listener = http.createServer((request, response) => {
  handle(request, response).catch((error) => {
    log(`request: ${error.message}`)
    if (!response.headersSent) refuse(response, error.status ?? 500, error.status ? error.message : 'internal error')
    else response.destroy()
  })
})

function listen() {
  return new Promise((resolve, reject) => {
    listener.once('error', reject)
    listener.listen(PORT, '0.0.0.0', resolve)
  })
}

// --- life --------------------------------------------------------------------------------------

async function stop(status) {
  listener.close()
  await Promise.allSettled(backends.map((backend) => backend.close()))
  rmSync(PID, { force: true })
  process.exit(status)
}

process.on('SIGTERM', () => stop(0))
process.on('SIGINT', () => stop(0))
process.on('SIGHUP', () => {})
process.on('uncaughtException', (error) => log(`error: ${error.stack}`))
process.on('unhandledRejection', (error) => log(`error: ${error?.stack ?? error}`))

setInterval(() => {
  for (const [id, session] of sessions) if (Date.now() - session.used > SESSION_IDLE_MS) closeSession(id)
}, 60_000).unref()

async function bringUp(server) {
  const options = { log: (text) => log(`${server.key}: ${text}`) }
  const command = await fetchServer(server, options)
  const backend = new Backend(server, command, { log, changed, notify })
  await backend.start()
  return backend
}

try {
  writeFileSync(PID, `${process.pid}\n`)
  const made = await Promise.allSettled(servers.map(bringUp))
  const failed = made.flatMap((result, i) =>
    result.status === 'rejected' ? [`${servers[i].key}: ${result.reason.message}`] : [])
  backends.push(...made.flatMap((result) => (result.status === 'fulfilled' ? [result.value] : [])))
  if (failed.length) throw new Error(failed.join('\n'))
  await listen()
  log(`ready: ${servers.map((server) => server.key).join(', ') || 'no servers'}`)
  tell({ ready: true })
} catch (error) {
  log(`failed: ${error.message}`)
  tell({ error: error.code === 'EADDRINUSE' ? `port ${PORT} is in use by another program` : error.message })
  await stop(1)
}
