/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_nursery.c - the processes that fork kernels; see kernel_nursery.h and docs/kernel-protocol.md.
 *
 * A nursery runs no user code and says little, so its messages are small and a bounded buffer holds them. When it dies,
 * launches that were asked for fall back to processes of their own, and its living children become children of
 * pid 1, which is this program: their exits are then heard from the reaper.
 *
 * The box's first kernel comes from outside, as a fork of the zygote that becomes the first kernel and is no
 * nursery after that. Most boxes never ask for a second one; who does gets a nursery by a request to the
 * warden, and where nobody answers one that is started here. */
#include "agent/interpreter/kernel_nursery.h"
#include "agent/interpreter/kernel_message.h"
#include "agent/interpreter/json_token.h"
#include "agent/reap.h"
#include "wire/boot_packet.h"
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define NURSERY_IN_MAX  ((size_t)64 << 10)
#define NURSERY_REST_US 5000000 /* after a failure no new nursery for this long */

struct nursery {
  const struct kernel_host *host;
  const struct kernel_spec *spec;
  struct nursery *next;
  int fd; /* -1 = not running */
  pid_t pid;
  uv_poll_t *poll; /* freed by its own close */
  uv_timer_t *timer;
  struct buf in;
  bool ready;
  bool single;    /* it becomes the first kernel asked for, and then it is gone */
  bool given;     /* somebody has asked */
  bool spent;     /* the one it became is there */
  bool requested; /* requested from the warden, perhaps in vain */
  uint64_t last_id;
  int64_t rest_until;
  struct nursery_child *children;
};

static struct nursery *nurseries;

static void on_handle_closed(uv_handle_t *h)
{
  free(h);
}

static void child_unlink(struct nursery_child *c)
{
  struct nursery_child **at = &c->nursery->children;
  while (*at && *at != c)
    at = &(*at)->next;
  if (*at)
    *at = c->next;
  c->nursery = NULL;
}

static struct nursery_child *child_by_id(const struct nursery *n, uint64_t id)
{
  struct nursery_child *c = n->children;
  while (c && c->id != id)
    c = c->next;
  return c;
}

static struct nursery_child *child_by_pid(const struct nursery *n, pid_t pid)
{
  struct nursery_child *c = n->children;
  while (c && c->pid != pid)
    c = c->next;
  return c;
}

static void on_orphan_reaped(pid_t pid, int status, void *arg)
{
  struct nursery_child *c = arg;
  (void)pid;
  child_unlink(c);
  c->exited(c, status);
}

static void child_orphan(struct nursery_child *c)
{
  if (c->orphan)
    return;
  c->orphan = true;
  reap_watch(c->pid, on_orphan_reaped, c);
}

static void nursery_close(struct nursery *n)
{
  uv_close((uv_handle_t *)n->poll, on_handle_closed);
  uv_close((uv_handle_t *)n->timer, on_handle_closed);
  close(n->fd);
  n->fd = -1;
  buf_free(&n->in);
}

static int nursery_start(struct nursery *n, bool request);

static bool somebody_waits(const struct nursery *n)
{
  for (const struct nursery_child *c = n->children; c; c = c->next)
    if (!c->asked)
      return true;
  return false;
}

/* Notifies everyone. A launch that fails may start a process at once, so the list is taken off first. */
static void nursery_lost(struct nursery *n)
{
  bool ready = n->ready, requested = n->requested;
  nursery_close(n);
  n->ready = false;
  if (!ready && requested && somebody_waits(n) && nursery_start(n, false) == 0)
    return;
  if (!ready)
    n->rest_until = clock_mono_us() + NURSERY_REST_US;
  for (struct nursery_child *c = n->children, *next; c; c = next) {
    next = c->next;
    if (c->pid <= 0) {
      child_unlink(c);
      c->forked(c, -1);
    } else {
      child_orphan(c);
    }
  }
}

