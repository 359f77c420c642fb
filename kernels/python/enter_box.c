/* SPDX-License-Identifier: Apache-2.0 */
/* enter_box.c - how a fork of the zygote enters a box.
 *
 * The box is hostile: its root may signal, trace and read every process that has a pid in it, as far as the kernel lets
 * it. So a process gets a pid there only when it is one of the box's own in everything else: descriptors, identity,
 * filter, capabilities, limits, control groups. Until then it works from outside, where nothing of the box can name it.
 *
 * Three processes, one copy of the zygote's memory:
 *
 *   walker   a plain fork of the zygote, in the host's pid namespace. It takes all the steps below and ends.
 *   parent   made by the walker in the box's pid namespace, on the walker's memory. It makes the fork and ends, which
 *            is all it is for: only who loses a parent inside the box becomes a child of the box's first process.
 *            Otherwise the host's would adopt it, and no checkpoint of the box would find it.
 *   fork     made by the parent, on the same memory. It returns to the caller as the box's kernel or nursery.
 *
 * The zygote shares no memory with any of them and waits for none: it reaps the walker when it ends and kills one that
 * takes too long. A process that is stopped, frozen or killed by the box or with the box holds up nobody but that box.
 *
 * The steps, and what is held and can be reached after each:
 *
 *    step                           holds                                       can be reached by the box
 *    0 forked                       all of the zygote's descriptors; its user   no: not in the box's pid namespace
 *      It waits for the zygote to close its copy of the agent's socket: the box may have put descriptors into that
 *      socket's queue whose closing takes as long as it likes, and they are closed by who has the socket last.
 *      Not dumpable since the zygote is not. The memory's user namespace stays the host's until an exec, so a process
 *      without CAP_SYS_PTRACE on the host can't trace it or copy its descriptors, whatever its identity becomes.
 *      Signals are blocked.
 *    1 all descriptors closed but   the agent's socket, a pidfd of the box's    no
 *      those of this box            first process, its control groups
 *    2 namespaces entered           all capabilities in the box's user          no: setns moves children, not the
 *                                   namespace, none on the host                 caller, into a pid namespace
 *    3 pidfd closed, descriptors    /dev/null of the box, the agent's socket,   no
 *      arranged                     the groups
 *    4 identity: the box's root, no groups, a new session keyring, limits       no
 *    5 filter                       the box's system calls                      no
 *    6 capabilities                 what root of the box has, less tracing      no
 *    7 groups joined and closed     /dev/null, the agent's socket               frozen and killed with the box
 *    8 parent made, walker ends     the same                                    signals; tracing not: not dumpable
 *    9 fork made, parent ends       the same                                    the same
 *   10 the fork alone has the       the same                                    everything, as any process of the box
 *      memory: a session of its own, and dumpable last
 *
 * Step 10 waits for the two others to be gone: the walker is outside the box's pid namespace, and memory that it still
 * runs on must not be writable from inside. Groups come after the filter because a walker counts as the box's from then
 * on, and a checkpoint would find a process with namespaces of its own: it is there for the length of one clone.
 *
 * What every fork writes to it copies at once and in few calls (move_touch): a page fault for each page would cost
 * more.
 *
 * The library stands alone: no C library, only system calls, so that it fits every template's Python. x86-64 only;
 * without it there is no zygote. */
#include <stddef.h>
#include <stdint.h>

#if !defined(__x86_64__)
#error "system calls are written for x86-64"
#endif

