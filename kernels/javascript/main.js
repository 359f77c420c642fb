// SPDX-License-Identifier: Apache-2.0
'use strict';

/*
 * The JavaScript and TypeScript kernel (docs/kernel-protocol.md).
 *
 * Cells run on the main thread in the engine's REPL mode (evaluator.js), so timers, servers
 * and promises of earlier cells live on between cells. The watch thread (watch.js) reads
 * the protocol and stops a cell that hangs; thread_owner.js says when it may. Cells in TypeScript
 * are transpiled (transpile.js): always offered, in both languages, but only paid for by
 * cells that are not plain JavaScript.
 */

const { Worker, SHARE_ENV } = require('node:worker_threads');
const { ThreadOwner, newShared, RENEW } = require('./thread_owner.js');

/* Started before anything else is loaded: it takes as long to come up as the rest. */
const shared = newShared();
const worker = new Worker(require.resolve('./watch.js'), { workerData: { shared }, env: SHARE_ENV });

const { getSystemErrorMap } = require('node:util');
const { syncBuiltinESMExports } = require('node:module');
const { Wire, installOutput } = require('./wire.js');
const { Evaluator, doesCompile } = require('./evaluator.js');
const { installModules } = require('./modules.js');
const { installDisplay, hasOwnBundle, richBundle, plainText } = require('./display.js');
const { rewrite, redeclare } = require('./scan.js');
const { faultOf, syntaxFault, installStacks } = require('./fault.js');
const random = require('./random.js');
const timers = require('./timers.js');
const transpiler = require('./transpile.js');

const INTERRUPTED = { name: 'Interrupted', value: 'Execution was interrupted', traceback: '' };

