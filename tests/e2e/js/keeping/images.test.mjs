// SPDX-License-Identifier: Apache-2.0
// Templates that begin with images, with the stock JavaScript builder.

import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { BuildError, Template } from 'e2b'
import { generations } from '../support/box.mjs'
import { sharedRegistry } from '../support/registry.mjs'
import { build, fresh, inBox, shell } from '../support/workshop.mjs'

const registry = sharedRegistry()

for (const [version, sdk] of Object.entries(generations)) {
  describe(`e2b ${version}`, () => {
    test("a registry's image: its files, environment and user, and its layers once", async () => {
      const name = fresh('js-image')
      const recipe = () => sdk.Template().fromImage(registry.one).runCmd(`echo ${version} > ~/made; env > /tmp/env`)
      await build(sdk, recipe(), name)
      await inBox(name, async (box) => {
        assert.equal(await box.files.read('/srv/word'), 'one')
        assert.equal(await box.files.read('/home/user/made'), `${version}\n`)
        assert.match(await box.files.read('/tmp/env'), /^FROM_IMAGE=yes$/m)
        assert.equal((await box.commands.run('id -u; pwd; echo $FROM_IMAGE')).stdout, '1000\n/home/user\nyes\n')
      })
      const again = await build(sdk, recipe(), name)
      assert.ok(!again.log.some((line) => line.includes('unpacking layer')), again.log.join('\n'))
      assert.ok(again.log.some((line) => line.includes('CACHED layer')))
    })
  })
}

test('a second image of the same base brings only what is new', async () => {
  await Template.build(Template().fromImage(registry.one), fresh('js-one'))
  const name = fresh('js-two')
  const { log } = await build({ Template }, Template().fromImage(registry.two), name)
  assert.ok(log.some((line) => line.includes('CACHED layer 1 of 2')), log.join('\n'))
  assert.equal(await shell(name, 'cat /srv/word'), 'two')
})

test('an image behind a password needs the right one', async () => {
  const { private: image, username, password } = registry
  const name = fresh('js-private')
  const { log } = await build({ Template }, Template().fromImage(image, { username, password }), name)
  assert.ok(!log.join('\n').includes(password))
  assert.equal(await shell(name, 'cat /srv/word'), 'one')
  for (const given of [undefined, { username, password: 'a guess' }]) {
    await assert.rejects(Template.build(Template().fromImage(image, given), fresh('js-guess')), (error) => {
      assert.ok(error instanceof BuildError)
      assert.match(error.message, /unauthorized|authentication required/i)
      return true
    })
  }
})

test('images that are not there, or of a registry nobody allowed, fail the base', async () => {
  await assert.rejects(
    Template.build(Template().fromImage(`${registry.host}/nobody/home:1`), fresh('js-none')),
    /unknown|not found/i,
  )
  await assert.rejects(
    Template.build(Template().fromImage('registry.example/x:1'), fresh('js-foreign')),
    /registry\.example.*image_registries/,
  )
})

test("the builder's default image is our own template", async () => {
  const name = fresh('js-default')
  await Template.build(Template().fromBaseImage().runCmd('echo x > ~/x'), name)
  assert.equal(await shell(name, 'cat ~/x; command -v python3 ss curl | wc -l'), 'x\n3\n')
})

test('a Dockerfile from an image of a registry', async () => {
  const name = fresh('js-docker')
  const text = `FROM ${registry.one}\nENV WORD=docker\nWORKDIR /srv/app\nRUN echo $WORD > word\n`
  await Template.build(Template().fromDockerfile(text), name)
  assert.equal(await shell(name, 'cat /srv/app/word /srv/word'), 'docker\none')
})

test('a Debian release is made from packages where no registry can be asked', { timeout: 600_000 }, async () => {
  const name = fresh('js-debian')
  const recipe = Template().fromDebianImage('bookworm').runCmd('sudo id -u > ~/who')
  const { log } = await build({ Template }, recipe, name)
  assert.ok(log.some((line) => line.includes('building Debian bookworm from packages')), log.join('\n'))
  assert.match(await shell(name, 'cat /etc/debian_version ~/who; id -un'), /^12\.\d+\n0\nuser\n$/)
})
