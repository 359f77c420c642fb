/* SPDX-License-Identifier: Apache-2.0 */
/* rescue.c - see rescue.h.
 *
 * The leader of a process that criu had made into its helper goes home by itself when criu's socket closes, so it is
 * given time first. Everything else that was caught runs in place, in a loop of two bytes, until it is fetched here. */
#include "jail/checkpoint/rescue.h"
#include "jail/cgroup.h"
#include "jail/checkpoint/criu_journal.h"
#include "jail/jail.h"
#include "jail/checkpoint/ext_conns.h"

#include <dirent.h>
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#define GO_HOME_MS   400  /* for a leader to leave by itself */
#define END_MS       3000 /* for criu and its helpers to be gone */
#define STOP_MS      2000
#define SIGNALS_MOST 256 /* before the one that is waited for: others may send more without end */
#define BLOB         "CRIUMFD"

struct rescue {
  const struct criu_journal *journal;
  const char *instance, *id;
  unsigned undone;
};

static void rest(unsigned ms)
{
  nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000}, NULL);
}

static int proc_text(pid_t pid, const char *what, struct buf *out)
{
  char path[PROC_PATH];
  snprintf(path, sizeof(path), "/proc/%d/%s", pid, what);
  return file_read(path, out);
}

/* --- the journal ---------------------------------------------------------------------------------------------- */

int rescue_open(int checkpoint, struct err *err)
{
  uint64_t magic = CRIU_JOURNAL_MAGIC;
  cleanup_fd int fd = openat(checkpoint, CRIU_JOURNAL_NAME, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  int r = fd < 0 ? -errno : -posix_fallocate(fd, 0, sizeof(struct criu_journal));
  if (!r && pwrite(fd, &magic, sizeof(magic), 0) != sizeof(magic))
    r = errno ? -errno : -EIO;
  return r ? err_set(err, r, "keeping a journal of the dump: %s", strerrordesc_np(-r)) : steal_fd(&fd);
}

int rescue_name(int journal, pid_t criu, struct err *err)
{
  struct criu_journal head = {.magic = CRIU_JOURNAL_MAGIC, .criu = criu};
  int r = proc_start_time(criu, &head.start);
  if (!r && pwrite(journal, &head, offsetof(struct criu_journal, threads), 0) < 0)
    r = -errno;
  return r ? err_set(err, r, "keeping a journal of the dump: %s", strerrordesc_np(-r)) : 0;
}

/* --- criu and its helpers ------------------------------------------------------------------------------------- */

static int session_of(pid_t pid)
{
  uint64_t session;
  cleanup_buf struct buf b = BUF_INIT(8192);
  if (proc_text(pid, "stat", &b))
    return -1;
  ptrdiff_t end = str_rfind(buf_str(&b), ')');
  struct str rest_ = end < 0 ? STR_NONE : str_skip(buf_str(&b), (size_t)end + 2), field = STR_NONE;
  for (int i = 3; i <= 6; i++)
    str_cut(rest_, ' ', &field, &rest_);
  return str_u64(field, &session) || session > INT_MAX ? -1 : (int)session;
}

static bool is_ours(const struct rescue *s, pid_t pid)
{
  uint64_t start = 0, first = 0;
  cleanup_buf struct buf name = BUF_INIT(64);
  if (session_of(pid) != s->journal->criu || proc_start_time(pid, &start) || proc_text(pid, "comm", &name) ||
      !str_is(buf_str(&name), "criu\n"))
    return false;
  return start >= s->journal->start && (proc_start_time(s->journal->criu, &first) || first == s->journal->start);
}

/* How many of criu's session are still there; they are told to end. */
static unsigned end_once(const struct rescue *s)
{
  unsigned n = 0;
  DIR *d = opendir("/proc");
  for (struct dirent *e; d && (e = readdir(d));) {
    uint64_t pid;
    cleanup_buf struct buf b = BUF_INIT(8192);
    if (str_u64(str_of(e->d_name), &pid) || pid > INT_MAX || !is_ours(s, (pid_t)pid))
      continue;
    cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)pid, 0); /* pinned, then looked at once more */
    if (pidfd < 0 || !is_ours(s, (pid_t)pid) || proc_text((pid_t)pid, "status", &b) ||
        str_search(buf_str(&b), STR("State:\tZ")) >= 0)
      continue;
    syscall(SYS_pidfd_send_signal, pidfd, SIGKILL, NULL, 0);
    n++;
  }
  if (d)
    closedir(d);
  return n;
}

