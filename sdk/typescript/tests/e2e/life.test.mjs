// SPDX-License-Identifier: Apache-2.0
// The life of a sandbox, volumes, secrets and templates on a real server.
import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import ts from 'typescript'
import * as cloche from '../../dist/index.js'
import { box, unique, until } from '../support/box.mjs'
import { rejection } from '../support/server.mjs'

const { Sandbox, Secret, Template, Volume } = cloche

test('a sandbox is listed, told, given time and ended, and says afterwards why', async (t) => {
  const mark = unique()
  const made = await box(t, 'base', { metadata: { mark } })
  const listed = []
  for await (const info of Sandbox.list({ query: { metadata: { mark }, state: ['running'] }, limit: 1 }))
    listed.push(info)
  assert.deepEqual(
    listed.map(({ sandboxId }) => sandboxId),
    [made.sandboxId],
  )
  const info = await made.getInfo()
  assert.deepEqual([info.state, info.metadata, info.name], ['running', { mark }, 'base'])
  await made.setTimeout(300_000)
  assert.ok((await made.getInfo()).endAt > info.endAt)
  assert.equal(await made.isRunning(), true)
  assert.equal(await made.kill(), true)
  assert.equal(await made.kill(), false)
  assert.equal(await made.isRunning(), false)
  for (const call of [
    () => made.files.read('x'),
    () => made.commands.run('x'),
    () => made.runCode('x'),
    () => made.getInfo(),
  ]) {
    const error = await rejection(call())
    assert.equal(error.endCause?.reason, 'killed', String(error))
    assert.ok(error.endCause.at instanceof Date)
  }
  const types = (await made.getEvents({ orderAsc: true })).map(({ type }) => type)
  assert.deepEqual([types[0], types.at(-1)], ['sandbox.lifecycle.created', 'sandbox.lifecycle.killed'])
})

test('a sandbox ends with its block', async () => {
  const source = readFileSync(new URL('../support/using.ts', import.meta.url), 'utf8')
  const { outputText } = ts.transpileModule(source, { compilerOptions: { target: 'ES2022', module: 'ESNext' } })
  assert.match(outputText, /asyncDispose/)
  const translated = new URL('../../dist-test/using.js', import.meta.url)
  writeFileSync(translated, outputText)
  const { visit } = await import(translated)
  assert.equal(await Sandbox.kill(await visit()), false)
})

test('a sandbox that ends while a command runs ends the command with the cause', async (t) => {
  const made = await box(t, 'base')
  const handle = await made.commands.run('sleep 60', { background: true })
  await made.kill()
  const error = await rejection(handle.wait())
  assert.ok(error instanceof cloche.SandboxNotRunningError)
  assert.equal(error.endCause.reason, 'killed')
})

test('the same idempotency key gives the same sandbox', async (t) => {
  const idempotencyKey = `ts-${unique()}`
  const one = await box(t, 'base', { idempotencyKey })
  const two = await Sandbox.create('base', { timeoutMs: 120_000, idempotencyKey })
  assert.equal(two.sandboxId, one.sandboxId)
  const other = await rejection(Sandbox.create('base', { timeoutMs: 60_000, idempotencyKey }))
  assert.equal(other.errorCode, 'idempotency_request_mismatch')
})

test('a paused sandbox keeps its files and is resumed', async (t) => {
  const made = await box(t, 'base')
  await made.files.write('kept', 'yes')
  assert.equal(await made.pause({ keepMemory: false }), true)
  assert.equal(await made.pause(), false)
  assert.equal((await made.getInfo()).state, 'paused')
  await made.resume()
  assert.equal(await made.files.read('kept'), 'yes')
})

test('a snapshot of files alone becomes a sandbox without its processes', async (t) => {
  const made = await box(t, 'base')
  await made.files.write('kept', 'yes')
  await made.commands.run('sleep 300', { background: true, timeoutMs: 0 })
  const snapshot = await made.createSnapshot({ mode: 'filesystem' })
  t.after(() => Sandbox.deleteSnapshot(snapshot.snapshotId))
  assert.ok((await made.listSnapshots().nextItems()).some(({ snapshotId }) => snapshotId === snapshot.snapshotId))
  const copy = await box(t, snapshot.snapshotId)
  assert.equal(await copy.files.read('kept'), 'yes')
  assert.equal((await copy.commands.run('pgrep -c sleep || true')).stdout.trim(), '0')
  await copy.kill()
})

test('a fork has the memory of its source', async (t) => {
  const made = await box(t)
  await made.runCode('x = 41')
  const [copy] = await made.fork({ timeoutMs: 60_000 })
  t.after(() => copy.kill())
  assert.notEqual(copy.sandboxId, made.sandboxId)
  assert.equal((await copy.runCode('x + 1')).text, '42')
})

