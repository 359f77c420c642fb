// SPDX-License-Identifier: Apache-2.0
// Templates with the stock JavaScript builder, both generations of it, and boxes of what was built.

import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { describe, test } from 'node:test'
import * as interpreter from '@e2b/code-interpreter'
import { BuildError, Sandbox, Template, waitForFile, waitForURL } from 'e2b'
import { generations, until } from '../support/box.mjs'
import { assertTold, build, folder, fresh, inBox, shell } from '../support/workshop.mjs'

// Writes a package with one word in it: WHEEL PATH WORD.
const WHEEL = `
import sys, zipfile
path, word = sys.argv[1:]
info = 'js_pip_word-1.0.dist-info/'
with zipfile.ZipFile(path, 'w') as z:
    z.writestr('js_pip_word.py', f'WORD = {word!r}\\n')
    z.writestr(info + 'METADATA', 'Metadata-Version: 2.1\\nName: js-pip-word\\nVersion: 1.0\\n')
    z.writestr(info + 'WHEEL', 'Wheel-Version: 1.0\\nGenerator: test\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')
    z.writestr(info + 'RECORD', '')
`

for (const [version, sdk] of Object.entries(generations)) {
  describe(`e2b ${version}`, () => {
    test('files, commands, environment, folder, user and a running server', async () => {
      const context = folder({
        'src/main.js': 'console.log("main")\n',
        'src/lib/deep.txt': 'deep\n',
        'src/skip.log': 'left out\n',
        'tool.sh': ['#!/bin/sh\necho tool\n', 0o755],
        'a.txt': 'a\n',
        'b.txt': 'b\n',
        '.dockerignore': '**/*.log\n',
      })
      const name = fresh('js')
      const template = sdk
        .Template({ fileContextPath: context })
        .fromTemplate('base')
        .setEnvs({ LEVEL: '11', PATH: '${PATH}:/my/path', MARK: name })
        .setWorkdir('/srv/app')
        .copy('src', 'src')
        .copy('*.txt', '/srv/texts/', { user: 'root', mode: 0o600 })
        .copy('tool.sh', '/usr/local/bin/tool', { user: 'root' })
        .runCmd(['echo $LEVEL > level', 'id -un >> level'])
        .runCmd('id -un > /etc/made-by', { user: 'root' })
        .makeDir('dir', { mode: 0o700 })
        .makeSymlink('level', 'link')
        .rename('dir', 'renamed')
        .setStartCmd('cd /srv/app/src && exec python3 -m http.server 8600', sdk.waitForPort(8600))
      const built = await build(sdk, template, name, { cpuCount: 1, memoryMB: 512 })
      assert.equal(built.name, name)
      assert.deepEqual(built.tags, ['default'])
      assertTold(
        built.log,
        'Running start command',
        'Waiting for template to be ready',
        'Template is ready',
      )
      await inBox(
        name,
        async (box) => {
          const { stdout } = await box.commands.run(
            'cat level link /etc/made-by; ls src; tool; stat -c "%U %a" /srv/texts/a.txt renamed; ' +
              'whoami; pwd; echo $LEVEL; echo ${PATH##*:}',
          )
          assert.deepEqual(stdout.trim().split('\n'), [
            '11', 'user', '11', 'user', 'root', 'lib', 'main.js', 'tool', 'root 600', 'user 700',
            'user', '/srv/app', '11', '/my/path',
          ])
          const got = await box.commands.run('curl -s http://127.0.0.1:8600/lib/deep.txt')
          assert.equal(got.stdout, 'deep\n')
          const info = await sdk.Sandbox.getInfo(box.sandboxId)
          assert.deepEqual([info.cpuCount, info.memoryMB], [1, 512])
        },
        (template) => sdk.Sandbox.create(template, { timeoutMs: 60_000 }),
      )
    })

    test('a failing step is traced to its line', async () => {
      const template = sdk.Template().fromTemplate('base').runCmd('true').runCmd('exit 9').runCmd('true')
      const name = fresh('js-fails')
      await assert.rejects(sdk.Template.build(template, name), (error) => {
        assert.ok(error instanceof sdk.BuildError, error)
        assert.match(error.message, /exit 9/)
        assert.match(error.stack, /build\.test\.mjs/)
        return true
      })
    })
  })
}

test('traces name the line of the step that failed', async () => {
  const lineOf = (error) => Number(/build\.test\.mjs:(\d+)/.exec(error.stack)?.[1])
  const builder = Template().fromTemplate('base')
  builder.runCmd('true')
  const here = lineOf(new Error('here')) + 1
  builder.remove('/no/such/file')
  builder.runCmd('true')
  await assert.rejects(Template.build(builder, fresh('js-line')), (error) => {
    assert.equal(lineOf(error), here)
    return true
  })
})

test('an unknown template to start from is a build error', async () => {
  const template = Template().fromTemplate(fresh('no-such')).runCmd('true')
  await assert.rejects(Template.build(template, fresh('js-base')), BuildError)
})

