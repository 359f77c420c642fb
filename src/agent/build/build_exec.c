/* SPDX-License-Identifier: Apache-2.0 */
/* build_exec.c - see build_exec.h. */
#include "agent/build/build_exec.h"
#include "agent/build/package_cache.h"
#include "agent/log_capture.h"
#include "agent/reap.h"
#include "agent/envd/resolve.h"
#include "agent/spawn.h"
#include "wire/boot_packet.h"
#include "wire/exec_packet.h"
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define GRACE_MS 300 /* for pipes that something in the background still holds */
#define ARGS_MAX 4096

struct pipe_end {
  uv_poll_t poll;
  struct exec_cmd *exec_cmd;
  int fd; /* -1 = closed */
  uint32_t what;
};

struct exec_cmd {
  uint32_t number;
  unsigned refs; /* one for the process, one per handle */
  bool reaped, reported;
  int status;
  char who[32];
  struct pipe_end ends[2];
  uv_timer_t grace;
  void (*over)(int status, void *arg);
  void *arg;
};

static int warden_fd = -1;

/* A warden that reads slowly slows the command down. */
static void say(uint32_t number, enum exec_what what, int status, struct str bytes)
{
  struct exec_event event = {number, what, status};
  struct iovec parts[2] = {{&event, sizeof(event)}, {(void *)bytes.p, bytes.n}};
  struct msghdr msg = {.msg_iov = parts, .msg_iovlen = bytes.n ? 2 : 1};
  while (warden_fd >= 0 && sendmsg(warden_fd, &msg, MSG_NOSIGNAL) < 0) {
    struct pollfd room = {.fd = warden_fd, .events = POLLOUT};
    if (errno == EAGAIN)
      poll(&room, 1, -1);
    else if (errno != EINTR)
      return; /* it has left; its poll notices */
  }
}

static void exec_release(struct exec_cmd *o)
{
  if (!--o->refs)
    free(o);
}

static void end_closed(uv_handle_t *h)
{
  exec_release(((struct pipe_end *)h)->exec_cmd);
}

static void grace_closed(uv_handle_t *h)
{
  exec_release(h->data);
}

static void end_close(struct pipe_end *e)
{
  if (e->fd < 0)
    return;
  uv_poll_stop(&e->poll);
  uv_close((uv_handle_t *)&e->poll, end_closed);
  close(steal_fd(&e->fd));
}

static void exec_over(struct exec_cmd *o)
{
  if (o->reported)
    return;
  o->reported = true;
  end_close(&o->ends[0]);
  end_close(&o->ends[1]);
  uv_timer_stop(&o->grace);
  uv_close((uv_handle_t *)&o->grace, grace_closed);
  log_capture_end(o->who);
  package_cache_harvest();
  say(o->number, EXEC_END, o->status, STR_NONE);
  if (o->over)
    o->over(o->status, o->arg);
  exec_release(o);
}

static void exec_look(struct exec_cmd *o)
{
  if (o->reaped && o->ends[0].fd < 0 && o->ends[1].fd < 0)
    exec_over(o);
}

/* True while there may be more. */
static bool end_read(struct pipe_end *e)
{
  char bytes[EXEC_CHUNK];
  ssize_t n = read(e->fd, bytes, sizeof(bytes));
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (n <= 0) {
    end_close(e);
    return false;
  }
  struct str chunk = str_make(bytes, (size_t)n);
  log_capture_output("start", e->exec_cmd->who, e->what == EXEC_STDERR ? "stderr" : "stdout", chunk);
  say(e->exec_cmd->number, (enum exec_what)e->what, 0, chunk);
  return true;
}

static void end_ready(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
  struct pipe_end *e = (struct pipe_end *)poll;
  struct exec_cmd *o = e->exec_cmd;
  end_read(e);
  exec_look(o);
}

static void grace_over(uv_timer_t *t)
{
  struct exec_cmd *o = t->data;
  for (int i = 0; i < 2; i++)
    while (o->ends[i].fd >= 0 && end_read(&o->ends[i]))
      ;
  exec_over(o);
}

