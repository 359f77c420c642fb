// SPDX-License-Identifier: Apache-2.0
// commands and pty: output, exit codes, handles, stdin, deadlines, terminals.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  AuthenticationError,
  CommandExitError,
  InvalidArgumentError,
  NotFoundError,
  Sandbox,
  TimeoutError,
} from 'e2b'
import { sharedBox, unique, until } from '../support/box.mjs'

const box = sharedBox()
const NOBODY = 999_999

test('output is passed byte for byte', async () => {
  for (const text of ['hello', '!@#$%^&*()_+', 'one\ntwo\n\nthree', 'grüße 漢字']) {
    const done = await box.it.commands.run(`echo '${text}'`)
    assert.deepEqual([done.stdout, done.stderr, done.exitCode], [`${text}\n`, '', 0])
    assert.equal(done.error, undefined)
  }
})

test('a cut utf-8 sequence shows one replacement', async () => {
  const done = await box.it.commands.run("printf 'a%.0s' $(seq 8191); printf '\\xe2'")
  assert.equal(done.stdout, 'a'.repeat(8191) + '\ufffd')
})

test('callbacks get output as it comes', async () => {
  const out = []
  const err = []
  await box.it.commands.run('echo a; sleep 0.4; echo b; echo c >&2', {
    onStdout: (text) => void out.push(text),
    onStderr: (text) => void err.push(text),
  })
  assert.deepEqual(out, ['a\n', 'b\n'])
  assert.deepEqual(err, ['c\n'])
})

test('a failed command tells its exit code and signal', async () => {
  for (const [command, code, error] of [
    ['exit 3', 3, 'exit status 3'],
    ['no-such-command-here', 127, 'exit status 127'],
    ['kill -9 $$', -1, 'signal: killed'],
  ]) {
    await assert.rejects(box.it.commands.run(command), (caught) => {
      assert.ok(caught instanceof CommandExitError)
      assert.deepEqual([caught.exitCode, caught.error], [code, error])
      return true
    })
  }
})

test('users, variables and directories', async () => {
  const { commands } = box.it
  assert.equal((await commands.run('whoami; pwd')).stdout, 'user\n/home/user\n')
  assert.equal((await commands.run('whoami; pwd', { user: 'root' })).stdout, 'root\n/root\n')
  assert.equal((await commands.run('sudo whoami')).stdout, 'root\n')
  assert.equal((await commands.run('echo $FOO', { envs: { FOO: 'bar' } })).stdout, 'bar\n')
  assert.equal((await commands.run('echo ${FOO-none}')).stdout, 'none\n')
  assert.equal((await commands.run('pwd', { cwd: '/tmp' })).stdout, '/tmp\n')
  await assert.rejects(commands.run('pwd', { cwd: 'nowhere' }), (error) => {
    assert.ok(error instanceof InvalidArgumentError)
    return error.message.includes("cwd '/home/user/nowhere' does not exist")
  })
  await assert.rejects(commands.run('true', { user: 'ghost' }), AuthenticationError)
})

test('a deadline is a timeout error, in front and behind', async () => {
  await assert.rejects(box.it.commands.run('sleep 20', { timeoutMs: 1000 }), TimeoutError)
  const handle = await box.it.commands.run('sleep 20', { timeoutMs: 1000, background: true })
  await assert.rejects(handle.wait(), TimeoutError)
})

test('running commands are listed, joined and killed', async () => {
  const { commands } = box.it
  const first = await commands.run('sleep 0.8; echo late', { background: true })
  const second = await commands.run('sleep 30', { background: true })
  const pids = (await commands.list()).map((process) => process.pid)
  assert.ok(pids.includes(first.pid) && pids.includes(second.pid))
  const again = await commands.connect(first.pid)
  assert.equal(again.pid, first.pid)
  assert.equal((await again.wait()).stdout, 'late\n')
  assert.equal(await second.kill(), true)
  await assert.rejects(second.wait(), CommandExitError)
  await assert.rejects(commands.run(`kill -0 ${second.pid}`), CommandExitError)
  assert.equal(await commands.kill(NOBODY), false)
  await assert.rejects(commands.connect(NOBODY), NotFoundError)
})

test('disconnecting leaves the command alone', async () => {
  const name = unique()
  const handle = await box.it.commands.run(`sleep 0.6; touch ${name}`, { background: true })
  await handle.disconnect()
  await until(() => box.it.files.exists(name))
})

test('stdin reaches the command', async () => {
  for (const data of ['hello', 'a\nb\n', 'grüße', '']) {
    const handle = await box.it.commands.run('cat', { background: true, stdin: true })
    await box.it.commands.sendStdin(handle.pid, data)
    await box.it.commands.closeStdin(handle.pid)
    assert.equal((await handle.wait()).stdout, data)
  }
})

test('many commands stream at once without mixing', async () => {
  const runs = Array.from({ length: 50 }, (_, n) => box.it.commands.run(`sleep 0.3; echo ${n}`))
  const outs = (await Promise.all(runs)).map((done) => done.stdout)
  assert.deepEqual(outs, Array.from({ length: 50 }, (_, n) => `${n}\n`))
})

test('a box killed during a run is a timeout error that says so', async () => {
  const doomed = await Sandbox.create({ timeoutMs: 60_000 })
  const run = doomed.commands.run('sleep 60')
  const verdict = assert.rejects(run, (error) => {
    assert.ok(error instanceof TimeoutError, String(error))
    return /sandbox was killed or reached its end of life/.test(error.message)
  })
  await until(async () => (await doomed.commands.list()).length > 0)
  await doomed.kill()
  await verdict
})

const bytes = (text) => new TextEncoder().encode(text)

async function terminal(opts = {}) {
  let seen = ''
  const decoder = new TextDecoder()
  const onData = (data) => void (seen += decoder.decode(data, { stream: true }))
  const handle = await box.it.pty.create({ cols: 80, rows: 24, onData, ...opts })
  return { handle, seen: () => seen }
}

test('a terminal takes input, variables and a new size', async () => {
  const { handle, seen } = await terminal({ envs: { ABC: '123' }, cwd: '/' })
  await box.it.pty.sendInput(handle.pid, bytes('echo got-$ABC-$(pwd)-$(tput cols)\n'))
  await until(() => seen().includes('got-123-/-80'))
  await box.it.pty.resize(handle.pid, { cols: 100, rows: 30 })
  await box.it.pty.sendInput(handle.pid, bytes('echo now-$(tput cols)\nexit\n'))
  assert.equal((await handle.wait()).exitCode, 0)
  assert.match(seen(), /now-100/)
})

test('a terminal survives its client', async () => {
  const { handle, seen: before } = await terminal()
  await box.it.pty.sendInput(handle.pid, bytes('kept=yes; echo now-$((1 + 1))\n'))
  await until(() => before().includes('now-2'))
  await handle.disconnect()
  let seen = ''
  const again = await box.it.pty.connect(handle.pid, {
    onData: (data) => void (seen += Buffer.from(data).toString()),
  })
  assert.equal(again.pid, handle.pid)
  await box.it.pty.sendInput(handle.pid, bytes('echo kept-$kept\nexit\n'))
  assert.equal((await again.wait()).exitCode, 0)
  assert.match(seen, /kept-yes/)
})

test('a terminal can be killed', async () => {
  const { handle } = await terminal()
  assert.equal(await box.it.pty.kill(handle.pid), true)
  await assert.rejects(handle.wait(), CommandExitError)
  assert.equal(await box.it.pty.kill(NOBODY), false)
})
