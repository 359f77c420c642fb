// SPDX-License-Identifier: Apache-2.0
'use strict';

/*
 * Runs code in the engine's own REPL mode, through an inspector session of this thread.
 *
 * REPL mode gives what a notebook needs without rewriting the code: top-level await, names
 * of earlier cells that may be declared again, and the value of the last statement. The
 * session answers with descriptions of values; `take` fetches the values themselves.
 */

const { Session } = require('node:inspector');
const vm = require('node:vm');

const GROUP = 'cell';
const HANDOVER = '__clocheHandover';

class Evaluator {
  constructor() {
    this.session = new Session();
    this.session.connect();
    this.taken = undefined;
    globalThis[HANDOVER] = this;
    this.post('Runtime.evaluate', { expression: HANDOVER }, (reply) => {
      this.self = reply.result.objectId;
    });
    delete globalThis[HANDOVER];
  }

  post(method, params, then) {
    this.session.post(method, params, (error, reply) => then(reply, error));
  }

  /* Calls then({value} | {thrown, details}) once, as soon as the code and its awaits are through. */
  evaluate(code, name, then) {
    const expression = `${code}\n//# sourceURL=${name}`;
    this.post('Runtime.evaluate', { expression, replMode: true, objectGroup: GROUP }, (reply, error) => {
      if (reply === undefined) then({ thrown: new Error(error?.message ?? 'no answer of the engine'), details: {} });
      else if (reply.exceptionDetails) {
        then({ thrown: this.take(reply.exceptionDetails.exception), details: reply.exceptionDetails });
      }
      else then({ value: this.take(reply.result), isPromise: reply.result.subtype === 'promise' });
    });
  }

  /* The value behind a description. */
  take(remote) {
    if (remote === undefined || remote.type === 'undefined') return undefined;
    if (remote.objectId === undefined) return primitive(remote);
    this.post('Runtime.callFunctionOn', {
      objectId: this.self,
      functionDeclaration: 'function (value) { this.taken = value; }',
      arguments: [{ objectId: remote.objectId }],
      silent: true,
    }, () => {});
    const value = this.taken;
    this.taken = undefined;
    return value;
  }

  /* Forgets the values of the last cell, so that they can be collected. */
  release() {
    this.post('Runtime.releaseObjectGroup', { objectGroup: GROUP }, () => {});
  }
}

function primitive(remote) {
  if (remote.unserializableValue === undefined) return remote.value;
  const text = remote.unserializableValue;
  return text.endsWith('n') ? BigInt(text.slice(0, -1)) : Number(text);
}

/* Does the code parse as the body of a script with top-level await? */
function doesCompile(code) {
  try {
    new vm.Script(`(async () => {${code}\n})`);
    return true;
  } catch {
    return false;
  }
}

module.exports = { Evaluator, doesCompile };