static void exec_reaped(pid_t pid UNUSED, int status, void *arg)
{
  struct exec_cmd *o = arg;
  o->reaped = true;
  o->status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
  if (o->ends[0].fd >= 0 || o->ends[1].fd >= 0)
    uv_timer_start(&o->grace, grace_over, GRACE_MS, 0);
  else
    exec_over(o);
}

static void end_open(struct exec_cmd *o, size_t i, uv_loop_t *loop, int fd, uint32_t what)
{
  struct pipe_end *e = &o->ends[i];
  *e = (struct pipe_end){.exec_cmd = o, .fd = fd, .what = what};
  uv_poll_init(loop, &e->poll, fd);
  o->refs++;
  uv_poll_start(&e->poll, UV_READABLE | UV_DISCONNECT, end_ready);
}

static struct exec_cmd *exec_new(struct agent *a, const struct exec_plan *plan, pid_t pid, const int fds[2])
{
  struct exec_cmd *o = xcalloc(1, sizeof(*o));
  o->number = plan->number;
  o->over = plan->over;
  o->arg = plan->arg;
  o->refs = 2; /* the process, the timer */
  snprintf(o->who, sizeof(o->who), "%d", pid);
  uv_timer_init(a->loop, &o->grace);
  o->grace.data = o;
  end_open(o, 0, a->loop, fds[0], EXEC_STDOUT);
  end_open(o, 1, a->loop, fds[1], EXEC_STDERR);
  return o;
}

/* ---- making the process ---- */

static int who_runs(const struct exec_plan *plan, struct user *u, struct err *err)
{
  int rc = plan->user.n ? user_find(plan->user, u) : 0;
  if (!plan->user.n)
    *u = (struct user){.name = "root", .home = "/root", .shell = "/bin/sh"};
  return rc == -ENOENT ? err_set(err, rc, "unauthenticated: invalid username: '" STR_FMT "'", STR_ARG(plan->user))
         : rc          ? err_set(err, rc, "user '" STR_FMT "': %s", STR_ARG(plan->user), strerror(-rc))
                       : 0;
}

static void environment(struct agent *a, const struct exec_plan *plan, const struct user *u, struct env *env)
{
  env_set(env, STR("PATH"), STR(AGENT_PATH));
  env_set(env, STR("HOME"), str_of(u->home));
  env_set(env, STR("USER"), str_of(u->name));
  env_set(env, STR("LOGNAME"), str_of(u->name));
  if (plan->env) {
    env_merge(env, plan->env);
    env_merge(env, &a->init_env);
    env_merge(env, &a->internal);
  } else {
    agent_envs(a, env);
  }
  package_cache_env(u, env);
}

static const char *const stages[] = {[SPAWN_OK] = "",
                                     [SPAWN_CLONE] = "making a process",
                                     [SPAWN_SETUP] = "setting it up",
                                     [SPAWN_IDENTITY] = "becoming the user",
                                     [SPAWN_CWD] = "entering the working directory"};

int exec_run(struct agent *a, const struct exec_plan *plan, struct err *err)
{
  struct user user;
  cleanup_env struct env env = {0};
  cleanup_buf struct buf cwd = BUF_INIT(64 << 10);
  int out[2], errors[2];
  enum spawn_stage stage = SPAWN_OK;
  int rc = who_runs(plan, &user, err);
  if (rc < 0 || (rc = resolve_path(plan->cwd, &user, a->default_workdir, &cwd, err)) < 0)
    return rc;
  environment(a, plan, &user, &env);
  if (pipe2(out, O_CLOEXEC) < 0)
    return err_errno(err, "pipe");
  cleanup_fd int out_read = out[0], out_write = out[1];
  if (pipe2(errors, O_CLOEXEC) < 0)
    return err_errno(err, "pipe");
  cleanup_fd int err_read = errors[0], err_write = errors[1];
  fd_nonblock(out_read);
  fd_nonblock(err_read);
  struct spawn s = {.cmd = plan->argv[0],
                    .argv = plan->argv,
                    .envp = env_array(&env),
                    .cwd = access(buf_z(&cwd), F_OK) && !plan->cwd.n ? "/" : buf_z(&cwd),
                    .user = plan->user.n ? &user : NULL,
                    .fds = {plan->input, out_write, err_write, -1},
                    .session = true};
  pid_t pid = spawn_run(&s, &stage);
  if (pid < 0)
    return err_set(err, (int)pid, "%s '%s' as '%s': %s", stages[stage], stage == SPAWN_CWD ? s.cwd : s.cmd, user.name,
                   strerror(-(int)pid));
  struct exec_cmd *o = exec_new(a, plan, pid, (const int[]){steal_fd(&out_read), steal_fd(&err_read)});
  reap_watch(pid, exec_reaped, o);
  return 0;
}