static int end_criu(const struct rescue *s, struct err *err)
{
  for (unsigned i = 0; s->journal->criu > 1 && end_once(s); i++) {
    if (i == END_MS)
      return err_set(err, -EBUSY, "criu (process %d) does not exit", s->journal->criu);
    rest(1);
  }
  return 0;
}

/* --- one thread ----------------------------------------------------------------------------------------------- */

static bool in_box(const struct rescue *s, pid_t pid)
{
  char mark[160];
  cleanup_buf struct buf b = BUF_INIT(65536);
  snprintf(mark, sizeof(mark), "/cloche-%s/%s", s->instance, s->id);
  return !proc_text(pid, "cgroup", &b) && str_search(buf_str(&b), str_of(mark)) >= 0;
}

static bool is_leader(pid_t tid)
{
  char line[32];
  cleanup_buf struct buf b = BUF_INIT(65536);
  snprintf(line, sizeof(line), "\nTgid:\t%d\n", tid);
  return !proc_text(tid, "status", &b) && str_search(buf_str(&b), str_of(line)) >= 0;
}

/* Seized and stopped; false where it is gone or does not stop. */
static bool hold(pid_t tid)
{
  int status;
  if (ptrace(PTRACE_SEIZE, tid, NULL, PTRACE_O_TRACESYSGOOD) || ptrace(PTRACE_INTERRUPT, tid, NULL, NULL))
    return false;
  for (unsigned i = 0; i < STOP_MS; i++) {
    pid_t r = waitpid(tid, &status, __WALL | WNOHANG);
    if (r == tid && WIFSTOPPED(status) && status >> 16 == PTRACE_EVENT_STOP)
      return true;
    if (r == tid && WIFSTOPPED(status)) /* a signal on its way: it keeps it */
      ptrace(PTRACE_CONT, tid, NULL, (void *)(long)WSTOPSIG(status));
    else if (r)
      return false;
    rest(r ? 0 : 1);
  }
  ptrace(PTRACE_DETACH, tid, NULL, NULL);
  return false;
}

/* After it was sent on its way. Others of the box may write to its memory, stop or freeze it: that must not keep this
 * thread, so one that does not stop again in time is killed. */
static bool await_stop(pid_t tid, int *status)
{
  for (unsigned i = 0; i < 2 * STOP_MS; i++) {
    pid_t r = waitpid(tid, status, __WALL | WNOHANG);
    if (r)
      return r == tid && WIFSTOPPED(*status);
    if (i == STOP_MS)
      kill(tid, SIGKILL);
    nanosleep(&(struct timespec){.tv_nsec = i < 100 ? 20000 : 1000000}, NULL);
  }
  return false;
}

static void let_go(pid_t tid)
{
  ptrace(PTRACE_DETACH, tid, NULL, NULL);
}

static int registers(enum __ptrace_request how, pid_t tid, int kind, void *p, size_t n)
{
  struct iovec v = {p, n};
  return ptrace(how, tid, kind, &v) ? -errno : 0;
}

/* First and end of the mapping that holds `at` and whose line has `name` in it; at 0: of the first such mapping. */
static bool find_map(pid_t pid, uint64_t at, const char *name, uint64_t map[2])
{
  cleanup_buf struct buf b = BUF_INIT(16 << 20);
  if (proc_text(pid, "maps", &b))
    return false;
  struct str all = buf_str(&b), line, low, high;
  while (all.n) {
    str_cut(all, '\n', &line, &all);
    struct str tail = line;
    str_cut(tail, '-', &low, &tail);
    str_cut(tail, ' ', &high, &tail);
    char text[2][20] = {"", ""};
    str_copyz(low, text[0], sizeof(text[0]));
    str_copyz(high, text[1], sizeof(text[1]));
    map[0] = strtoull(text[0], NULL, 16);
    map[1] = strtoull(text[1], NULL, 16);
    if ((!at || (at >= map[0] && at < map[1])) && str_search(tail, str_of(name)) >= 0)
      return true;
  }
  return false;
}

