/* SPDX-License-Identifier: Apache-2.0 */
/* process.c - the life of one process: start, output to its listeners, end. See process.h for what it promises; input
 * is in process_input.c, which shares process_internal.h with this file.
 *
 * Each descriptor is polled by the loop and closed with its handle; a process object is freed when the last of its
 * handles is. */
#include "agent/envd/process.h"
#include "agent/log_capture.h"
#include "agent/envd/process_end.h"
#include "agent/envd/process_internal.h"
#include "agent/reap.h"
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>

#define PIPE_CHUNK    (32 << 10)
#define PTY_CHUNK     (16 << 10)
#define LAST_READ_MAX ((size_t)1 << 20) /* of a killed process: no pipe holds more by default */

static VEC(struct process *) live;

static struct msg_empty nothing;
static struct msg_event keepalive_event = {.which = EVENT_KEEPALIVE, .keepalive = &nothing};
static const struct msg_event_response keepalive = {&keepalive_event};

/* ---- channels ---- */

static void process_release(struct process *p)
{
  if (--p->refs)
    return;
  arena_free(&p->arena);
  free(p);
}

static void handle_closed(uv_handle_t *h)
{
  process_release(h->data);
}

static void channel_ready(uv_poll_t *poll, int status, int events);

static void channel_open(struct channel *ch, struct process *p, uv_loop_t *loop, int fd, uint32_t which)
{
  ch->process = p;
  ch->fd = fd;
  ch->which = which;
  uv_poll_init(loop, &ch->poll, fd);
  ch->poll.data = p;
  p->refs++;
}

void channel_close(struct channel *ch)
{
  if (ch->fd < 0)
    return;
  uv_poll_stop(&ch->poll);
  uv_close((uv_handle_t *)&ch->poll, handle_closed);
  close(ch->fd);
  ch->fd = -1;
  ch->wanted = 0;
}

static void channel_want(struct channel *ch, int events)
{
  if (ch->fd < 0 || ch->wanted == events)
    return;
  ch->wanted = events;
  if (events)
    uv_poll_start(&ch->poll, events, channel_ready);
  else
    uv_poll_stop(&ch->poll);
}

static bool any_congested(const struct process *p)
{
  for (const struct listener *l = p->listeners; l; l = l->next)
    if (rpc_congested(l->call))
      return true;
  return false;
}

void process_poll(struct process *p)
{
  bool flow = !any_congested(p);
  int input = p->queue ? UV_WRITABLE : 0;
  channel_want(&p->out, (flow ? UV_READABLE : 0) | (p->pty ? input : 0));
  channel_want(&p->err, flow ? UV_READABLE : 0);
  channel_want(&p->in, input);
}

/* ---- output ---- */

static const char *pid_text(const struct process *p, char out[16])
{
  snprintf(out, 16, "%d", p->pid);
  return out;
}

static void fan_out(struct process *p, uint32_t which, struct str bytes)
{
  struct msg_data data = {.which = which, .out = bytes, .err = bytes, .pty = bytes};
  char pid[16];
  if (which != DATA_PTY) /* what goes over a terminal is a conversation, not a log */
    log_capture_output("process", pid_text(p, pid), which == DATA_STDERR ? "stderr" : "stdout", bytes);
  struct msg_event event = {.which = EVENT_DATA, .data = &data};
  struct msg_event_response msg = {&event};
  struct buf frames[2] = {BUF_INIT(RPC_MESSAGE_MAX), BUF_INIT(RPC_MESSAGE_MAX)};
  for (struct listener *l = p->listeners, *next; l; l = next) {
    next = l->next;
    struct buf *frame = &frames[rpc_codec_of(l->call)];
    if (!frame->n)
      frame_message(frame, rpc_codec_of(l->call), &schema_event, &msg);
    rpc_send_frame(l->call, buf_str(frame));
  }
  buf_free(&frames[0]);
  buf_free(&frames[1]);
}

/* What read(2) gave: > 0 bytes were passed on, 0 = end, -EAGAIN = nothing now. A terminal ends with EIO. */
static ssize_t channel_read(struct channel *ch)
{
  static char bytes[PIPE_CHUNK];
  ssize_t n = read(ch->fd, bytes, ch->which == DATA_PTY ? PTY_CHUNK : PIPE_CHUNK);
  if (n > 0)
    fan_out(ch->process, ch->which, str_make(bytes, (size_t)n));
  else if (n < 0)
    n = errno == EAGAIN || errno == EINTR ? -EAGAIN : 0;
  return n;
}

