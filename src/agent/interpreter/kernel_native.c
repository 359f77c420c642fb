/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_native.c - the driver of kernels that speak our own protocol (docs/kernel-protocol.md).
 *
 * Three descriptors per kernel: the protocol socket and the pipes behind its fds 1 and 2. Messages go before pipe
 * bytes when both are ready, and both pipes are drained at `drain` and `done`, so output keeps the order it was
 * written in. While a client reads slowly the kernel is paused: nothing is read from its descriptors, so it blocks in
 * its own write and nobody else notices. Death shows as end of file on the socket or as the exit of the process,
 * whichever comes first; what the kernel still had to say is read before that is reported. */
#include "agent/interpreter/kernel_message.h"
#include "agent/interpreter/kernel_nursery.h"
#include "agent/interpreter/json_token.h"
#include "agent/reap.h"
#include "net/http.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_SIZE      ((size_t)256 << 10) /* one read from a kernel */
#define READ_ROUNDS    16                  /* reads before other descriptors are served */
#define OUT_MAX        ((size_t)512 << 20) /* a cell of 64 MiB, escaped */
#define STATUS_WAIT_MS 300                 /* between end of file and the exit status */
#define IN_KEEP        ((size_t)64 << 10)
#define RESTLESS       4 /* reads while text waits, after which the socket is left alone until it goes */
#define SOCKET_BYTES   (1 << 20)

enum native_timer { TIMER_NONE, TIMER_START, TIMER_READY, TIMER_FLUSH, TIMER_STATUS };

struct native {
  struct kernel k;
  struct nursery_child child;
  int fds[3]; /* protocol socket, stdout pipe, stderr pipe */
  uv_poll_t polls[3];
  uv_timer_t timer;
  enum native_timer timer_for;
  int handles;        /* still open on the loop */
  struct buf in;      /* what no complete message has come of yet, or what waits while paused */
  size_t scanned;     /* how much of it holds no line end */
  size_t message_max; /* longest message it may send */
  bool skipping;      /* inside a message that is too long */
  struct buf out;     /* what the socket does not take yet */
  pid_t pid;
  unsigned reads; /* since text began to wait */
  bool resting;   /* the socket is not watched until that text goes out */
  bool from_nursery, ready, busy, eof, exited, dead, interrupt_message;
  int status;
};

/* Shared by all kernels: a buffer per kernel would cost idle ones memory. Pipes have their own, since they are read in
 * the middle of a message batch. */
static char read_buf[READ_SIZE];
static char pipe_buf[(size_t)64 << 10];

static void native_timer(struct native *n, enum native_timer what, unsigned ms);

static void poll_set(struct native *n);

/* ---- sending ---- */

static void native_flush(struct native *n)
{
  while (n->out.n) {
    ssize_t sent = send(n->fds[0], n->out.p, n->out.n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno == EINTR)
      continue;
    if (sent < 0)
      break;
    buf_drop(&n->out, (size_t)sent);
  }
  if (!n->out.n && n->out.cap > IN_KEEP)
    buf_free(&n->out);
}

/* Takes what a message builder appended to n->out. A dead socket shows as end of file soon, so it is no error here. */
static int native_push(struct native *n)
{
  int rc = buf_failed(&n->out);
  if (rc < 0) {
    buf_free(&n->out);
    return rc;
  }
  native_flush(n);
  if (n->out.n)
    poll_set(n);
  return 0;
}

static int native_run(struct kernel *k, struct str code, const struct json *env)
{
  struct native *n = (struct native *)k;
  kernel_begin(k);
  message_run(&n->out, k->run_id, code, env);
  int rc = native_push(n);
  if (rc < 0)
    k->running = k->output.live = false;
  return rc;
}

static int native_set_env(struct kernel *k, const struct env *env, bool renew)
{
  struct native *n = (struct native *)k;
  message_env(&n->out, env, renew);
  return native_push(n);
}

static int native_cd(struct kernel *k, const char *path)
{
  struct native *n = (struct native *)k;
  message_cd(&n->out, path);
  return native_push(n);
}

