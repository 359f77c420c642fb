// SPDX-License-Identifier: Apache-2.0
// The scenario of the matrix, for the npm clients; scenario.py says the rules.
//
//   scenario.mjs WAY
//
// Lies in the folder with the node_modules of one version of e2b and @e2b/code-interpreter when it runs.

import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import * as e2b from 'e2b'
import * as interpreter from '@e2b/code-interpreter'

const way = process.argv[2]
const stepSeconds = 60
const run = `matrix-${randomBytes(6).toString('hex')}`
const lifetime = { timeoutMs: 120_000 }
const steps = []
const shared = {}

class Absent extends Error {}

// Adds a step, or none when it is about the other way to a sandbox.
function step(name, perform, only = way) {
  if (only === way) steps.push([name, perform])
}

function needs(owner, ...names) {
  const name = names.find((each) => owner[each] !== undefined)
  if (name === undefined) throw new Absent(`no ${names.join(' or ')}`)
  return name
}

const same = (found, wanted) => assert.deepEqual(found, wanted)
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms))

async function until(ask, ms = 15_000) {
  const end = Date.now() + ms
  while (!(await ask())) {
    assert.ok(Date.now() < end, `not within ${ms} ms: ${ask}`)
    await pause(50)
  }
}

function box() {
  assert.ok(shared.box, 'no sandbox: create failed')
  return shared.box
}

// Interpreters before 2.7 know no address but names, even where their e2b reads E2B_SANDBOX_URL.
function notebook() {
  assert.ok(shared.notebook, 'no sandbox: run_code failed')
  if (way === 'url' && !shared.notebook.jupyterUrl.startsWith(process.env.E2B_SANDBOX_URL)) {
    throw new Absent('the interpreter does not read E2B_SANDBOX_URL')
  }
  return shared.notebook
}

// Pages since 2.0, an array before.
async function listed(options) {
  const found = await e2b.Sandbox.list(options)
  if (Array.isArray(found)) return found
  const all = []
  while (found.hasNext) all.push(...(await found.nextItems()))
  return all
}

step('create', async () => {
  shared.box = await e2b.Sandbox.create('base', { ...lifetime, metadata: { run }, envs: { FROM_CREATE: 'yes' } })
  assert.ok(box().sandboxId)
  same(await box().isRunning(), true)
  same((await box().commands.run('echo $FROM_CREATE')).stdout, 'yes\n')
})

step('files', async () => {
  const { files } = box()
  const data = randomBytes(1 << 20)
  await files.write('work/deep/text', 'grüße\n')
  await files.write('work/data', new Blob([data]))
  same(await files.read('work/deep/text'), 'grüße\n')
  assert.ok(Buffer.from(await files.read('work/data', { format: 'bytes' })).equals(data))
  const chunks = []
  for await (const chunk of await files.read('work/data', { format: 'stream' })) chunks.push(chunk)
  assert.ok(Buffer.concat(chunks).equals(data))
  same(await files.makeDir('work/made'), true)
  same(await files.makeDir('work/made'), false)
  const entries = Object.fromEntries((await files.list('work')).map((each) => [each.name, each]))
  const types = Object.fromEntries(Object.entries(entries).map(([name, each]) => [name, each.type]))
  same(types, { deep: 'dir', made: 'dir', data: 'file' })
  same(entries.data.path, '/home/user/work/data')
  if (entries.data.size !== undefined) same(entries.data.size, data.length)
  if (files.getInfo) {
    same((await files.getInfo('work/data')).size, data.length)
    same((await files.getInfo('work/deep')).type, 'dir')
  }
  same((await files.rename('work/data', 'work/moved')).path, '/home/user/work/moved')
  same([await files.exists('work/data'), await files.exists('work/moved')], [false, true])
  await files.remove('work/moved')
  same(await files.exists('work/moved'), false)
  await writeMany(files)
  await assert.rejects(files.read('work/none'), (error) => error instanceof e2b.NotFoundError)
})

