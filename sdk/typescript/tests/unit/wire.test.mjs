// SPDX-License-Identifier: Apache-2.0
// What goes wrong on the wire, on a real server.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as cloche from '../../dist/index.js'
import { body, boxAt, frame, json, pause, rejection, serve } from '../support/server.mjs'

const GONE = 'The sandbox was not found: it ended at 2026-01-02T03:04:05Z, killed: by request'
const { Sandbox } = cloche

function gone(response) {
  json(response, 502, { sandboxId: 'i1', message: GONE, code: 502 })
}

test('a cell whose connection is cut by the end of its sandbox says why it ended', async (t) => {
  const { url } = await serve(t, async (request, response) => {
    if (request.url === '/health') return gone(response)
    response.writeHead(200)
    response.write('{"type":"stdout","text":"a","timestamp":""}\n')
    await pause(20)
    response.destroy()
  })
  const error = await rejection(boxAt(url).runCode('x'))
  assert.ok(error instanceof cloche.SandboxNotRunningError && error instanceof cloche.TimeoutError)
  assert.equal(error.endCause.reason, 'killed')
})

test('a cell whose connection is cut while its sandbox runs says so', async (t) => {
  const { url } = await serve(t, (request, response) => {
    if (request.url === '/health') return response.writeHead(204).end()
    response.writeHead(200)
    response.write('{"type":"st')
    setTimeout(() => response.destroy(), 20)
  })
  const error = await rejection(boxAt(url).runCode('x'))
  assert.equal(error.name, 'SandboxError')
  assert.match(error.message, /connection was lost; the sandbox runs/)
})

test('a command stream without its end is an error, not a result', async (t) => {
  const { url } = await serve(t, (request, response) => {
    if (request.url === '/health') return gone(response)
    response.writeHead(200, { 'Content-Type': 'application/connect+json' })
    response.write(frame({ event: { start: { pid: 7 } } }))
    setTimeout(() => response.end(), 20)
  })
  const handle = await boxAt(url).commands.run('x', { background: true })
  assert.equal(handle.pid, 7)
  const error = await rejection(handle.wait())
  assert.ok(error instanceof cloche.SandboxNotRunningError)
  assert.match(error.endCause.message, /by request/)
})

test('a sandbox that is gone when a command starts is not found, with the cause', async (t) => {
  const { url } = await serve(t, (_, response) => gone(response))
  const error = await rejection(boxAt(url).commands.run('x'))
  assert.ok(error instanceof cloche.SandboxNotFoundError)
  assert.equal(error.endCause.at.toISOString(), '2026-01-02T03:04:05.000Z')
})

test('a closed port is unreachable, not gone', async (t) => {
  const message = 'The sandbox is running but port is not open'
  const { url } = await serve(t, (_, response) => json(response, 502, { message, code: 502 }))
  assert.ok((await rejection(boxAt(url).runCode('x'))) instanceof cloche.SandboxUnreachableError)
})

test('a server that nobody runs is named', async (t) => {
  const { url, server } = await serve(t, () => undefined)
  await new Promise((resolve) => server.close(resolve))
  const error = await rejection(Sandbox.create({ apiUrl: url, apiKey: 'k' }))
  assert.equal(error.message, `cannot reach ${url}: ECONNREFUSED`)
})

test('a download lives as long as bytes move, and ends when they stop', async (t) => {
  const { url } = await serve(t, async (request, response) => {
    const dead = request.url.includes('dead')
    response.writeHead(200)
    for (let i = 0; i < 6 && !response.destroyed; i++) {
      response.write('x'.repeat(10))
      await pause(dead && i === 2 ? 5_000 : 100)
    }
    response.end()
  })
  const box = boxAt(url)
  assert.equal((await box.files.read('slow', { requestTimeoutMs: 300 })).length, 60)
  const error = await rejection(box.files.read('dead', { requestTimeoutMs: 300 }))
  assert.ok(error instanceof cloche.TimeoutError)
  assert.match(error.message, /reading dead: the time without a byte took longer than streamIdleTimeoutMs \(300 ms\)/)
})

test('an upload lives as long as bytes move, and ends when they stop', async (t) => {
  const { url } = await serve(t, async (request, response) => {
    if (request.url.includes('dead')) return pause(5_000)
    let size = 0
    for await (const piece of request) {
      size += piece.length
      await pause(10)
    }
    json(response, 200, [{ name: 'a', path: '/a', type: 'file', size }])
  })
  const box = boxAt(url)
  // What the kernel holds counts as sent, so the last megabytes move unseen: there must be many more before them.
  const data = new Uint8Array(24_000_000)
  const began = Date.now()
  const written = await box.files.write('slow', data, { requestTimeoutMs: 2000 })
  assert.equal(written.size, data.length)
  assert.ok(Date.now() - began > 2000, 'it was too fast to prove anything')
  const error = await rejection(box.files.write('dead', data, { requestTimeoutMs: 200 }))
  assert.ok(error instanceof cloche.TimeoutError)
  assert.match(error.message, /writing dead: the time without a byte/)
})