enum {
  SYS_READ = 0,
  SYS_WRITE = 1,
  SYS_OPEN = 2,
  SYS_CLOSE = 3,
  SYS_FSTAT = 5,
  SYS_SIGPROCMASK = 14,
  SYS_MADVISE = 28,
  SYS_DUP2 = 33,
  SYS_NANOSLEEP = 35,
  SYS_CLONE = 56,
  SYS_EXIT = 60,
  SYS_FCNTL = 72,
  SYS_UMASK = 95,
  SYS_SETSID = 112,
  SYS_SETGROUPS = 116,
  SYS_SETRESUID = 117,
  SYS_SETRESGID = 119,
  SYS_CAPSET = 126,
  SYS_PRCTL = 157,
  SYS_KEYCTL = 250,
  SYS_UNSHARE = 272,
  SYS_DUP3 = 292,
  SYS_PRLIMIT = 302,
  SYS_SETNS = 308,
  SYS_SECCOMP = 317,
  SYS_RSEQ = 334,
  SYS_CLOSE_RANGE = 436
};
enum { SHARE_MEMORY = 0x100, CLEAR_TID = 0x200000, SET_TID = 0x1000000, CHILD_SIGNAL = 17 };
enum { NEW_TIME = 0x80, NEW_ALL = 0x7e020000 }; /* mount, cgroup, uts, ipc, user, pid, net */
enum { GET_DUMPABLE = 3, SET_DUMPABLE = 4, DROP_BOUNDING = 24, AMBIENT = 47, AMBIENT_CLEAR = 4 };
enum { LIMIT_CORE = 4, LIMIT_FILES = 7, LIMIT_LOCKED = 8, LIMIT_PENDING = 11, LIMIT_QUEUES = 12, FILES_SOFT = 65536 };
enum { LOCKED_BYTES = 8 << 20, SIGNALS_PENDING = 16384, QUEUE_BYTES = 819200, LIMIT_SHARE = 8 }; /* as in jail_defs.h */
enum { EPERM = 1, ESRCH = 3, EINVAL = 22, ENOSYS = 38 };
enum { PROTOCOL = 3, READ_WRITE = 2, NO_TERMINAL = 0400, NONBLOCK = 04000, CLOEXEC = 02000000, SET_FLAGS = 4 };
enum { TYPE_MASK = 0170000, TYPE_CHARACTER = 0020000 };
#define RSEQ_BYTES      32
#define RSEQ_UNREGISTER 1
#define POPULATE_WRITE  23
#define RSEQ_SIGNATURE  0x53053053 /* the C library's, on x86 */
#define CAP_VERSION     0x20080522
#define NULL_DEVICE     0x103 /* 1:3 */
#define FIRST_STEP      200   /* exit codes of the walker: a step above this, or the errno of a clone */
#define ALONE_TRIES     2000

enum step {
  STEP_FDS = 1,
  STEP_NAMESPACES,
  STEP_ENDED,
  STEP_NULL,
  STEP_IDENTITY,
  STEP_LIMITS,
  STEP_FILTER,
  STEP_CAPABILITIES,
  STEP_GROUPS
};

struct span {
  uint64_t start, bytes;
};

#define GROUPS_MAX 16

struct move {
  uint64_t filter;       /* the program's instructions */
  uint64_t capabilities; /* kept */
  uint64_t tid_place;    /* where the C library keeps the thread's id: the fork finds its own there, as after fork() */
  uint64_t rseq_place;   /* what it shares with the scheduler; the kernel forgets it across a shared memory */
  uint32_t instructions; /* of the filter */
  uint32_t files;        /* most open files */
  int32_t sock;          /* of the agent; becomes descriptor 3 */
  int32_t box;           /* pidfd of the box's first process */
  int32_t groups[GROUPS_MAX]; /* control group files to write to */
  int32_t group_count;
  int32_t gate[2]; /* a pipe: at its end the zygote has closed its copy of sock */
};

static inline long call(long number, long a, long b, long c, long d, long e)
{
  long result;
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory");
  return result;
}

__attribute__((noreturn)) static void leave(enum step step)
{
  for (;;)
    call(SYS_EXIT, FIRST_STEP + step, 0, 0, 0, 0);
}

static void must(enum step step, long result)
{
  if (result < 0)
    leave(step);
}

/* Returns in a child on the same memory and the same stack. The caller ends inside, in registers alone: with 0, or with
 * the errno where there is no child. */