/* The only one it had is launched; who asked meanwhile gets a nursery. */
static void nursery_spent(struct nursery *n)
{
  nursery_close(n);
  n->ready = false;
  if (somebody_waits(n) && nursery_start(n, true) < 0) {
    n->rest_until = clock_mono_us() + NURSERY_REST_US;
    for (struct nursery_child *w = n->children, *next; w; w = next) {
      next = w->next;
      if (w->pid > 0)
        continue;
      child_unlink(w);
      w->forked(w, -1);
    }
  }
}

static void child_ask(struct nursery *n, struct nursery_child *c)
{
  struct buf cleanup_buf b = BUF_INIT(256);
  message_fork(&b, c->id);
  c->asked = true;
  if (fd_send(n->fd, b.p, b.n, c->fds, 3, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)b.n)
    return;
  child_unlink(c);
  c->forked(c, -1);
}

static void event_ready(struct nursery *n)
{
  n->ready = true;
  uv_timer_stop(n->timer);
  for (struct nursery_child *c = n->children, *next; c && n->fd >= 0; c = next) {
    next = c->next;
    if (!c->asked)
      child_ask(n, c);
  }
}

static void event_forked(struct nursery *n, const struct message *m)
{
  int64_t id = 0, pid = -1;
  if (token_int(m->id, &id) < 0 || token_int(m->pid, &pid) < 0)
    return;
  struct nursery_child *c = child_by_id(n, (uint64_t)id);
  if (!c) {
    if (pid > 1)
      kill((pid_t)pid, SIGKILL);
    return;
  }
  c->pid = pid > 1 ? (pid_t)pid : -1;
  if (c->pid < 0)
    child_unlink(c);
  else if (n->single)
    child_orphan(c);
  n->spent = n->single;
  c->forked(c, c->pid);
}

static void event_exit(struct nursery *n, const struct message *m)
{
  int64_t pid = -1, status = 0;
  if (token_int(m->pid, &pid) < 0 || token_int(m->status, &status) < 0)
    return;
  struct nursery_child *c = pid > 1 ? child_by_pid(n, (pid_t)pid) : NULL;
  if (!c)
    return;
  child_unlink(c);
  c->exited(c, (int)status);
}

static void nursery_line(struct nursery *n, struct str line)
{
  struct message m;
  if (message_read(line, &m) < 0)
    return;
  if (message_is(&m, "ready"))
    event_ready(n);
  else if (message_is(&m, "forked"))
    event_forked(n, &m);
  else if (message_is(&m, "exit"))
    event_exit(n, &m);
}

static void nursery_lines(struct nursery *n)
{
  struct str rest = buf_str(&n->in), line;
  while (!n->spent && str_find(rest, '\n') >= 0) {
    str_cut(rest, '\n', &line, &rest);
    nursery_line(n, line);
  }
  if (n->spent)
    nursery_spent(n);
  else
    buf_drop(&n->in, n->in.n - rest.n);
}

static void on_readable(uv_poll_t *p, int status, int events)
{
  struct nursery *n = p->data;
  char bytes[8192];
  (void)status, (void)events;
  ssize_t got = recv(n->fd, bytes, sizeof(bytes), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (got <= 0 || buf_add(&n->in, bytes, (size_t)got) < 0) {
    if (n->ready || !n->requested)
      log_warn("the %s nursery ended", n->spec->language);
    nursery_lost(n);
    return;
  }
  nursery_lines(n);
}

static void on_late(uv_timer_t *t)
{
  struct nursery *n = t->data;
  log_warn("the %s nursery was not ready in time", n->spec->language);
  if (n->pid > 1)
    kill(-n->pid, SIGKILL);
  nursery_lost(n);
}

static void nursery_open(struct nursery *n, int fd, pid_t pid)
{
  n->fd = fd;
  n->pid = pid;
  n->ready = false;
  n->single = n->given = n->spent = n->requested = false;
  buf_init(&n->in, NURSERY_IN_MAX);
  n->poll = xcalloc(1, sizeof(*n->poll));
  n->timer = xcalloc(1, sizeof(*n->timer));
  fd_nonblock(fd);
  uv_poll_init(n->host->loop, n->poll, fd);
  uv_timer_init(n->host->loop, n->timer);
  n->poll->data = n->timer->data = n;
  uv_poll_start(n->poll, UV_READABLE, on_readable);
  uv_timer_start(n->timer, on_late, KERNEL_START_MS, 0);
}

/* Any process of the box may bind a name; the warden's has no number in here. */
static bool from_outside(int fd)
{
  struct ucred peer;
  socklen_t len = sizeof(peer);
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) == 0 && peer.pid == 0;
}

