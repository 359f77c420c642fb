// SPDX-License-Identifier: Apache-2.0
// What callers write becomes what the API takes.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  ALL_TRAFFIC,
  ConnectionConfig,
  E2B,
  getSignature,
  InvalidArgumentError,
  Sandbox,
  Secret,
} from '../../dist/index.js'
import { branchesOf, statusOf } from '../../dist-test/internals.js'
import { body, json, rejection, serve } from '../support/server.mjs'

async function sent(t, opts) {
  let request
  const { url } = await serve(t, async (incoming, response) => {
    request = JSON.parse((await body(incoming)).toString())
    json(response, 201, { sandboxID: 'i1', templateID: 't', clientID: 'c', envdVersion: '0.6.13' })
  })
  await Sandbox.create({ apiUrl: url, apiKey: 'k', ...opts })
  return request
}

test('a plain create asks for the interpreter and leaves the rest to the server', async (t) => {
  assert.deepEqual(await sent(t, {}), { templateID: 'code-interpreter-v1' })
})

test('every option of a create arrives', async (t) => {
  const request = await sent(t, {
    template: 'base',
    timeoutMs: 1500,
    metadata: { a: 'b' },
    envs: { E: 'f' },
    allowInternetAccess: false,
    lifecycle: { onTimeout: { action: 'pause', keepMemory: false } },
    volumeMounts: { '/data': 'vol' },
    iam: { tokens: { me: Secret.iamToken({ audience: 'x', tokenType: 'JWT-SVID' }) } },
    network: {
      allowOut: ({ rules }) => [...rules.keys()],
      denyOut: ({ allTraffic }) => [allTraffic],
      dnsServers: [],
      httpsPorts: [8443],
      egressProxy: { address: 'p:1080', tls: { enabled: true } },
      rules: { 'a.example': [{ transform: ({ iam }) => ({ headers: { T: `Bearer ${iam.tokens.me}` } }) }] },
    },
  })
  assert.deepEqual(request, {
    templateID: 'base',
    timeout: 2,
    metadata: { a: 'b' },
    envVars: { E: 'f' },
    allow_internet_access: false,
    autoPause: true,
    autoPauseMemory: false,
    volumeMounts: [{ name: 'vol', path: '/data' }],
    iam: { tokens: { me: { audience: 'x', tokenType: 'JWT-SVID' } } },
    network: {
      allowOut: ['a.example'],
      denyOut: [ALL_TRAFFIC],
      dnsServers: [],
      httpsPorts: [8443],
      egressProxy: { address: 'p:1080', tls: { enabled: true } },
      rules: { 'a.example': [{ transform: { headers: { T: 'Bearer ${e2b.identity.tokens.me}' } } }] },
    },
  })
})

test('what cannot be meant is refused before anything is sent', async () => {
  const refused = [
    { lifecycle: { onTimeout: 'sleep' } },
    { lifecycle: { onTimeout: 'kill', autoResume: true } },
    { lifecycle: { onTimeout: { action: 'pause', keepMemory: false }, autoResume: true } },
    { idempotencyKey: 'UPPER' },
    { iam: { tokens: { 'a}': { audience: 'x', tokenType: 'y' } } } },
    { network: { rules: { h: [{ transform: ({ iam }) => ({ headers: { a: iam.tokens.none } }) }] } } },
    { network: { rules: { h: [{ transform: async () => ({}) }] } } },
    { retries: -1 },
  ]
  for (const opts of refused) {
    const error = await rejection(Sandbox.create({ apiUrl: 'http://127.0.0.1:1', apiKey: 'k', ...opts }))
    assert.ok(error instanceof InvalidArgumentError, `${JSON.stringify(opts)}: ${error}`)
  }
})

test('without a key nothing is asked', async () => {
  const kept = process.env.E2B_API_KEY
  delete process.env.E2B_API_KEY
  try {
    const error = await rejection(Sandbox.getInfo('i1', { apiUrl: 'http://127.0.0.1:1' }))
    assert.equal(error.name, 'AuthenticationError')
  } finally {
    if (kept !== undefined) process.env.E2B_API_KEY = kept
  }
})

test('a client has options of its own, and calls win over them', async (t) => {
  const { url, seen } = await serve(t, (_, response) => json(response, 200, []))
  const client = new E2B({ apiUrl: url, apiKey: 'one', headers: { X: '1' } })
  await client.Sandbox.list().nextItems()
  await client.Volume.list({ apiKey: 'two' })
  assert.deepEqual(
    seen.map(({ headers }) => [headers['x-api-key'], headers.x]),
    [
      ['one', '1'],
      ['two', '1'],
    ],
  )
})

test('hosts and origins follow the domain unless they are given', () => {
  const config = new ConnectionConfig({ domain: 'box.test', apiUrl: 'https://a.test/' })
  assert.equal(config.apiUrl, 'https://a.test')
  const at = { sandboxDomain: 'box.test', envdPort: 49983 }
  const direct = new ConnectionConfig({ domain: 'box.test', sandboxUrl: 'http://s.test' })
  assert.equal(direct.getSandboxUrl('i1', at), 'http://s.test')
  assert.equal(direct.getHost('i1', 80, 'box.test'), '80-i1.box.test')
})

test('signatures are those of the contract', async () => {
  const envdAccessToken = '0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0'
  const read = await getSignature({ path: 'hello.txt', operation: 'read', user: 'user', envdAccessToken })
  assert.deepEqual(read, { signature: 'v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E', expiration: null })
  const write = await getSignature({ path: '', operation: 'write', user: undefined, envdAccessToken })
  assert.equal(write.signature, 'v1_+Ndakv8aCLGD5gjOtfiA7J8PrN3cGaRiZZq/4vOYGKA')
})

test('what git tells is read', () => {
  const status = statusOf('## main...origin/main [ahead 1, behind 2]\nR  a -> b\n M c\n?? d e\nUU f\n')
  assert.deepEqual(
    [status.currentBranch, status.upstream, status.ahead, status.behind, status.detached],
    ['main', 'origin/main', 1, 2, false],
  )
  assert.deepEqual(
    status.fileStatus.map(({ name, status: label, staged }) => [name, label, staged]),
    [
      ['b', 'renamed', true],
      ['c', 'modified', false],
      ['d e', 'untracked', false],
      ['f', 'conflict', true],
    ],
  )
  assert.equal(status.fileStatus[0].renamedFrom, 'a')
  assert.equal(statusOf('## HEAD (no branch)\n').detached, true)
  assert.equal(statusOf('## No commits yet on trunk\n').currentBranch, 'trunk')
  assert.deepEqual(branchesOf('a\t \nb\t*\n'), { branches: ['a', 'b'], currentBranch: 'b' })
})
