/* SPDX-License-Identifier: Apache-2.0 */
/* helper_proc.c - see helper_proc.h. Between fork and exec only system calls: other threads may hold any lock. */
#include "warden/core/helper_proc.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define LOOK_MS  100
#define EVERY_US 1000000 /* between calls of `look` */
#define LINE_MAX 4096
#define ENV_MAX  32

struct run {
  const struct helper_proc *c;
  char line[LINE_MAX];
  size_t have;
  char complaint[400]; /* the last one */
  struct err seen;     /* by `look` */
  int64_t looked_us;
};

/* ---- the child ---- */

static _Noreturn void give_up(const char *what)
{
  char text[200] = "level=fatal msg=\"";
  size_t n = strlen(text), k = 0;
  while (what[k] && n < sizeof(text) - 3)
    text[n++] = what[k++];
  text[n++] = '"';
  text[n++] = '\n';
  ssize_t unused = write(2, text, n);
  (void)unused;
  _exit(127);
}

static void place(int tree, const char *at)
{
  if (tree >= 0 && move_mount(tree, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH))
    give_up("a directory could not be bound for the program that fetches");
}

/* Programs without rights have one user for each team. Each has its own namespaces of processes and of System V and
 * POSIX objects, and a /proc of its own, so that none finds another: neither to trace it nor to end it, nor the files
 * it has open. */
#define CONFINED (CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWUTS)

static void wall_in(const struct helper_proc *c)
{
  bool private = c->uid || c->work >= 0 || c->source >= 0;
  if (private && ((!c->uid && unshare(CLONE_NEWNS)) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL)))
    give_up("no mount namespace could be had for the program that fetches");
  if (c->uid && mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
    give_up("no /proc could be had for the program that fetches");
  place(c->work, "/tmp");
  place(c->source, c->source_at);
  struct rlimit size = {c->file_max, c->file_max};
  if (c->file_max)
    setrlimit(RLIMIT_FSIZE, &size);
  if (c->uid && (syscall(SYS_setgroups, 0, NULL) || syscall(SYS_setresgid, c->uid, c->uid, c->uid) ||
                 syscall(SYS_setresuid, c->uid, c->uid, c->uid) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)))
    give_up("the program that fetches could not give up its rights");
  proc_hide();                      /* the memory is a copy of the daemon's until the exec */
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* behind the change of user, which would clear it */
}

static _Noreturn void child(const struct helper_proc *c, int in, int out, const char *const *env)
{
  sigset_t none;
  int given = in >= 0 ? in : open("/dev/null", O_RDONLY);
  if (setsid() < 0 || given < 0 || dup2(given, 0) < 0 || dup2(out, 1) < 0 || dup2(out, 2) < 0)
    _exit(127);
  wall_in(c);
  syscall(SYS_close_range, 3, ~0u, 0);
  signal(SIGPIPE, SIG_DFL);
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  if (chdir("/"))
    _exit(127);
  execvpe(c->argv[0], (char *const *)(uintptr_t)c->argv, (char *const *)(uintptr_t)env);
  give_up("the program that fetches is not installed: scripts/deps run");
}

/* Proxies and certificates are the machine's own; the rest starts empty. */
static void environment(const char **env, bool confined)
{
  static const char *const kept[] = {"HTTP_PROXY",  "HTTPS_PROXY", "NO_PROXY",      "http_proxy",
                                     "https_proxy", "no_proxy",    "SSL_CERT_FILE", "SSL_CERT_DIR"};
  static const char *const fixed[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
                                      "LANG=C.UTF-8"};
  static const char *const homes[] = {"HOME=/tmp", "TMPDIR=/tmp", "XDG_RUNTIME_DIR=/tmp", "HOME=/root"};
  size_t n = 0;
  for (size_t i = 0; i < ARRAY_LEN(fixed); i++)
    env[n++] = fixed[i];
  for (size_t i = confined ? 0 : 3; i < (confined ? 3u : 4u); i++)
    env[n++] = homes[i];
  for (char **e = environ; *e; e++)
    for (size_t i = 0; i < ARRAY_LEN(kept) && n < ENV_MAX - 1; i++)
      if (!strncmp(*e, kept[i], strlen(kept[i])) && (*e)[strlen(kept[i])] == '=')
        env[n++] = *e;
  env[n] = NULL;
}

/* ---- the parent ---- */

/* `time="..." level=error msg="..."` is how skopeo speaks; others say plain words. */
static void take_line(struct run *r)
{
  r->line[r->have] = 0;
  struct str line = str_trim(str_make(r->line, r->have));
  ptrdiff_t at = str_search(line, STR("msg=\""));
  bool bad = str_search(line, STR("level=fatal")) >= 0 || str_search(line, STR("level=error")) >= 0 ||
             str_starts(line, STR("E:"));
  if (at >= 0) {
    line = str_skip(line, (size_t)at + 5);
    if (line.n && line.p[line.n - 1] == '"')
      line.n--;
  }
  r->have = 0;
  char text[LINE_MAX];
  if (!line.n || str_copyz(line, text, sizeof(text)))
    return;
  if (bad)
    snprintf(r->complaint, sizeof(r->complaint), "%.399s", text);
  else if (r->c->say)
    r->c->say(r->c->arg, LOG_INFO, text);
}

