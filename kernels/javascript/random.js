// SPDX-License-Identifier: Apache-2.0
'use strict';

/*
 * Random numbers of a box that was made from another one's memory. Whatever generator lives in
 * that memory would go on with the same numbers there and here, and in every further fork.
 *
 * Math.random is taken from a fresh context, which is seeded anew. The generator in OpenSSL and
 * Node's own stores of its numbers (randomUUID, randomInt) can't be reached, so from then on the
 * functions that give random bytes, numbers and ids are answered by the kernel. Keys and TLS stay with OpenSSL,
 * which mixes in the time at each use and reseeds every few minutes.
 */

const { openSync, readSync, closeSync } = require('node:fs');
const { setFlagsFromString } = require('node:v8');
const { runInNewContext } = require('node:vm');
const { syncBuiltinESMExports } = require('node:module');

function fill(bytes) {
  const fd = openSync('/dev/urandom');
  try {
    for (let at = 0; at < bytes.length; ) at += readSync(fd, bytes, at, bytes.length - at);
  } finally {
    closeSync(fd);
  }
  return bytes;
}

/* A context draws its seed at its first number, not when it is made. */
function renewMath() {
  const seed = fill(Buffer.alloc(4)).readInt32LE();
  setFlagsFromString(`--random-seed=${seed || 1}`);
  Math.random = runInNewContext('Math.random(); Math.random');
  setFlagsFromString('--random-seed=0');
}

/* Offset and size count elements, as Node's own arguments do. */
function refill(target, offset = 0, size) {
  const unit = target.BYTES_PER_ELEMENT ?? 1;
  const start = (target.byteOffset ?? 0) + offset * unit;
  const length = size === undefined ? target.byteLength - offset * unit : size * unit;
  fill(new Uint8Array(target.buffer ?? target, start, length));
  return target;
}

/* Below 2^48, as randomInt promises; what would favour some numbers is drawn again. */
function number(min, max) {
  const range = max - min;
  const limit = 2 ** 48 - (2 ** 48 % range);
  for (;;) {
    const drawn = fill(Buffer.alloc(6)).readUIntBE(0, 6);
    if (drawn < limit) return min + (drawn % range);
  }
}

function later(callback, value) {
  if (!callback) return value;
  process.nextTick(callback, null, value);
  return undefined;
}

/* The original is called first: it refuses what it refuses, in its own words. */
function answers(crypto) {
  const { randomBytes, randomFillSync, randomInt, randomUUID } = crypto;
  return {
    randomBytes: (size, callback) => later(callback, fill(randomBytes(size))),
    randomFillSync: (target, offset, size) => {
      randomFillSync(target, offset, size);
      return refill(target, offset, size);
    },
    randomFill: (target, ...rest) => {
      const callback = rest.pop();
      const [offset, size] = rest;
      randomFillSync(target, offset, size);
      return later(callback, refill(target, offset, size));
    },
    randomInt: (min, max, callback) => {
      const [low, high, then] = max === undefined || typeof max === 'function' ? [0, min, max] : [min, max, callback];
      randomInt(low, high);
      return later(then, number(low, high));
    },
    randomUUID: (options) => randomUUID({ ...options, disableEntropyCache: true }) && uuid(),
  };
}

function uuid() {
  const bytes = fill(Buffer.alloc(16));
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}

let isAnswered = false;

function renewCrypto() {
  if (isAnswered) return;
  isAnswered = true;
  const crypto = require('node:crypto');
  const { getRandomValues } = crypto.webcrypto;
  Object.assign(crypto, answers(crypto));
  Object.assign(Object.getPrototypeOf(crypto.webcrypto), {
    getRandomValues: (target) => refill(getRandomValues.call(crypto.webcrypto, target)),
    randomUUID: uuid,
  });
  syncBuiltinESMExports();
}

function renew() {
  renewMath();
  renewCrypto();
}

module.exports = { renew };