static void channel_drain(struct channel *ch)
{
  size_t total = 0;
  while (ch->fd >= 0 && total < LAST_READ_MAX) {
    ssize_t n = channel_read(ch);
    if (n <= 0)
      return;
    total += (size_t)n;
  }
}

static void process_check(struct process *p);

static void channel_ready(uv_poll_t *poll, int status, int events)
{
  struct process *p = poll->data;
  struct channel *ch = (struct channel *)((char *)poll - offsetof(struct channel, poll));
  p->refs++;
  if (status < 0)
    ch->wanted = 0; /* libuv has stopped the handle; the call that fails says why */
  if (ch == &p->in || events & UV_WRITABLE)
    input_flush(p);
  if (ch != &p->in && ch->fd >= 0 && (status < 0 || events & UV_READABLE) && channel_read(ch) == 0)
    channel_close(ch);
  process_check(p);
  process_release(p);
}

/* ---- listeners ---- */

static void listener_drop(struct listener *l)
{
  struct listener **at = &l->process->listeners;
  while (*at != l)
    at = &(*at)->next;
  *at = l->next;
  rpc_release(l->call);
  free(l);
}

static void listener_drain(struct rpc_call *c)
{
  struct listener *l = rpc_data(c);
  process_poll(l->process);
}

static void listener_gone(struct rpc_call *c)
{
  struct listener *l = rpc_data(c);
  struct process *p = l->process;
  listener_drop(l);
  process_poll(p);
}

static const struct rpc_ops listener_ops = {.drain = listener_drain, .gone = listener_gone};

static void send_start(struct rpc_call *c, pid_t pid)
{
  struct msg_started started = {(uint32_t)pid};
  struct msg_event event = {.which = EVENT_START, .start = &started};
  struct msg_event_response msg = {&event};
  rpc_send(c, &msg);
}

static void send_end(struct rpc_call *c, int status)
{
  char text[END_TEXT];
  struct msg_end end;
  process_end_describe(status, text, &end);
  struct msg_event event = {.which = EVENT_END, .end = &end};
  struct msg_event_response msg = {&event};
  rpc_send(c, &msg);
  rpc_finish(c);
}

static void deadline_reached(uv_timer_t *t)
{
  struct process *p = t->data;
  for (struct listener *l = p->listeners, *next; l; l = next) {
    next = l->next;
    if (!l->starter)
      continue;
    rpc_fail(l->call, RPC_DEADLINE_EXCEEDED, "context deadline exceeded");
    listener_drop(l);
  }
  process_signal(p, SIGKILL);
  process_poll(p);
}

static void deadline_arm(struct process *p, uv_loop_t *loop, uint64_t ms)
{
  uv_timer_init(loop, &p->deadline);
  p->deadline.data = p;
  p->timed = true;
  p->refs++;
  uv_timer_start(&p->deadline, deadline_reached, ms, 0);
}

void process_subscribe(struct process *p, struct rpc_call *c, uint64_t deadline_ms)
{
  if (deadline_ms)
    deadline_arm(p, rpc_loop(c), deadline_ms);
  if (!rpc_open(c))
    return;
  struct listener *l = xcalloc(1, sizeof(*l));
  l->process = p;
  l->call = c;
  l->starter = deadline_ms > 0;
  l->next = p->listeners;
  p->listeners = l;
  rpc_hold(c);
  rpc_watch(c, &listener_ops, l);
  send_start(c, p->pid);
  rpc_keepalive(c, &keepalive);
}

bool process_replay(const struct msg_selector *s, struct rpc_call *c)
{
  uint32_t pid;
  int status;
  if (!process_end_find(s, &pid, &status))
    return false;
  send_start(c, (pid_t)pid);
  send_end(c, status);
  return true;
}

/* ---- end ---- */

static void live_remove(struct process *p)
{
  for (size_t i = 0; i < live.n; i++)
    if (live.p[i] == p) {
      vec_remove(&live, i);
      return;
    }
}

