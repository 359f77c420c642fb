// SPDX-License-Identifier: Apache-2.0
// Writes docs/sdk-typescript-api.md from the declarations in dist/, and the table of deviations in
// docs/sdk-typescript.md from tests/parity/deviations.mjs.
//
//   node reference.mjs [--check]   --check: write nothing, fail when something would change

import { readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import ts from 'typescript'
import * as deviations from './tests/parity/deviations.mjs'

const here = dirname(fileURLToPath(import.meta.url))
const docs = join(here, '../../docs')
const WIDTH = 118

const program = ts.createProgram([join(here, 'dist/index.d.ts')], { target: ts.ScriptTarget.ES2022 })
const checker = program.getTypeChecker()
const module = checker.getSymbolAtLocation(program.getSourceFile(join(here, 'dist/index.d.ts')))

const said = (symbol) =>
  ts.displayPartsToString(symbol.getDocumentationComment(checker)).split('\n\n')[0].replaceAll('\n', ' ')
const isHidden = (node) =>
  (ts.getCombinedModifierFlags(node) & (ts.ModifierFlags.Private | ts.ModifierFlags.Protected)) !== 0

// One declaration as a line of code, without comments and what the reader knows.
function line(node) {
  const text = node.getText().replace(/\/\*\*[^]*?\*\//g, ' ')
  return text
    .replace(/^(export |declare |readonly )+/, '')
    .replace(/\s+/g, ' ')
    .replace(/;$/, '')
    .trim()
}

function members(symbol) {
  const [declaration] = symbol.declarations
  const shown = []
  for (const member of declaration.members ?? []) {
    if (isHidden(member) || (member.name && ts.isPrivateIdentifier(member.name))) continue
    const own = member.name && checker.getSymbolAtLocation(member.name)
    const text = own ? said(own) : ''
    shown.push({ code: line(member), text })
  }
  return shown
}

function wrapped(text, indent = '') {
  const rows = []
  let row = ''
  for (const word of text.split(' ')) {
    if (row && (indent + row + word).length > WIDTH) {
      rows.push(indent + row.trimEnd())
      row = ''
    }
    row += `${word} `
  }
  return [...rows, indent + row.trimEnd()].join('\n')
}

function section(name, symbol) {
  const out = [`### ${name}`, '']
  const text = said(symbol)
  if (text) out.push(wrapped(text), '')
  const [declaration] = symbol.declarations
  const body = []
  const list = ts.isTypeAliasDeclaration(declaration) || ts.isVariableDeclaration(declaration) ? [] : members(symbol)
  if (!list.length) body.push(wrapped(line(declaration)))
  for (const { code, text: note } of list) body.push(...(note ? [wrapped(note, '// ')] : []), wrapped(code))
  return [...out, '```ts', ...body, '```', ''].join('\n')
}

const groups = { Classes: [], Functions: [], Values: [], Types: [] }
for (const symbol of checker.getExportsOfModule(module)) {
  if (symbol.name === 'default') continue
  const real = symbol.flags & ts.SymbolFlags.Alias ? checker.getAliasedSymbol(symbol) : symbol
  const group =
    real.flags & ts.SymbolFlags.Class
      ? 'Classes'
      : real.flags & ts.SymbolFlags.Function
        ? 'Functions'
        : real.flags & (ts.SymbolFlags.Variable | ts.SymbolFlags.Enum)
          ? 'Values'
          : 'Types'
  groups[group].push([symbol.name, section(symbol.name, real)])
}

const head = `# TypeScript SDK: reference

Everything that the package \`cloche\` exports, made from its sources by \`sdk/typescript/reference.mjs\`. How to begin,
timeouts and migration: [sdk-typescript.md](sdk-typescript.md).

`
const parts = Object.entries(groups).map(
  ([title, list]) =>
    `## ${title}\n\n${list
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([, text]) => text)
      .join('\n')}`,
)

const rows = [
  ...Object.entries(deviations.behaviour),
  ...Object.entries(deviations.types).map(([name, why]) => [`type \`${name}\``, why]),
]
const table = ['| what | here |', '|---|---|', ...rows.map(([name, why]) => `| ${name} | ${why} |`)].join('\n')

function put(name, text) {
  const path = join(docs, name)
  if (readFileSync(path, { encoding: 'utf8', flag: 'a+' }) === text) return
  if (process.argv.includes('--check')) throw new Error(`docs/${name} is not what the sources say: run reference.mjs`)
  writeFileSync(path, text)
}

put('sdk-typescript-api.md', head + parts.join('\n'))
const page = readFileSync(join(docs, 'sdk-typescript.md'), 'utf8')
put(
  'sdk-typescript.md',
  page.replace(/(<!-- deviations -->\n)[^]*?(\n<!-- end -->)/, (_, from, to) => from + table + to),
)
