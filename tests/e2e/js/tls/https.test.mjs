// SPDX-License-Identifier: Apache-2.0
// https with a private authority: the stock SDK on one name (recipe C) and by
// the names of boxes (recipe B, with a resolver of our own instead of DNS).

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { readFileSync } from 'node:fs'
import http2 from 'node:http2'
import { join } from 'node:path'
import { test } from 'node:test'
import { sharedBox, until } from '../support/box.mjs'

const url = process.env.CLOCHE_TLS_URL
const files = process.env.CLOCHE_TLS_DIR
const port = new URL(url).port
const ca = readFileSync(join(files, 'ca.pem'))
const box = sharedBox()

// What a stock client trusts is read when its process starts.
function program(args, environment) {
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, args, {
      env: { ...process.env, NODE_EXTRA_CA_CERTS: join(files, 'ca.pem'), ...environment },
      timeout: 170_000,
    })
    let stdout = ''
    let stderr = ''
    child.stdout.on('data', (data) => (stdout += data))
    child.stderr.on('data', (data) => (stderr += data))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, stdout, stderr }))
  })
}

function assertSeen({ code, stdout, stderr }) {
  assert.equal(code, 0, stderr)
  const seen = JSON.parse(stdout)
  assert.deepEqual(seen.sum, ['42\n'])
  assert.deepEqual(seen.lines, ['1', '2', '3'])
  assert.ok(seen.spread > 600, `lines came within ${seen.spread} ms`)
  assert.deepEqual(
    seen.many,
    Array.from({ length: 40 }, (_, i) => i),
  )
  assert.ok(seen.uploaded)
  assert.ok(seen.downloaded)
  assert.equal(seen.older, 'older')
  assert.ok(seen.killed)
  assert.equal(seen.error, 'TimeoutError')
  assert.ok(seen.noticed < 30_000, `the kill was noticed after ${seen.noticed} ms`)
  assert.equal(seen.running, false)
  // The interpreter's calls go by the runtime's own fetch, which speaks HTTP/1.1;
  // everything else must have chosen HTTP/2.
  const others = seen.protocols.filter((name) => name !== 'h2')
  assert.ok(seen.protocols.length - others.length >= 2, seen.protocols.join())
  assert.ok(others.length <= 2, seen.protocols.join())
}

test('the stock SDK over one name', { timeout: 180_000 }, async () => {
  const done = await program([join(import.meta.dirname, 'stock.mjs')], {
    E2B_API_URL: url,
    E2B_SANDBOX_URL: url,
    E2B_VOLUME_API_URL: url,
  })
  assertSeen(done)
})

test('the stock SDK by the names of boxes', { timeout: 180_000 }, async () => {
  const args = ['--require', join(import.meta.dirname, 'resolver.cjs')]
  const done = await program([...args, join(import.meta.dirname, 'stock.mjs')], {
    E2B_DOMAIN: `box.test:${port}`,
    E2B_API_URL: '',
    E2B_SANDBOX_URL: '',
    E2B_VOLUME_API_URL: '',
  })
  assertSeen(done)
})

test('getHost is reached by fetch', async () => {
  await box.it.commands.run('python3 -m http.server 8000 --bind 127.0.0.1', { background: true })
  const target = `https://8000-${box.it.sandboxId}.box.test:${port}/`
  const script = `
    const answer = await fetch(${JSON.stringify(target)})
    console.log(answer.status, (await answer.text()).includes('Directory listing'))`
  const args = ['--require', join(import.meta.dirname, 'resolver.cjs')]
  await until(async () => {
    const done = await program([...args, '--input-type=module', '-e', script], {})
    assert.equal(done.code, 0, done.stderr)
    return done.stdout.trim() === '200 true'
  }, 20_000)
})

test('many streams of one session', async () => {
  const session = http2.connect(url, { ca })
  try {
    const ask = () =>
      new Promise((resolve, reject) => {
        const stream = session.request({
          ':path': '/health',
          'e2b-sandbox-id': box.it.sandboxId,
          'e2b-sandbox-port': '49983',
        })
        let status
        stream.on('response', (headers) => (status = headers[':status']))
        stream.on('error', reject)
        stream.on('end', () => resolve(status))
        stream.resume()
      })
    const answers = await Promise.all(Array.from({ length: 1000 }, ask))
    assert.ok(answers.every((status) => status === 204))
  } finally {
    session.close()
  }
})