static void native_signal(struct native *n, int sig)
{
  if (n->pid > 1 && !n->exited && kill(-n->pid, sig) != 0 && errno == ESRCH)
    kill(n->pid, sig);
}

static void native_interrupt(struct kernel *k)
{
  struct native *n = (struct native *)k;
  if (!n->interrupt_message) {
    native_signal(n, SIGINT);
    return;
  }
  message_interrupt(&n->out, k->run_id);
  native_push(n);
}

/* To the kernel alone: its children know nothing of it. */
static void native_renew(struct kernel *k)
{
  struct native *n = (struct native *)k;
  if (!k->heard || n->pid <= 1 || n->exited)
    return;
  if (k->spec->renew_signal)
    kill(n->pid, k->spec->renew_signal);
  if (k->spec->renew_message) {
    message_renew(&n->out);
    native_push(n);
  }
}

/* ---- events ---- */

static int pipe_waiting(const struct native *n, int i)
{
  int left = 0;
  return n->fds[i] >= 0 && ioctl(n->fds[i], FIONREAD, &left) == 0 ? left : 0;
}

/* Reads that many bytes of a pipe and no more: what was written later belongs after the next message, and a child that
 * never stops writing must not hold us here. */
static void pipe_take(struct native *n, int i, int64_t left)
{
  while (left > 0 && n->fds[i] >= 0) {
    ssize_t got = read(n->fds[i], pipe_buf, (size_t)MIN((int64_t)sizeof(pipe_buf), left));
    if (got <= 0)
      return;
    output_bytes(&n->k.output, i - 1, str_make(pipe_buf, (size_t)got));
    left -= got;
  }
}

static void native_drain(struct native *n)
{
  pipe_take(n, 1, pipe_waiting(n, 1));
  pipe_take(n, 2, pipe_waiting(n, 2));
}

/* A kernel that says how much it saw in the pipes gets no more than that read. */
static void event_drain(struct native *n, const struct message *m)
{
  int64_t out, err;
  if (token_int(m->out, &out) < 0 || token_int(m->err, &err) < 0) {
    native_drain(n);
    return;
  }
  pipe_take(n, 1, MIN(out, (int64_t)pipe_waiting(n, 1)));
  pipe_take(n, 2, MIN(err, (int64_t)pipe_waiting(n, 2)));
}

static void event_ready(struct native *n, const struct message *m)
{
  struct str body;
  if (n->ready)
    return;
  n->ready = true;
  n->interrupt_message = token_body(m->interrupt, &body) && token_is(body, "message");
  n->k.output.coalesce = token_true(m->coalesce);
  if (n->timer_for == TIMER_START)
    native_timer(n, TIMER_NONE, 0);
  n->k.listener->ready(n->k.arg);
}

static void event_moved(struct native *n, const struct message *m)
{
  char reason[256];
  message_text(m->reason, reason, sizeof(reason));
  n->k.listener->moved(n->k.arg, token_true(m->ok), reason);
}

static void event_stream(struct native *n, const struct message *m)
{
  struct str name, body;
  if (!token_body(m->name, &name) || !token_body(m->text, &body))
    return;
  output_stream(&n->k.output, token_is(name, "stderr") ? OUTPUT_STDERR : OUTPUT_STDOUT, body, clock_wall_us());
  if (output_waiting(&n->k.output) && n->timer_for == TIMER_NONE)
    native_timer(n, TIMER_FLUSH, KERNEL_COALESCE_MS);
}

static void event_done(struct native *n, const struct message *m)
{
  struct str status = {0};
  native_drain(n);
  token_body(m->status, &status);
  if (token_is(status, "error"))
    output_error(&n->k.output, m->name, m->value, m->traceback);
  else if (token_is(status, "aborted"))
    output_fault(&n->k.output, "ExecutionAborted", "Execution was aborted", "");
  if (n->timer_for == TIMER_FLUSH)
    native_timer(n, TIMER_NONE, 0);
  kernel_done(&n->k);
}

