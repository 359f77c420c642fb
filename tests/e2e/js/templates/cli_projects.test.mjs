// SPDX-License-Identifier: Apache-2.0
// Projects that the stock command line writes, and what they build here.

import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { Template } from 'e2b'
import { e2b } from '../support/cli.mjs'
import { assertTold, folder, fresh, shell } from '../support/workshop.mjs'

const python = join(import.meta.dirname, '../../python/.venv/bin/python')

const runPython = (file, cwd) =>
  new Promise((resolve, reject) => {
    const child = spawn(python, [file], { cwd, timeout: 120_000 })
    let said = ''
    for (const name of ['stdout', 'stderr']) child[name].on('data', (data) => (said += data))
    child.on('error', reject)
    child.on('close', (code) => resolve({ code, said }))
  })

for (const language of ['python-sync', 'python-async'])
  test(`init writes a ${language} project that builds`, async () => {
    const name = fresh('init')
    const path = folder({})
    const made = await e2b(['template', 'init', '-n', name, '-l', language, '-p', path])
    assert.equal(made.code, 0, made.said)
    const built = await runPython('build_dev.py', join(path, name))
    assert.equal(built.code, 0, built.said)
    assert.match(built.said, /Hello World E2B!/)
    assert.equal(await Template.exists(`${name}-dev`), true)
  })

test('init writes a TypeScript project of that name', async () => {
  const name = fresh('init-ts')
  const path = folder({})
  const made = await e2b(['template', 'init', '-n', name, '-l', 'typescript', '-p', path])
  assert.equal(made.code, 0, made.said)
  assert.match(readFileSync(join(path, name, 'build.dev.ts'), 'utf8'), new RegExp(`'${name}-dev'`))
  assert.match(readFileSync(join(path, name, 'template.ts'), 'utf8'), /fromImage\('e2bdev\/base'\)/)
})

test('migrate turns an old project into one that builds the same', async () => {
  const name = fresh('migrate')
  const path = folder({
    'e2b.Dockerfile': 'FROM e2bdev/base\nENV WORD=moved\nRUN echo $WORD > /word\nCOPY note.txt /srv/note.txt\n',
    'e2b.toml':
      `template_id = "abc"\ntemplate_name = "${name}"\ndockerfile = "e2b.Dockerfile"\n` +
      'cpu_count = 1\nmemory_mb = 512\n',
    'note.txt': 'a note\n',
  })
  const made = await e2b(['template', 'migrate', '-l', 'python-sync', '-p', path])
  assert.equal(made.code, 0, made.said)
  assert.ok(existsSync(join(path, 'e2b.toml.old')))
  const built = await runPython('build_prod.py', path)
  assert.equal(built.code, 0, built.said)
  assert.equal(await shell(name, 'cat /word /srv/note.txt; whoami; pwd'), 'moved\na note\nuser\n/home/user\n')
})

test('create of the same Dockerfile takes its steps from the cache', async () => {
  const path = folder({ Dockerfile: `FROM e2bdev/base\nRUN echo ${fresh('once')}\n` })
  const create = async (...options) => {
    const done = await e2b(['template', 'create', fresh('cli-cache'), '-p', path, ...options], { timeout: 120_000 })
    assert.equal(done.code, 0, done.said)
    return done.said.split('\n')
  }
  assertTold(await create(), '[builder 3/5] [stdout]: once-')
  assertTold(await create(), 'CACHED [builder 3/5] RUN echo once-')
  await create('--no-cache') // this version of the command line takes the option and does not pass it on
})

test('create takes another Dockerfile, a start command and sizes', async () => {
  const name = fresh('cli-other')
  const path = folder({ 'docker/Other': 'FROM e2bdev/base\nUSER user\nWORKDIR /srv/here\nRUN echo other > mark\n' })
  const done = await e2b(
    ['template', 'create', name, '-p', path, '-d', 'docker/Other', '-c', 'touch /tmp/started',
      '--ready-cmd', 'test -e /tmp/started',
      '--cpu-count', '1', '--memory-mb', '256'],
    { timeout: 120_000 },
  )
  assert.equal(done.code, 0, done.said)
  assert.equal(await shell(name, 'pwd; cat mark; ls /tmp/started'), '/srv/here\nother\n/tmp/started\n')
  const listed = JSON.parse((await e2b(['template', 'list', '--format', 'json'])).stdout)
  const [item] = listed.filter((t) => t.aliases.includes(name))
  assert.deepEqual([item.cpuCount, item.memoryMB], [1, 256])
})

test('the old build command points to the new one', async () => {
  const done = await e2b(['template', 'build'])
  assert.notEqual(done.code, 0)
  assert.match(done.said, /deprecated/i)
})

test('sizes that make no sense are refused by the server', async () => {
  const path = folder({ Dockerfile: 'FROM e2bdev/base\n' })
  const done = await e2b(['template', 'create', fresh('cli-odd'), '-p', path, '--cpu-count', '3'])
  assert.notEqual(done.code, 0)
  assert.match(done.said, /cpuCount 3/)
})
