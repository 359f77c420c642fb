// SPDX-License-Identifier: Apache-2.0
// Files, commands and terminals on a real server.
import assert from 'node:assert/strict'
import { before, after, test } from 'node:test'
import * as cloche from '../../dist/index.js'
import { rejection } from '../support/server.mjs'
import { until } from '../support/box.mjs'

let box
before(async () => (box = await cloche.Sandbox.create('base', { timeoutMs: 120_000, envs: { ALL: 'see' } })))
after(() => box.kill())

test('files of every form are written and read', async () => {
  const bytes = Uint8Array.from({ length: 300_000 }, (_, i) => i % 251)
  const forms = {
    text: 'é',
    empty: '',
    bytes,
    buffer: bytes.buffer,
    blob: new Blob([bytes]),
    stream: new Blob([bytes]).stream(),
  }
  for (const [name, data] of Object.entries(forms)) {
    const info = await box.files.write(`forms/${name}`, data)
    assert.deepEqual(info, { name, path: `/home/user/forms/${name}`, type: 'file' })
  }
  assert.equal(await box.files.read('forms/text'), 'é')
  assert.equal(await box.files.read('forms/empty'), '')
  for (const name of ['bytes', 'buffer', 'blob', 'stream']) {
    assert.deepEqual(await box.files.read(`forms/${name}`, { format: 'bytes' }), bytes)
  }
  await box.files.write('forms/gz', bytes, { gzip: true })
  assert.deepEqual(await box.files.read('forms/gz', { format: 'bytes', gzip: true }), bytes)
})

test('many files keep their order, and a path twice is refused', async () => {
  const files = Array.from({ length: 20 }, (_, i) => ({ path: `/tmp/many/${i}`, data: `${i}` }))
  const written = await box.files.write(files)
  assert.deepEqual(
    written.map(({ path }) => path),
    files.map(({ path }) => path),
  )
  const twice = await rejection(box.files.writeFiles([files[0], files[0]]))
  assert.ok(twice instanceof cloche.InvalidArgumentError)
  assert.deepEqual(await box.files.write([]), [])
})

test('folders are made, listed, renamed, told and removed', async () => {
  assert.equal(await box.files.makeDir('tree/sub'), true)
  assert.equal(await box.files.makeDir('tree/sub'), false)
  await box.files.write('tree/a', '1', { metadata: { author: 'me' } })
  assert.deepEqual(
    (await box.files.list('tree')).map(({ name, type }) => [name, type]),
    [
      ['a', 'file'],
      ['sub', 'dir'],
    ],
  )
  const moved = await box.files.rename('tree/a', 'tree/sub/b')
  assert.deepEqual(
    [moved.path, moved.size, moved.owner, moved.metadata],
    ['/home/user/tree/sub/b', 1, 'user', { author: 'me' }],
  )
  assert.ok((await box.files.getInfo('tree/sub/b')).modifiedTime instanceof Date)
  assert.equal((await box.files.list('tree', { depth: 2 })).length, 2)
  await box.files.remove('tree')
  assert.equal(await box.files.exists('tree'), false)
  assert.ok((await rejection(box.files.read('tree/a'))) instanceof cloche.FileNotFoundError)
  assert.ok((await rejection(box.files.list('tree'))) instanceof cloche.FileNotFoundError)
})

test('signed links work without a token, and not for another file', async () => {
  await box.files.write('signed.txt', 'by link')
  const link = await box.downloadUrl('signed.txt', { useSignatureExpiration: 60 })
  assert.equal(await (await fetch(link)).text(), 'by link')
  assert.equal((await fetch(link.replace('signed', 'other'))).status, 401)
})

test('a watched folder tells what happens, to a callback and to a loop', async () => {
  await box.files.makeDir('watched')
  const told = []
  const handle = await box.files.watchDir('watched', (event) => void told.push(event.type), { includeEntry: true })
  const loop = await box.files.watchDir('watched', undefined, { timeoutMs: 0 })
  await box.files.write('watched/new', 'x')
  for await (const event of loop) {
    assert.equal(event.name, 'new')
    if (event.type === cloche.FilesystemEventType.WRITE) break
  }
  await until(() => told.includes('write'))
  await handle.stop()
  assert.ok((await rejection(box.files.watchDir('nowhere', () => {}))) instanceof cloche.FileNotFoundError)
})