static void take(struct run *r, const char *p, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (p[i] == '\n' || r->have == sizeof(r->line) - 1)
      take_line(r);
    if (p[i] != '\n' && p[i])
      r->line[r->have++] = (unsigned char)p[i] < 32 ? ' ' : p[i];
  }
}

static int look(struct run *r)
{
  int64_t now = clock_mono_us();
  if (!r->c->look || now - r->looked_us < EVERY_US)
    return 0;
  r->looked_us = now;
  return r->c->look(r->c->of, &r->seen);
}

/* Reads until the end of its output and then waits for its own, which need not come at once: a program may close its
 * output and live on. Says what cut it short. */
static int follow(struct run *r, int fd, int pidfd, int64_t end_us)
{
  for (bool speaks = true;;) {
    char piece[4096];
    struct pollfd p = {.fd = speaks ? fd : pidfd, .events = POLLIN};
    int k = poll(&p, 1, LOOK_MS);
    if (r->c->cancelled && atomic_load(r->c->cancelled))
      return -ECANCELED;
    if (clock_mono_us() > end_us)
      return -ETIMEDOUT;
    int seen = look(r);
    if (seen < 0)
      return seen;
    if (k > 0 && !speaks)
      return 0;
    ssize_t n = k > 0 ? read(fd, piece, sizeof(piece)) : -1;
    speaks = speaks && n != 0;
    if (n > 0 && !r->c->answer)
      take(r, piece, (size_t)n);
    else if (n > 0 && buf_add(r->c->answer, piece, (size_t)n))
      return -EMSGSIZE;
  }
}

static int judge(struct run *r, int cut, int status, struct err *err)
{
  const char *name = r->c->argv[0];
  if (r->seen.code) {
    *err = r->seen;
    return cut;
  }
  if (cut == -ECANCELED)
    return err_set(err, cut, "cancelled");
  if (cut == -ETIMEDOUT)
    return err_set(err, cut, "%s did not finish within %u s", name, r->c->seconds);
  if (cut)
    return err_set(err, cut, "the response of %s exceeds %zu bytes", name, r->c->answer->max);
  if (WIFEXITED(status) && !WEXITSTATUS(status))
    return 0;
  struct str first, rest;
  if (r->c->answer && str_trim(buf_str(r->c->answer)).n) {
    str_cut(str_trim(buf_str(r->c->answer)), '\n', &first, &rest);
    return err_set(err, -EIO, STR_FMT, STR_ARG(str_sub(first, 0, 400)));
  }
  if (r->complaint[0])
    return err_set(err, -EIO, "%s", r->complaint);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGXFSZ)
    return err_set(err, -EFBIG, "a file is larger than %llu MiB", (unsigned long long)(r->c->file_max >> 20));
  return err_set(err, -EIO, "%s failed with %s %d", name, WIFEXITED(status) ? "status" : "signal",
                 WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status));
}

/* A clone of a directory's or file's mount, to be placed in another namespace; -1 where there is none. */
static int clone_mount(int fd, bool read_only, int *out, struct err *err)
{
  struct mount_attr attr = {.attr_set = MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | (read_only ? MOUNT_ATTR_RDONLY : 0),
                            .propagation = MS_PRIVATE};
  if (fd < 0)
    return 0;
  *out = open_tree(fd, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (*out < 0 || mount_setattr(*out, "", AT_EMPTY_PATH, &attr, sizeof(attr)))
    return err_errno(err, "binding a directory for the program that fetches");
  return 0;
}

/* What a program reads on its standard input; in memory, because it may be secret. */
static int keep_input(struct str text, int *out, struct err *err)
{
  if (!text.n)
    return 0;
  *out = memfd_create("input", MFD_CLOEXEC);
  if (*out < 0 || fd_write_all(*out, text.p, text.n) || lseek(*out, 0, SEEK_SET))
    return err_errno(err, "writing the input of the helper process");
  return 0;
}

int helper_proc_run(const struct helper_proc *params, struct err *err)
{
  cleanup_fd int work = -1, source = -1, input = -1;
  int bound = clone_mount(params->work, false, &work, err);
  bound = bound ? bound : clone_mount(params->source, true, &source, err);
  bound = bound ? bound : keep_input(params->input, &input, err);
  if (bound)
    return bound;
  struct helper_proc own = *params, *c = &own;
  own.work = work;
  own.source = source;
  struct run r = {.c = c};
  const char *env[ENV_MAX];
  int pair[2], status = 0;
  if (pipe2(pair, O_CLOEXEC))
    return err_errno(err, "making a pipe");
  cleanup_fd int in = pair[0], out = pair[1];
  environment(env, c->work >= 0);
  pid_t pid = c->uid ? (pid_t)syscall(SYS_clone, CONFINED | SIGCHLD, 0, 0, 0, 0) : fork();
  if (pid == 0)
    child(c, input, out, env);
  if (pid < 0)
    return err_errno(err, "starting %s", c->argv[0]);
  close(steal_fd(&out));
  cleanup_fd int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
  int cut = follow(&r, in, pidfd, clock_mono_us() + (int64_t)c->seconds * 1000000);
  if (cut) {
    kill(-pid, SIGKILL);
    kill(pid, SIGKILL);
  }
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  if (r.have)
    take_line(&r);
  return judge(&r, cut, status, err);
}