test('a build in the background, its status and its log by pages', async () => {
  const template = Template()
    .fromTemplate('base')
    .runCmd('sleep 0.5; seq -f "n=%g" 120')
  const info = await Template.buildInBackground(template, fresh('js-behind'))
  const first = await Template.getBuildStatus(info)
  assert.equal(first.status, 'building')
  await until(async () => (await Template.getBuildStatus(info)).status === 'ready', 60_000)
  const log = []
  for (;;) {
    const page = (await Template.getBuildStatus(info, { logsOffset: log.length })).logEntries
    if (page.length === 0) break
    assert.ok(page.length <= 100)
    log.push(...page.map((entry) => entry.message))
  }
  const printed = log.filter((line) => line.includes(']: n=')).map((line) => line.split('n=')[1])
  assert.deepEqual(printed, Array.from({ length: 120 }, (_, n) => String(n + 1)))
})

test('a custom interpreter keeps its kernels', async () => {
  const name = fresh('js-cell')
  const template = Template()
    .fromTemplate('code-interpreter-v1')
    .setEnvs({ FLAVOUR: 'custom' })
    .runCmd('mkdir -p ~/mods && echo "WORD = 42" > ~/mods/answer_mod.py')
  await build({ Template }, template, name)
  await inBox(
    name,
    async (cell) => {
      const python = await cell.runCode(
        'import sys, os; sys.path.append("/home/user/mods"); import answer_mod; ' +
          '(answer_mod.WORD, os.environ["FLAVOUR"])',
      )
      assert.equal(python.text, "(42, 'custom')", python.error?.traceback)
      const node = await cell.runCode('process.env.FLAVOUR + (40 + 2)', { language: 'javascript' })
      assert.match(node.text, /custom42/)
    },
    (template) => interpreter.Sandbox.create(template, { timeoutMs: 60_000 }),
  )
})

test('tags: assigned, moved, listed, removed', async () => {
  const name = fresh('js-tags')
  const recipe = (word) => Template().fromTemplate('base').runCmd(`echo ${word} > ~/mark`)
  const one = await Template.build(recipe('one'), `${name}:v1`)
  const two = await Template.build(recipe('two'), name, { tags: ['v2', 'live'] })
  assert.equal(one.templateId, two.templateId)
  assert.equal(await shell(`${name}:live`, 'cat ~/mark'), 'two\n')
  const moved = await Template.assignTags(`${name}:v1`, ['live', 'old'])
  assert.deepEqual([moved.tags.toSorted(), moved.buildId], [['live', 'old'], one.buildId])
  assert.equal(await shell(`${name}:live`, 'cat ~/mark'), 'one\n')
  await Template.removeTags(name, 'old')
  const tags = Object.fromEntries((await Template.getTags(name)).map((tag) => [tag.tag, tag]))
  assert.ok(!('old' in tags))
  assert.equal(tags.live.buildId, one.buildId)
  assert.equal(tags.v2.buildId, two.buildId)
  assert.ok(tags.v2.createdAt instanceof Date && !Number.isNaN(tags.v2.createdAt.getTime()))
  assert.equal(await Template.exists(`${name}:v2`), true)
  assert.equal(await Template.exists(`${name}:old`), false)
  await assert.rejects(Template.assignTags(name, []))
  await assert.rejects(Template.removeTags(name, 'default'))
  await assert.rejects(Sandbox.create(`${name}:old`))
})

test('a rollback is one call, and a running box keeps its build', async () => {
  const name = fresh('js-back')
  const recipe = (word) => Template().fromTemplate('base').runCmd(`echo ${word} > ~/mark`)
  const good = await Template.build(recipe('good'), name, { tags: ['v1', 'default'] })
  const bad = await Template.build(recipe('bad'), name, { tags: ['v2', 'default'] })
  await inBox(name, async (box) => {
    const moved = await Template.assignTags(`${name}:v1`, 'default')
    assert.deepEqual([moved.buildId, moved.tags], [good.buildId, ['default']])
    assert.equal(await shell(name, 'cat ~/mark'), 'good\n')
    assert.equal((await box.commands.run('cat ~/mark')).stdout, 'bad\n')
  })
  const tags = Object.fromEntries((await Template.getTags(name)).map((tag) => [tag.tag, tag.buildId]))
  assert.deepEqual(tags, { default: good.buildId, v1: good.buildId, v2: bad.buildId })
})

test('a failed build names its step and leaves the last good one in use', async () => {
  const name = fresh('js-step')
  await Template.build(Template().fromTemplate('base').runCmd('echo good > ~/mark'), name)
  const broken = Template().fromTemplate('base').runCmd('true').setEnvs({ A: 'b' }).runCmd('echo oops >&2; exit 7')
  const info = await Template.buildInBackground(broken, name)
  const done = await until(async () => {
    const status = await Template.getBuildStatus(info)
    return status.status === 'error' && status
  }, 60_000)
  assert.equal(done.reason.step, '3')
  assert.match(done.reason.message, /exit status 7/)
  assert.ok(done.logEntries.some((entry) => entry.level === 'warn' && entry.message.endsWith(': oops')))
  assert.equal(await shell(name, 'cat ~/mark'), 'good\n')
})