test('a command has output, a code, variables and a folder', async () => {
  const result = await box.commands.run('echo "$ALL $OWN $PWD"; echo no >&2', { envs: { OWN: 'mine' }, cwd: '/tmp' })
  assert.deepEqual(result, { exitCode: 0, stdout: 'see mine /tmp\n', stderr: 'no\n' })
  const error = await rejection(box.commands.run('echo bye; exit 3'))
  assert.ok(error instanceof cloche.CommandExitError)
  assert.deepEqual([error.exitCode, error.stdout, error.error], [3, 'bye\n', 'exit status 3'])
  assert.equal((await box.commands.run('whoami', { user: 'root' })).stdout, 'root\n')
})

test('variables of a command are in no list of processes', async () => {
  const secret = await box.commands.run('sleep 60', { background: true, envs: { TOKEN: 'hidden-value' } })
  const shown = await box.commands.run('sleep 60', { background: true, envs: { PLAIN: 'v' }, privateEnvs: false })
  const list = await box.commands.list()
  assert.ok(!JSON.stringify(list).includes('hidden-value'))
  assert.ok(list.some(({ pid }) => pid === secret.pid))
  assert.deepEqual(list.find(({ pid }) => pid === shown.pid).cmd, '/bin/bash')
  assert.equal(await secret.kill(), true)
  assert.equal(await shown.kill(), true)
  assert.equal((await rejection(secret.wait())).exitCode, -1)
  assert.equal(await box.commands.kill(secret.pid), false)
})

test('a command in the background is fed, joined by another and iterated over', async () => {
  const handle = await box.commands.run('cat', { background: true, stdin: true, timeoutMs: 0 })
  const other = await box.commands.connect(handle.pid)
  await box.commands.streamInput(handle.pid, ['one\n', 'two\n'])
  await handle.closeStdin()
  let text = ''
  for await (const event of handle) text += event.text
  assert.equal(text, 'one\ntwo\n')
  assert.equal((await handle.wait()).stdout, 'one\ntwo\n')
  assert.equal((await other.wait()).exitCode, 0)
  assert.ok((await rejection(box.commands.connect(999999))) instanceof cloche.NotFoundError)
})

test('a command that writes without end is read without keeping it', async () => {
  const handle = await box.commands.run('yes', { background: true, retainOutput: false })
  let size = 0
  for await (const event of handle) {
    size += event.text.length
    if (size > 4_000_000) break
  }
  assert.equal(handle.stdout, '')
  await handle.kill()
})

test('a command that takes too long ends with its timeout', async () => {
  const error = await rejection(box.commands.run('sleep 60', { timeoutMs: 300 }))
  assert.ok(error instanceof cloche.TimeoutError)
})

test('leaving a command leaves it running', async () => {
  const handle = await box.commands.run('sleep 60', { background: true })
  await handle.disconnect()
  assert.match((await rejection(handle.wait())).message, /disconnected/)
  assert.equal(await box.commands.kill(handle.pid), true)
})

test('a terminal is typed into, resized and ends', async () => {
  let text = ''
  const terminal = await box.pty.create({ cols: 80, rows: 24, envs: { MARK: 'm' } })
  const reading = (async () => {
    for await (const event of terminal) text += new TextDecoder().decode(event.data)
  })()
  await box.pty.resize(terminal.pid, { cols: 100, rows: 30 })
  await box.pty.sendInput(terminal.pid, new TextEncoder().encode('echo "<$MARK $(tput cols)>"\n'))
  await until(() => text.includes('<m 100>'))
  await terminal.sendStdin('exit\n')
  assert.equal((await terminal.wait()).exitCode, 0)
  await reading
  assert.equal(await box.pty.kill(terminal.pid), false)
})

test('a repository is made, filled and told, and credentials stay out of it', async () => {
  const { git } = box
  const path = '/tmp/repo'
  await git.init(path, { initialBranch: 'main' })
  await git.configureUser('Ann', 'ann@example.com')
  assert.equal(await git.getConfig('user.name'), 'Ann')
  await box.files.write(`${path}/a`, '1')
  assert.deepEqual(
    (await git.status(path)).fileStatus.map(({ name, status }) => [name, status]),
    [['a', 'untracked']],
  )
  await git.add(path)
  await git.commit(path, "it's a start")
  await git.createBranch(path, 'side')
  assert.deepEqual(await git.branches(path), { branches: ['main', 'side'], currentBranch: 'side' })
  assert.ok((await rejection(git.pull(path))) instanceof cloche.GitUpstreamError)
  await git.remoteAdd(path, 'origin', 'http://127.0.0.1:1/x.git')
  const failed = await rejection(git.push(path, { username: 'u', password: 'topsecret', branch: 'side' }))
  assert.ok(failed instanceof cloche.CommandExitError)
  assert.equal(await git.remoteGet(path, 'origin'), 'http://127.0.0.1:1/x.git')
  assert.ok(!(await box.commands.run(`grep -r topsecret ${path} ~ || true`)).stdout)
})
