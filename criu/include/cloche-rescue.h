/* SPDX-License-Identifier: GPL-2.0-only */
/* cloche-rescue.h - what scripts/criu adds to criu's injection of code, so that a killed criu harms no process.
 *
 * Two things. What is about to be changed in a process is written down first (criu_journal.h says where). And injected
 * code never ends in a trap, which would kill the process once nobody traces it: after its work it runs in place until
 * it is moved on, by criu or by whoever undoes a dead criu's work. */
#ifndef CLOCHE_CRIU_RESCUE_H
#define CLOCHE_CRIU_RESCUE_H

#include "criu_journal.h"

#include <elf.h>
#include <errno.h>
#include <linux/futex.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* What code in a thread leaves in the place of its command: the mark, and the negated result below it. */
#define CLOCHE_TOLD 0x40000000u

enum cloche_way { CLOCHE_PLAIN, CLOCHE_SYSCALL, CLOCHE_THREAD };

__attribute__((unused)) static enum cloche_way cloche_way = CLOCHE_PLAIN;

static inline struct criu_journal *cloche_journal(void)
{
  static struct criu_journal *map;
  const char *text = map ? NULL : getenv(CRIU_JOURNAL_ENV);
  if (text) {
    void *at = mmap(NULL, sizeof(*map), PROT_READ | PROT_WRITE, MAP_SHARED, (int)strtol(text, NULL, 10), 0);
    map = at == MAP_FAILED ? NULL : at;
  }
  return map;
}

#define cloche_fence() __atomic_thread_fence(__ATOMIC_SEQ_CST)

static inline struct criu_journal_thread *cloche_slot(int tid)
{
  struct criu_journal *j = cloche_journal();
  int i;
  for (i = 0; j && i < CRIU_JOURNAL_SLOTS; i++)
    if (j->threads[i].tid == tid)
      return &j->threads[i];
  return NULL;
}

/* Before its registers are changed; `regs` is what it will have again. A thread that has a record keeps that one. */
static inline int cloche_keep(int tid, const void *regs, size_t n, const void *mask, unsigned long ip)
{
  struct criu_journal_thread *t = cloche_slot(tid) ? NULL : cloche_slot(0);
  struct iovec wide;
  if (!cloche_journal() || cloche_slot(tid))
    return 0;
  if (!t || n > sizeof(t->regs))
    return -1;
  wide.iov_base = t->wide;
  wide.iov_len = sizeof(t->wide);
  t->wide_n = ptrace(PTRACE_GETREGSET, tid, 0x202 /* NT_X86_XSTATE */, &wide) ? 0 : (uint32_t)wide.iov_len;
  memcpy(t->regs, regs, n);
  t->regs_n = (uint32_t)n;
  memcpy(&t->mask, mask, sizeof(t->mask));
  t->ip = ip;
  cloche_fence();
  t->tid = tid;
  cloche_fence();
  return 0;
}

static inline void cloche_forget(int tid)
{
  struct criu_journal_thread *t = cloche_slot(tid);
  cloche_fence();
  if (t)
    t->tid = 0;
}

/* Before `n` bytes at `at` become `is`. */
static inline int cloche_keep_text(int pid, const void *at, const void *was, const void *is, size_t n)
{
  struct criu_journal *j = cloche_journal();
  int i = 0;
  if (!j)
    return 0;
  while (i < CRIU_JOURNAL_PIECES && j->pieces[i].pid)
    i++;
  if (i == CRIU_JOURNAL_PIECES || n > CRIU_JOURNAL_TEXT)
    return -1;
  memcpy(j->pieces[i].was, was, n);
  memcpy(j->pieces[i].is, is, n);
  j->pieces[i].n = (uint32_t)n;
  j->pieces[i].at = (uint64_t)(unsigned long)at;
  cloche_fence();
  j->pieces[i].pid = pid;
  cloche_fence();
  return 0;
}

/* After `is` was written to `at`: where that is what was there once, it is over. */
static inline void cloche_forget_text(int pid, const void *at, const void *is, size_t n)
{
  struct criu_journal *j = cloche_journal();
  int i;
  for (i = 0; j && i < CRIU_JOURNAL_PIECES; i++) {
    struct criu_journal_piece *p = &j->pieces[i];
    if (p->pid == pid && p->at == (uint64_t)(unsigned long)at && p->n == n && !memcmp(p->was, is, n)) {
      cloche_fence();
      p->pid = 0;
    }
  }
}

/* The thread runs code that tells in *word when it is done. Looks after it now and then: it may have died. */
static inline int cloche_wait_thread(int tid, int *status, unsigned *word)
{
  struct timespec rest = {.tv_nsec = 2000000};
  while (!(__atomic_load_n(word, __ATOMIC_SEQ_CST) & CLOCHE_TOLD)) {
    int r = wait4(tid, status, __WALL | WNOHANG, NULL);
    if (r)
      return r; /* a stop that nobody asked for, or its end */
    syscall(SYS_futex, word, FUTEX_WAIT, __atomic_load_n(word, __ATOMIC_SEQ_CST) & ~CLOCHE_TOLD, &rest, NULL, 0);
  }
  if (ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
    return -1;
  return wait4(tid, status, __WALL, NULL);
}

/* Stopped where its work is done. */
static inline int cloche_wait(int tid, int *status, unsigned *word)
{
  if (cloche_way == CLOCHE_THREAD)
    return cloche_wait_thread(tid, status, word);
  if (cloche_way == CLOCHE_SYSCALL) { /* once on the way in; the caller sees the way out */
    if (wait4(tid, status, __WALL, NULL) != tid)
      return -1;
    if (!WIFSTOPPED(*status) || WSTOPSIG(*status) != (SIGTRAP | 0x80))
      return tid;
    if (ptrace(PTRACE_SYSCALL, tid, NULL, NULL))
      return -1;
  }
  return wait4(tid, status, __WALL, NULL);
}

/* Is that the stop the code was to end in? */
static inline int cloche_arrived(int status, int trap_code, int code)
{
  if (cloche_way == CLOCHE_SYSCALL)
    return WSTOPSIG(status) == (SIGTRAP | 0x80);
  if (cloche_way == CLOCHE_THREAD)
    return status >> 16 == 128; /* PTRACE_EVENT_STOP */
  return WSTOPSIG(status) == SIGTRAP && code == trap_code;
}

static inline int cloche_result(unsigned word)
{
  return -(int)(word & ~CLOCHE_TOLD);
}

#endif