/* The descriptor that foreign memory was made by, while it is open. */
static int find_fd(pid_t pid)
{
  char path[PROC_PATH], name[64];
  uint64_t number;
  int found = -1;
  snprintf(path, sizeof(path), "/proc/%d/fd", pid);
  DIR *d = opendir(path);
  for (struct dirent *e; d && found < 0 && (e = readdir(d));) {
    ssize_t n = readlinkat(dirfd(d), e->d_name, name, sizeof(name));
    if (n > 0 && str_search(str_make(name, (size_t)n), STR(BLOB)) >= 0 && !str_u64(str_of(e->d_name), &number) &&
        number <= INT_MAX)
      found = (int)number;
  }
  if (d)
    closedir(d);
  return found;
}

#ifdef __x86_64__
/* As criu has it: a call that was interrupted is made again. */
static void settle_call(struct user_regs_struct *r)
{
  enum { RESTARTSYS = 512, RESTARTNOINTR = 513, RESTARTNOHAND = 514, RESTART_BLOCK = 516 };
  long was = (long)r->rax;
  if ((long)r->orig_rax < 0)
    return;
  if (was == -RESTARTSYS || was == -RESTARTNOINTR || was == -RESTARTNOHAND) {
    r->rax = r->orig_rax;
    r->rip -= 2;
  } else if (was == -RESTART_BLOCK)
    r->rax = (unsigned long long)-EINTR;
}

static bool step(pid_t tid)
{
  int status;
  return !ptrace(PTRACE_SYSCALL, tid, NULL, NULL) && await_stop(tid, &status);
}

/* One call of the kernel made by the held thread itself, from two bytes put at `at` and taken away again. */
static long call_inside(pid_t tid, uint64_t at, const struct user_regs_struct *base, long nr, uint64_t a, uint64_t b)
{
  static const uint64_t everything = ~0ull;
  uint64_t mask = 0;
  struct user_regs_struct r = *base;
  errno = 0;
  long was = ptrace(PTRACE_PEEKTEXT, tid, (void *)at, NULL);
  if (errno || ptrace(PTRACE_GETSIGMASK, tid, sizeof(mask), &mask))
    return -EIO;
  r.rip = at;
  r.rax = (unsigned long long)nr;
  r.rdi = a;
  r.rsi = b;
  r.orig_rax = ~0ull;
  long result = -EIO;
  if (!ptrace(PTRACE_POKETEXT, tid, (void *)at, (void *)((was & ~0xffffffffl) | 0xfeeb050fl))) {
    ptrace(PTRACE_SETSIGMASK, tid, sizeof(everything), &everything);
    if (!registers(PTRACE_SETREGSET, tid, NT_PRSTATUS, &r, sizeof(r)) && step(tid) && step(tid) &&
        !registers(PTRACE_GETREGSET, tid, NT_PRSTATUS, &r, sizeof(r)))
      result = (long)r.rax;
    ptrace(PTRACE_POKETEXT, tid, (void *)at, (void *)was);
    ptrace(PTRACE_SETSIGMASK, tid, sizeof(mask), &mask);
  }
  r = *base;
  registers(PTRACE_SETREGSET, tid, NT_PRSTATUS, &r, sizeof(r));
  return result;
}

/* The memory that the foreign code was in, and the descriptor it was made by. The thread is held and at home. */
static void unmap_injected(pid_t tid)
{
  uint64_t map[2], code[2];
  struct user_regs_struct home;
  if (registers(PTRACE_GETREGSET, tid, NT_PRSTATUS, &home, sizeof(home)) || home.cs != 0x33 ||
      !find_map(tid, 0, "r-xp", code))
    return;
  settle_call(&home);
  for (int i = 0; i < 4 && find_map(tid, 0, BLOB, map); i++)
    call_inside(tid, code[0], &home, SYS_munmap, map[0], map[1] - map[0]);
  for (int i = 0, fd; i < 4 && (fd = find_fd(tid)) >= 0; i++)
    call_inside(tid, code[0], &home, SYS_close, (uint64_t)fd, 0);
}

