// SPDX-License-Identifier: Apache-2.0
'use strict';

/*
 * TypeScript to JavaScript, types removed and nothing checked.
 *
 * Uses what the box has, cheapest first: the esbuild program (about ten milliseconds a
 * cell, nothing stays in memory), the typescript package (slow to load, so only when needed),
 * or Node's own stripper. Imports are kept even if the cell does not use them: a later
 * cell may.
 */

const fs = require('node:fs');
const Module = require('node:module');
const path = require('node:path');

const ESBUILD_PLACES = ['/usr/bin/esbuild', '/usr/local/bin/esbuild'];
const PACKAGE_PLACES = ['/usr/share/nodejs', '/usr/local/lib/node_modules', '/usr/lib/node_modules'];
const COMPILER_OPTIONS = {
  verbatimModuleSyntax: true,
  preserveValueImports: true,
  isolatedModules: true,
  experimentalDecorators: true,
};

let chosen;

function typeScriptError(message, line, column) {
  const error = new SyntaxError(message);
  error.cellPosition = { line, column };
  return error;
}

function esbuildProgram() {
  const local = path.join(process.cwd(), 'node_modules/.bin/esbuild');
  return [...ESBUILD_PLACES, local].find((file) => fs.existsSync(file));
}

function byEsbuild(program) {
  const args = [
    '--loader=ts', '--target=es2022', '--log-level=silent', '--charset=utf8',
    `--tsconfig-raw=${JSON.stringify({ compilerOptions: COMPILER_OPTIONS })}`,
  ];
  return (code) => {
    const { spawnSync } = require('node:child_process');
    const limits = { input: code, encoding: 'utf8', maxBuffer: 1 << 30 };
    const done = spawnSync(program, args, limits);
    if (done.error) throw done.error;
    if (done.status === 0) return done.stdout;
    const shown = spawnSync(program, [...args, '--log-level=error', '--color=false'], limits).stderr;
    throw esbuildError(shown);
  };
}

function esbuildError(shown) {
  const message = /\[ERROR\] (.*)/.exec(shown)?.[1] ?? 'Invalid TypeScript';
  const place = /<stdin>:(\d+):(\d+):/.exec(shown);
  return typeScriptError(message, Number(place?.[1] ?? 1), Number(place?.[2] ?? 0) + 1);
}

function typescriptPackage() {
  for (const from of [process.cwd(), ...PACKAGE_PLACES]) {
    try {
      const cellRequire = Module.createRequire(path.join(from, 'cell.js'));
      return cellRequire.resolve('typescript', { paths: [from, ...PACKAGE_PLACES] });
    } catch {
      /* not there: the next place may have it */
    }
  }
  return undefined;
}

function byTypescript(file) {
  const ts = require(file);
  const options = { ...COMPILER_OPTIONS, target: ts.ScriptTarget.ES2022, module: ts.ModuleKind.ESNext };
  if (Number(ts.version.split('.')[0]) >= 5) delete options.preserveValueImports;
  return (code) => {
    const out = ts.transpileModule(code, { compilerOptions: options, reportDiagnostics: true });
    const first = out.diagnostics.find((found) => found.file !== undefined && found.code < 2000);
    if (first === undefined) return out.outputText;
    const place = first.file.getLineAndCharacterOfPosition(first.start);
    const text = ts.flattenDiagnosticMessageText(first.messageText, '\n');
    throw typeScriptError(text, place.line + 1, place.character + 1);
  };
}

function byNode() {
  return (code) => Module.stripTypeScriptTypes(code, { mode: 'transform' });
}

function choose() {
  const program = esbuildProgram();
  if (program !== undefined) return byEsbuild(program);
  if (typeof Module.stripTypeScriptTypes === 'function') return byNode();
  const file = typescriptPackage();
  return file === undefined ? null : byTypescript(file);
}

/* Is there anything that can transpile? */
function canTranspile() {
  chosen ??= choose();
  return chosen !== null;
}

/* Throws a SyntaxError for what is not TypeScript either. */
function transpile(code) {
  return canTranspile() ? chosen(code) : code;
}

module.exports = { transpile, canTranspile };
