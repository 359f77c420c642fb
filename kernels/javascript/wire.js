// SPDX-License-Identifier: Apache-2.0
'use strict';

/*
 * The way out: protocol messages, and the streams user code prints to.
 *
 * Messages are written at once and in order. The socket is non-blocking because
 * the watch thread polls it, so a full buffer means a short sleep and another try.
 * Everything here that user code can call makes the kernel the owner first, so
 * an interrupt never cuts a line.
 */

const fs = require('node:fs');
const { Writable } = require('node:stream');
const { StringDecoder } = require('node:string_decoder');

const PROTOCOL = 3;
const NAP_MS = 1;
const PIPE_BYTES = 1 << 16;
const { writeSync, readSync } = fs;

/*
 * The reading end of the pipe behind descriptor 1 or 2. What child processes and native code left
 * there is sent before the kernel's next message, which keeps the order. The agent reads
 * whatever comes while the kernel has nothing to say.
 */
class Pipe {
  constructor(fd, name) {
    this.name = name;
    this.decoder = new StringDecoder('utf8');
    this.bytes = Buffer.allocUnsafe(PIPE_BYTES);
    const flags = fs.constants.O_RDONLY | fs.constants.O_NONBLOCK;
    this.fd = fs.fstatSync(fd).isFIFO() ? fs.openSync(`/proc/self/fd/${fd}`, flags) : -1;
  }

  /* What waits, up to the size of the buffer; empty when nothing does. */
  take() {
    if (this.fd < 0) return '';
    try {
      return this.decoder.write(this.bytes.subarray(0, readSync(this.fd, this.bytes)));
    } catch {
      return '';
    }
  }
}

class Wire {
  constructor(owner) {
    this.owner = owner;
    this.run = null;
    this.foreign = false;
    this.pipes = null;
  }

  /* Sends outside of user code. */
  send(message) {
    const bytes = Buffer.from(`${JSON.stringify(message)}\n`);
    for (let done = 0; done < bytes.length;) done += this.write(bytes, done);
  }

  write(bytes, start) {
    try {
      return writeSync(PROTOCOL, bytes, start);
    } catch (error) {
      if (error.code !== 'EAGAIN') process.reallyExit(1);
      this.owner.nap(NAP_MS);
      return 0;
    }
  }

  /* Sends an event of the present run; without one, nobody listens and it is dropped. */
  event(message) {
    if (this.run === null) return;
    const wasUser = this.owner.toKernel();
    if (this.run !== null) {
      if (this.isForeign()) this.takePipes();
      this.send({ ...message, id: this.run });
    }
    if (!wasUser || this.run === null) return;
    const wanted = this.owner.isWanted(this.run);
    this.owner.toUser();
    if (wanted) this.owner.nap(NAP_MS);
  }

  takePipes() {
    this.pipes ??= [new Pipe(1, 'stdout'), new Pipe(2, 'stderr')];
    for (const pipe of this.pipes) {
      for (let text = pipe.take(); text !== ''; text = pipe.take()) {
        this.send({ ev: 'stream', name: pipe.name, text, id: this.run });
      }
    }
  }

  /*
   * Can somebody else have written to descriptors 1 or 2? Node offers no FIONREAD, so the
   * question is whether a child process, native code or a raw write was ever there.
   */
  isForeign() {
    if (!this.foreign) this.foreign = process.moduleLoadList.includes('NativeModule child_process');
    return this.foreign;
  }
}

/*
 * A stream whose write() has no state of its own to be left broken: a termination may land in
 * the middle of any call that user code makes.
 */
class OutputStream extends Writable {
  constructor(wire, name, fd) {
    super();
    this.wire = wire;
    this.streamName = name;
    this.fd = fd;
    this.isTTY = false;
    this.decoder = new StringDecoder('utf8');
  }

  write(chunk, encoding, callback) {
    const done = typeof encoding === 'function' ? encoding : callback;
    const text = this.decode(chunk, encoding);
    if (text !== '') this.wire.event({ ev: 'stream', name: this.streamName, text });
    if (typeof done === 'function') process.nextTick(done);
    return true;
  }

  decode(chunk, encoding) {
    if (typeof chunk !== 'string') {
      return this.decoder.write(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength));
    }
    const isText = typeof encoding !== 'string' || /^utf-?8$/i.test(encoding);
    return isText ? chunk : this.decoder.write(Buffer.from(chunk, encoding));
  }

  /* The streams of a process do not close. */
  end(...args) {
    if (typeof args[0] === 'string' || args[0] instanceof Uint8Array) this.write(args[0], args[1]);
    return this;
  }

  destroy() {
    return this;
  }
}

function noteForeignOutput(wire) {
  for (const name of ['write', 'writeSync', 'writev', 'writevSync']) {
    const original = fs[name];
    const noted = function (fd, ...rest) {
      if (fd === 1 || fd === 2) wire.foreign = true;
      return Reflect.apply(original, this, [fd, ...rest]);
    };
    Object.defineProperty(noted, 'name', { value: name });
    fs[name] = Object.assign(noted, original);
  }
  const dlopen = process.dlopen;
  process.dlopen = function (...args) {
    wire.foreign = true;
    return Reflect.apply(dlopen, process, args);
  };
}

/* Gives process.stdout, process.stderr and console their way over the wire. */
function installOutput(wire) {
  const { Console } = console;
  const stdout = new OutputStream(wire, 'stdout', 1);
  const stderr = new OutputStream(wire, 'stderr', 2);
  for (const [name, stream] of Object.entries({ stdout, stderr })) {
    Object.defineProperty(process, name, { configurable: true, enumerable: true, get: () => stream });
  }
  const own = new Console({ stdout, stderr, ignoreErrors: true });
  for (const name of Object.keys(console)) {
    if (typeof own[name] === 'function') console[name] = own[name];
  }
  noteForeignOutput(wire);
}

module.exports = { Wire, installOutput };