/* Type arguments that plain JavaScript would read as comparisons: f<T>(x), tag<T>`x`. */
const AMBIGUOUS_TYPES = /[\w$]\s*<[^;]*>\s*[(`]/s;

/* The run id while the kernel works between runs; the agent counts runs from 1. */
const NO_RUN = 0;

const isTypeScript = process.argv.includes('--typescript');
const owner = new ThreadOwner(shared);
const wire = new Wire(owner);
const evaluator = new Evaluator();
let count = 0;
let taken = 0;
let cell = null;

/* ---- one cell -------------------------------------------------------------------------- */

function run(message) {
  const { id, code, env = {} } = message;
  wire.run = id;
  const isBlank = code.trim() === '';
  wire.send({ ev: 'count', id, n: count + 1 });
  if (!isBlank) count++;
  const name = `cell[${count}]`;
  cell = { id, code, name, before: setEnv(env), shown: null, isTranspiled: false, kinds: ['var', 'let'] };
  if (owner.isWanted(id)) return finish({ fault: INTERRUPTED });
  if (isBlank) return finish({});
  timers.ownTimers();
  ignoreSignal();
  owner.toUser();
  return start(cell);
}

function start(mine) {
  try {
    evaluate(mine, prepare(mine));
  } catch (error) {
    settle(mine, { fault: transpileFault(mine, error) });
  }
}

/* The text the engine gets to see. */
function prepare(mine) {
  if (isTypeScript && !mine.isTranspiled && AMBIGUOUS_TYPES.test(mine.code)) {
    mine.isTranspiled = true;
    return rewrite(transpiler.transpile(mine.code));
  }
  const wrapped = `(${mine.code}\n)`;
  if (/^\s*\{/.test(mine.code) && !/;\s*$/.test(mine.code) && doesCompile(wrapped)) return wrapped;
  return rewrite(mine.code);
}

function evaluate(mine, text) {
  evaluator.evaluate(text, mine.name, (reply) => {
    if (mine !== cell) return;
    if (isWorthTranspiling(mine, text, reply)) retry(mine, text, reply);
    else if (isRedeclared(mine, text, reply)) evaluate(mine, redeclare(text, mine.kinds.pop(), redeclaredName(reply)));
    else if ('thrown' in reply) settle(mine, { fault: thrownFault(mine, text, reply) });
    else if (reply.isPromise) {
      reply.value.then((value) => show(mine, value), (error) => settle(mine, { fault: faultOf(error) }));
    }
    else show(mine, reply.value);
  });
}

/* A name of an earlier cell, declared now in another way; the cell never ran. */
function isRedeclared(mine, text, reply) {
  if (!('thrown' in reply) || !isSyntaxError(reply) || mine.kinds.length === 0) return false;
  return redeclaredName(reply) !== undefined && doesCompile(text);
}

function redeclaredName(reply) {
  return /^Identifier '(.*)' has already been declared$/.exec(reply.thrown.message)?.[1];
}

/* A cell that never ran because it does not parse may be TypeScript. */
function isWorthTranspiling(mine, text, reply) {
  if (mine.isTranspiled || !('thrown' in reply)) return false;
  return isSyntaxError(reply) && !doesCompile(text) && transpiler.canTranspile();
}

function retry(mine, text, reply) {
  mine.isTranspiled = true;
  let plain;
  try {
    plain = transpiler.transpile(mine.code);
  } catch (error) {
    const fault = isTypeScript ? transpileFault(mine, error) : thrownFault(mine, text, reply);
    return settle(mine, { fault });
  }
  return evaluate(mine, `${rewrite(plain)}${endsInDeclaration(mine.code) ? '\nvoid 0' : ''}`);
}

/* An enum or a namespace becomes an expression; its value is not the cell's. */
function endsInDeclaration(code) {
  const declaration = /(?:^|[\n;}])\s*(?:export\s+)?(?:declare\s+)?(?:const\s+)?(?:enum|namespace|module)\s+/;
  return new RegExp(`${declaration.source}[\\w$.]+\\s*\\{[^{}]*\\}\\s*$`).test(code);
}

function isSyntaxError(reply) {
  return reply.details.exception?.className === 'SyntaxError';
}

function thrownFault(mine, text, reply) {
  if (!isSyntaxError(reply) || doesCompile(text)) return faultOf(reply.thrown);
  const { lineNumber = 0, columnNumber = 0 } = reply.details;
  return syntaxFault(reply.thrown, mine.name, mine.code, lineNumber + 1, columnNumber + 1);
}

function transpileFault(mine, error) {
  const at = error.cellPosition;
  return at === undefined ? faultOf(error) : syntaxFault(error, mine.name, mine.code, at.line, at.column);
}

/* Turns the value into what is shown; this may call the user's code, so the user owns the main thread. */
function show(mine, value) {
  if (mine !== cell) return;
  if (value === undefined) settle(mine, {});
  else if (!hasOwnBundle(value)) settle(mine, { data: { 'text/plain': plainText(value) } });
  else richBundle(value).then((data) => settle(mine, { data }), (error) => settle(mine, { fault: faultOf(error) }));
}

/* One more loop iteration, so that unhandled rejections still belong to this cell. */
function settle(mine, outcome) {
  timers.plain.setImmediate(() => {
    if (mine !== cell) return;
    owner.toKernel();
    if (mine === cell) finish(outcome);
  });
}

/* The kernel owns the main thread here. */
function finish(outcome) {
  const { id, before, shown } = cell;
  const data = shown ?? outcome.data;
  if (outcome.fault) wire.event({ ev: 'error', ...outcome.fault });
  else if (data !== undefined) wire.event({ ev: 'display', main: true, data });
  cell = null;
  wire.run = null;
  setEnv(before);
  timers.releaseTimers();
  evaluator.release();
  wire.send({ ev: 'done', id, status: outcome.fault ? 'error' : 'ok' });
  owner.end();
}

/* The kernel owns the main thread here. */
function interrupt() {
  timers.clearOwned();
  finish({ fault: INTERRUPTED });
  sweepCallbackIds();
}

/* A result given by $$; an earlier one of the same cell is shown and makes room. */
function setResult(data) {
  if (cell === null) return;
  if (cell.shown !== null) wire.event({ ev: 'display', main: false, data: cell.shown });
  cell.shown = data;
}

/* ---- surroundings ---------------------------------------------------------------------- */

/* Sets variables (null removes) and returns what undoes it. */
function setEnv(env) {
  const before = {};
  for (const [name, value] of Object.entries(env)) {
    before[name] = process.env[name] ?? null;
    if (value === null) delete process.env[name];
    else process.env[name] = value;
  }
  return before;
}

function changeDirectory(directory) {
  try {
    process.chdir(directory);
    wire.send({ ev: 'cd', ok: true });
  } catch (error) {
    const reason = getSystemErrorMap().get(error.errno)?.[1] ?? error.message;
    wire.send({ ev: 'cd', ok: false, reason: reason[0].toUpperCase() + reason.slice(1) });
  }
}

/*
 * A message counts as taken in only when nothing can stop it any more: a termination that
 * lands on one about to be handled makes the watch thread send it, and what followed it, again.
 */
function receive({ number, line }) {
  if (number !== taken + 1) return;
  const message = JSON.parse(line);
  const isMine = cell !== null && cell.id === message.id;
  const isChange = message.op === 'env' || message.op === 'cd';
  if (message.op === 'run') owner.begin(message.id);
  if (message.op === 'interrupt' && isMine) owner.toKernel();
  if (isChange && cell === null) owner.begin(NO_RUN);
  taken = number;
  owner.seen(number);
  if (message.op === 'run') run(message);
  else if (message.op === 'interrupt' && isMine) interrupt();
  else if (message.op === 'leave') process.exit(0);
  else if (isChange) change(message);
}

/* The kernel owns the main thread when no cell runs, as the protocol has it. */
function change(message) {
  try {
    if (message.op === 'cd') changeDirectory(message.path);
    else setEnv(message.set ?? {});
    if (message.renew) random.renew();
  } finally {
    if (cell === null) owner.end();
  }
}

/*
 * A termination inside a timer's callback leaves Node's record of callback ids behind; handling an
 * uncaught error is what makes Node clear it, so one is thrown for that purpose.
 */
const SWEEP = Symbol('sweep');

function sweepCallbackIds() {
  timers.plain.setImmediate(() => {
    throw SWEEP;
  });
}

function reportUncaught(error) {
  if (error === SWEEP) return;
  wire.event({ ev: 'stream', name: 'stderr', text: `Uncaught ${plainText(error)}\n` });
}

/* Ctrl-C is meant for the children of a cell; the kernel gets a message. */
function ignoreSignal() {
  if (process.listenerCount('SIGINT') === 0) process.on('SIGINT', () => {});
}

function main() {
  worker.on('message', receive);
  Object.defineProperty(process, Symbol.for(RENEW), { value: random.renew });
  process.on('uncaughtException', reportUncaught);
  process.on('unhandledRejection', reportUncaught);
  ignoreSignal();
  installStacks();
  installOutput(wire);
  timers.installTimers();
  installModules();
  installDisplay(wire, setResult);
  syncBuiltinESMExports();
  process.argv.length = 1;
  wire.send({ ev: 'ready', pid: process.pid, version: process.versions.node, interrupt: 'message' });
}

main();
