// SPDX-License-Identifier: Apache-2.0
// The template commands of the stock command line.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Sandbox, Template } from 'e2b'
import { e2b } from '../support/cli.mjs'
import { folder, fresh, inBox, shell } from '../support/workshop.mjs'

const listed = async () => {
  const { code, stdout, stderr } = await e2b(['template', 'list', '--format', 'json'])
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

test('create from a Dockerfile, list, publish, unpublish, delete', async () => {
  const name = fresh('cli')
  const path = folder({
    'e2b.Dockerfile':
      'FROM e2bdev/base\nENV WORD=cli\nWORKDIR /srv/cli\nCOPY hello.txt .\nRUN echo $WORD > word && cat hello.txt\n',
    'hello.txt': 'hello from a file\n',
  })
  const made = await e2b(
    ['template', 'create', name, '-p', path, '--cpu-count', '1', '--memory-mb', '512',
      '-c', 'cd /srv/cli && exec python3 -m http.server 8800', '--ready-cmd', '[ -n "$(ss -Htln sport = :8800)" ]'],
    { timeout: 120_000 },
  )
  assert.equal(made.code, 0, made.said)
  assert.match(made.said, /hello from a file/)

  const item = (await listed()).find((template) => template.aliases.includes(name))
  assert.ok(item, 'the new template is not listed')
  assert.deepEqual([item.cpuCount, item.memoryMB, item.public], [1, 512, false])
  const pretty = await e2b(['template', 'list'])
  assert.ok(pretty.stdout.includes(name), pretty.said)

  await inBox(name, async (box) => {
    const got = await box.commands.run('curl -s http://127.0.0.1:8800/hello.txt; cat /srv/cli/word; echo $WORD; whoami')
    assert.equal(got.stdout, 'hello from a file\ncli\ncli\nuser\n')
  })

  for (const [command, isPublic] of [['publish', true], ['unpublish', false]]) {
    const done = await e2b(['template', command, '-y', name])
    assert.equal(done.code, 0, done.said)
    assert.equal((await listed()).find((t) => t.templateID === item.templateID).public, isPublic)
  }

  const gone = await e2b(['template', 'delete', '-y', name])
  assert.equal(gone.code, 0, gone.said)
  assert.equal(await Template.exists(name), false)
  assert.ok(!(await listed()).some((template) => template.templateID === item.templateID))
})

test('a failing Dockerfile fails the command with the step', async () => {
  const path = folder({ Dockerfile: 'FROM e2bdev/base\nRUN echo before\nRUN exit 33\n' })
  const done = await e2b(['template', 'create', fresh('cli-bad'), '-p', path], { timeout: 120_000 })
  assert.notEqual(done.code, 0)
  assert.match(done.said, /before/)
  assert.match(done.said, /33/)
})

test('a rebuild under the same name is used by the next box', async () => {
  const name = fresh('cli-again')
  const path = folder({ Dockerfile: 'FROM e2bdev/base\nRUN echo one > /home/user/mark\n' })
  const two = folder({ Dockerfile: 'FROM e2bdev/base\nRUN echo two > /home/user/mark\n' })
  for (const [from, word] of [[path, 'one'], [two, 'two']]) {
    const done = await e2b(['template', 'create', name, '-p', from], { timeout: 120_000 })
    assert.equal(done.code, 0, done.said)
    assert.equal(await shell(name, 'cat ~/mark'), `${word}\n`)
  }
})

test('deleting and publishing nobody says so', async () => {
  for (const command of ['delete', 'publish']) {
    const done = await e2b(['template', command, '-y', fresh('none')])
    assert.notEqual(done.code, 0, done.said)
  }
})

test('sandbox create of a template by the command line', async () => {
  const name = fresh('cli-box')
  await Template.build(Template().fromTemplate('base').runCmd('echo mine > ~/mine'), name)
  const { code, stdout, said } = await e2b(['sandbox', 'create', name, '--detach'])
  assert.equal(code, 0, said)
  const box = await Sandbox.connect(/i[a-z0-9]{20}/.exec(stdout)[0])
  try {
    assert.equal((await box.commands.run('cat ~/mine')).stdout, 'mine\n')
  } finally {
    await box.kill()
  }
})