// `writeFiles` or an array given to `write`; the first versions of 1.0 know neither.
async function writeMany(files) {
  const many = ['one', 'two'].map((name) => ({ path: `work/many/${name}`, data: name }))
  if (files.writeFiles) await files.writeFiles(many)
  else if (/Array\.isArray|pathOrFiles/.test(files.write.toString())) await files.write(many)
  else return
  same((await files.list('work/many')).map((each) => each.name).sort(), ['one', 'two'])
  same(await files.read('work/many/two'), 'two')
}

step('commands', async () => {
  const { commands } = box()
  const options = { envs: { A: 'b c' }, cwd: '/tmp', user: 'root' }
  const done = await commands.run('echo $A; pwd; id -un; echo err >&2', options)
  same([done.stdout, done.stderr, done.exitCode], ['b c\n/tmp\nroot\n', 'err\n', 0])
  await assert.rejects(commands.run('echo gone; exit 7'), (error) => {
    same([error.constructor, error.exitCode, error.stdout], [e2b.CommandExitError, 7, 'gone\n'])
    return true
  })
  let lines = ''
  await commands.run('for i in 1 2 3; do echo $i; done', { onStdout: (line) => void (lines += line) })
  same(lines, '1\n2\n3\n')
  const handle = await commands.run('echo begun; sleep 300', { background: true })
  assert.ok((await commands.list()).some((each) => each.pid === handle.pid))
  const heard = await commands.connect(handle.pid)
  same(heard.pid, handle.pid)
  heard.wait().catch(() => {})
  same(await commands.kill(handle.pid), true)
  await assert.rejects(handle.wait(), (error) => error instanceof e2b.CommandExitError)
  same(await commands.kill(handle.pid), false)
})

step('stdin', async () => {
  const { commands } = box()
  const handle = await commands.run('read -r a; echo got $a', { background: true, stdin: true })
  await commands.sendStdin(handle.pid, 'hello\n')
  same((await handle.wait()).stdout, 'got hello\n')
  if (!commands.closeStdin) return
  const counter = await commands.run('wc -c', { background: true, stdin: true })
  await commands.sendStdin(counter.pid, '12345')
  await commands.closeStdin(counter.pid)
  same((await counter.wait()).stdout.trim(), '5')
})

step('pty', async () => {
  const { pty } = box()
  const heard = []
  const onData = (data) => void heard.push(data)
  const handle = await pty.create({ rows: 24, cols: 80, cwd: '/tmp', envs: { IN_PTY: 'yes' }, onData })
  await pty.resize(handle.pid, { rows: 33, cols: 99 })
  await pty.sendInput(handle.pid, new TextEncoder().encode('stty size; echo $IN_PTY-$((6 * 7)); pwd; exit 0\n'))
  same((await handle.wait()).exitCode, 0)
  const text = Buffer.concat(heard).toString()
  for (const wanted of ['33 99', 'yes-42', '/tmp'])
    assert.ok(text.includes(wanted), `'${wanted}' is not in ${JSON.stringify(text)}`)
})

step('watch', async () => {
  const { files } = box()
  await files.makeDir('watched/below')
  const seen = []
  const handle = await files.watchDir('watched', (event) => void seen.push(`${event.name} ${event.type}`))
  await files.write('watched/new', 'x')
  await files.rename('watched/new', 'watched/old')
  await files.remove('watched/old')
  await until(() => ['new create', 'new write', 'new rename', 'old remove'].every((each) => seen.includes(each)))
  await handle.stop()
  if (!/recursive/.test(files.watchDir.toString())) return
  const deep = await files.watchDir('watched', (event) => void seen.push(event.name), { recursive: true })
  await files.write('watched/below/deep', 'x')
  await until(() => seen.includes('below/deep'))
  await deep.stop()
})

step(
  'urls',
  async () => {
    await box().commands.run('mkdir -p /tmp/www; echo served >/tmp/www/page')
    const server = await box().commands.run('python3 -m http.server 8000 --directory /tmp/www', { background: true })
    const page = `https://${box().getHost(8000)}/page`
    await until(async () => (await fetch(page).then((answer) => answer.text(), String)) === 'served\n')
    await server.kill()
  },
  'domain',
)

