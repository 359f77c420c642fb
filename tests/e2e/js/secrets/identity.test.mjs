// SPDX-License-Identifier: Apache-2.0
// Identity tokens that the stock SDK asks for, verified by a library of others.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { test } from 'node:test'
import { Sandbox, Secret } from 'e2b'
import { createRemoteJWKSet, jwtVerify } from 'jose'

test('a token is verified with the published keys', async () => {
  const box = await Sandbox.create('base', {
    timeoutMs: 60_000,
    iam: { tokens: { aws: Secret.iamToken({ audience: 'sts.amazonaws.com', tokenType: 'JWT-SVID' }) } },
  })
  try {
    const words = ['secret', 'token', box.sandboxId, 'aws']
    const token = execFileSync(process.env.CLOCHE_BIN, words, { encoding: 'utf8' }).trim()
    const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', process.env.E2B_API_URL))
    const { payload } = await jwtVerify(token, keys, { audience: 'sts.amazonaws.com', algorithms: ['ES256'] })
    assert.match(payload.sub, new RegExp(`^spiffe://[^/]+/team/[^/]+/sandbox/${box.sandboxId}$`))
    await assert.rejects(jwtVerify(token, keys, { audience: 'another' }))
  } finally {
    await box.kill()
  }
})