test('streams go up and down as they are', async (t) => {
  let kept
  const { url } = await serve(t, async (request, response) => {
    if (request.method === 'GET') return response.writeHead(200).end(kept)
    kept = await body(request)
    json(response, 200, [{ name: 'a', path: '/a', type: 'file' }])
  })
  const box = boxAt(url)
  async function* pieces() {
    for (let i = 0; i < 3; i++) yield new TextEncoder().encode(`${i}`)
  }
  await box.files.write('a', pieces())
  assert.equal(kept.toString(), '012')
  await box.files.write('a', new Blob(['blob']).stream())
  const read = []
  for await (const piece of await box.files.read('a', { format: 'stream' })) read.push(Buffer.from(piece))
  assert.equal(Buffer.concat(read).toString(), 'blob')
  assert.equal(await (await box.files.read('a', { format: 'blob' })).text(), 'blob')
  assert.deepEqual(await box.files.read('a', { format: 'bytes' }), new Uint8Array(kept))
})

test('429 with Retry-After is tried again after that time, and the same key goes along', async (t) => {
  const { url, seen } = await serve(t, async (request, response, count) => {
    await body(request)
    if (count < 3) return json(response, 429, { code: 429, message: 'slow' }, { 'Retry-After': '0' })
    json(response, 201, { sandboxID: 'i1', templateID: 't', clientID: 'c', envdVersion: '0.6.13' })
  })
  const box = await Sandbox.create({ apiUrl: url, sandboxUrl: url, apiKey: 'k', idempotencyKey: 'once-1' })
  assert.equal(box.sandboxId, 'i1')
  assert.deepEqual(
    seen.map(({ headers }) => headers['idempotency-key']),
    ['once-1', 'once-1', 'once-1'],
  )
})

test('Should-Retry: false makes an answer final', async (t) => {
  const { url, seen } = await serve(t, (_, response) =>
    json(response, 503, { code: 503, message: 'full' }, { 'Should-Retry': 'false' }),
  )
  const error = await rejection(Sandbox.getInfo('i1', { apiUrl: url, apiKey: 'k' }))
  assert.ok(error instanceof cloche.ServiceBusyError && !(error instanceof cloche.SandboxError))
  assert.equal(seen.length, 1)
})

test('503 without a word is tried four times in all, then told', async (t) => {
  const { url, seen } = await serve(t, (_, response) => json(response, 503, { code: 503, message: 'full' }))
  await rejection(Sandbox.getInfo('i1', { apiUrl: url, apiKey: 'k' }))
  assert.equal(seen.length, 4)
  await rejection(Sandbox.getInfo('i1', { apiUrl: url, apiKey: 'k', retries: 0 }))
  assert.equal(seen.length, 5)
})

test('a wait that would be longer than the request may take is not begun', async (t) => {
  const { url, seen } = await serve(t, (_, response) =>
    json(response, 429, { code: 429, message: 'slow' }, { 'Retry-After': '30' }),
  )
  const error = await rejection(Sandbox.getInfo('i1', { apiUrl: url, apiKey: 'k', requestTimeoutMs: 1000 }))
  assert.ok(error instanceof cloche.RateLimitError)
  assert.equal(error.statusCode, 429)
  assert.equal(seen.length, 1)
})

test('an answer that does not come ends at requestTimeoutMs', async (t) => {
  const { url } = await serve(t, () => pause(5_000))
  const error = await rejection(Sandbox.getInfo('i1', { apiUrl: url, apiKey: 'k', requestTimeoutMs: 100 }))
  assert.ok(error instanceof cloche.TimeoutError)
  assert.match(error.message, /requestTimeoutMs \(100 ms\)/)
})