/* An event of the run that is on; those of an earlier one are late and dropped. */
static void event_run(struct native *n, const struct message *m)
{
  int64_t id = 0, count = 0;
  if (!n->k.running || token_int(m->id, &id) < 0 || (uint64_t)id != n->k.run_id)
    return;
  n->k.heard = true;
  if (message_is(m, "stream")) {
    event_stream(n, m);
  } else if (message_is(m, "count")) {
    if (token_int(m->n, &count) == 0)
      output_count(&n->k.output, count);
  } else if (message_is(m, "display")) {
    output_display(&n->k.output, token_true(m->main), m->data);
  } else if (message_is(m, "error")) {
    output_error(&n->k.output, m->name, m->value, m->traceback);
  } else if (message_is(m, "drain")) {
    event_drain(n, m);
  } else if (message_is(m, "done")) {
    event_done(n, m);
  }
}

static void native_line(struct native *n, struct str line)
{
  struct message m;
  if (!str_trim(line).n)
    return;
  if (message_read(line, &m) < 0) {
    log_warn("kernel %s: malformed message of %zu bytes", n->k.spec->language, line.n);
    return;
  }
  if (message_is(&m, "ready"))
    event_ready(n, &m);
  else if (message_is(&m, "cd"))
    event_moved(n, &m);
  else
    event_run(n, &m);
}

/* ---- receiving ---- */

/* Handles the complete messages at the front of data; the number of bytes that are done with. *scanned is how many
 * bytes of the rest are known to hold no line end. */
static size_t native_lines(struct native *n, struct str data, size_t *scanned)
{
  size_t done = 0, from = *scanned;
  while (!n->k.paused && !n->k.ended) {
    const char *end = data.n > from ? memchr(data.p + from, '\n', data.n - from) : NULL;
    if (!end) {
      *scanned = data.n - done;
      return done;
    }
    size_t next = (size_t)(end - data.p) + 1;
    if (!n->skipping)
      native_line(n, str_sub(data, done, next - done - 1));
    n->skipping = false;
    done = from = next;
  }
  *scanned = 0;
  return done;
}

/* The part of a message past the limit that is here: it is read to its end and dropped, and the run says so. */
static void native_overlong(struct native *n)
{
  char value[96];
  snprintf(value, sizeof(value), "A message of the kernel was larger than %zu bytes and was dropped", n->message_max);
  n->skipping = true;
  buf_free(&n->in);
  n->scanned = 0;
  output_fault(&n->k.output, "ResultTooLarge", value, "");
}

static void native_keep(struct native *n, struct str rest)
{
  if (n->skipping && n->scanned == rest.n)
    n->scanned = 0; /* still inside what is being dropped */
  else if (buf_adds(&n->in, rest) < 0)
    native_overlong(n);
}

static void native_waiting(struct native *n)
{
  size_t done = native_lines(n, buf_str(&n->in), &n->scanned);
  buf_drop(&n->in, done);
  if (!n->in.n && n->in.cap > IN_KEEP)
    buf_free(&n->in);
}

static void native_feed(struct native *n, struct str data)
{
  if (n->in.n) {
    buf_adds(&n->in, data);
    native_waiting(n);
  } else {
    size_t done = native_lines(n, data, &n->scanned);
    if (done < data.n)
      native_keep(n, str_skip(data, done));
  }
  if (n->in.n > n->message_max && n->scanned == n->in.n)
    native_overlong(n);
}

static void native_gone(struct native *n)
{
  char cause[160];
  if (n->dead || n->k.paused || n->k.ended)
    return;
  n->dead = true;
  native_timer(n, TIMER_NONE, 0);
  if (n->exited)
    kernel_explain(n->status, cause, sizeof(cause));
  else
    snprintf(cause, sizeof(cause), "the kernel process closed its connection");
  if (!n->exited)
    native_signal(n, SIGKILL);
  native_drain(n);
  kernel_died(&n->k, cause);
}

static void native_eof(struct native *n)
{
  n->eof = true;
  uv_poll_stop(&n->polls[0]);
  if (n->exited)
    native_gone(n);
  else
    native_timer(n, TIMER_STATUS, STATUS_WAIT_MS);
}