static inline void pass_on(long flags, long tid_place)
{
  long number = SYS_CLONE;
  register long r10 __asm__("r10") = tid_place;
  register long r8 __asm__("r8") = 0;
  __asm__ volatile("syscall\n\t"
                   "test %%rax, %%rax\n\t"
                   "jz 2f\n\t"
                   "mov %%rax, %%rdi\n\t"
                   "neg %%rdi\n\t"
                   "test %%rax, %%rax\n\t"
                   "js 1f\n\t"
                   "xor %%edi, %%edi\n\t"
                   "1: mov $60, %%eax\n\t"
                   "syscall\n\t"
                   "jmp 1b\n\t"
                   "2:"
                   : "+a"(number), "+D"(flags)
                   : "S"(0L), "d"(0L), "r"(r10), "r"(r8)
                   : "rcx", "r11", "memory", "cc");
}

/* --- the walker ----------------------------------------------------------------------------------------------- */

static void close_between(long first, long last)
{
  if (first <= last)
    must(STEP_FDS, call(SYS_CLOSE_RANGE, first, last, 0, 0, 0));
}

/* The zygote's end of the pipe is closed when it dies, too. */
static void await_gate(const struct move *m)
{
  char byte;
  must(STEP_FDS, call(SYS_CLOSE, m->gate[1], 0, 0, 0, 0));
  if (call(SYS_READ, m->gate[0], (long)&byte, 1, 0, 0) != 0)
    leave(STEP_FDS);
}

/* Everything goes but what belongs to this box: the zygote's line to the warden, its log, descriptors of other boxes.
 */
static void close_others(const struct move *m)
{
  int32_t kept[GROUPS_MAX + 2];
  int n = 0;
  kept[n++] = m->sock;
  kept[n++] = m->box;
  for (int i = 0; i < m->group_count; i++)
    kept[n++] = m->groups[i];
  for (int i = 1; i < n; i++)
    for (int k = i; k > 0 && kept[k] < kept[k - 1]; k--) {
      int32_t lower = kept[k];
      kept[k] = kept[k - 1];
      kept[k - 1] = lower;
    }
  if (kept[0] <= PROTOCOL)
    leave(STEP_FDS);
  close_between(0, kept[0] - 1);
  for (int i = 1; i < n; i++)
    close_between(kept[i - 1] + 1, kept[i] - 1);
  close_between(kept[n - 1] + 1, 0xffffffff);
}

/* With fs.suid_dumpable = 1 on the host every change of identity, and every namespace that gives capabilities, makes
 * the caller dumpable again. The memory is shared with what will have a pid in the box, so this is undone at once,
 * while the box can't see it yet. */
static void stay_hidden(void)
{
  must(STEP_IDENTITY, call(SYS_PRCTL, SET_DUMPABLE, 0, 0, 0, 0));
}

/* A box that was restored has clocks of its own. Others have the host's, which nobody may enter and everybody is in. */
static void enter_namespaces(const struct move *m)
{
  long r = call(SYS_SETNS, m->box, NEW_ALL, 0, 0, 0);
  if (r == -ESRCH)
    leave(STEP_ENDED);
  must(STEP_NAMESPACES, r);
  stay_hidden();
  r = call(SYS_SETNS, m->box, NEW_TIME, 0, 0, 0);
  if (r != -EPERM && r != -EINVAL)
    must(STEP_NAMESPACES, r);
  stay_hidden();
  must(STEP_FDS, call(SYS_CLOSE, m->box, 0, 0, 0, 0));
}

