// SPDX-License-Identifier: Apache-2.0
'use strict';

/*
 * Who owns the main thread, shared with the watch thread.
 *
 * An interrupt ends user code by terminating whatever JavaScript runs on the
 * main thread. That must never hit the kernel's own code, where it would cut a
 * protocol line in half or lose a message. So one shared word says who runs:
 *
 *   0           nobody's: between cells (timers of earlier cells may run)
 *   id*4 + 1    user code of run `id`
 *   id*4 + 2    the watch thread has claimed the main thread; a termination
 *               is on its way and will arrive
 *   id*4 + 3    kernel code on behalf of run `id`: hands off; id 0 between runs
 *
 * The watch thread may only terminate after it moved a 0 or a 1 to the claimed
 * state; the kernel may only work after it moved a 1 to 3. Both moves are one
 * compare-and-exchange, so exactly one of them wins. A kernel that loses waits
 * for the termination to land on it.
 */

const WORD = 0;      // the word above
const WANTED = 1;    // id of the run the agent wants interrupted
const SEEN = 2;      // number of the last message the main thread took in
const NAP = 3;       // never changes: something to sleep on
const WORDS = 4;

const USER = 1;
const CLAIMED = 2;
const KERNEL = 3;

// The symbol under which the main thread's process keeps what renews its random numbers.
const RENEW = 'cloche.renew';

const ID_LIMIT = 1 << 28;

function word(id, phase) {
  return (id % ID_LIMIT) * 4 + phase;
}

class ThreadOwner {
  constructor(shared) {
    this.shared = shared;
  }

  /* Kernel: a run begins. */
  begin(id) {
    this.swap(0, word(id, KERNEL));
    this.id = id;
  }

  /* Kernel: user code of the run may run from here on. */
  toUser() {
    Atomics.store(this.shared, WORD, word(this.id, USER));
  }

  /* Kernel: from user code into kernel code. Returns false when it already was. */
  toKernel() {
    const now = Atomics.load(this.shared, WORD);
    if (now === 0 || now === word(this.id, KERNEL)) return false;
    this.swap(word(this.id, USER), word(this.id, KERNEL));
    return true;
  }

  /* Kernel: the run is over. */
  end() {
    Atomics.store(this.shared, WORD, 0);
  }

  /* Kernel: does the agent want this run to stop? */
  isWanted(id) {
    return Atomics.load(this.shared, WANTED) === id % ID_LIMIT;
  }

  seen(number) {
    Atomics.store(this.shared, SEEN, number);
  }

  nap(milliseconds) {
    Atomics.wait(this.shared, NAP, 0, milliseconds);
  }

  swap(from, to) {
    for (;;) {
      const old = Atomics.compareExchange(this.shared, WORD, from, to);
      if (old === from) return;
      Atomics.wait(this.shared, WORD, old, 100);
    }
  }

  /* Watch thread: note the wish. */
  want(id) {
    Atomics.store(this.shared, WANTED, id % ID_LIMIT);
  }

  /* Watch thread: claim the main thread for a termination. */
  claim(id) {
    const user = word(id, USER);
    if (Atomics.compareExchange(this.shared, WORD, user, word(id, CLAIMED)) === user) return user;
    if (Atomics.compareExchange(this.shared, WORD, 0, CLAIMED) === 0) return 0;
    return -1;
  }

  /* Watch thread: the termination has landed; give the main thread back. */
  landed(before) {
    Atomics.store(this.shared, WORD, before);
    Atomics.notify(this.shared, WORD);
  }

  lastSeen() {
    return Atomics.load(this.shared, SEEN);
  }
}

function newShared() {
  const shared = new Int32Array(new SharedArrayBuffer(WORDS * Int32Array.BYTES_PER_ELEMENT));
  shared[WANTED] = -1;
  return shared;
}

module.exports = { ThreadOwner, newShared, RENEW };