/* From outside: it speaks through the connection. Answers that the warden was reached, not that somebody comes. */
static int nursery_request(struct nursery *n)
{
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  int len = snprintf(at.sun_path + 1, sizeof(at.sun_path) - 1, BOOT_NURSERY_NAME "%s", n->spec->language);
  if (len >= (int)sizeof(at.sun_path) - 1)
    return -ENAMETOOLONG;
  cleanup_fd int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 ||
      connect(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len)) != 0)
    return -errno;
  if (!from_outside(fd))
    return -EPERM;
  nursery_open(n, steal_fd(&fd), 0);
  n->requested = true;
  return 0;
}

static int nursery_start(struct nursery *n, bool request)
{
  struct err err = ERR_NONE;
  int pair[2];
  if (request && nursery_request(n) == 0)
    return 0;
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
    return -errno;
  int fds[3] = {-1, STDERR_FILENO, pair[1]};
  pid_t pid = kernel_spawn(n->host, n->spec, n->spec->argv, "--nursery", fds, NULL, &err);
  close(pair[1]);
  if (pid < 0) {
    close(pair[0]);
    log_warn("no %s nursery: %s", n->spec->language, err.msg);
    return pid;
  }
  nursery_open(n, pair[0], pid);
  return 0;
}

static struct nursery *nursery_of(const struct kernel_host *host, const struct kernel_spec *spec)
{
  for (struct nursery *n = nurseries; n; n = n->next)
    if (n->spec == spec)
      return n;
  struct nursery *n = xcalloc(1, sizeof(*n));
  n->host = host;
  n->spec = spec;
  n->fd = -1;
  n->next = nurseries;
  nurseries = n;
  return n;
}

int nursery_fork(const struct kernel_host *host, const struct kernel_spec *spec, struct nursery_child *c)
{
  struct nursery *n = nursery_of(host, spec);
  if (n->fd < 0) {
    if (clock_mono_us() < n->rest_until)
      return -EAGAIN;
    int rc = nursery_start(n, true);
    if (rc < 0) {
      n->rest_until = clock_mono_us() + NURSERY_REST_US;
      return rc;
    }
  }
  c->nursery = n;
  c->id = ++n->last_id;
  c->pid = 0;
  c->asked = n->ready && !n->given;
  n->given = n->single;
  struct buf cleanup_buf b = BUF_INIT(256);
  message_fork(&b, c->id);
  if (c->asked && fd_send(n->fd, b.p, b.n, c->fds, 3, MSG_DONTWAIT | MSG_NOSIGNAL) != (ssize_t)b.n)
    return -EAGAIN;
  c->next = n->children;
  n->children = c;
  return 0;
}

void nursery_forget(struct nursery_child *c)
{
  if (!c->nursery)
    return;
  if (c->orphan)
    reap_forget(c->pid);
  child_unlink(c);
}

int nursery_adopt(const struct kernel_host *host, const struct kernel_spec *spec, int fd)
{
  struct nursery *n = nursery_of(host, spec);
  if (n->fd >= 0)
    return -EEXIST;
  nursery_open(n, fd, 0);
  n->single = n->ready = true;
  return 0;
}

void nursery_end_all(void)
{
  for (struct nursery *n = nurseries, *next; n; n = next) {
    next = n->next;
    if (n->fd >= 0) {
      if (n->pid > 1)
        kill(n->pid, SIGTERM);
      nursery_lost(n);
    }
    free(n);
  }
  nurseries = NULL;
}
