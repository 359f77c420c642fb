/* SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only */
/* criu_journal.h - what criu is about to change in a box's processes, kept so that it can be undone.
 *
 * A dump puts code into one process after the other. A criu that is killed in that moment leaves the process where it
 * was put: foreign registers, a foreign signal mask, a few bytes of foreign code. So our criu (scripts/criu) writes
 * down first what was there, in this file, which it maps; rescue.c reads it when criu is dead. The file outlives both.
 * Included by criu, too: nothing but C and this. */
#ifndef CLOCHE_JAIL_CHECKPOINT_CRIU_JOURNAL_H
#define CLOCHE_JAIL_CHECKPOINT_CRIU_JOURNAL_H

#include <stdint.h>

#define CRIU_JOURNAL_MAGIC  0x636c6f6a726e6c31ull
#define CRIU_JOURNAL_NAME   "rescue"
#define CRIU_JOURNAL_ENV    "CLOCHE_JOURNAL" /* its descriptor in the environment of criu */
#define CRIU_JOURNAL_REGS   512              /* bytes of a thread's general registers, at most */
#define CRIU_JOURNAL_WIDE   16384            /* bytes of its other registers, at most */
#define CRIU_JOURNAL_TEXT   64
#define CRIU_JOURNAL_SLOTS  4
#define CRIU_JOURNAL_PIECES 8

struct criu_journal_thread {
  volatile int32_t tid; /* 0: nothing to be undone; written last, and first when it is over */
  uint32_t regs_n, wide_n;
  uint64_t ip; /* where it was sent to */
  uint64_t mask;
  uint8_t regs[CRIU_JOURNAL_REGS], wide[CRIU_JOURNAL_WIDE];
};

struct criu_journal_piece {
  volatile int32_t pid; /* as above */
  uint32_t n;
  uint64_t at;
  uint8_t was[CRIU_JOURNAL_TEXT], is[CRIU_JOURNAL_TEXT];
};

struct criu_journal {
  uint64_t magic;
  int32_t criu; /* itself: pid, and start time as in /proc/PID/stat; also its session, which its helpers are in */
  uint64_t start;
  struct criu_journal_thread threads[CRIU_JOURNAL_SLOTS];
  struct criu_journal_piece pieces[CRIU_JOURNAL_PIECES];
};

#endif
