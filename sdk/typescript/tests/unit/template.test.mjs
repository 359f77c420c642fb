// SPDX-License-Identifier: Apache-2.0
// Recipes, Dockerfiles and the files that they copy.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import * as stock from 'e2b'
import * as ours from '../../dist/index.js'
import { BuildContext, globPattern } from '../../dist-test/internals.js'

function folder(t, files) {
  const path = mkdtempSync(join(tmpdir(), 'cloche-ts-context.'))
  t.after(() => rmSync(path, { recursive: true }))
  for (const [name, content] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true })
    writeFileSync(join(path, name), content)
  }
  return path
}

const recipes = {
  steps: ({ Template }) =>
    Template()
      .fromPythonImage('3.12')
      .setEnvs({ A: 'b c', D: '$A' })
      .setWorkdir('/srv')
      .setUser('root')
      .runCmd(['a', 'b'], { user: 'x' })
      .remove(['/a b', '/c'], { recursive: true, force: true })
      .rename('/a', '/b', { force: true })
      .makeDir('/d', { mode: 0o755 })
      .makeSymlink('/a', '/b', { force: true })
      .pipInstall(['numpy', 'pandas'])
      .pipInstall('x', { g: false })
      .npmInstall('left-pad', { g: true })
      .npmInstall(undefined, { dev: true })
      .bunInstall('x')
      .aptInstall(['curl', 'jq'], { noInstallRecommends: true })
      .skipCache()
      .gitClone('https://git.example/a b.git', '/x', { branch: 'main', depth: 1, user: 'root' })
      .setStartCmd('serve', 'true'),
  waits: (sdk) => sdk.Template().fromTemplate('base').setReadyCmd(sdk.waitForURL('http://localhost:80/x', 204)),
  port: (sdk) => sdk.Template().fromNodeImage().setStartCmd('x', sdk.waitForPort(80)),
  registry: ({ Template }) => Template().fromImage('r.example/a:1', { username: 'u', password: 'p' }),
  aws: ({ Template }) =>
    Template().fromAWSRegistry('a/b', { accessKeyId: 'i', secretAccessKey: 's', region: 'r' }).runCmd('x'),
  forced: ({ Template }) => Template().skipCache().fromDebianImage().runCmd('x'),
  mcp: ({ Template }) => Template().fromTemplate('mcp-gateway').addMcpServer(['exa', 'notion']),
  dockerfile: ({ Template }) =>
    Template().fromDockerfile(
      'FROM debian:12\nENV A=1 B=xy\nARG V=2\nWORKDIR /w\nUSER me\nRUN echo hi\nEXPOSE 80\nCMD ["serve"]',
    ),
}

for (const [name, recipe] of Object.entries(recipes)) {
  test(`the recipe '${name}' becomes the stock SDK's request`, async () => {
    const mine = JSON.parse(await ours.Template.toJSON(recipe(ours), false))
    assert.deepEqual(mine, JSON.parse(await stock.Template.toJSON(recipe(stock), false)))
  })
}

test('a template becomes the stock SDK’s Dockerfile', () => {
  assert.equal(ours.Template.toDockerfile(recipes.steps(ours)), stock.Template.toDockerfile(recipes.steps(stock)))
})

test('Dockerfiles are read as Docker reads them', async (t) => {
  const context = folder(t, { 'a.txt': 'x', 'b.txt': 'y' })
  const text = `# syntax=docker/dockerfile:1
FROM --platform=linux/amd64 python:3 AS main
RUN apt-get update && \\
    # a comment in between
    apt-get install -y curl
RUN ["echo", "a b"]
RUN <<EOF
echo one
echo two
EOF
RUN python3 <<PY
print('hi')
PY
COPY --chown=app:app --chmod=755 a.txt b.txt /app/
COPY <<CONF /etc/app.conf
key=value
CONF
ENV LEGACY some value
ENTRYPOINT ["server", "--port", "80"]
CMD ["--verbose"]`
  const template = ours.Template({ fileContextPath: context }).fromDockerfile(text)
  const { steps, fromImage, startCmd, readyCmd } = JSON.parse(await ours.Template.toJSON(template, false))
  assert.equal(fromImage, 'python:3')
  assert.equal(startCmd, 'server --port 80 --verbose')
  assert.equal(readyCmd, 'sleep 20')
  assert.deepEqual(
    steps.map(({ type, args }) => [type, ...args]),
    [
      ['USER', 'root'],
      ['WORKDIR', '/'],
      ['RUN', 'apt-get update &&     apt-get install -y curl'],
      ['RUN', "echo 'a b'"],
      ['RUN', 'echo one\necho two\n'],
      ['RUN', "python3 <<PY\nprint('hi')\nPY"],
      ['COPY', 'a.txt', '/app/', 'app:app', '0755'],
      ['COPY', 'b.txt', '/app/', 'app:app', '0755'],
      ['RUN', `mkdir -p "$(dirname /etc/app.conf)" && cat > /etc/app.conf <<'CONF'\nkey=value\nCONF`, 'root'],
      ['ENV', 'LEGACY', 'some value'],
      ['USER', 'user'],
      ['WORKDIR', '/home/user'],
    ],
  )
})

