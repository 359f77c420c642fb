// SPDX-License-Identifier: Apache-2.0
// git: the SDK's module end to end, on a disk and over the box's own network.

import assert from 'node:assert/strict'
import { test } from 'node:test'
import { GitUpstreamError } from 'e2b'
import { sharedBox, unique } from '../support/box.mjs'

const box = sharedBox()
const AUTHOR = { authorName: 'Ada', authorEmail: 'ada@example.org' }

async function repository() {
  const path = `/tmp/test-git/${unique()}`
  await box.it.git.init(path, { initialBranch: 'main' })
  await box.it.files.write(`${path}/README.md`, '# readme\n')
  await box.it.git.add(path)
  await box.it.git.commit(path, 'First', AUTHOR)
  return path
}

test('status, branches, reset and restore', async () => {
  const { git, files } = box.it
  const repo = await repository()
  assert.equal((await git.status(repo)).currentBranch, 'main')
  await files.write(`${repo}/README.md`, 'changed\n')
  const [file] = (await git.status(repo)).fileStatus
  assert.deepEqual([file.name, file.status, file.staged], ['README.md', 'modified', false])
  await git.restore(repo, { paths: ['README.md'] })
  assert.equal(await files.read(`${repo}/README.md`), '# readme\n')
  await git.createBranch(repo, 'feature')
  const { branches, currentBranch } = await git.branches(repo)
  assert.deepEqual([branches.sort(), currentBranch], [['feature', 'main'], 'feature'])
  await git.checkoutBranch(repo, 'main')
  await git.deleteBranch(repo, 'feature', { force: true })
  await files.write(`${repo}/README.md`, 'changed\n')
  await git.reset(repo, { mode: 'hard', target: 'HEAD' })
  assert.equal(await files.read(`${repo}/README.md`), '# readme\n')
})

test('push, clone and pull over a daemon in the box', async () => {
  const { git, files, commands } = box.it
  const repo = await repository()
  const base = `/tmp/${unique()}`
  await git.init(`${base}/repo.git`, { bare: true, initialBranch: 'main' })
  const daemon = await commands.run(
    `git daemon --reuseaddr --base-path=${base} --export-all --enable=receive-pack ` +
      `--listen=127.0.0.1 --port=9700 ${base}`,
    { background: true, timeoutMs: 0 },
  )
  const url = 'git://127.0.0.1:9700/repo.git'
  await commands.run(`for n in $(seq 50); do git ls-remote ${url} && exit 0; sleep 0.1; done; exit 1`)
  await git.remoteAdd(repo, 'origin', url)
  assert.equal(await git.remoteGet(repo, 'origin'), url)
  await git.push(repo, { remote: 'origin', branch: 'main', setUpstream: true })
  await git.clone(url, { path: `${base}/copy` })
  await files.write(`${repo}/second`, '2')
  await git.add(repo)
  await git.commit(repo, 'Second', AUTHOR)
  assert.equal((await git.status(repo)).ahead, 1)
  await git.push(repo)
  await git.pull(`${base}/copy`)
  assert.equal(await files.read(`${base}/copy/second`), '2')
  await daemon.kill()
})

test('config, users and missing upstreams', async () => {
  const { git } = box.it
  const repo = await repository()
  await git.setConfig('user.nickname', 'Countess', { scope: 'local', path: repo })
  assert.equal(await git.getConfig('user.nickname', { scope: 'local', path: repo }), 'Countess')
  assert.equal(await git.getConfig('user.nobody', { scope: 'local', path: repo }), undefined)
  await git.configureUser('Grace', 'grace@example.org')
  assert.equal(await git.getConfig('user.name', { scope: 'global' }), 'Grace')
  await git.remoteAdd(repo, 'origin', '/tmp/nowhere.git')
  await assert.rejects(git.pull(repo), GitUpstreamError)
})
