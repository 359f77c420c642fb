/* SPDX-License-Identifier: Apache-2.0 */
/* criu.c - see criu.h. `criu swrk FD` speaks protocol buffers in packets; the few fields needed are written and read
 * here by number (criu's images/rpc.proto names them). */
#include "jail/checkpoint/criu.h"
#include "jail/checkpoint/criu_journal.h"
#include "jail/checkpoint/rescue.h"

#include <fcntl.h>
#include <linux/magic.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define MESSAGE_MAX ((size_t)4 << 20)
#define GHOST_MAX                                                                                                      \
  (1u << 30) /* bytes of a deleted file that is still open; all of a checkpoint are bounded by `going` */
#define LOG_LEVEL       2
#define REAP_TIMEOUT_MS 3000
#define VOLUMES         "/run/volumes"
#define STOP_MS         200 /* how soon a criu that waits for a dead box is ended */

enum request { REQUEST_DUMP = 1, REQUEST_RESTORE = 2, REQUEST_NOTIFY = 6 };

/* --- messages ------------------------------------------------------------------------------------------------- */

static void put_varint(struct buf *b, uint64_t v)
{
  for (; v >= 128; v >>= 7)
    buf_addc(b, (char)(v | 128));
  buf_addc(b, (char)v);
}

static void put_number(struct buf *b, unsigned field, uint64_t v)
{
  put_varint(b, field << 3);
  put_varint(b, v);
}

static void put_bytes(struct buf *b, unsigned field, struct str s)
{
  put_varint(b, field << 3 | 2);
  put_varint(b, s.n);
  buf_adds(b, s);
}

static void put_handle(struct buf *b, const struct criu_handle *h)
{
  cleanup_buf struct buf inner = BUF_INIT(65536);
  put_bytes(&inner, 1, str_of(h->key));
  put_number(&inner, 2, (uint64_t)h->fd);
  put_bytes(b, 27, buf_str(&inner));
}

static void put_options(struct buf *b, const struct criu_job *job)
{
  put_number(b, 17, (uint64_t)job->work);
  put_number(b, 5, true); /* established connections */
  put_number(b, 8, true); /* file locks */
  put_number(b, 9, LOG_LEVEL);
  put_bytes(b, 10, STR(CRIU_LOG));
  put_number(b, 12, true); /* ask back */
  put_number(b, 18, true); /* files that have a name elsewhere only */
  put_number(b, 34, 0);    /* control groups: not criu's business */
  put_number(b, 35, GHOST_MAX);
  for (size_t i = 0; i < job->external.n; i++)
    put_bytes(b, 37, str_of(job->external.p[i]));
  put_number(b, 38, CLONE_NEWNET); /* links are made anew */
  put_number(b, 45, job->criu->seconds ? job->criu->seconds : JAIL_CRIU_SECONDS);
  put_number(b, 46, true); /* connections that are not accepted yet are left out */
  put_number(b, 64, 3);    /* no locking of the network: the box is frozen */
  if (!job->restore) {
    put_number(b, 1, (uint64_t)job->checkpoint);
    put_number(b, 2, (uint64_t)job->pid);
    put_number(b, 3, true); /* leave it running: it is the caller who ends it */
    put_bytes(b, 44, str_of(job->freezer));
    return;
  }
  put_number(b, 1, (uint64_t)-1);
  put_bytes(b, 68, STR("/run/checkpoint"));
  put_bytes(b, 13, STR("/run/root"));
  put_number(b, 26, true); /* our child, not criu's */
  for (size_t i = 0; i < job->handles.n; i++)
    put_handle(b, &job->handles.p[i]);
}

static void put_request(struct buf *b, const struct criu_job *job)
{
  cleanup_buf struct buf options = BUF_INIT(MESSAGE_MAX);
  put_options(&options, job);
  put_number(b, 1, job->restore ? REQUEST_RESTORE : REQUEST_DUMP);
  put_bytes(b, 2, buf_str(&options));
}

struct answer {
  uint64_t type, success, pid, code;
  char script[40], message[256];
};