/* Reads what there is: the number of bytes, 0 when there is nothing now or the end was reached. */
static size_t native_read_once(struct native *n)
{
  ssize_t got;
  do
    got = recv(n->fds[0], read_buf, sizeof(read_buf), MSG_DONTWAIT);
  while (got < 0 && errno == EINTR);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
    return 0;
  if (got <= 0) {
    native_eof(n);
    return 0;
  }
  native_feed(n, str_make(read_buf, (size_t)got));
  return (size_t)got;
}

/* True when something came. */
static bool native_read(struct native *n)
{
  bool any = false;
  if (n->busy || n->eof || n->k.ended)
    return false;
  n->busy = true;
  for (int i = 0; i < READ_ROUNDS && !n->k.paused && !n->k.ended && !n->eof; i++) {
    size_t got = native_read_once(n);
    any |= got > 0;
    if (got < sizeof(read_buf))
      break;
  }
  n->busy = false;
  return any;
}

/* A program that prints line after line would wake us for each, and a wake-up costs more than a line. Text that came
 * waits up to a millisecond for more anyway; after a few reads so does what follows it, in the socket. */
static void native_rest(struct native *n)
{
  if (n->timer_for != TIMER_FLUSH || n->k.ended || n->k.paused || n->eof || n->out.n) {
    n->reads = 0;
  } else if (++n->reads >= RESTLESS) {
    n->resting = true;
    poll_set(n);
  }
}

/* What came in one piece goes on in one piece. */
static void native_read_all(struct native *n)
{
  struct net *net = http_gather(n->k.host->loop);
  native_read(n);
  http_let_go(net);
}

static void on_socket(uv_poll_t *p, int status, int events)
{
  struct native *n = p->data;
  if (n->k.ended)
    return;
  if (status < 0 || events & (UV_READABLE | UV_DISCONNECT)) {
    native_read_all(n);
    native_rest(n);
  }
  if (!n->k.ended && events & UV_WRITABLE) {
    native_flush(n);
    poll_set(n);
  }
}

/* Empty and without writers: nothing will come any more, but the poll would report it for ever. */
static void pipe_close_if_ended(struct native *n, int i)
{
  struct pollfd p = {.fd = n->fds[i], .events = POLLIN};
  if (poll(&p, 1, 0) != 1 || !(p.revents & (POLLHUP | POLLERR)) || p.revents & POLLIN)
    return;
  uv_poll_stop(&n->polls[i]);
  close(n->fds[i]);
  n->fds[i] = -1;
}

/* Bytes that were here before the socket was found empty are older than any message still to come. When there were
 * messages, they come first and the poll reports again what they left. */
static void on_pipe(uv_poll_t *p, int status, int events)
{
  struct native *n = p->data;
  int i = (int)(p - n->polls), older = pipe_waiting(n, i);
  (void)status, (void)events;
  if (n->k.ended || n->fds[i] < 0 || native_read(n) || n->k.ended || n->k.paused || n->fds[i] < 0)
    return;
  if (!older)
    pipe_close_if_ended(n, i);
  pipe_take(n, i, older);
  if (output_waiting(&n->k.output) && n->timer_for == TIMER_NONE)
    native_timer(n, TIMER_FLUSH, KERNEL_COALESCE_MS);
}

static void poll_set(struct native *n)
{
  bool in = !n->k.paused && !n->eof && !n->resting;
  int want = (in ? UV_READABLE : 0) | (n->out.n && !n->eof ? UV_WRITABLE : 0);
  if (want)
    uv_poll_start(&n->polls[0], want, on_socket);
  else
    uv_poll_stop(&n->polls[0]);
  for (int i = 1; i < 3; i++) {
    if (n->fds[i] < 0)
      continue;
    if (n->k.paused)
      uv_poll_stop(&n->polls[i]);
    else
      uv_poll_start(&n->polls[i], UV_READABLE, on_pipe);
  }
}

static void native_pause(struct kernel *k)
{
  poll_set((struct native *)k);
}