/* The box's own /dev/null, and nothing else in its place. */
static void arrange_descriptors(const struct move *m)
{
  uint64_t st[18]; /* struct stat: type and mode in the fourth word, the device in the sixth */
  if (call(SYS_OPEN, (long)"/dev/null", READ_WRITE | NO_TERMINAL | NONBLOCK, 0, 0, 0) != 0)
    leave(STEP_NULL);
  must(STEP_NULL, call(SYS_FSTAT, 0, (long)st, 0, 0, 0));
  if (st[5] != NULL_DEVICE || ((uint32_t)st[3] & TYPE_MASK) != TYPE_CHARACTER)
    leave(STEP_NULL);
  must(STEP_NULL, call(SYS_FCNTL, 0, SET_FLAGS, READ_WRITE, 0, 0));
  if (call(SYS_DUP2, 0, 1, 0, 0, 0) != 1 || call(SYS_DUP2, 0, 2, 0, 0, 0) != 2)
    leave(STEP_NULL);
  must(STEP_FDS, call(SYS_DUP3, m->sock, PROTOCOL, CLOEXEC, 0, 0));
  must(STEP_FDS, call(SYS_CLOSE, m->sock, 0, 0, 0, 0));
}

static void take_identity(void)
{
  must(STEP_IDENTITY, call(SYS_SETGROUPS, 0, 0, 0, 0, 0));
  must(STEP_IDENTITY, call(SYS_SETRESGID, 0, 0, 0, 0, 0));
  stay_hidden();
  must(STEP_IDENTITY, call(SYS_SETRESUID, 0, 0, 0, 0, 0));
  stay_hidden();
  long r = call(SYS_KEYCTL, 1, 0, 0, 0, 0); /* joins a new session keyring */
  if (r != -ENOSYS)
    must(STEP_IDENTITY, r);
}

static void limit_one(long which, uint64_t most)
{
  uint64_t now[2];
  must(STEP_LIMITS, call(SYS_PRLIMIT, 0, which, 0, (long)now, 0));
  if (now[1] != ~0ull && which != LIMIT_LOCKED)
    now[1] /= LIMIT_SHARE;
  now[1] = now[1] < most ? now[1] : most;
  now[0] = now[1];
  must(STEP_LIMITS, call(SYS_PRLIMIT, 0, which, (long)now, 0, 0));
}

/* As the agent has them (jail_child.c); the core limit is 1 because a pipe as core_pattern ignores 0. */
static void limit_resources(const struct move *m)
{
  uint64_t files[2], core[2] = {1, 1};
  must(STEP_LIMITS, call(SYS_PRLIMIT, 0, LIMIT_FILES, 0, (long)files, 0));
  files[1] = files[1] < m->files ? files[1] : m->files;
  files[0] = files[1] < FILES_SOFT ? files[1] : FILES_SOFT;
  must(STEP_LIMITS, call(SYS_PRLIMIT, 0, LIMIT_FILES, (long)files, 0, 0));
  must(STEP_LIMITS, call(SYS_PRLIMIT, 0, LIMIT_CORE, (long)core, 0, 0));
  limit_one(LIMIT_LOCKED, LOCKED_BYTES);
  limit_one(LIMIT_PENDING, SIGNALS_PENDING);
  limit_one(LIMIT_QUEUES, QUEUE_BYTES);
  call(SYS_UMASK, 022, 0, 0, 0, 0);
}

static void load_filter(const struct move *m)
{
  struct {
    uint16_t n;
    uint64_t code;
  } program = {(uint16_t)m->instructions, m->filter};
  must(STEP_FILTER, m->instructions > 0 && m->instructions <= 4096 ? 0 : -EINVAL);
  must(STEP_FILTER, call(SYS_SECCOMP, 1, 0, (long)&program, 0, 0));
}

/* Numbers that the kernel does not know are refused, which is fine. */
static void keep_capabilities(uint64_t mask)
{
  uint32_t head[2] = {CAP_VERSION, 0}, low = (uint32_t)mask, high = (uint32_t)(mask >> 32);
  uint32_t data[6] = {low, low, 0, high, high, 0};
  for (long capability = 0; capability < 64; capability++)
    if (!(mask >> capability & 1)) {
      long r = call(SYS_PRCTL, DROP_BOUNDING, capability, 0, 0, 0);
      if (r != -EINVAL)
        must(STEP_CAPABILITIES, r);
    }
  must(STEP_CAPABILITIES, call(SYS_CAPSET, (long)head, (long)data, 0, 0, 0));
  must(STEP_CAPABILITIES, call(SYS_PRCTL, AMBIENT, AMBIENT_CLEAR, 0, 0, 0));
}