static bool take_varint(struct str *s, uint64_t *v)
{
  *v = 0;
  for (unsigned shift = 0; s->n > 0 && shift < 64; shift += 7) {
    unsigned char c = (unsigned char)s->p[0];
    *s = str_skip(*s, 1);
    *v |= (uint64_t)(c & 127) << shift;
    if (c < 128)
      return true;
  }
  return false;
}

/* One field: its number, and either a value or bytes. */
static bool take_field(struct str *s, unsigned *field, uint64_t *v, struct str *bytes)
{
  uint64_t tag;
  *bytes = STR_NONE;
  if (!take_varint(s, &tag) || !take_varint(s, v))
    return false;
  *field = (unsigned)(tag >> 3);
  if ((tag & 7) == 0)
    return true;
  if ((tag & 7) != 2 || *v > s->n)
    return false;
  *bytes = str_sub(*s, 0, *v);
  *s = str_skip(*s, *v);
  return true;
}

static void read_inner(struct str s, unsigned outer, struct answer *a)
{
  unsigned field;
  uint64_t v;
  struct str bytes;
  while (take_field(&s, &field, &v, &bytes)) {
    if (outer == 5 && field == 1)
      str_copyz(str_sub(bytes, 0, sizeof(a->script) - 1), a->script, sizeof(a->script));
    else if ((outer == 5 && field == 2) || (outer == 4 && field == 1))
      a->pid = v;
  }
}

static int read_answer(struct str s, struct answer *a)
{
  unsigned field;
  uint64_t v;
  struct str bytes;
  *a = (struct answer){0};
  while (take_field(&s, &field, &v, &bytes)) {
    if (field == 1)
      a->type = v;
    else if (field == 2)
      a->success = v;
    else if (field == 7)
      a->code = v;
    else if (field == 9)
      str_copyz(str_sub(bytes, 0, sizeof(a->message) - 1), a->message, sizeof(a->message));
    else if (bytes.n)
      read_inner(bytes, field, a);
  }
  return s.n ? -EBADMSG : 0;
}

/* --- the child ------------------------------------------------------------------------------------------------ */

static int make_dirs(int run)
{
  static const char *const dirs[] = {"root", "checkpoint", "own", "runtime", "boot_id", "view", "volumes"};
  for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
    if (mkdirat(run, dirs[i], 0755))
      return -1;
  for (unsigned i = 0; i < JAIL_VOLUMES_MAX; i++) {
    char name[32];
    snprintf(name, sizeof(name), "volumes/%u", i);
    if (mkdirat(run, name, 0755))
      return -1;
  }
  return 0;
}

/* A tmpfs that has no name anywhere. */
static int make_run(void)
{
  cleanup_fd int fs = fsopen("tmpfs", FSOPEN_CLOEXEC);
  if (fs < 0 || fsconfig(fs, FSCONFIG_SET_STRING, "mode", "755", 0) ||
      fsconfig(fs, FSCONFIG_SET_STRING, "size", "16m", 0) || fsconfig(fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0))
    return -1;
  cleanup_fd int run = fsmount(fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV | MOUNT_ATTR_NOSUID);
  return run < 0 || make_dirs(run) ? -1 : steal_fd(&run);
}

/* One for all runs of this process. */
static int shared_run = -1;

static void make_shared_run(void)
{
  shared_run = make_run();
}

/* Kernels before 6.15 clone no mount that has no place: there each run has a tmpfs of its own. */
static int run_clone(struct err *err)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, make_shared_run);
  int fd = shared_run < 0 ? -1 : open_tree(shared_run, "", AT_EMPTY_PATH | OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
  if (fd < 0)
    fd = make_run();
  return fd < 0 ? err_errno(err, "making criu's tmpfs") : fd;
}

struct child {
  const struct criu_job *job;
  int sock, run, program;
  char sock_text[12], owner_text[40], journal_text[40];
  char volumes[JAIL_VOLUMES_MAX][sizeof(VOLUMES) + 12];
  char own[CRIU_OWN_MAX][80], covered[CRIU_OWN_MAX][80];
};