static void native_resume(struct kernel *k)
{
  struct native *n = (struct native *)k;
  if (!n->busy) {
    n->busy = true;
    native_waiting(n);
    n->busy = false;
  }
  if (k->ended || k->paused)
    return;
  poll_set(n);
  if (!n->busy && n->exited)
    native_read(n);
  if (!k->paused && (n->exited || n->eof))
    native_gone(n);
}

/* ---- time ---- */

/* What gathered meanwhile belongs to the same piece of text, also when only we were late. */
static void native_rested(struct native *n)
{
  n->reads = 0;
  if (!n->k.paused && !n->eof)
    native_read_all(n);
  if (n->k.ended)
    return;
  if (n->resting) {
    n->resting = false;
    poll_set(n);
  }
  output_flush(&n->k.output);
}

static void on_timer(uv_timer_t *t)
{
  struct native *n = t->data;
  enum native_timer what = n->timer_for;
  n->timer_for = TIMER_NONE;
  if (n->k.ended)
    return;
  if (what == TIMER_FLUSH) {
    native_rested(n);
  } else if (what == TIMER_STATUS) {
    native_gone(n);
  } else if (what == TIMER_READY) {
    n->k.listener->ready(n->k.arg);
  } else if (what == TIMER_START) {
    native_signal(n, SIGKILL);
    n->dead = true;
    kernel_died(&n->k, "the kernel was not ready in time");
  }
}

static void native_timer(struct native *n, enum native_timer what, unsigned ms)
{
  n->timer_for = what;
  if (n->resting && what != TIMER_FLUSH) {
    n->resting = false;
    if (!n->k.ended && !n->dead)
      poll_set(n);
  }
  if (what == TIMER_NONE)
    uv_timer_stop(&n->timer);
  else
    uv_timer_start(&n->timer, on_timer, ms, 0);
}

/* ---- life ---- */

static void native_exited(struct native *n, int status)
{
  n->exited = true;
  n->status = status;
  if (n->k.ended || n->dead || n->k.paused)
    return;
  n->busy = true;
  while (!n->eof && !n->k.paused && !n->k.ended && native_read_once(n))
    ;
  n->busy = false;
  if (!n->k.ended && !n->k.paused)
    native_gone(n);
}

static void on_reaped(pid_t pid, int status, void *arg)
{
  (void)pid;
  native_exited(arg, status);
}

static struct native *native_of(struct nursery_child *c)
{
  return (struct native *)((char *)c - offsetof(struct native, child));
}

static void on_child_exited(struct nursery_child *c, int status)
{
  native_exited(native_of(c), status);
}

static void on_closed(uv_handle_t *h)
{
  struct native *n = h->data;
  if (--n->handles > 0)
    return;
  for (int i = 0; i < 3; i++)
    cleanup_fd_p(&n->fds[i]);
  output_free(&n->k.output);
  buf_free(&n->in);
  buf_free(&n->out);
  free(n);
}

/* Closes the kernel's ends here once it has them. */
static void theirs_close(struct native *n)
{
  for (int i = 0; i < 3; i++) {
    cleanup_fd_p(&n->child.fds[i]);
    n->child.fds[i] = -1;
  }
}

static void native_end(struct kernel *k)
{
  struct native *n = (struct native *)k;
  native_signal(n, SIGKILL);
  if (n->from_nursery)
    nursery_forget(&n->child);
  else if (n->pid > 0 && !n->exited)
    reap_forget(n->pid);
  theirs_close(n);
  for (int i = 0; i < 3; i++)
    uv_close((uv_handle_t *)&n->polls[i], on_closed);
  uv_close((uv_handle_t *)&n->timer, on_closed);
}

static const struct kernel_driver native_driver = {
    .run = native_run,
    .set_env = native_set_env,
    .cd = native_cd,
    .interrupt = native_interrupt,
    .renew = native_renew,
    .pause = native_pause,
    .resume = native_resume,
    .end = native_end,
};