static bool is_diverted(const struct criu_journal_thread *t, bool *in_blob)
{
  uint64_t map[2];
  struct user_regs_struct now;
  if (registers(PTRACE_GETREGSET, t->tid, NT_PRSTATUS, &now, sizeof(now)))
    return false;
  *in_blob = find_map(t->tid, t->ip, BLOB, map);
  return *in_blob ? now.rip >= map[0] && now.rip < map[1] : now.rip >= t->ip && now.rip < t->ip + 8;
}

static int restore_registers(const struct criu_journal_thread *t)
{
  struct criu_journal_thread copy = *t;
  if (copy.regs_n == sizeof(struct user_regs_struct))
    settle_call((struct user_regs_struct *)copy.regs);
  int r = registers(PTRACE_SETREGSET, t->tid, NT_PRSTATUS, copy.regs, copy.regs_n);
  if (!r && copy.wide_n)
    r = registers(PTRACE_SETREGSET, t->tid, NT_X86_XSTATE, copy.wide, copy.wide_n);
  if (!r && ptrace(PTRACE_SETSIGMASK, t->tid, sizeof(copy.mask), &copy.mask))
    r = -errno;
  return r;
}
#else
static void unmap_injected(pid_t tid)
{
  (void)tid;
}

static bool is_diverted(const struct criu_journal_thread *t, bool *in_blob)
{
  (void)t;
  return *in_blob = false;
}

static int restore_registers(const struct criu_journal_thread *t)
{
  (void)t;
  return -EOPNOTSUPP;
}
#endif

/* All signals blocked but the one criu leaves: nobody else has that mask. */
static void restore_mask(const struct criu_journal_thread *t)
{
  const uint64_t foreign = ~(1ull << (SIGTRAP - 1) | 1ull << (SIGKILL - 1) | 1ull << (SIGSTOP - 1));
  uint64_t mask = 0, was = t->mask;
  if (!ptrace(PTRACE_GETSIGMASK, t->tid, sizeof(mask), &mask) && mask == foreign)
    ptrace(PTRACE_SETSIGMASK, t->tid, sizeof(was), &was);
}

static uint64_t pending(pid_t tid)
{
  char text[20] = "";
  cleanup_buf struct buf b = BUF_INIT(65536);
  ptrdiff_t at = proc_text(tid, "status", &b) ? -1 : str_search(buf_str(&b), STR("\nSigPnd:\t"));
  if (at >= 0)
    str_copyz(str_sub(buf_str(&b), (size_t)at + 9, 16), text, sizeof(text));
  return strtoull(text, NULL, 16);
}

/* Lets go of a thread that was brought home. If it wrote to a dead criu, a SIGPIPE is waiting that would end it there:
 * it goes as far as that one's delivery, which does not take place. */
static void detach_restored(const struct criu_journal_thread *t)
{
  const uint64_t pipe_bit = 1ull << (SIGPIPE - 1);
  int status = 0, other = 0;
  if (!(t->mask & pipe_bit) && pending(t->tid) & pipe_bit)
    for (int i = 0; i < SIGNALS_MOST && other != SIGPIPE; i++) {
      if (ptrace(PTRACE_CONT, t->tid, NULL, (void *)(long)other) || !await_stop(t->tid, &status))
        return; /* it ended */
      other = status >> 16 ? 0 : WSTOPSIG(status);
    }
  let_go(t->tid);
}

static int restore_thread(struct rescue *s, const struct criu_journal_thread *t, struct err *err)
{
  bool in_blob = false, leader = is_leader(t->tid);
  for (unsigned i = 0;; i += 2) {
    if (!hold(t->tid))
      return 0; /* it ended */
    bool away = is_diverted(t, &in_blob);
    if (!away || !in_blob || !leader || i >= GO_HOME_MS) {
      int r = away ? restore_registers(t) : 0;
      if (!away)
        restore_mask(t);
      s->undone += away;
      if (away)
        detach_restored(t);
      else
        let_go(t->tid);
      return r ? err_set(err, r, "thread %d: registers not restored after criu was killed: %s", t->tid,
                         strerrordesc_np(-r))
               : 0;
    }
    let_go(t->tid);
    rest(2);
  }
}

