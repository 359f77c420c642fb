// SPDX-License-Identifier: Apache-2.0
// Programs written for the stock SDK do the same with only the import changed.
import assert from 'node:assert/strict'
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { installed, output } from '../support/installed.mjs'

const here = import.meta.dirname
const sdk = join(here, '../..')
const programs = {
  quickstart: join(sdk, '../../scripts/quickstart.mjs'),
  analysis: join(here, 'analysis.mjs'),
  streaming: join(here, 'streaming.mjs'),
  template: join(here, 'template.mjs'),
}

function prepare(folder, source, name) {
  cpSync(join(here, 'payload.txt'), join(folder, 'payload.txt'))
  writeFileSync(join(folder, `${name}.mjs`), source)
  return [`${name}.mjs`]
}

for (const [name, path] of Object.entries(programs)) {
  test(`the program '${name}' does the same with another import`, async (t) => {
    const source = readFileSync(path, 'utf8')
    const changed = source.replaceAll("from '@e2b/code-interpreter'", "from 'cloche'")
    assert.notEqual(changed, source)
    const ours = installed(t)
    const stock = mkdtempSync(join(tmpdir(), 'cloche-ts-stock.'))
    t.after(() => rmSync(stock, { recursive: true }))
    symlinkSync(join(sdk, 'node_modules'), join(stock, 'node_modules'))
    const said = await output(process.execPath, prepare(ours, changed, name), ours)
    assert.ok(said.split('\n').length > 2, said)
    assert.equal(said, await output(process.execPath, prepare(stock, source, name), stock))
  })
}
