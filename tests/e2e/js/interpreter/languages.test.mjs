// SPDX-License-Identifier: Apache-2.0
// Languages, working directories and variables through the stock SDK.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sharedCell } from '../support/box.mjs'

const cell = sharedCell({ envs: { TEST_ENV_VAR: 'supertest' } })
const run = (code, opts) => cell.it.runCode(code, opts)
const out = (done) => done.logs.stdout.join('')

const LANGUAGES = {
  python: {
    cwd: ['import os; print(os.getcwd())', (done) => out(done).trim()],
    read: (name) => `import os; os.getenv('${name}', 'default')`,
    value: (done) => done.text.trim(),
  },
  javascript: {
    cwd: ['process.cwd()', (done) => done.text],
    read: (name) => `process.env.${name} || 'default'`,
    value: (done) => done.text.trim(),
  },
  typescript: {
    cwd: ['process.cwd()', (done) => done.text],
    read: (name) => `process.env.${name} || 'default'`,
    value: (done) => done.text.trim(),
  },
  r: {
    cwd: ['getwd()', (done) => done.results[0].text.trim().slice(5, -1)],
    read: (name) => `Sys.getenv('${name}', 'default')`,
    value: (done) => done.results[0].text.trim().slice(5, -1),
  },
  java: {
    cwd: ['System.getProperty("user.dir")', (done) => done.results[0].text],
    read: (name) => `System.getProperty("${name}", "default")`,
    value: (done) => done.results[0].text.trim(),
  },
  bash: {
    cwd: ['pwd', (done) => out(done).trim()],
    read: (name) => `echo \${${name}:-default}`,
    value: (done) => done.logs.stdout[0].trim(),
  },
}

for (const [language, { cwd, read, value }] of Object.entries(LANGUAGES)) {
  test(`${language} starts at home`, async () => {
    assert.equal(cwd[1](await run(cwd[0], { language })), '/home/user')
  })

  test(`${language} sees the box's variables and its own`, async () => {
    const ask = async (name, envs) => value(await run(read(name), { language, envs }))
    assert.equal(await ask('TEST_ENV_VAR'), 'supertest')
    assert.equal(await ask('FOO', { FOO: 'bar' }), 'bar')
    assert.equal(await ask('FOO'), 'default')
    assert.equal(await ask('TEST_ENV_VAR', { TEST_ENV_VAR: 'overwrite' }), 'overwrite')
    assert.equal(await ask('TEST_ENV_VAR'), 'supertest')
  })
}

test('javascript prints, imports and awaits', async () => {
  assert.deepEqual((await run("console.log('Hello World!')", { language: 'js' })).logs.stdout, [
    'Hello World!\n',
  ])
  const imported = await run("import { readFileSync } from 'fs'\nconsole.log(typeof readFileSync)", {
    language: 'js',
  })
  assert.deepEqual(imported.logs.stdout, ['function\n'])
  assert.equal((await run("await Promise.resolve('Hello World!')", { language: 'js' })).text, 'Hello World!')
})

test('typescript is understood', async () => {
  const done = await run("const message: string = 'Hello World!'; console.log(message)", {
    language: 'ts',
  })
  assert.deepEqual(done.logs.stdout, ['Hello World!\n'])
})

test('java prints text and newline apart', async () => {
  const done = await run('System.out.println("Hello, World!")', { language: 'java' })
  assert.deepEqual(done.logs.stdout, ['Hello, World!', '\n'])
})
