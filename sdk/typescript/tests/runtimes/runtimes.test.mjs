// SPDX-License-Identifier: Apache-2.0
// The packed package in Node (both module systems), Deno and Bun.
import assert from 'node:assert/strict'
import { cpSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import ts from 'typescript'
import { installed, output } from '../support/installed.mjs'

const here = import.meta.dirname
const packages = join(here, 'node_modules')
const SAID = '42\n"a\\nb\\n"\n1000000 true\nhi\ntrue\n64\nSandboxNotRunningError killed\n'

async function said(t, command, args) {
  const folder = installed(t)
  cpSync(join(here, 'program.mjs'), join(folder, 'program.mjs'))
  writeFileSync(join(folder, 'package.json'), '{"type": "module"}')
  return output(command, [...args, 'program.mjs'], folder)
}

test('Node runs it as ES modules', async (t) => {
  assert.equal(await said(t, process.execPath, []), SAID)
})

test('Deno runs it', async (t) => {
  assert.equal(
    await said(t, join(packages, '@deno/linux-x64-glibc/deno'), ['run', '-A', '--node-modules-dir=manual']),
    SAID,
  )
})

test('Bun runs it', async (t) => {
  assert.equal(await said(t, join(packages, '@oven/bun-linux-x64/bin/bun'), ['run']), SAID)
})

test('Node runs it as CommonJS', async (t) => {
  const folder = installed(t)
  const program = `const { Sandbox, default: same } = require('cloche')
Sandbox.create({ timeoutMs: 60_000 }).then(async (box) => {
  try { console.log((await box.runCode('6 * 7')).text, same === Sandbox) } finally { await box.kill() }
})`
  writeFileSync(join(folder, 'program.cjs'), program)
  assert.equal(await output(process.execPath, ['program.cjs'], folder), '42 true\n')
})

test('programs of both module systems find its types, strictly', (t) => {
  const folder = installed(t)
  const program = (head) => `${head}
async function main(): Promise<string | undefined> {
  await using box = await Sandbox.create({ timeoutMs: 1000 })
  for await (const event of box.runCode('1', { stream: true })) if (event.type === 'result') return event.result.text
  const execution = await box.runCode('1', { language: 'python', signal: AbortSignal.timeout(5) })
  const text: Uint8Array = await box.files.read('x', { format: 'bytes' })
  // @ts-expect-error a format that does not exist
  await box.files.read('x', { format: 'bogus' })
  return execution.text ?? String(text.length)
}
void main`
  writeFileSync(join(folder, 'a.mts'), program("import { Sandbox } from 'cloche'"))
  writeFileSync(join(folder, 'b.cts'), program("import { Sandbox } from 'cloche'"))
  const options = {
    strict: true,
    noEmit: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.NodeNext,
    moduleResolution: ts.ModuleResolutionKind.NodeNext,
    lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
    types: [],
  }
  const check = ts.createProgram([join(folder, 'a.mts'), join(folder, 'b.cts')], options)
  const problems = ts
    .getPreEmitDiagnostics(check)
    .map((one) => ts.flattenDiagnosticMessageText(one.messageText, '\n'))
  assert.deepEqual(problems, [])
})