static void say(const char *text)
{
  ssize_t unused = write(2, text, strlen(text));
  (void)unused;
}

static void keep_fd(int fd)
{
  if (fcntl(fd, F_SETFD, 0))
    _exit(125);
}

static int place(int tree, const char *at)
{
  return move_mount(tree, "", AT_FDCWD, at, MOVE_MOUNT_F_EMPTY_PATH);
}

/* What is restored inherits the floor of its OOM score from criu, and criu from a daemon that may be protected. */
static int raise_oom_floor(void)
{
  int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  bool done = fd >= 0 && (write(fd, "0", 1) == 1 || errno == EACCES);
  if (fd >= 0)
    close(fd);
  return done ? 0 : -1;
}

static int place_view(const struct child *c)
{
  const struct criu_job *job = c->job;
  if (place(job->root, "/run/root") || place(job->view->files, "/run/checkpoint") || place(job->view->own, "/run/own"))
    return -1;
  if (place(job->boot_id, "/run/boot_id") || place(job->files, CRIU_LIMIT_VIEW) ||
      (job->runtime >= 0 && place(job->runtime, CRIU_RUNTIME)))
    return -1;
  for (size_t i = 0; i < job->volumes_n; i++)
    if (place(job->volumes[i], c->volumes[i]))
      return -1;
  for (size_t i = 0; i < job->view->n; i++)
    if (mount(c->own[i], c->covered[i], NULL, MS_BIND, NULL))
      return -1;
  return 0;
}

/* Between fork and exec, in our memory: plain calls only. A dump is not tied to our life: a criu that is killed while
 * it sits in the box's processes could leave one of them broken, one that goes on finishes within seconds and lets them
 * go. */
static _Noreturn void child_exec(const struct child *c)
{
  const struct criu_job *job = c->job;
  char *const argv[] = {"criu", "swrk", (char *)c->sock_text, NULL};
  char *const env[] = {"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", (char *)c->owner_text,
                       (char *)c->journal_text, NULL};
  setsid();
  if (job->restore && (prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0) || raise_oom_floor()))
    _exit(120);
  for (size_t i = 0; job->restore && i < job->join->n; i++)
    if (write(job->join->fds[i], "0", 1) != 1)
      _exit(121);
  if (job->restore && job->join->into >= 0) {
    int procs = openat(job->join->into, "cgroup.procs", O_WRONLY | O_CLOEXEC);
    if (procs < 0 || write(procs, "0", 1) != 1)
      _exit(121);
  }
  if (unshare(CLONE_NEWNS | (job->restore ? CLONE_NEWCGROUP : 0)) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL))
    _exit(122);
  if (place(c->run, "/run"))
    _exit(123);
  if (job->restore && place_view(c))
    _exit(124);
  keep_fd(c->sock);
  if (job->journal > 0)
    keep_fd(job->journal);
  for (size_t i = 0; i < job->handles.n; i++)
    keep_fd(job->handles.p[i].fd);
  fexecve(c->program, argv, env);
  say("criu can't be executed\n");
  _exit(127);
}

static const char *exit_words(int code)
{
  static const char *const words[] = {"tying it to the daemon",      "joining the box's control groups",
                                      "making its mounts private",   "mounting its /run",
                                      "placing root and checkpoint", "handing descriptors over"};
  if (code == 127)
    return "it can't be executed";
  return code >= 120 && code < 120 + (int)ARRAY_LEN(words) ? words[code - 120] : "it ended early";
}