test('a signal ends a request, a cell, a stream and a wait between tries', async (t) => {
  const { url } = await serve(t, (request, response) => {
    if (request.url.startsWith('/sandboxes')) {
      return json(response, 429, { code: 429, message: '' }, { 'Retry-After': '30' })
    }
    response.writeHead(200)
    response.write(request.url === '/execute' ? '{"type":"keepalive"}\n' : frame({ event: { start: { pid: 1 } } }))
  })
  const box = boxAt(url)
  const reason = new Error('enough')
  const aborted = async (start) => {
    const controller = new AbortController()
    setTimeout(() => controller.abort(reason), 50)
    return rejection(start(controller.signal))
  }
  assert.equal(await aborted((signal) => Sandbox.getInfo('i1', { apiUrl: url, apiKey: 'k', signal })), reason)
  assert.equal(await aborted((signal) => box.runCode('x', { signal })), reason)
  assert.equal(await aborted((signal) => box.commands.run('x', { signal })), reason)
  assert.equal(await aborted((signal) => box.runCode('x', { signal, stream: true }).wait()), reason)
  assert.equal(await rejection(box.runCode('x', { signal: AbortSignal.abort(reason) })), reason)
})

test('a cell that runs too long ends at timeoutMs', async (t) => {
  const { url } = await serve(t, (_, response) => response.writeHead(200).write('{"type":"keepalive"}\n'))
  const error = await rejection(boxAt(url).runCode('x', { timeoutMs: 100 }))
  assert.ok(error instanceof cloche.TimeoutError)
  assert.match(error.message, /Execution timed out.*timeoutMs \(100 ms\)/)
})

test('variables of a command go with the wish to keep them private', async (t) => {
  const { url, seen } = await serve(t, (_, response) => {
    response.writeHead(200)
    response.write(frame({ event: { start: { pid: 1 } } }))
    response.write(frame({ event: { end: { exited: true } } }))
    response.end(frame({}, 2))
  })
  const { commands } = boxAt(url)
  await commands.run('x', { envs: { A: 'b' } })
  await commands.run('x', { envs: { A: 'b' }, privateEnvs: false })
  await commands.run('x')
  assert.deepEqual(
    seen.map(({ headers }) => headers['cloche-private-env']),
    ['true', undefined, undefined],
  )
})

test('output of a command is whole wherever its bytes are cut', async (t) => {
  const bytes = Buffer.from('é€😀')
  const { url } = await serve(t, (_, response) => {
    response.writeHead(200)
    response.write(frame({ event: { start: { pid: 1 } } }))
    for (const byte of bytes) {
      response.write(frame({ event: { data: { stdout: Buffer.from([byte]).toString('base64') } } }))
    }
    response.write(frame({ event: { data: { stderr: Buffer.from([0xe2]).toString('base64') } } }))
    response.write(frame({ event: { end: { exitCode: 2, error: 'exit status 2' } } }))
    response.end(frame({}, 2))
  })
  const told = []
  const handle = await boxAt(url).commands.run('x', { background: true, onStdout: (text) => told.push(text) })
  const error = await rejection(handle.wait())
  assert.ok(error instanceof cloche.CommandExitError)
  assert.deepEqual([error.exitCode, error.stdout, error.stderr, told.join('')], [2, 'é€😀', '\ufffd', 'é€😀'])
  const events = []
  for await (const event of handle) events.push(event)
  assert.equal(
    events
      .filter(({ type }) => type === 'stdout')
      .map(({ text }) => text)
      .join(''),
    'é€😀',
  )
})

test('a running cell is iterated over, then waited for', async (t) => {
  const { url } = await serve(t, (_, response) => {
    response.writeHead(200, { 'Cloche-Execution-Id': 'run-1' })
    response.write('{"type":"number_of_executions","execution_count":3}\n{"type":"stdout","text":"a"')
    response.write(',"timestamp":""}\n{"type":"keepalive"}\n')
    response.end('{"type":"result","text":"2","extra":{},"is_main_result":true}\n{"type":"end_of_execution"}\n')
  })
  const run = boxAt(url).runCode('x', { stream: true })
  const types = []
  for await (const event of run) types.push(event.type)
  assert.deepEqual(types, ['count', 'stdout', 'result'])
  assert.equal(await run.id, 'run-1')
  const execution = await run.wait()
  assert.equal(execution.text, '2')
  assert.equal(execution.executionCount, 3)
  assert.equal(await run.interrupt(), false)
})

test('leaving the loop of a running cell ends its request', async (t) => {
  let closed
  const over = new Promise((resolve) => (closed = resolve))
  const { url } = await serve(t, (request, response) => {
    response.on('close', closed)
    response.writeHead(200)
    response.write('{"type":"stdout","text":"a","timestamp":""}\n')
  })
  for await (const event of boxAt(url).runCode('x', { stream: true })) {
    assert.equal(event.text, 'a')
    break
  }
  await over
})

test('a sandbox ends with its block', async (t) => {
  const { url, seen } = await serve(t, (_, response) => response.writeHead(204).end())
  const box = boxAt(url)
  await box[Symbol.asyncDispose]()
  assert.deepEqual([seen[0].method, seen[0].url], ['DELETE', '/sandboxes/i1'])
})