static void process_finish(struct process *p)
{
  p->ended = true;
  live_remove(p);
  channel_close(&p->out);
  channel_close(&p->err);
  input_fail(p, "the process has ended");
  channel_close(&p->in);
  if (p->timed) {
    uv_timer_stop(&p->deadline);
    uv_close((uv_handle_t *)&p->deadline, handle_closed);
  }
  process_end_keep((uint32_t)p->pid, p->tag, p->has_tag, p->status);
  char pid[16];
  log_capture_end(pid_text(p, pid));
  while (p->listeners) {
    struct listener *l = p->listeners;
    send_end(l->call, p->status);
    listener_drop(l);
  }
  process_release(p);
}

/* The end is near when the process is reaped and its output read; a killed one is not waited for. */
static void process_check(struct process *p)
{
  if (p->ended)
    return;
  if (p->reaped && p->killed) {
    channel_drain(&p->out);
    channel_drain(&p->err);
    process_finish(p);
  } else if (p->reaped && p->out.fd < 0 && p->err.fd < 0) {
    process_finish(p);
  } else {
    process_poll(p);
  }
}

static void on_reaped(pid_t pid UNUSED, int status, void *arg)
{
  struct process *p = arg;
  p->reaped = true;
  p->status = status;
  process_check(p);
}

/* A reaped process has no pid any more that could be signalled: the kernel may have given it to another. */
int process_signal(struct process *p, int sig)
{
  if (!p->reaped && kill(p->pid, sig) < 0)
    return -errno;
  p->killed = true;
  if (p->reaped)
    process_check(p);
  return 0;
}

/* ---- start ---- */

static int pipe_make(int *ours, int *theirs, bool we_read)
{
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) < 0)
    return -errno;
  *ours = ends[we_read ? 0 : 1];
  *theirs = ends[we_read ? 1 : 0];
  return 0;
}

static int size_set(int fd, uint32_t cols, uint32_t rows)
{
  struct winsize size = {.ws_col = (unsigned short)cols, .ws_row = (unsigned short)rows};
  return ioctl(fd, TIOCSWINSZ, &size) < 0 ? -errno : 0;
}

static int pty_make(int *master, int *slave, const struct process_plan *plan)
{
  int unlock = 0;
  *master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*master < 0)
    return -errno;
  if (ioctl(*master, TIOCSPTLCK, &unlock) < 0)
    return -errno;
  *slave = ioctl(*master, TIOCGPTPEER, O_RDWR | O_NOCTTY | O_CLOEXEC);
  if (*slave < 0)
    return -errno;
  if (plan->spawn.user && fchown(*slave, plan->spawn.user->uid, (gid_t)-1) < 0)
    log_debug("terminal not handed to the user: %s", strerror(errno));
  return size_set(*slave, plan->cols, plan->rows);
}

static struct str copy(struct arena *a, struct str s)
{
  struct str out = arena_str(a, s);
  return out.p ? out : STR("");
}

static void config_copy(struct arena *a, const struct msg_config *from, bool private_env, struct msg_config *to)
{
  to->cmd = copy(a, from->cmd);
  to->cwd = copy(a, from->cwd);
  to->has_cwd = from->has_cwd;
  for (size_t i = 0; i < from->args.n; i++) {
    struct str arg = copy(a, ((struct str *)from->args.p)[i]);
    rpc_list_add(a, &to->args, sizeof(arg), &arg);
  }
  for (size_t i = 0; !private_env && i < from->envs.n; i++) {
    const struct rpc_pair *pair = &((struct rpc_pair *)from->envs.p)[i];
    struct rpc_pair both = {copy(a, pair->key), copy(a, pair->value)};
    rpc_list_add(a, &to->envs, sizeof(both), &both);
  }
}

static struct process *process_new(const struct process_plan *plan, pid_t pid)
{
  struct process *p = xcalloc(1, sizeof(*p));
  p->refs = 1;
  p->pid = pid;
  p->pty = plan->pty;
  p->in.fd = p->out.fd = p->err.fd = -1;
  config_copy(&p->arena, plan->config, plan->private_env, &p->config);
  p->tag = copy(&p->arena, plan->tag);
  p->has_tag = plan->has_tag;
  process_end_forget((uint32_t)pid, p->tag, p->has_tag);
  reap_watch(pid, on_reaped, p);
  vec_push(&live, p);
  return p;
}

