// SPDX-License-Identifier: Apache-2.0
'use strict';

/*
 * The watch thread: reads the protocol socket and can stop the main thread.
 *
 * It hears an interrupt even while the main thread is stuck in a loop. It first
 * passes the interrupt on as an ordinary message, which is enough for a cell
 * that waits for a promise. If the main thread does not react it takes
 * ownership (thread_owner.js) and terminates what runs there through the inspector; variables
 * and timers live on. Messages carry numbers and are sent again after a
 * termination unless the main thread took them in, so none is lost or done twice. A box that was made
 * from another one's memory gets new random numbers the same way, while a cell runs.
 * When the socket ends the process ends, whatever the main thread is doing.
 */

const net = require('node:net');
const { parentPort, workerData } = require('node:worker_threads');
const { ThreadOwner, RENEW } = require('./thread_owner.js');

const PATIENCE_MS = 20;
const RETRY_MS = 2;
const RETRIES = 500;
const LEAVE_MS = 300;

const owner = new ThreadOwner(workerData.shared);
let session = null;
let number = 0;
let sent = [];
let parts = [];

function post(line) {
  sent = sent.filter((message) => message.number > owner.lastSeen());
  const message = { number: ++number, line };
  sent.push(message);
  parentPort.postMessage(message);
}

function postAgain() {
  for (const message of sent) {
    if (message.number > owner.lastSeen()) parentPort.postMessage(message);
  }
}

function interruptOf(line) {
  if (line.length > 200 || !line.includes('interrupt')) return null;
  const message = JSON.parse(line);
  return message.op === 'interrupt' ? message : null;
}

/* Ctrl-C reaches the children of the kernel too; the kernel itself ignores it. */
function signalGroup() {
  try {
    process.kill(-process.pid, 'SIGINT');
  } catch {
    /* not a group leader: no children to reach this way */
  }
}

function mainThread() {
  if (session === null) {
    const { Session } = require('node:inspector');
    session = new Session();
    session.connectToMainThread();
  }
  return session;
}

function terminate(before) {
  mainThread().post('Runtime.terminateExecution', () => {
    owner.landed(before);
    postAgain();
  });
}

/* Once the main thread has seen the interrupt's own message, all is well. */
function claim(id, posted, tries) {
  if (tries === 0 || owner.lastSeen() >= posted) return;
  const before = owner.claim(id);
  if (before >= 0) terminate(before);
  else setTimeout(claim, RETRY_MS, id, posted, tries - 1);
}


function interrupt(message, line) {
  owner.want(message.id);
  signalGroup();
  post(line);
  setTimeout(claim, PATIENCE_MS, message.id, number, RETRIES);
}

function take(line) {
  if (line === '') return;
  const message = interruptOf(line);
  if (line === '{"op":"renew"}') renew();
  else if (message === null) post(line);
  else interrupt(message, line);
}

/* The inspector reaches a main thread in the middle of a loop. */
function renew() {
  mainThread().post('Runtime.evaluate', { expression: `globalThis.process[Symbol.for('${RENEW}')]()` });
}

function takeChunk(chunk) {
  let start = 0;
  for (let end = chunk.indexOf(10); end >= 0; end = chunk.indexOf(10, start)) {
    parts.push(chunk.subarray(start, end));
    take(parts.length === 1 ? parts[0].toString() : Buffer.concat(parts).toString());
    parts = [];
    start = end + 1;
  }
  if (start < chunk.length) parts.push(chunk.subarray(start));
}

function leave() {
  post('{"op":"leave"}');
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), LEAVE_MS);
}

const socket = new net.Socket({ fd: 3, readable: true, writable: false });
socket.on('data', takeChunk);
socket.on('error', leave);
socket.on('end', leave);
