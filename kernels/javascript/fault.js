// SPDX-License-Identifier: Apache-2.0
'use strict';

/* What a thrown value looks like to the client: name, value, traceback. */

const path = require('node:path');
const { inspect, types } = require('node:util');

/* The frames below the cell are the kernel's own: a stack ends where they begin. */
function isKernelFrame(frame) {
  const file = frame.getFileName();
  return typeof file === 'string' && (file === 'node:inspector' || path.dirname(file) === __dirname);
}

function prepareStack(error, frames) {
  const end = frames.findIndex(isKernelFrame);
  const lines = (end < 0 ? frames : frames.slice(0, end)).map((frame) => `\n    at ${frame}`);
  return headOf(error) + lines.join('');
}

function headOf(error) {
  try {
    return Error.prototype.toString.call(error);
  } catch {
    return '<error>';
  }
}

function installStacks() {
  Error.prepareStackTrace = prepareStack;
}

function stackOf(error) {
  const stack = typeof error.stack === 'string' ? error.stack : headOf(error);
  return error.cause === undefined ? stack : `${stack}\n  [cause]: ${causeText(error.cause)}`;
}

function causeText(cause) {
  return isError(cause) ? stackOf(cause).replaceAll('\n', '\n  ') : inspect(cause);
}

function isError(value) {
  return types.isNativeError(value) || value instanceof Error;
}

/* The offending line with a mark under the place. */
function frame(name, code, line, column) {
  const lines = code.split('\n');
  const isBehind = line > lines.length;
  const shown = isBehind ? lines.at(-1) : lines[line - 1];
  const before = isBehind ? shown.length : Math.max(0, column - 1);
  return `${name}:${isBehind ? lines.length : line}\n${shown}\n${' '.repeat(before)}^\n\n`;
}

function faultOf(thrown) {
  if (!isError(thrown)) return { name: typeof thrown, value: inspect(thrown), traceback: '' };
  return { name: String(thrown.name), value: String(thrown.message), traceback: stackOf(thrown) };
}

function syntaxFault(thrown, name, code, line, column) {
  const fault = faultOf(thrown);
  const head = stackOf(thrown).split('\n').filter((text) => !/^\s+at /.test(text)).join('\n');
  fault.traceback = frame(name, code, line, column) + head;
  return fault;
}

module.exports = { faultOf, syntaxFault, installStacks };