static pid_t child_start(const struct criu_job *job, int sock, int run, struct err *err)
{
  struct child c = {.job = job, .sock = sock, .run = run};
  cleanup_fd int program = open(job->criu->program, O_RDONLY | O_CLOEXEC);
  if (program < 0)
    return err_errno(err, "opening criu at %s", job->criu->program);
  c.program = program;
  snprintf(c.sock_text, sizeof(c.sock_text), "%d", sock);
  snprintf(c.owner_text, sizeof(c.owner_text), "CLOCHE_OWNER=%u", job->owner);
  if (job->journal > 0)
    snprintf(c.journal_text, sizeof(c.journal_text), CRIU_JOURNAL_ENV "=%d", job->journal);
  for (size_t i = 0; job->restore && i < job->volumes_n; i++)
    snprintf(c.volumes[i], sizeof(c.volumes[i]), VOLUMES "/%zu", i);
  for (size_t i = 0; job->restore && i < job->view->n; i++) {
    snprintf(c.own[i], sizeof(c.own[i]), "/run/own/%s", job->view->covers[i].name);
    snprintf(c.covered[i], sizeof(c.covered[i]), "/run/checkpoint/%s", job->view->covers[i].name);
  }
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pid_t pid = vfork(); /* our page tables are not worth a copy */
  if (pid == 0) {
    for (int s = 1; s < 32; s++)
      signal(s, SIG_DFL);
    sigemptyset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    child_exec(&c);
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return pid < 0 ? err_errno(err, "forking for criu") : pid;
}

/* --- the talk ------------------------------------------------------------------------------------------------- */

/* Its helpers hold the socket, too: that criu itself has ended is heard from its pidfd. */
static int receive(const struct criu_job *job, int sock, int pidfd, int64_t deadline, struct answer *a, struct err *err)
{
  struct pollfd p[] = {{.fd = sock, .events = POLLIN}, {.fd = pidfd, .events = POLLIN}};
  cleanup_free char *bytes = xmalloc(65536);
  for (;;) {
    int64_t left = (deadline - clock_mono_us()) / 1000;
    int ready = left > 0 ? poll(p, ARRAY_LEN(p), (int)MIN(left, STOP_MS)) : 0;
    if (ready < 0 && errno == EINTR)
      continue;
    if (ready == 0 && job->criu->stop && atomic_load(job->criu->stop))
      return err_set(err, -ECANCELED, "the box is being killed");
    int stop = ready == 0 && job->going ? job->going(job->arg, err) : 0;
    if (stop)
      return stop;
    if (ready == 0 && left > STOP_MS)
      continue;
    if (ready <= 0)
      return err_set(err, -ETIMEDOUT, "criu did not answer in time");
    ssize_t n = recv(sock, bytes, 65536, MSG_DONTWAIT);
    if (n < 0 && (errno == EINTR || (errno == EAGAIN && !p[1].revents)))
      continue;
    if (n <= 0)
      return err_set(err, -EREMOTEIO, "criu exited before its response");
    return read_answer(str_make(bytes, (size_t)n), a) ? err_set(err, -EBADMSG, "criu: protocol error") : 0;
  }
}

static int reply(int sock, bool fine)
{
  cleanup_buf struct buf b = BUF_INIT(64);
  put_number(&b, 1, REQUEST_NOTIFY);
  put_number(&b, 3, fine);
  return send(sock, b.p, b.n, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

static int asked(const struct criu_job *job, int sock, const struct answer *a, pid_t *init, struct err *err)
{
  int r = 0;
  if (a->pid)
    *init = (pid_t)a->pid;
  if (job->ready && str_is(str_of(a->script), "setup-namespaces"))
    r = job->ready((pid_t)a->pid, job->arg, err);
  else if (job->filled && str_is(str_of(a->script), "post-restore"))
    r = job->filled((pid_t)a->pid, job->arg, err);
  else if (job->leave && str_is(str_of(a->script), "pre-resume"))
    r = job->leave(*init, job->arg, err);
  int sent = reply(sock, r == 0);
  return r ? r : sent ? err_set(err, -EREMOTEIO, "criu exited while it was being resumed") : 0;
}

static int exchange_messages(const struct criu_job *job, int sock, int pidfd, pid_t *init, struct err *err)
{
  unsigned seconds = job->criu->seconds ? job->criu->seconds : JAIL_CRIU_SECONDS;
  int64_t deadline = clock_mono_us() + (int64_t)seconds * 1000000;
  cleanup_buf struct buf b = BUF_INIT(MESSAGE_MAX);
  struct answer a;
  put_request(&b, job);
  if (buf_failed(&b))
    return err_set(err, -E2BIG, "the request to criu is larger than %zu bytes", MESSAGE_MAX);
  setsockopt(sock, SOL_SOCKET, SO_SNDBUFFORCE, &(int){(int)b.n + 65536}, sizeof(int));
  if (send(sock, b.p, b.n, MSG_NOSIGNAL) < 0)
    return err_set(err, -EREMOTEIO, "sending the request to criu: %s", strerrordesc_np(errno));
  for (;;) {
    int r = receive(job, sock, pidfd, deadline, &a, err);
    if (!r && a.type == REQUEST_NOTIFY)
      r = asked(job, sock, &a, init, err);
    else if (!r)
      break;
    if (r)
      return r;
  }
  if (a.pid)
    *init = (pid_t)a.pid;
  return a.success ? 0 : err_set(err, -EREMOTEIO, "criu failed%s%s", a.message[0] ? ": " : "", a.message);
}

/* Restored processes are our children, the failed ones too. Until they have sessions of their own they are in criu's.
 * What is not gone in time is in the box's control groups and goes with them. */
static void kill_and_reap(const struct criu_job *job, pid_t criu, pid_t init)
{
  if (!job->restore)
    return;
  for (int i = 0; i < REAP_TIMEOUT_MS; i++) {
    siginfo_t si = {0};
    kill(-criu, SIGKILL);
    if (init > 0 && (waitid(P_PID, (id_t)init, &si, WEXITED | WNOHANG | __WALL) || si.si_pid))
      init = 0;
    if (init > 0)
      kill(init, SIGKILL);
    else if (waitid(P_PGID, (id_t)criu, &si, WEXITED | WNOHANG | __WALL))
      return;
    nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
  }
}

int criu_begin(const struct criu_job *job, struct criu_child *out, struct err *err)
{
  int pair[2];
  *out = CRIU_CHILD_NONE;
  cleanup_fd int run = run_clone(err);
  if (run < 0)
    return run;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return err_errno(err, "making a socket pair");
  cleanup_fd int ours = pair[0], theirs = pair[1];
  out->pid = child_start(job, theirs, run, err);
  if (out->pid < 0)
    return out->pid;
  out->sock = steal_fd(&ours);
  out->pidfd = (int)syscall(SYS_pidfd_open, out->pid, 0);
  return 0;
}

/* One that was told nothing leaves when its socket closes. */
static int child_reap(struct criu_child *c)
{
  int status = 0;
  if (c->sock >= 0)
    close(steal_fd(&c->sock));
  while (c->pid > 0 && waitpid(c->pid, &status, 0) < 0 && errno == EINTR)
    ;
  if (c->pidfd >= 0)
    close(steal_fd(&c->pidfd));
  c->pid = 0;
  return status;
}

void criu_abandon(struct criu_child *c)
{
  child_reap(c);
}

int criu_finish(struct criu_job *job, struct criu_child *c, pid_t *init, struct err *err)
{
  pid_t pid = c->pid;
  *init = 0;
  int r = job->journal > 0 ? rescue_name(job->journal, pid, err) : 0;
  if (!r)
    r = exchange_messages(job, c->sock, c->pidfd, init, err);
  if (r == -ETIMEDOUT || r == -ECANCELED || r == -EFBIG || r == -ENOSPC)
    kill(pid, SIGKILL);
  if (r && job->failed)
    job->failed(job->arg);
  int status = child_reap(c);
  job->died = WIFSIGNALED(status);
  if (r)
    kill_and_reap(job, pid, *init);
  if (r == -EREMOTEIO && WIFEXITED(status) && WEXITSTATUS(status) >= 120)
    return err_set(err, -EIO, "criu did not start: %s", exit_words(WEXITSTATUS(status)));
  return r;
}

int criu_run(struct criu_job *job, pid_t *init, struct err *err)
{
  struct criu_child c;
  int r = criu_begin(job, &c, err);
  return r ? r : criu_finish(job, &c, init, err);
}
