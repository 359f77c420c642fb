// SPDX-License-Identifier: Apache-2.0
'use strict';

/*
 * Timers with an owner. An interrupted cell that waited for a timer would go on as soon
 * as the timer fires: `while (true) await sleep(100)` could never be stopped. So each
 * timer is noted with the cell that made it, and an interrupt clears those of its cell.
 * A promise on such a timer simply never settles.
 */

const timers = require('node:timers');
const { promisify } = require('node:util');

const SWEEP_AT = 4096;
const plain = {
  setTimeout: timers.setTimeout,
  setInterval: timers.setInterval,
  setImmediate: timers.setImmediate,
};

let owned = null;
let sweepAt = SWEEP_AT;

function sweep() {
  for (const timer of owned) if (timer._destroyed) owned.delete(timer);
  sweepAt = Math.max(SWEEP_AT, owned.size * 2);
}

function track(name) {
  const original = plain[name];
  const tracked = function (...args) {
    const timer = Reflect.apply(original, this, args);
    if (owned !== null) {
      owned.add(timer);
      if (owned.size > sweepAt) sweep();
    }
    return timer;
  };
  Object.defineProperty(tracked, 'name', { value: name });
  return tracked;
}

/* The promise form, built on the tracked one; with a signal Node's own does it. */
function promised(tracked, original, hasDelay) {
  return function (...args) {
    const [delay, value, options] = hasDelay ? args : [undefined, ...args];
    if (options?.signal !== undefined) return Reflect.apply(original, this, args);
    return new Promise((resolve) => {
      const timer = hasDelay ? tracked(resolve, delay, value) : tracked(resolve, value);
      if (options?.ref === false) timer.unref();
    });
  };
}

function installTimers() {
  for (const name of Object.keys(plain)) {
    const tracked = track(name);
    const original = plain[name][promisify.custom];
    if (original !== undefined) {
      tracked[promisify.custom] = promised(tracked, original, name === 'setTimeout');
    }
    timers[name] = tracked;
    globalThis[name] = tracked;
  }
}

/* timers/promises is loaded only when somebody asks for it. */
function patchTimersPromises() {
  const module = require('node:timers/promises');
  for (const name of ['setTimeout', 'setImmediate']) {
    module[name] = globalThis[name][promisify.custom] ?? module[name];
  }
}

function ownTimers() {
  owned = new Set();
  sweepAt = SWEEP_AT;
}

function clearOwned() {
  for (const timer of owned ?? []) {
    clearTimeout(timer);
    clearImmediate(timer);
  }
  owned = null;
}

function releaseTimers() {
  owned = null;
}

module.exports = { installTimers, patchTimersPromises, ownTimers, clearOwned, releaseTimers, plain };
