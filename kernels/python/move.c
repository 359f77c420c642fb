/* move.c - a fork of the zygote that is born inside a box, copying the zygote's memory once instead of twice.
 *
 * To be in another pid namespace a process must be born there: it enters the box and forks, and its child is the one that
 * counts. That first process needs no memory of its own. Here it shares the zygote's (vfork), which waits meanwhile; it
 * enters, makes a second one of its kind inside, and ends. The second one forks once, and ends. The fork wakes up where the
 * zygote called from, on a copy of the zygote's stack. It takes the second one because only who loses a parent inside the
 * box becomes a child of the box's first process; the host's would adopt it else, and no checkpoint of the box would
 * find it. The box's control groups are for the fork alone to join: a box that is frozen or killed must not hold up the zygote.
 *
 * What every fork writes to it copies at once and in few calls (move_touch): a page fault for each page would cost more.
 *
 * The library stands alone: no C library, only system calls, because between vfork and exit nothing of the zygote's state
 * may change, and so that it fits every template's Python. x86-64 only; without it zygote.py forks twice. */
#include <stddef.h>
#include <stdint.h>

#if !defined(__x86_64__)
#error "system calls are written for x86-64"
#endif

enum {
  SYS_MADVISE = 28,
  SYS_CLONE = 56,
  SYS_EXIT = 60,
  SYS_WAIT4 = 61,
  SYS_SETGROUPS = 116,
  SYS_SETRESUID = 117,
  SYS_SETRESGID = 119,
  SYS_SETNS = 308,
  SYS_RSEQ = 334
};
enum { SHARE_MEMORY = 0x100, WAIT_FOR_CHILD = 0x4000, CLEAR_TID = 0x200000, SET_TID = 0x1000000, CHILD_SIGNAL = 17 };
#define RSEQ_BYTES     32
#define POPULATE_WRITE 23
#define RSEQ_SIGNATURE 0x53053053 /* the C library's, on x86 */

struct span {
  uint64_t start, bytes;
};

struct move {
  int32_t box;         /* pidfd of the box's first process */
  int32_t namespaces;  /* which of its namespaces are entered */
  uint64_t tid_place;  /* where the C library keeps the thread's id: the fork finds its own there, as after fork() */
  uint64_t rseq_place; /* what it shares with the scheduler; the kernel forgets it across a shared memory */
  int32_t step;        /* out: where it failed, 0 = nowhere */
  int32_t error;       /* out: why, as a positive errno */
};

static inline long call(long number, long a, long b, long c, long d, long e)
{
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8) : "rcx", "r11", "memory");
  return result;
}

__attribute__((noreturn)) static void leave(struct move *m, int step, long error)
{
  m->step = step;
  m->error = (int32_t)-error;
  for (;;)
    call(SYS_EXIT, step ? 1 : 0, 0, 0, 0, 0);
}

/* Runs beside the sleeping zygote, on its memory, below its stack; what is below the clone runs beside it in the box. */
__attribute__((noinline, noreturn)) static void enter(struct move *m, void **back)
{
  long r;
  if ((r = call(SYS_SETNS, m->box, m->namespaces, 0, 0, 0)) < 0)
    leave(m, 1, r);
  if ((r = call(SYS_SETGROUPS, 0, 0, 0, 0, 0)) < 0)
    leave(m, 2, r);
  if ((r = call(SYS_SETRESGID, 0, 0, 0, 0, 0)) < 0 || (r = call(SYS_SETRESUID, 0, 0, 0, 0, 0)) < 0)
    leave(m, 3, r);
  r = call(SYS_CLONE, CHILD_SIGNAL | SHARE_MEMORY | WAIT_FOR_CHILD, 0, 0, 0, 0);
  if (r < 0)
    leave(m, 4, r);
  if (r > 0) {
    call(SYS_WAIT4, r, 0, 0, 0, 0);
    leave(m, m->step, -m->error);
  }
  long place = (long)m->tid_place;
  r = call(SYS_CLONE, CHILD_SIGNAL | (place ? SET_TID | CLEAR_TID : 0), 0, 0, place, 0);
  if (r == 0)
    __builtin_longjmp(back, 1);
  leave(m, r < 0 ? 4 : 0, r);
}

/* The pid of the process that entered (and has ended) in the zygote, 0 in the fork, negative errno. */
long move_fork(struct move *m)
{
  void *back[5];
  m->step = m->error = 0;
  if (__builtin_setjmp(back)) {
    if (m->rseq_place)
      call(SYS_RSEQ, (long)m->rseq_place, RSEQ_BYTES, 0, RSEQ_SIGNATURE, 0);
    return 0;
  }
  long r = call(SYS_CLONE, CHILD_SIGNAL | SHARE_MEMORY | WAIT_FOR_CHILD, 0, 0, 0, 0);
  if (r == 0)
    enter(m, back);
  return r;
}

/* Once the fork counts as the box's. A stretch that is gone, or an older kernel: page faults do it then. */
void move_touch(const struct span *spans, uint64_t count)
{
  for (uint64_t i = 0; i < count; i++)
    call(SYS_MADVISE, (long)spans[i].start, (long)spans[i].bytes, POPULATE_WRITE, 0, 0);
}
