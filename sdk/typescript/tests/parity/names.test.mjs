// SPDX-License-Identifier: Apache-2.0
// Every name that the stock packages export is here, as a value and as a type, and types fit where values are passed.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { fileURLToPath } from 'node:url'
import * as stockCode from '@e2b/code-interpreter'
import ts from 'typescript'
import * as ours from '../../dist/index.js'
import * as deviations from './deviations.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const root = join(here, '../..')
const stockTypes = join(root, 'node_modules/@e2b/code-interpreter/dist/index.d.ts')
const ourTypes = join(root, 'dist/index.d.ts')
const options = {
  strict: true,
  noEmit: true,
  skipLibCheck: true,
  target: ts.ScriptTarget.ES2022,
  module: ts.ModuleKind.NodeNext,
  moduleResolution: ts.ModuleResolutionKind.NodeNext,
  lib: ['lib.es2022.d.ts', 'lib.esnext.disposable.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
  types: ['node'],
  typeRoots: [join(root, 'node_modules/@types')],
}

function exportsOf(program, file) {
  const checker = program.getTypeChecker()
  const module = checker.getSymbolAtLocation(program.getSourceFile(file))
  return new Map(
    checker.getExportsOfModule(module).map((symbol) => {
      const real = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
      return [symbol.name, real]
    }),
  )
}

const program = ts.createProgram([stockTypes, ourTypes], options)
const stock = exportsOf(program, stockTypes)
const mine = exportsOf(program, ourTypes)

test('every value that the stock packages export is exported', () => {
  assert.deepEqual(
    Object.keys(stockCode).filter((name) => !(name in ours)),
    [],
  )
})

test('every type that the stock packages export is exported', () => {
  assert.ok(stock.size > 150, `only ${stock.size} names were found`)
  assert.deepEqual(
    [...stock.keys()].filter((name) => !mine.has(name)),
    [],
  )
})

test('classes have the public members of the stock ones', () => {
  const checker = program.getTypeChecker()
  const hidden = (symbol) =>
    symbol.declarations?.some((one) => {
      const flags = ts.getCombinedModifierFlags(one)
      return (flags & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0
    })
  const publicOf = (symbol, isStatic) => {
    const type = isStatic ? checker.getTypeOfSymbol(symbol) : checker.getDeclaredTypeOfSymbol(symbol)
    return checker
      .getPropertiesOfType(type)
      .filter((one) => !hidden(one))
      .map((one) => one.name)
  }
  const missing = []
  for (const [name, symbol] of stock) {
    if (!(symbol.flags & ts.SymbolFlags.Class)) continue
    for (const isStatic of [true, false]) {
      const have = new Set(publicOf(mine.get(name), isStatic))
      for (const member of publicOf(symbol, isStatic)) {
        if (!have.has(member)) missing.push(`${name}.${member}`)
      }
    }
  }
  assert.deepEqual(
    missing.filter((name) => !(name in deviations.members)),
    [],
  )
})

test('options written for the stock packages fit here, and what comes back fits what they declare', () => {
  const lines = [
    `import * as S from '@e2b/code-interpreter'`,
    `import * as O from '../dist/index.js'`,
    'declare function takes<T>(value: T): void;',
  ]
  const checked = []
  for (const [name, symbol] of stock) {
    const plain = symbol.flags & (ts.SymbolFlags.Interface | ts.SymbolFlags.TypeAlias | ts.SymbolFlags.Enum)
    if (!plain || symbol.flags & ts.SymbolFlags.Class || name in deviations.types || name === 'default') continue
    const isInput =
      /(Opts|Options|Item|Rule|Rules|Selector|Resolver|Lifecycle|Update|Logger|Username|OnTimeout)$/.test(name)
    const [from, to] = isInput ? ['S', 'O'] : ['O', 'S']
    if (symbol.flags & ts.SymbolFlags.Enum || ENUMS.test(name)) continue
    lines.push(`{ let value!: ${from}.${name}; takes<${to}.${name}>(value) } // ${name}`)
    checked.push(name)
  }
  assert.ok(checked.length > 70, `only ${checked.length} types are compared`)
  const file = join(root, 'dist-test/types.ts')
  mkdirSync(dirname(file), { recursive: true })
  writeFileSync(file, lines.join('\n'))
  const check = ts.createProgram([file], options)
  const problems = ts.getPreEmitDiagnostics(check).map((one) => {
    const { line } = one.file.getLineAndCharacterOfPosition(one.start)
    return `${lines[line]}: ${ts.flattenDiagnosticMessageText(one.messageText, '\n').slice(0, 600)}`
  })
  assert.deepEqual(problems, [])
})

// Enumerations of two packages never fit each other; their members are compared instead. These types hold some.
const ENUMS = new RegExp(
  'Chart|Data$|^EntryInfo$|^WriteInfo$|^FilesystemEvent$|^VolumeEntryStat$|^Logs?Entry|BuildStatus|^CommandHandle$|' +
    '^TemplateClass$|^TemplateBuilder$',
)

test('enumerations have the values of the stock ones', () => {
  for (const name of ['FileType', 'FilesystemEventType', 'VolumeFileType']) {
    assert.deepEqual(Object.entries(ours[name]).sort(), Object.entries(stockCode[name]).sort())
  }
})

test('the package is one for ES modules and for CommonJS', () => {
  const require = createRequire(import.meta.url)
  const common = require('../../dist/cjs/index.js')
  assert.deepEqual(Object.keys(common).sort(), Object.keys(ours).sort())
})

test('the reference and the table of deviations are those of the sources', () => {
  execFileSync(process.execPath, [join(root, 'reference.mjs'), '--check'])
})