static struct native *native_make(const struct kernel_host *host, const struct kernel_spec *spec,
                                  const struct kernel_listener *listener, void *arg, const int fds[3])
{
  struct native *n = xcalloc(1, sizeof(*n));
  kernel_init(&n->k, host, spec, listener, arg);
  n->k.driver = &native_driver;
  n->child.fds[0] = n->child.fds[1] = n->child.fds[2] = -1;
  n->message_max = host->message_max ? host->message_max : OUTPUT_MESSAGE_MAX;
  buf_init(&n->in, n->message_max + 2 * READ_SIZE);
  buf_init(&n->out, OUT_MAX);
  for (int i = 0; i < 3; i++) {
    n->fds[i] = fds[i];
    fd_nonblock(fds[i]);
    uv_poll_init(host->loop, &n->polls[i], fds[i]);
    n->polls[i].data = n;
  }
  uv_timer_init(host->loop, &n->timer);
  n->timer.data = n;
  n->handles = 4;
  poll_set(n);
  native_timer(n, TIMER_START, KERNEL_START_MS);
  return n;
}

/* The socket has room for what a kernel prints while we rest. */
static int pair_open(int i, int pair[2])
{
  if (i > 0)
    return pipe2(pair, O_CLOEXEC);
  int rc = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair);
  if (rc == 0)
    setsockopt(pair[1], SOL_SOCKET, SO_SNDBUF, &(int){SOCKET_BYTES}, sizeof(int));
  return rc;
}

static int ends_open(int ours[3], int theirs[3], struct err *err)
{
  for (int i = 0; i < 3; i++) {
    int pair[2];
    if (pair_open(i, pair) != 0) {
      int rc = err_errno(err, "can't make a kernel's descriptors");
      while (i-- > 0) {
        close(ours[i]);
        close(theirs[i]);
      }
      return rc;
    }
    ours[i] = pair[0];
    theirs[i] = pair[1];
  }
  return 0;
}

/* A process of its own: the way of kernels without a nursery, and outbound networking when a nursery fails. */
static int native_spawn(struct native *n, struct err *err)
{
  int fds[3] = {n->child.fds[1], n->child.fds[2], n->child.fds[0]};
  n->from_nursery = false;
  pid_t pid = kernel_spawn(n->k.host, n->k.spec, n->k.spec->argv, NULL, fds, NULL, err);
  theirs_close(n);
  if (pid < 0)
    return pid;
  n->pid = pid;
  reap_watch(pid, on_reaped, n);
  return 0;
}

static void on_forked(struct nursery_child *c, pid_t pid)
{
  struct native *n = native_of(c);
  struct err err = ERR_NONE;
  if (pid > 1) {
    n->pid = pid;
    theirs_close(n);
    return;
  }
  if (n->dead || native_spawn(n, &err) == 0)
    return;
  n->dead = true;
  native_timer(n, TIMER_NONE, 0);
  kernel_died(&n->k, err.msg);
}

struct kernel *kernel_native_new(const struct kernel_host *host, const struct kernel_spec *spec,
                                 const struct kernel_listener *listener, void *arg, struct err *err)
{
  int ours[3], theirs[3];
  if (ends_open(ours, theirs, err) < 0)
    return NULL;
  struct native *n = native_make(host, spec, listener, arg, ours);
  memcpy(n->child.fds, theirs, sizeof(theirs));
  n->child.forked = on_forked;
  n->child.exited = on_child_exited;
  n->from_nursery = spec->nursery && nursery_fork(host, spec, &n->child) == 0;
  if (!n->from_nursery && native_spawn(n, err) < 0) {
    kernel_end(&n->k);
    return NULL;
  }
  return &n->k;
}

struct kernel *kernel_native_adopt(const struct kernel_host *host, const struct kernel_spec *spec,
                                   const struct kernel_listener *listener, void *arg, const int fds[3], pid_t pid)
{
  struct native *n = native_make(host, spec, listener, arg, fds);
  n->pid = pid;
  reap_watch(pid, on_reaped, n);
  return &n->k;
}

void kernel_native_hand_over(struct kernel *k, const struct kernel_listener *listener, void *arg)
{
  struct native *n = (struct native *)k;
  k->listener = listener;
  k->arg = arg;
  if (n->ready && n->timer_for == TIMER_NONE)
    native_timer(n, TIMER_READY, 0);
}