/* --- code ----------------------------------------------------------------------------------------------------- */

static void restore_text(const struct criu_journal_piece *p)
{
  struct criu_journal_piece now = *p;
  char path[PROC_PATH];
  snprintf(path, sizeof(path), "/proc/%d/mem", p->pid);
  if (p->n > sizeof(now.was))
    return;
  cleanup_fd int fd = open(path, O_RDWR | O_CLOEXEC);
  if (fd < 0 || pread(fd, now.was, p->n, (off_t)p->at) != (ssize_t)p->n || memcmp(now.was, p->is, p->n))
    return;
  if (pwrite(fd, p->was, p->n, (off_t)p->at) != (ssize_t)p->n)
    log_warn("process %d: restoring its code at %llx failed: %s", p->pid, (unsigned long long)p->at,
             strerrordesc_np(errno));
}

/* --- all of it ------------------------------------------------------------------------------------------------ */

static void clean_process(const struct rescue *s, pid_t tid)
{
  uint64_t map[2];
  if (!in_box(s, tid) || (!find_map(tid, 0, BLOB, map) && find_fd(tid) < 0) || !hold(tid))
    return;
  unmap_injected(tid);
  let_go(tid);
}

/* A box chooses how many processes and descriptors there are to look at; what is left over is its own loss. */
#define CLEAN_USEC 10000000

static void clean_all(const struct rescue *s)
{
  char dir[PATH_MAX], path[PATH_MAX + 16];
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  if (cgroup_host()->freezer(s->instance, s->id, dir, sizeof(dir)))
    return;
  snprintf(path, sizeof(path), "%s/cgroup.procs", dir);
  if (file_read(path, &b))
    return;
  struct str all = buf_str(&b), line;
  int64_t until_us = clock_mono_us() + CLEAN_USEC;
  while (all.n && clock_mono_us() < until_us) {
    uint64_t pid;
    str_cut(all, '\n', &line, &all);
    if (str_u64(line, &pid) || pid > INT_MAX)
      continue;
    clean_process(s, (pid_t)pid);
    ext_conns_unrepair((pid_t)pid, until_us);
  }
  if (all.n)
    log_warn("box %s: not all of its processes were looked at after a killed dump: too many, or too many descriptors",
             s->id);
}

static int undo(struct rescue *s, struct err *err)
{
  int r = end_criu(s, err);
  if (!s->id)
    return r;
  jail_freeze(s->instance, s->id, false, NULL); /* criu may have been about to leave it */
  for (size_t i = 0; i < CRIU_JOURNAL_SLOTS && !r; i++)
    if (s->journal->threads[i].tid > 0 && in_box(s, s->journal->threads[i].tid))
      r = restore_thread(s, &s->journal->threads[i], err);
  for (size_t i = 0; i < CRIU_JOURNAL_PIECES; i++)
    if (s->journal->pieces[i].pid > 0 && in_box(s, s->journal->pieces[i].pid))
      restore_text(&s->journal->pieces[i]);
  clean_all(s);
  return r;
}

int rescue(int checkpoint, const char *instance, const char *id, unsigned *undone, struct err *err)
{
  struct stat st;
  struct rescue s = {.instance = instance, .id = id};
  cleanup_fd int fd = openat(checkpoint, CRIU_JOURNAL_NAME, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st) || st.st_size < (off_t)sizeof(struct criu_journal))
    return 0;
  void *map = mmap(NULL, sizeof(struct criu_journal), PROT_READ, MAP_SHARED, fd, 0);
  if (map == MAP_FAILED)
    return err_errno(err, "reading the journal of a dump");
  s.journal = map;
  int r = s.journal->magic == CRIU_JOURNAL_MAGIC ? undo(&s, err) : 0;
  munmap(map, sizeof(struct criu_journal));
  *undone = s.undone;
  return r;
}