static struct process *start_pty(uv_loop_t *loop, struct process_plan *plan, enum spawn_stage *stage, int *code)
{
  cleanup_fd int master = -1, slave = -1;
  *stage = SPAWN_SETUP;
  *code = pty_make(&master, &slave, plan);
  if (*code < 0)
    return NULL;
  plan->spawn.session = plan->spawn.ctty = true;
  for (int i = 0; i < 3; i++)
    plan->spawn.fds[i] = slave;
  pid_t pid = spawn_run(&plan->spawn, stage);
  if (pid < 0)
    return *code = pid, NULL;
  struct process *p = process_new(plan, pid);
  channel_open(&p->out, p, loop, steal_fd(&master), DATA_PTY);
  return p;
}

static struct process *start_pipes(uv_loop_t *loop, struct process_plan *plan, enum spawn_stage *stage, int *code)
{
  cleanup_fd int in = -1, out = -1, err = -1, child_in = -1, child_out = -1, child_err = -1;
  *stage = SPAWN_SETUP;
  *code = pipe_make(&out, &child_out, true);
  if (*code == 0)
    *code = pipe_make(&err, &child_err, true);
  if (*code == 0 && plan->stdin_open)
    *code = pipe_make(&in, &child_in, false);
  if (*code < 0)
    return NULL;
  plan->spawn.fds[0] = child_in;
  plan->spawn.fds[1] = child_out;
  plan->spawn.fds[2] = child_err;
  pid_t pid = spawn_run(&plan->spawn, stage);
  if (pid < 0)
    return *code = pid, NULL;
  struct process *p = process_new(plan, pid);
  channel_open(&p->out, p, loop, steal_fd(&out), DATA_STDOUT);
  channel_open(&p->err, p, loop, steal_fd(&err), DATA_STDERR);
  if (in >= 0)
    channel_open(&p->in, p, loop, steal_fd(&in), 0);
  return p;
}

struct process *process_start(uv_loop_t *loop, struct process_plan *plan, enum spawn_stage *stage, int *code)
{
  reap_now();
  plan->spawn.fds[3] = -1;
  struct process *p = plan->pty ? start_pty(loop, plan, stage, code) : start_pipes(loop, plan, stage, code);
  if (p)
    process_poll(p);
  return p;
}

/* ---- asking ---- */

struct process *process_select(const struct msg_selector *s)
{
  for (size_t i = 0; i < live.n; i++) {
    struct process *p = live.p[i];
    if (s->which == SELECT_PID ? (uint32_t)p->pid == s->pid : p->has_tag && str_eq(p->tag, s->tag))
      return p;
  }
  return NULL;
}

pid_t process_pid(const struct process *p)
{
  return p->pid;
}

int process_resize(struct process *p, uint32_t cols, uint32_t rows)
{
  if (!p->pty)
    return -ENOTTY;
  return p->out.fd < 0 ? 0 : size_set(p->out.fd, cols, rows);
}

static struct msg_config *config_masked(struct arena *a, const struct msg_config *from)
{
  struct msg_config *config = arena_alloc(a, sizeof(*config));
  if (!config)
    return NULL;
  *config = *from;
  config->envs = (struct rpc_list){0};
  for (size_t i = 0; i < from->envs.n; i++) {
    struct rpc_pair name = {((struct rpc_pair *)from->envs.p)[i].key, STR("")};
    rpc_list_add(a, &config->envs, sizeof(name), &name);
  }
  return config;
}

void process_list(struct arena *a, struct msg_processes *out, bool values)
{
  for (size_t i = 0; i < live.n; i++) {
    struct process *p = live.p[i];
    struct msg_process *info = arena_alloc(a, sizeof(*info));
    if (!info)
      return;
    info->config = values ? &p->config : config_masked(a, &p->config);
    info->pid = (uint32_t)p->pid;
    info->tag = p->tag;
    info->has_tag = p->has_tag;
    rpc_list_add(a, &out->processes, sizeof(info), &info);
  }
}

void process_stop_all(void)
{
  for (size_t i = 0; i < live.n; i++)
    if (!live.p[i]->reaped)
      kill(live.p[i]->pid, SIGTERM);
}