step('timeout', async () => {
  for (const seconds of [300, 600]) {
    await box().setTimeout(seconds * 1000)
    const end = box().getInfo && (await box().getInfo()).endAt
    if (end === undefined) continue
    const left = (end.getTime() - Date.now()) / 1000
    assert.ok(left > seconds - 30 && left < seconds + 5, `${left} s are left of ${seconds}`)
  }
  same(await box().isRunning(), true)
})

step('list', async () => {
  const mine = (await listed()).find((each) => each.sandboxId === box().sandboxId)
  assert.ok(mine, 'not listed')
  same(mine.metadata, { run })
  if (!e2b.SandboxPaginator && !/query/.test(e2b.Sandbox.list.toString())) return
  const found = await listed({ query: { metadata: { run } } })
  same(found.map((each) => each.sandboxId), [box().sandboxId])
})

step('connect', async () => {
  const again = await e2b.Sandbox.connect(box().sandboxId)
  same(again.sandboxId, box().sandboxId)
  await box().files.write('from-the-first', '1')
  same(await again.files.read('from-the-first'), '1')
  same((await again.commands.run('echo again')).stdout, 'again\n')
})

step('pause', async () => {
  const name = needs(box(), 'pause', 'betaPause')
  await box().files.write('before', 'kept')
  const sleeping = await box().commands.run('sleep 301', { background: true })
  sleeping.wait().catch(() => {})
  await box()[name]()
  same(await box().isRunning(), false)
  const woken = await e2b.Sandbox.connect(box().sandboxId, { timeoutMs: 300_000 })
  same(await woken.isRunning(), true)
  same(await woken.files.read('before'), 'kept')
  assert.ok((await woken.commands.list()).some((each) => each.pid === sleeping.pid), 'the process is gone')
  await woken.commands.kill(sleeping.pid)
  shared.box = woken
})

step('signed', async () => {
  if (!/signature/i.test(box().downloadUrl.toString())) throw new Absent('no signed URLs')
  const safe = await e2b.Sandbox.create('base', { ...lifetime, secure: true })
  try {
    // Asked for in 1.x, the rule for secured sandboxes since 2.0.
    const sign = { useSignature: true }
    await safe.files.write('/home/user/secret', 'signed')
    const read = async (url) => (await fetch(url)).text()
    same(await read(await safe.downloadUrl('/home/user/secret', sign)), 'signed')
    same(await read(await safe.downloadUrl('/home/user/secret', { ...sign, useSignatureExpiration: 60_000 })), 'signed')
    const body = new FormData()
    body.append('file', new Blob(['uploaded']), 'up')
    const sent = await fetch(await safe.uploadUrl('/home/user/up', sign), { method: 'POST', body })
    assert.ok(sent.ok, await sent.text())
    same(await safe.files.read('/home/user/up'), 'uploaded')
    const other = (await safe.downloadUrl('/home/user/up', sign)).replace(/(\/|%2F)up/, '$1secret')
    same((await fetch(other)).status, 401)
  } finally {
    await safe.kill()
  }
})

step('kill', async () => {
  const gone = box()
  same(await e2b.Sandbox.kill(gone.sandboxId), true)
  same(await gone.isRunning(), false)
  same(await e2b.Sandbox.kill(gone.sandboxId), false)
  assert.ok(!(await listed()).some((each) => each.sandboxId === gone.sandboxId))
  shared.box = undefined
  await assert.rejects(gone.commands.run('true'), (error) => error instanceof e2b.NotFoundError)
})

step('template', async () => {
  needs(e2b, 'Template')
  const built = e2b.Template().fromTemplate('base').setEnvs({ BUILT: 'in' }).runCmd('echo $BUILT >/tmp/built')
  await e2b.Template.build(built, { alias: run, cpuCount: 1, memoryMB: 512 })
  const made = await e2b.Sandbox.create(run, lifetime)
  try {
    same(await made.files.read('/tmp/built'), 'in\n')
  } finally {
    await made.kill()
  }
})

