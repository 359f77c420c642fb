// SPDX-License-Identifier: Apache-2.0
'use strict';

/*
 * Where a cell's require() and import find modules: Node's own, relative to the working
 * directory, in its node_modules, then in the directories of globally installed packages.
 */

const Module = require('node:module');
const path = require('node:path');
const vm = require('node:vm');
const { pathToFileURL } = require('node:url');
const { patchTimersPromises } = require('./timers.js');

const GLOBAL_DIRECTORIES = ['/usr/local/lib/node_modules', '/usr/lib/node_modules', '/usr/share/nodejs'];
const NOT_FOUND = new Set(['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ERR_UNSUPPORTED_DIR_IMPORT']);
const DEFAULT_LOADER = vm.constants?.USE_MAIN_CONTEXT_DEFAULT_LOADER;

let directory = null;
let cellRequire = null;
const importers = new Map();

/* Lets require() look into the global directories too; NODE_PATH stays as the user sees it. */
function extendGlobalPaths() {
  const before = process.env.NODE_PATH;
  process.env.NODE_PATH = [before, ...GLOBAL_DIRECTORIES].filter(Boolean).join(path.delimiter);
  Module._initPaths();
  if (before === undefined) delete process.env.NODE_PATH;
  else process.env.NODE_PATH = before;
}

/* import() as a file in `from` would do it. */
function importerIn(from) {
  const file = path.join(from, 'cell.js');
  const found = importers.get(file);
  if (found !== undefined) return found;
  const importer = vm.runInThisContext('(specifier, options) => import(specifier, options)', {
    filename: file,
    importModuleDynamically: DEFAULT_LOADER ?? ((specifier) => import(resolveFrom(file, specifier))),
  });
  importers.set(file, importer);
  return importer;
}

/* For a Node without the default-loader constant. */
function resolveFrom(file, specifier) {
  if (Module.isBuiltin(specifier) || /^[a-z]+:/i.test(specifier)) return specifier;
  return pathToFileURL(Module.createRequire(file).resolve(specifier)).href;
}

function isBare(specifier) {
  return !/^(?:\.{0,2}\/|[a-z]+:)/i.test(specifier);
}

async function importModule(specifier, options) {
  const name = String(specifier);
  if (/^(?:node:)?timers\/promises$/.test(name)) patchTimersPromises();
  try {
    return await importerIn(process.cwd())(name, options);
  } catch (error) {
    if (!NOT_FOUND.has(error?.code) || !isBare(name)) throw error;
    return importGlobal(name, options, error);
  }
}

async function importGlobal(name, options, error) {
  for (const place of [...nodePath(), ...GLOBAL_DIRECTORIES]) {
    const from = path.basename(place) === 'node_modules' ? path.dirname(place) : null;
    try {
      if (from !== null) return await importerIn(from)(name, options);
      return await import(pathToFileURL(cellRequire.resolve(name, { paths: [place] })).href);
    } catch (next) {
      if (!NOT_FOUND.has(next?.code)) throw next;
    }
  }
  throw error;
}

function nodePath() {
  return (process.env.NODE_PATH ?? '').split(path.delimiter).filter(Boolean);
}

/* The names a static import asked for, with the freedom that CommonJS modules need. */
async function importStatic(specifier, names, options) {
  const namespace = await importModule(specifier, options);
  const from = namespace.default;
  const isObject = from !== null && (typeof from === 'object' || typeof from === 'function');
  const bound = {};
  for (const name of names) {
    if (name === '*') bound[name] = namespace;
    else if (name in namespace) bound[name] = namespace[name];
    else if (name === 'default') bound[name] = namespace;
    else if (isObject) bound[name] = from[name];
  }
  return bound;
}

/* require() follows the working directory. */
function requireHere() {
  const here = process.cwd();
  if (here !== directory) {
    directory = here;
    cellRequire = Module.createRequire(path.join(here, 'cell.js'));
  }
  return cellRequire;
}

function makeRequire() {
  const require = function (specifier) {
    if (/^(?:node:)?timers\/promises$/.test(specifier)) patchTimersPromises();
    return requireHere()(specifier);
  };
  for (const name of ['resolve', 'cache', 'extensions', 'main']) {
    Object.defineProperty(require, name, { enumerable: true, get: () => requireHere()[name] });
  }
  return require;
}

function makeMeta() {
  return {
    get url() { return pathToFileURL(path.join(process.cwd(), 'cell.js')).href; },
    get filename() { return path.join(process.cwd(), 'cell.js'); },
    get dirname() { return process.cwd(); },
    resolve: (specifier) => resolveFrom(path.join(process.cwd(), 'cell.js'), specifier),
  };
}

/* The kernel's own use of young features is no news for the user. */
function silenceOwnWarnings() {
  const emitWarning = process.emitWarning;
  process.emitWarning = function (warning, ...rest) {
    if (/USE_MAIN_CONTEXT_DEFAULT_LOADER|stripTypeScriptTypes/.test(String(warning))) return;
    Reflect.apply(emitWarning, process, [warning, ...rest]);
  };
}

function define(name, value, enumerable = false) {
  Object.defineProperty(globalThis, name, { value, enumerable, writable: true, configurable: true });
}

function installModules() {
  extendGlobalPaths();
  silenceOwnWarnings();
  requireHere();
  const module = new Module('cell');
  define('require', makeRequire());
  define('module', module);
  define('exports', module.exports);
  define('__clocheImport', Object.freeze({ static: importStatic, dynamic: importModule }));
  define('__clocheImportMeta', makeMeta());
}

module.exports = { installModules, define };
