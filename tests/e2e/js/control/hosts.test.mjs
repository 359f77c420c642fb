// SPDX-License-Identifier: Apache-2.0
// With the quick start's variables alone, getHost leads to a server in the sandbox.

import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { Sandbox } from 'e2b'

const run = promisify(execFile)

// curl and browsers know that every name below localhost is this machine; the system's resolver may not.
const patient = ['-sfk', '-m', '10', '--retry', '20', '--retry-all-errors', '--retry-delay', '1']
const { protocol, port } = new URL(process.env.E2B_API_URL)
const get = async (host) => (await run('curl', [...patient, `${protocol}//${host}/hello`])).stdout

test('getHost leads to a server in the sandbox', async () => {
  const box = await Sandbox.create('base', { timeoutMs: 60_000 })
  try {
    await box.files.write('/tmp/www/hello', 'hello')
    await box.commands.run('python3 -m http.server 8000 -d /tmp/www', { background: true })
    assert.equal(box.getHost(8000), `8000-${box.sandboxId}.localhost:${port}`)
    assert.equal(await get(box.getHost(8000)), 'hello')
    const again = await Sandbox.connect(box.sandboxId)
    assert.equal(again.getHost(8000), box.getHost(8000))
  } finally {
    await box.kill()
  }
})