step('run_code', async () => {
  shared.notebook = await interpreter.Sandbox.create(lifetime)
  const it = notebook()
  same((await it.runCode('x = 41')).text, undefined)
  same((await it.runCode('x + 1')).text, '42')
  const heard = []
  const onStdout = (line) => void heard.push(line.line)
  const done = await it.runCode("import sys\nprint('out')\nprint('err', file=sys.stderr)", { onStdout })
  same([done.logs.stdout, done.logs.stderr, heard], [['out\n'], ['err\n'], ['out\n']])
  const failed = (await it.runCode('1 / 0')).error
  same([failed.name, failed.value], ['ZeroDivisionError', 'division by zero'])
  assert.ok(failed.traceback.includes('1 / 0'))
  same((await it.runCode("import os; os.environ['E']", { envs: { E: 'v' } })).text, 'v')
  const table = (await it.runCode("import pandas; pandas.DataFrame({'a': [1, 2]})")).results[0]
  assert.ok(table.html.includes('<table'), table.html)
})

step('languages', async () => {
  for (const [language, code, wanted] of [
    ['javascript', 'console.log([1, 2, 3].map((x) => x * 2).join())', '2,4,6\n'],
    ['bash', 'echo $((6 * 7))', '42\n'],
    ['r', "cat(sum(1:10), '\\n')", '55 \n'],
    ['java', 'System.out.println(6 * 7);', '42\n'],
  ]) {
    const done = await notebook().runCode(code, { language })
    assert.equal(done.error, undefined, `${language}: ${JSON.stringify(done.error)}`)
    same([done.logs.stdout.join(''), language], [wanted, language])
  }
})

step('contexts', async () => {
  const it = notebook()
  const context = await it.createCodeContext({ cwd: '/tmp', language: 'python' })
  await it.runCode("where = 'there'", { context })
  same((await it.runCode('where', { context })).text, 'there')
  same((await it.runCode('import os; os.getcwd()', { context })).text, '/tmp')
  same((await it.runCode('where')).error.name, 'NameError')
  if (!it.listCodeContexts) return
  assert.ok((await it.listCodeContexts()).some((each) => each.id === context.id))
  await it.restartCodeContext(context)
  same((await it.runCode('where', { context })).error.name, 'NameError')
  await it.removeCodeContext(context)
  assert.ok(!(await it.listCodeContexts()).some((each) => each.id === context.id))
})

step('charts', async () => {
  const code = "import matplotlib.pyplot as plt\nplt.bar(['a', 'b'], [1, 2])\nplt.title('T')\nplt.show()"
  const [result] = (await notebook().runCode(code)).results
  assert.ok(result.png, 'no picture')
  if (!('chart' in result)) throw new Absent('results have no chart')
  same([result.chart.type, result.chart.title], ['bar', 'T'])
  same(result.chart.elements.map((each) => [each.label, each.value]), [['a', 1], ['b', 2]])
  // Kinds that the client does not know are beside what it knows: bars with bins, an image of type unknown.
  const both = 'f, (a, b) = plt.subplots(1, 2)\na.hist([1, 1, 2], bins=2)\nb.imshow([[1, 2], [3, 4]])\nplt.show()'
  const [{ chart }] = (await notebook().runCode(both)).results
  same(chart.elements.map((each) => each.type), ['bar', 'unknown'])
  same(chart.elements[0].elements.map((each) => each.value), [2, 1])
  same(chart.elements[1].elements, [])
})

async function perform(run) {
  let timer
  const late = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`took more than ${stepSeconds} s`)), stepSeconds * 1000)
  })
  try {
    await Promise.race([run(), late])
  } catch (error) {
    if (error instanceof Absent) return ['absent', error.message]
    console.error(error)
    return ['FAIL', `${error?.name}: ${error?.message}`]
  } finally {
    clearTimeout(timer)
  }
  return ['ok', '']
}

// A handle that nobody waits for may fail when its sandbox ends.
process.on('unhandledRejection', (error) => console.error('unhandled:', error))
for (const [name, run] of steps) {
  console.error(`--- ${name}`)
  const [state, why] = await perform(run)
  console.log(JSON.stringify({ step: name, state, why }))
}
for (const left of [shared.box, shared.notebook]) await left?.kill()
process.exit(0)