test('rules of the network are told back and replaced', async (t) => {
  const network = { allowOut: ['example.com'], denyOut: [cloche.ALL_TRAFFIC], dnsServers: ['9.9.9.9'] }
  const made = await box(t, 'base', { network, lifecycle: { onTimeout: 'pause', autoResume: true } })
  const info = await made.getInfo()
  assert.deepEqual(
    [info.network.allowOut, info.network.denyOut, info.network.dnsServers],
    [['example.com'], ['0.0.0.0/0'], ['9.9.9.9']],
  )
  assert.deepEqual(info.lifecycle, { onTimeout: 'pause', autoResume: true })
  await made.updateNetwork({ denyOut: ['1.1.1.1'] })
  assert.deepEqual((await made.getInfo()).network.denyOut, ['1.1.1.1'])
  const error = await rejection(box(t, 'base', { network: { dnsServers: ['::1'] } }))
  assert.equal(error.statusCode, 400)
})

test('metrics and logs of a sandbox are told', async (t) => {
  const made = await box(t, 'base')
  const [metric] = await until(async () => {
    const all = await made.getMetrics()
    return all.length && all
  })
  assert.ok(metric.timestamp instanceof Date && metric.memTotal > 0 && metric.cpuCount > 0)
  assert.ok(Array.isArray(await made.getLogs()))
})

test('a volume keeps files and is mounted', async (t) => {
  const name = `ts-${unique()}`
  const volume = await Volume.create(name)
  t.after(() => Volume.destroy(volume.volumeId))
  const stat = await volume.writeFile('/a.txt', new Blob(['from outside']).stream(), { mode: 0o600 })
  assert.deepEqual([stat.name, stat.size, stat.mode, stat.mtime instanceof Date], ['a.txt', 12, 0o600, true])
  const made = await box(t, 'base', { volumeMounts: { '/data': volume } })
  await made.commands.run('sudo sh -c "cat /data/a.txt > /data/b.txt"')
  assert.equal(await volume.readFile('/b.txt'), 'from outside')
  assert.deepEqual((await volume.list('/')).map((entry) => entry.name).sort(), ['a.txt', 'b.txt'])
  assert.equal(await volume.exists('/c.txt'), false)
  assert.ok((await rejection(volume.readFile('/c.txt'))) instanceof cloche.VolumePathNotFoundError)
  await volume.remove('/a.txt')
  assert.equal((await Volume.connect(volume.volumeId)).name, name)
  await made.kill()
})

test('a secret is kept, told without its value and removed', async () => {
  const name = `ts-${unique()}`
  const made = await Secret.create(name, 'value', { metadata: { a: 'b' } })
  assert.deepEqual([made.name, made.version, made.metadata], [name, 1, { a: 'b' }])
  assert.equal((await Secret.update(name, 'other')).version, 2)
  const names = []
  for await (const secret of Secret.list({ limit: 1 })) names.push(secret.name)
  assert.ok(names.includes(name))
  assert.equal(await Secret.destroy(name), true)
  assert.equal(await Secret.exists(name), false)
  assert.ok((await rejection(Secret.getInfo(name))) instanceof cloche.SecretNotFoundError)
})

test('a template is built from files, tagged and used; a step that fails shows its place', async (t) => {
  const context = mkdtempSync(join(tmpdir(), 'cloche-ts-build.'))
  t.after(() => rmSync(context, { recursive: true }))
  writeFileSync(join(context, 'app.txt'), 'from the context')
  const name = `ts-${unique()}`
  const log = []
  const template = Template({ fileContextPath: context })
    .fromTemplate('base')
    .copy('app.txt', '/app/', { mode: 0o640 })
    .setEnvs({ GREETING: 'hello' })
    .setWorkdir('/app')
    .setStartCmd('python3 -m http.server 8123', cloche.waitForPort(8123))
  const info = await Template.build(template, name, { onBuildLogs: (entry) => log.push(entry) })
  t.after(() => Sandbox.deleteSnapshot(info.templateId))
  assert.ok(log[0] instanceof cloche.LogEntryStart && log.at(-1) instanceof cloche.LogEntryEnd)
  assert.ok(log.some(({ message }) => message.includes('Template is ready')))
  await Template.assignTags(name, ['v1'])
  assert.deepEqual((await Template.getTags(name)).map(({ tag }) => tag).sort(), ['default', 'v1'])
  await Template.removeTags(name, 'v1')
  assert.equal(await Template.exists(name), true)
  const made = await box(t, name)
  const { stdout } = await made.commands.run('echo $GREETING; pwd; curl -s localhost:8123/app.txt')
  assert.equal(stdout, 'hello\n/app\nfrom the context')
  await made.kill()
  const bad = Template().fromTemplate('base').runCmd('true').runCmd('exit 7')
  const error = await rejection(Template.build(bad, `${name}-bad`))
  assert.ok(error instanceof cloche.BuildError)
  assert.match(error.stack, /life\.test\.mjs/)
})
