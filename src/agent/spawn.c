/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.c - see spawn.h. The child shares the agent's memory until it execs: it may only write to its own stack and to
 * the struct below, and calls no function of libc that takes a lock or, like setuid(), signals other threads. */
#include "agent/spawn.h"
#include "agent/agent.h"
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/ioprio.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define STACK_SIZE      (128 << 10)
#define FOUNDER_STACK   (16 << 10) /* at the bottom of the child's */
#define CHILD_OOM_SCORE "100"

static struct {
  struct rlimit nofile;
  int null_fd;
  char *stack;
  bool niced;
} given = {.null_fd = -1};

struct spawn_child {
  const struct spawn *s;
  const char *path; /* PATH of the child */
  char **sh_argv;   /* for a script without an interpreter line: sh, the script, its arguments */
  volatile enum spawn_stage stage;
  volatile int error;
  volatile bool scored; /* the child could set its own oom score */
};

void spawn_prepare(void)
{
  getrlimit(RLIMIT_NOFILE, &given.nofile);
  errno = 0;
  given.niced = getpriority(PRIO_PROCESS, 0) != 0;
  given.null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  given.stack = mmap(NULL, STACK_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (given.stack == MAP_FAILED)
    given.stack = NULL;
}

/* ---- in the child ---- */

/* Its frames never return, so marks that a sanitizer puts around them would stay on the stack for the next child. */
#define CHILD __attribute__((no_sanitize_address)) static

/* The bare system call: what libc or a sanitizer hangs on _exit() must not run in the agent's memory. */
CHILD _Noreturn void child_exit(int code)
{
  for (;;)
    syscall(SYS_exit_group, code);
}

CHILD _Noreturn void child_fail(struct spawn_child *b, enum spawn_stage stage)
{
  b->error = errno;
  b->stage = stage;
  child_exit(127);
}

CHILD void child_fds(struct spawn_child *b)
{
  for (int i = 0; i < 4; i++) {
    int from = b->s->fds[i];
    if (from < 0 && i == 3) {
      close(3);
      continue;
    }
    if (dup2(from < 0 ? given.null_fd : from, i) < 0)
      child_fail(b, SPAWN_SETUP);
  }
  syscall(SYS_close_range, 4, ~0U, 0);
}

/* The agent keeps CAP_SYS_PTRACE and nothing it starts may have it, root's programs and sudo's included: the kernel
 * lets one trace another only when it has all of the other's capabilities, so no process of the box can trace, read or
 * write pid 1. What a user's debugger does to programs of that user needs no capability. */
CHILD void child_shed(void)
{
  prctl(PR_CAPBSET_DROP, CAP_SYS_PTRACE);
}

CHILD void child_identity(struct spawn_child *b)
{
  const struct user *u = b->s->user;
  if (!u)
    return;
  if (syscall(SYS_setgroups, u->ngroups, u->groups) < 0 || syscall(SYS_setresgid, u->gid, u->gid, u->gid) < 0 ||
      syscall(SYS_setresuid, u->uid, u->uid, u->uid) < 0)
    child_fail(b, SPAWN_IDENTITY);
}

CHILD void child_limits(struct spawn_child *b)
{
  sigset_t none;
  int score = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  b->scored = score >= 0 && write(score, CHILD_OOM_SCORE, strlen(CHILD_OOM_SCORE)) > 0;
  if (score >= 0)
    close(score);
  sigemptyset(&none);
  signal(SIGPIPE, SIG_DFL);
  setrlimit(RLIMIT_NOFILE, &given.nofile);
  if (given.niced)
    setpriority(PRIO_PROCESS, 0, 0);
  syscall(SYS_ioprio_set, IOPRIO_WHO_PROCESS, 0, IOPRIO_PRIO_VALUE(IOPRIO_CLASS_BE, 4));
  sigprocmask(SIG_SETMASK, &none, NULL);
}

CHILD void child_try(struct spawn_child *b, const char *program)
{
  execve(program, b->s->argv, b->s->envp);
  if (errno != ENOEXEC)
    return;
  b->sh_argv[1] = (char *)program;
  execve("/bin/sh", b->sh_argv, b->s->envp);
}

/* Tries each directory of PATH; a file that may not be run is remembered, one that is not there is not. */
CHILD int child_search(struct spawn_child *b)
{
  char program[PATH_MAX];
  struct str rest = str_of(b->path), dir, name = str_of(b->s->cmd);
  int seen = ENOENT;
  bool more = true;
  while (more) {
    more = str_cut(rest, ':', &dir, &rest);
    if (dir.n == 0)
      dir = STR(".");
    if (dir.n + name.n + 2 > sizeof(program))
      continue;
    memcpy(program, dir.p, dir.n);
    program[dir.n] = '/';
    memcpy(program + dir.n + 1, name.p, name.n + 1);
    child_try(b, program);
    if (errno != ENOENT && errno != ENOTDIR)
      seen = errno;
    if (errno == E2BIG)
      break;
  }
  return seen;
}

CHILD void child_say(struct str s)
{
  if (write(2, s.p, s.n) < 0)
    return;
}

CHILD _Noreturn void child_lost(const char *cmd, int why)
{
  bool missing = why == ENOENT || why == ENOTDIR;
  child_say(STR("exec: "));
  child_say(str_of(cmd));
  child_say(missing         ? STR(": not found\n")
            : why == E2BIG  ? STR(": argument list too long\n")
            : why == EACCES ? STR(": permission denied\n")
            : why == EISDIR ? STR(": is a directory\n")
                            : STR(": cannot execute\n"));
  child_exit(missing ? 127 : 126);
}

CHILD int founder_main(void *arg)
{
  setpgid(0, 0);
  child_exit(0);
}

/* A process group of its own, so that `kill 0` stays inside the command, but without being its leader: setsid(1) would
 * fork and return 0 at once for a leader. The leader is a process that exits as soon as it has founded the group; not
 * yet reaped, it can still be joined. */
CHILD void child_group(void)
{
  pid_t founder = clone(founder_main, given.stack + FOUNDER_STACK, CLONE_VM | CLONE_VFORK, NULL);
  if (founder < 0 || setpgid(0, founder) < 0)
    setpgid(0, 0);
  while (founder > 0 && wait4(founder, NULL, __WCLONE, NULL) < 0 && errno == EINTR)
    continue;
}

CHILD int child_main(void *arg)
{
  struct spawn_child *b = arg;
  if (b->s->session)
    setsid();
  else
    child_group();
  child_fds(b);
  if (b->s->ctty && ioctl(0, TIOCSCTTY, 0) < 0)
    child_fail(b, SPAWN_SETUP);
  child_limits(b);
  child_shed();
  child_identity(b);
  if (b->s->cwd && chdir(b->s->cwd) < 0)
    child_fail(b, SPAWN_CWD);
  int why = ENOENT;
  if (strchr(b->s->cmd, '/')) {
    child_try(b, b->s->cmd);
    why = errno;
  } else if (b->s->cmd[0]) {
    why = child_search(b);
  }
  child_lost(b->s->cmd, why);
}

/* ---- in the agent ---- */

static const char *path_of(char *const *envp)
{
  for (; envp && *envp; envp++)
    if (strncmp(*envp, "PATH=", 5) == 0)
      return *envp + 5;
  return AGENT_PATH;
}

static char **sh_argv_make(char *const *argv)
{
  size_t n = 0;
  while (argv[n])
    n++;
  char **out = xcalloc(n + 3, sizeof(*out));
  out[0] = (char *)"sh";
  for (size_t i = 1; i < n; i++)
    out[i + 1] = argv[i];
  return out;
}

/* When the child can't: where the agent's file may not be read by the box, the agent and all that share its memory have
 * /proc files of a user whom the box does not know. After exec the child is its own again. */
static void oom_score_set(pid_t pid)
{
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/oom_score_adj", (int)pid);
  int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return;
  if (write(fd, CHILD_OOM_SCORE, strlen(CHILD_OOM_SCORE)) < 0)
    log_debug("oom_score_adj of %d: %s", (int)pid, strerror(errno));
  close(fd);
}

pid_t spawn_run(const struct spawn *s, enum spawn_stage *stage)
{
  cleanup_free char **sh_argv = sh_argv_make(s->argv);
  struct spawn_child b = {.s = s, .path = path_of(s->envp), .sh_argv = sh_argv, .stage = SPAWN_OK};
  *stage = SPAWN_CLONE;
  if (!given.stack)
    return -ENOMEM;
  pid_t pid = clone(child_main, given.stack + STACK_SIZE, CLONE_VM | CLONE_VFORK | SIGCHLD, &b);
  int code = errno;
  /* The child changed its user on our memory, which hides this process. A checkpoint of a restored box, whose memory
   * belongs to the host's namespace, could not be taken of it then. */
  prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
  if (pid < 0)
    return -code;
  *stage = b.stage;
  if (b.stage != SPAWN_OK) {
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
      continue;
    return -b.error;
  }
  if (!b.scored)
    oom_score_set(pid);
  return pid;
}
