// SPDX-License-Identifier: Apache-2.0
// A real HTTP server on loopback that misbehaves as a test wants.

import { createServer } from 'node:http'
import { Sandbox } from '../../dist/index.js'

// Starts a server; `handle(request, response)` answers. It is gone when the test is over.
export async function serve(test, handle) {
  const seen = []
  const server = createServer((request, response) => {
    seen.push({ method: request.method, url: request.url, headers: request.headers })
    Promise.resolve(handle(request, response, seen.length)).catch((error) => response.destroy(error))
  })
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve))
  test.after(async () => {
    server.closeAllConnections()
    if (server.listening) await new Promise((resolve) => server.close(resolve))
  })
  return { url: `http://127.0.0.1:${server.address().port}`, seen, server }
}

// A handle to a sandbox that is this server, without asking anybody.
export function boxAt(url, opts = {}) {
  return new Sandbox({ apiKey: 'k', apiUrl: url, sandboxUrl: url, sandboxId: 'i1', envdVersion: '0.6.13', ...opts })
}

export async function body(request) {
  const pieces = []
  for await (const piece of request) pieces.push(piece)
  return Buffer.concat(pieces)
}

export function json(response, status, value, headers = {}) {
  response.writeHead(status, { 'Content-Type': 'application/json', ...headers }).end(JSON.stringify(value))
}

// An envelope of the agent's streams.
export function frame(value, flags = 0) {
  const payload = Buffer.from(JSON.stringify(value))
  const head = Buffer.alloc(5)
  head[0] = flags
  head.writeUInt32BE(payload.length, 1)
  return Buffer.concat([head, payload])
}

export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

// The rejection of a promise; fails when there is none.
export async function rejection(promise) {
  try {
    await promise
  } catch (error) {
    return error
  }
  throw new Error('it did not fail')
}
