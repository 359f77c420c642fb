// SPDX-License-Identifier: Apache-2.0
// The stock command line against the server, by environment lines only.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox } from 'e2b'
import { sharedBox, unique, until } from '../support/box.mjs'
import { e2b } from '../support/cli.mjs'

const box = sharedBox()

test('sandbox list shows the running box', async () => {
  const pretty = await e2b(['sandbox', 'list'])
  assert.equal(pretty.code, 0, pretty.stderr)
  assert.ok(pretty.stdout.includes(box.it.sandboxId))
  const { stdout } = await e2b(['sandbox', 'list', '--format', 'json'])
  const found = JSON.parse(stdout).find((item) => item.sandboxId === box.it.sandboxId)
  assert.equal(found.state, 'running')
})

test('sandbox info shows the box that was asked for', async () => {
  const { code, stdout } = await e2b(['sandbox', 'info', box.it.sandboxId, '--format', 'json'])
  assert.equal(code, 0)
  assert.equal(JSON.parse(stdout).sandboxId, box.it.sandboxId)
})

test('sandbox exec passes output, exit code, user and stdin', async () => {
  const id = box.it.sandboxId
  const done = await e2b(['sandbox', 'exec', id, 'echo', 'from the cli'])
  assert.deepEqual([done.stdout, done.code], ['from the cli\n', 0], done.stderr)
  assert.equal((await e2b(['sandbox', 'exec', id, 'exit 5'])).code, 5)
  assert.equal((await e2b(['sandbox', 'exec', '-u', 'root', id, 'whoami'])).stdout, 'root\n')
  assert.equal((await e2b(['sandbox', 'exec', id, 'cat'], { input: 'piped' })).stdout, 'piped')
})

test('sandbox create, detached, and kill', async () => {
  const { code, stdout, stderr } = await e2b(['sandbox', 'create', 'base', '--detach'])
  assert.equal(code, 0, stderr)
  const id = /i[a-z0-9]{20}/.exec(stdout)?.[0]
  assert.ok(id, stdout)
  assert.equal(await (await Sandbox.connect(id)).isRunning(), true)
  const killed = await e2b(['sandbox', 'kill', id])
  assert.equal(killed.code, 0, killed.stderr)
  assert.match(killed.stdout, new RegExp(id))
  await assert.rejects(Sandbox.connect(id))
})

test('sandbox kill of nobody says so', async () => {
  const { stdout, stderr } = await e2b(['sandbox', 'kill', 'inonexistent00000000x'])
  assert.match(stdout + stderr, /not found|wasn't found|doesn't exist/i)
})

test('sandbox logs show what a command printed', async () => {
  const word = unique()
  await box.it.commands.run(`echo ${word}`)
  await until(async () => {
    const { code, stdout, stderr } = await e2b(['sandbox', 'logs', box.it.sandboxId, '--level', 'DEBUG'])
    assert.equal(code, 0, stderr)
    return stdout.includes(word)
  }, 20_000)
})

test('sandbox metrics show the CPU of a running box', async () => {
  await until(async () => {
    const { code, stdout, stderr } = await e2b(['sandbox', 'metrics', box.it.sandboxId])
    assert.equal(code, 0, stderr)
    return /CPU/i.test(stdout) && /\d/.test(stdout)
  }, 40_000)
})

test('template list shows the default templates', async () => {
  const { code, stdout, stderr } = await e2b(['template', 'list', '--format', 'json'])
  assert.equal(code, 0, stderr)
  const aliases = JSON.parse(stdout).flatMap((template) => template.aliases)
  assert.ok(!aliases.includes('base'), 'the default templates are not the team\'s own')
})