/* ---- the warden's packets ---- */

struct packet {
  struct exec_plan plan;
  char *argv[ARGS_MAX + 1];
  size_t nargs;
  struct env env;
};

static void packet_env(struct packet *p, struct str pair)
{
  struct str name, value;
  p->plan.env = &p->env;
  if (str_cut(pair, '=', &name, &value))
    env_set(&p->env, name, value);
}

static int packet_read(struct arena *arena, struct str text, struct packet *p, struct err *err)
{
  uint64_t number = 0;
  env_free(&p->env);
  *p = (struct packet){.plan.argv = p->argv, .plan.input = -1};
  while (text.n) {
    struct boot_field field;
    if (text.n < sizeof(field))
      return err_set(err, -EPROTO, "exec packet: %zu stray bytes", text.n);
    memcpy(&field, text.p, sizeof(field));
    text = str_skip(text, sizeof(field));
    if (field.len > text.n)
      return err_set(err, -EPROTO, "exec packet: field %u is cut", field.tag);
    struct str value = str_sub(text, 0, field.len);
    text = str_skip(text, field.len);
    if (field.tag == EXEC_NUMBER && !str_u64(value, &number))
      p->plan.number = (uint32_t)number;
    else if (field.tag == EXEC_USER)
      p->plan.user = value;
    else if (field.tag == EXEC_CWD)
      p->plan.cwd = value;
    else if (field.tag == EXEC_ENV)
      packet_env(p, value);
    else if (field.tag == EXEC_ARG && p->nargs < ARGS_MAX)
      p->argv[p->nargs++] = arena_z(arena, value);
  }
  return p->nargs ? 0 : err_set(err, -EPROTO, "exec packet without a program");
}

static void handle_packet(struct agent *a, struct str text, int input)
{
  cleanup_arena struct arena arena = ARENA_INIT(4u * BOOT_MAX);
  static struct packet p;
  struct err err = ERR_NONE;
  int rc = packet_read(&arena, text, &p, &err);
  p.plan.input = input;
  if (rc == 0)
    rc = exec_run(a, &p.plan, &err);
  if (rc < 0)
    say(p.plan.number, EXEC_REFUSED, rc, str_of(err.msg));
}

static void poll_closed(uv_handle_t *h)
{
  free(h);
}

static void on_warden_readable(uv_poll_t *poll, int status UNUSED, int events UNUSED)
{
  static char packet[BOOT_MAX];
  int fd = -1;
  size_t nfds = 1;
  ssize_t n = warden_fd < 0 ? 0 : fd_recv(warden_fd, packet, sizeof(packet), &fd, &nfds, MSG_DONTWAIT);
  cleanup_fd int input = nfds && fd >= 0 ? fd : -1;
  if (n == -EAGAIN || n == -EINTR)
    return;
  if (n <= 0) { /* it has let go: what runs goes on */
    uv_poll_stop(poll);
    uv_close((uv_handle_t *)poll, poll_closed);
    if (warden_fd >= 0)
      close(steal_fd(&warden_fd));
    return;
  }
  handle_packet(poll->data, str_make(packet, (size_t)n), input);
}

void exec_serve(struct agent *a, int fd)
{
  warden_fd = fd;
  uv_poll_t *poll = xcalloc(1, sizeof(*poll));
  uv_poll_init(a->loop, poll, fd);
  poll->data = a;
  uv_poll_start(poll, UV_READABLE | UV_DISCONNECT, on_warden_readable);
}