test('packages of pip in a custom interpreter, from its first cell on', async () => {
  const name = fresh('js-pip')
  const context = folder({ 'made.txt': 'x' })
  execFileSync('python3', ['-c', WHEEL, join(context, 'js_pip_word-1.0-py3-none-any.whl'), name])
  const template = Template({ fileContextPath: context })
    .fromTemplate('code-interpreter-v1')
    .copy('*.whl', '/srv/wheels/')
    .pipInstall('--no-index /srv/wheels/js_pip_word-1.0-py3-none-any.whl')
  await Template.build(template, name)
  const firstCell = (template, code) => {
    const began = Date.now()
    return inBox(
      template,
      async (cell) => {
        const got = await cell.runCode(code)
        assert.equal(got.error, undefined, got.error?.traceback)
        return { text: got.text, took: Date.now() - began }
      },
      (made) => interpreter.Sandbox.create(made, { timeoutMs: 60_000 }),
    )
  }
  // Python of a team's template is loaded inside its boxes that wait in the pool, unless private_zygotes is on. However
  // many templates share that pool, the one in use gets its place there: soon no first cell waits for a Python to load.
  const seen = []
  await until(async () => {
    const { text, took } = await firstCell(name, 'import js_pip_word; js_pip_word.WORD')
    assert.equal(text, name)
    seen.push(took)
    return took < 1500
  }, 60_000).catch((error) => assert.fail(`${error.message}: first cells came after so many ms: ${seen}`))
})

test('a rebuild of the same takes the running server over, skipCache starts it anew', async () => {
  const mark = fresh('js-same')
  const recipe = () =>
    Template()
      .fromTemplate('base')
      .setEnvs({ MARK: mark })
      .setStartCmd('date +%s%N > /tmp/begun; exec python3 -m http.server 8710', waitForURL('http://localhost:8710/'))
  const names = [fresh('js-s'), fresh('js-s'), fresh('js-s')]
  await Template.build(recipe(), names[0])
  const again = await build({ Template }, recipe(), names[1])
  assert.ok(again.log.some((line) => line.includes('CACHED [finalize]')), again.log.join('\n'))
  await Template.build(recipe(), names[2], { skipCache: true })
  const line = 'cat /tmp/begun; curl -s -o /dev/null -w "%{http_code}" http://127.0.0.1:8710/'
  const got = await Promise.all(names.map((name) => shell(name, line)))
  assert.equal(got[0], got[1])
  assert.notEqual(got[0], got[2])
  for (const text of got) assert.match(text, /^\d+\n200$/)
})

test('a template exists by name, and an unknown one does not', async () => {
  assert.equal(await Template.exists('base'), true)
  assert.equal(await Template.aliasExists(fresh('none')), false)
})

test('the same recipe again is cached, and skipCache builds it anew', async () => {
  const mark = fresh('js-cache')
  const recipe = () => Template().fromTemplate('base').setEnvs({ MARK: mark }).runCmd('date +%s%N > ~/stamp')
  const names = [fresh('js-c'), fresh('js-c'), fresh('js-c')]
  await Template.build(recipe(), names[0])
  const again = await build({ Template }, recipe(), names[1])
  assert.ok(again.log.some((line) => line.includes('CACHED')))
  await Template.build(recipe(), names[2], { skipCache: true })
  const stamps = await Promise.all(names.map((name) => shell(name, 'cat ~/stamp')))
  assert.equal(stamps[0], stamps[1])
  assert.notEqual(stamps[0], stamps[2])
})

test('copies: forced, without gzip, items, links', async () => {
  const context = folder({ 'f.txt': 'f\n', 'd/g.txt': 'g\n' })
  const name = fresh('js-copy')
  const template = Template({ fileContextPath: context })
    .fromTemplate('base')
    .copy('f.txt', '/srv/forced', { forceUpload: true })
    .copy('d', '/srv/plain', { gzip: false })
    .copyItems([{ src: ['f.txt', 'd/g.txt'], dest: '/srv/items/' }])
  const built = await build({ Template }, template, name)
  assertTold(built.log, 'Uploaded')
  assert.equal(await shell(name, 'cat /srv/forced /srv/plain/g.txt; ls /srv/items'), 'f\ng\nf.txt\ng.txt\n')
})

test('ready by file and by url', async () => {
  const byFile = Template()
    .fromTemplate('base')
    .setStartCmd('sleep 0.3; touch /tmp/is-ready; sleep 600', waitForFile('/tmp/is-ready'))
  await Template.build(byFile, fresh('js-file'))
  const byUrl = Template()
    .fromTemplate('base')
    .setStartCmd('exec python3 -m http.server 8700', waitForURL('http://localhost:8700/'))
  const name = fresh('js-url')
  await Template.build(byUrl, name)
  const code = await shell(name, 'curl -s -o /dev/null -w "%{http_code}" http://127.0.0.1:8700/')
  assert.equal(code, '200')
})