static void join_groups(const struct move *m)
{
  for (int i = 0; i < m->group_count; i++) {
    if (call(SYS_WRITE, m->groups[i], (long)"0", 1, 0, 0) != 1)
      leave(STEP_GROUPS);
    must(STEP_FDS, call(SYS_CLOSE, m->groups[i], 0, 0, 0, 0));
  }
}

static void walk(const struct move *m)
{
  if (m->rseq_place) /* else the walker's would be written to beside the fork's, in the same place */
    call(SYS_RSEQ, (long)m->rseq_place, RSEQ_BYTES, RSEQ_UNREGISTER, RSEQ_SIGNATURE, 0);
  stay_hidden();
  await_gate(m);
  close_others(m);
  enter_namespaces(m);
  arrange_descriptors(m);
  take_identity();
  limit_resources(m);
  load_filter(m);
  keep_capabilities(m->capabilities);
  stay_hidden();
  if (call(SYS_PRCTL, GET_DUMPABLE, 0, 0, 0, 0) != 0)
    leave(STEP_IDENTITY);
  join_groups(m);
}

/* --- the fork ------------------------------------------------------------------------------------------------- */

/* unshare() of memory is refused while another process has it, too. A parent that the box has stopped is not waited for
 * long. */
static void await_alone(void)
{
  int64_t moment[2] = {0, 20000};
  for (int i = 0; call(SYS_UNSHARE, SHARE_MEMORY, 0, 0, 0, 0) < 0; i++) {
    if (i == ALONE_TRIES)
      leave(STEP_ENDED);
    if (i == 100)
      moment[1] = 1000000;
    call(SYS_NANOSLEEP, (long)moment, 0, 0, 0, 0);
  }
}

static void settle(const struct move *m)
{
  await_alone();
  if (m->rseq_place)
    call(SYS_RSEQ, (long)m->rseq_place, RSEQ_BYTES, 0, RSEQ_SIGNATURE, 0);
  call(SYS_SETSID, 0, 0, 0, 0, 0);
  call(SYS_PRCTL, SET_DUMPABLE, 1, 0, 0, 0);
}

/* The walker's pid in the zygote, 0 in the fork, negative errno. */
__attribute__((visibility("default"))) long move_fork(const struct move *m)
{
  uint64_t all = ~0ull, before = 0;
  long tid = (long)m->tid_place;
  if (m->group_count < 0 || m->group_count > GROUPS_MAX)
    return -EINVAL;
  call(SYS_SIGPROCMASK, 2, (long)&all, (long)&before, 8, 0); /* no handler runs on memory that two processes have */
  long r = call(SYS_CLONE, CHILD_SIGNAL, 0, 0, 0, 0);
  if (r == 0) {
    walk(m);
    pass_on(SHARE_MEMORY | CHILD_SIGNAL, 0);
    pass_on(SHARE_MEMORY | CHILD_SIGNAL | (tid ? SET_TID | CLEAR_TID : 0), tid);
    settle(m);
  }
  call(SYS_SIGPROCMASK, 2, (long)&before, 0, 8, 0);
  return r;
}

/* Once the fork counts as the box's. A stretch that is gone, or an older kernel: page faults do it then. */
__attribute__((visibility("default"))) void move_touch(const struct span *spans, uint64_t count)
{
  for (uint64_t i = 0; i < count; i++)
    call(SYS_MADVISE, (long)spans[i].start, (long)spans[i].bytes, POPULATE_WRITE, 0, 0);
}