test('Dockerfiles of several stages, without a base or with unknown words are refused', () => {
  for (const text of ['FROM a\nFROM b', 'RUN x\n', 'FROM a\nCOPY --from=b x y', 'FROM a\nBOGUS x']) {
    assert.throws(() => ours.Template().fromDockerfile(text), ours.TemplateError)
  }
})

test('paths that leave the context are refused', () => {
  for (const path of ['/etc/passwd', '../x', 'a/../../x', 'C:\\x']) {
    assert.throws(() => ours.Template().fromBaseImage().copy(path, '/x'), ours.TemplateError, path)
  }
})

test('files are looked for beside the calling file, and a step that fails shows its place', async () => {
  const template = ours.Template().fromBaseImage().copy('template.test.mjs', '/x')
  const { steps } = JSON.parse(await ours.Template.toJSON(template))
  assert.match(steps[0].filesHash, /^[0-9a-f]{64}$/)
  assert.throws(
    () => ours.Template().fromImage('x', { username: 'u', password: '' }),
    (error) => error.stack.includes('template.test.mjs'),
  )
})

test('patterns choose as a shell does', () => {
  const chosen = (pattern, ...paths) => paths.filter((path) => globPattern(pattern).test(path))
  assert.deepEqual(chosen('*.txt', 'a.txt', 'd/a.txt', '.txt'), ['a.txt', '.txt'])
  assert.deepEqual(chosen('**/*.js', 'a.js', 'd/e/a.js', 'a.jsx'), ['a.js', 'd/e/a.js'])
  assert.deepEqual(chosen('a/**', 'a/b', 'a/b/c', 'b/c'), ['a/b', 'a/b/c'])
  assert.deepEqual(chosen('{a,b}?[0-9].c', 'ax1.c', 'by2.c', 'cx1.c', 'axx.c'), ['ax1.c', 'by2.c'])
  assert.deepEqual(chosen('a+(b).c', 'a+(b).c', 'ab.c'), ['a+(b).c'])
})

test('an archive holds what is copied and nothing that is ignored', async (t) => {
  const long = 'x'.repeat(150)
  const root = folder(t, {
    'src/a.js': 'a',
    'src/node_modules/m.js': 'm',
    'src/keep.log': 'k',
    'src/drop.log': 'd',
    [`src/${long}`]: 'long',
    '.dockerignore': '# comment\n**/*.log\n!src/keep.log\n',
  })
  symlinkSync('a.js', join(root, 'src/link'))
  const context = new BuildContext(root, ['src/node_modules'])
  const out = mkdtempSync(join(tmpdir(), 'cloche-ts-archive.'))
  t.after(() => rmSync(out, { recursive: true }))
  for (const gzip of [true, false]) {
    const blob = await context.archive('src', false, gzip)
    writeFileSync(join(out, 'context.tar'), Buffer.from(await blob.arrayBuffer()))
    const names = execFileSync('tar', [gzip ? '-tzf' : '-tf', join(out, 'context.tar')])
      .toString()
      .trim()
      .split('\n')
    assert.deepEqual(names.sort(), ['src/', 'src/a.js', 'src/keep.log', 'src/link', `src/${long}`])
  }
  execFileSync('tar', ['-xf', join(out, 'context.tar'), '-C', out])
  assert.equal(readFileSync(join(out, 'src', long), 'utf8'), 'long')
  assert.equal(readFileSync(join(out, 'src/link'), 'utf8'), 'a')
})

test('a hash changes with the content, the mode and the destination, and with nothing else', (t) => {
  const root = folder(t, { 'a/b.txt': '1' })
  const hash = (dest = '/x') => new BuildContext(root, []).hash('a', dest, false)
  const first = hash()
  assert.equal(hash(), first)
  assert.notEqual(hash('/y'), first)
  writeFileSync(join(root, 'a/b.txt'), '2')
  assert.notEqual(hash(), first)
  assert.throws(() => new BuildContext(root, []).hash('nothing', '/x', false), /No files found/)
})
