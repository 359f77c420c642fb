/* SPDX-License-Identifier: Apache-2.0 */
/* conn.c - bytes in and out of one stream socket.
 *
 * Reading: all connections of a loop read into one shared buffer and the protocol is shown the bytes there; only what
 * it can't use yet is kept, in c->in. While the protocol wants nothing, one small look-ahead read is allowed, so that
 * a peer that leaves is noticed at once; after it only the disconnect event is watched. Memory per connection
 * is therefore bounded by one read beyond the protocol's own limit.
 *
 * Fairness: bytes are cheap to send and may be dear to take (a request in 30 bytes, a header field in one), so a
 * protocol counts its work with conn_spend. A connection that used up its share keeps its unread bytes and waits for
 * its next deferred run, so that a peer can slow down others by one share at a time and no more.
 *
 * Writing: straight to the socket while it takes bytes; the rest is copied to a queue of blocks that waits for the
 * socket. Small writes are joined there, when corked, and while the net gathers (netloop.c). Files go by sendfile(2) in
 * their place of the queue.
 * How much may be queued is for the protocol to judge by c->queued; OUT_MAX is the hard limit behind it.
 *
 * What carries the bytes is exchangeable (conn_io): the socket itself here, TLS in tls.c. A carrier may hold decrypted
 * bytes that the socket's readiness says nothing about (`pending`, which costs a deferred run), and may need the other
 * direction first (read_waits, write_waits, as in a handshake).
 *
 * Errors met inside a caller's own write are reported in the connection's deferred run, not there. Closing is at once
 * for the descriptor; the memory stays until ops->freed, which the loop calls later, so every callback may close. */
#include "net/conn.h"

#include "net/splice.h"
#include <netinet/tcp.h>
#include <sys/sendfile.h>
#include <sys/socket.h>

#define OUT_MAX     ((size_t)64 << 20) /* queued memory at which a connection is given up */
#define LOOK_AHEAD  ((size_t)16 << 10) /* read while nobody wants bytes */
#define READ_ROUNDS 4                  /* full buffers per event, then other connections are served */
#define FLUSH_BYTES ((size_t)4 << 20)  /* the same for output */
#define FILE_BYTES  ((size_t)1 << 20)
#define SEG_SIZE    ((size_t)4096)
#define SPARE_MAX   64
#define GATHER      16

/* A pipe costs a descriptor and the pages of all that its few bytes came in, so a queue has few, and each counts as
 * that much more than it holds. Over that many, bytes are copied, which joins small pieces. */
#define PIPES_MAX   4
#define PIPE_COST   ((uint64_t)64 << 10)

struct conn_seg {
  struct conn_seg *next;
  int fd;                /* a file or a pipe, or -1 */
  bool piped;            /* a pipe: splice.c carries it */
  bool copied;           /* sendfile can't carry this file */
  uint64_t offset, left; /* file */
  size_t from, to, cap;  /* memory: data[from..to) */
  char data[];
};

/* ---- the plain carrier ---- */

static ssize_t plain_read(struct conn *c, void *p, size_t n)
{
  ssize_t r = recv(c->fd, p, n, MSG_DONTWAIT);
  return r < 0 ? -errno : r;
}

static ssize_t plain_write(struct conn *c, const struct iovec *v, int n, bool more)
{
  struct msghdr m = {.msg_iov = (struct iovec *)v, .msg_iovlen = (size_t)n};
  ssize_t r = sendmsg(c->fd, &m, MSG_DONTWAIT | MSG_NOSIGNAL | (more ? MSG_MORE : 0));
  return r < 0 ? -errno : r;
}

static ssize_t plain_file(struct conn *c, int fd, uint64_t offset, size_t n)
{
  struct held_sigpipe held = sigpipe_hold();
  off_t at = (off_t)offset;
  ssize_t r = sendfile(c->fd, fd, &at, n);
  int code = r < 0 ? errno : 0;
  sigpipe_release(&held, code);
  return r < 0 ? -code : r;
}

static int plain_shut(struct conn *c)
{
  return shutdown(c->fd, SHUT_WR) < 0 ? -errno : 0;
}

const struct conn_io conn_io_plain = {plain_read, plain_write, plain_file, plain_shut, NULL, NULL};

/* ---- what waits ---- */

void conn_hold(struct conn *c, uint64_t n)
{
  if (c->closed)
    return;
  if (!c->node.held)
    c->node.held_at = uv_now(c->net->loop);
  c->node.held += n;
  c->net->held += n;
}

void conn_release(struct conn *c, uint64_t n)
{
  if (c->closed || !n)
    return;
  c->node.held_at = uv_now(c->net->loop);
  c->node.held -= n;
  c->net->held -= n;
}

/* The socket is full, or takes bytes again. What it holds then counts as waiting. */
static void set_blocked(struct conn *c, bool blocked)
{
  if (c->blocked != blocked)
    (blocked ? conn_hold : conn_release)(c, UNSENT_MAX);
  c->blocked = blocked;
}

/* ---- blocks of queued output ---- */

static struct conn_seg *seg_new(struct net *net, size_t room)
{
  struct conn_seg *s;
  if (net->spare && room <= SEG_SIZE) {
    s = (struct conn_seg *)net->spare;
    net->spare = net->spare->next;
    net->nspare--;
    s->cap = SEG_SIZE;
  } else {
    size_t cap = MAX(room, SEG_SIZE);
    s = malloc(sizeof(*s) + cap);
    if (!s)
      return NULL;
    s->cap = cap;
  }
  s->next = NULL;
  s->fd = -1;
  s->from = s->to = 0;
  return s;
}

static void seg_free(struct net *net, struct conn_seg *s)
{
  if (s->fd >= 0)
    close(s->fd);
  if (s->cap != SEG_SIZE || net->nspare == SPARE_MAX) {
    free(s);
    return;
  }
  struct net_block *block = (struct net_block *)s;
  block->next = net->spare;
  net->spare = block;
  net->nspare++;
}

static void out_append(struct conn *c, struct conn_seg *s)
{
  if (c->out)
    c->out_last->next = s;
  else
    c->out = s;
  c->out_last = s;
}

static void out_drop_first(struct conn *c)
{
  struct conn_seg *s = c->out;
  c->out = s->next;
  if (s->fd >= 0 && s->piped) {
    c->npiped--;
    conn_release(c, s->left + PIPE_COST);
  }
  seg_free(c->net, s);
}

static void out_drop(struct conn *c)
{
  conn_release(c, c->queued_mem);
  while (c->out)
    out_drop_first(c);
  c->queued = c->queued_mem = 0;
  set_blocked(c, false);
}

/* n bytes of memory blocks at the front have gone out. */
static void out_taken(struct conn *c, size_t n)
{
  c->queued -= n;
  c->queued_mem -= n;
  conn_release(c, n);
  while (n) {
    struct conn_seg *s = c->out;
    size_t k = MIN(n, s->to - s->from);
    s->from += k;
    n -= k;
    if (s->from == s->to)
      out_drop_first(c);
  }
}

static int out_copy(struct conn *c, const char *p, size_t n)
{
  struct conn_seg *s = c->out ? c->out_last : NULL;
  size_t room = s && s->fd < 0 ? s->cap - s->to : 0;
  size_t k = MIN(room, n);
  if (k)
    memcpy(s->data + s->to, p, k), s->to += k;
  if (n > k) {
    struct conn_seg *more = seg_new(c->net, n - k);
    if (!more)
      return -ENOMEM;
    memcpy(more->data, p + k, n - k);
    more->to = n - k;
    out_append(c, more);
  }
  c->queued += n;
  c->queued_mem += n;
  conn_hold(c, n);
  return 0;
}

/* Copies what of v follows its first `skip` bytes. */
static int out_keep(struct conn *c, const struct iovec *v, int n, size_t skip)
{
  for (int i = 0; i < n; i++) {
    size_t off = MIN(skip, v[i].iov_len);
    skip -= off;
    int rc = v[i].iov_len > off ? out_copy(c, (const char *)v[i].iov_base + off, v[i].iov_len - off) : 0;
    if (rc < 0)
      return rc;
  }
  return 0;
}

/* ---- events ---- */

static size_t conn_waiting(const struct conn *c)
{
  return c->in.n - c->in_off;
}

static bool conn_reads(const struct conn *c)
{
  return !c->eof && !c->busy && !c->lent && (c->want || conn_waiting(c) == 0);
}

static void on_poll(uv_poll_t *h, int status, int events);

static bool conn_holds(const struct conn *c)
{
  return c->io->pending && conn_reads(c) && c->io->pending(c);
}

static int conn_events(const struct conn *c)
{
  bool writable = (c->blocked && !c->write_waits) || c->read_waits;
  if (c->failed)
    return 0;
  return (conn_reads(c) ? UV_READABLE : 0) | (!c->eof && !c->gone && !c->busy && !c->lent ? UV_DISCONNECT : 0) |
         (writable ? UV_WRITABLE : 0);
}

static void conn_rearm(struct conn *c)
{
  if (c->closed)
    return;
  if (conn_holds(c))
    conn_defer(c);
  int events = conn_events(c);
  if (events == c->events)
    return;
  c->events = events;
  if (events)
    uv_poll_start(&c->poll, events, on_poll);
  else
    uv_poll_stop(&c->poll);
}

void conn_defer(struct conn *c)
{
  if (!c->closed)
    net_defer(c->net, &c->node);
}

bool conn_spend(struct conn *c, size_t units)
{
  c->spent += (unsigned)MIN(units, (size_t)CONN_SHARE);
  if (c->spent <= CONN_SHARE)
    return false;
  c->spent = CONN_SHARE; /* whatever else is counted before the deferred run */
  c->busy = true;
  conn_defer(c);
  return true;
}

/* ---- writing ---- */

static void out_fail(struct conn *c, int code)
{
  c->out_error = code;
  out_drop(c);
  conn_defer(c);
}

static void shut_when_empty(struct conn *c)
{
  if (!c->shut_asked || c->shut_done || c->out)
    return;
  c->shut_done = true;
  c->io->shut(c);
}

static ssize_t copy_file(struct conn *c, const struct conn_seg *s, size_t n)
{
  if (!c->net->copy)
    c->net->copy = xmalloc(NET_IN_SIZE);
  ssize_t r = pread(s->fd, c->net->copy, MIN(n, NET_IN_SIZE), (off_t)s->offset);
  if (r <= 0)
    return r < 0 ? -errno : 0;
  struct iovec v = {c->net->copy, (size_t)r};
  return c->io->write(c, &v, 1, false);
}

static ssize_t flush_file(struct conn *c, bool *full)
{
  struct conn_seg *s = c->out;
  size_t n = (size_t)MIN(s->left, (uint64_t)FILE_BYTES);
  ssize_t r = -ENOSYS;
  if (s->piped)
    r = splice_out(s->fd, c->fd, n);
  else if (c->io->file && !s->copied)
    r = c->io->file(c, s->fd, s->offset, n);
  if (!s->piped && (r == -ENOSYS || r == -EINVAL || r == -EOPNOTSUPP)) {
    s->copied = true;
    r = copy_file(c, s, n);
  }
  if (r == 0)
    return -EIO; /* the file is shorter than was promised */
  if (r < 0)
    return r;
  *full = false;
  s->offset += (uint64_t)r;
  s->left -= (uint64_t)r;
  c->queued -= (uint64_t)r;
  if (s->piped)
    conn_release(c, (uint64_t)r);
  if (s->left == 0)
    out_drop_first(c);
  return r;
}

static ssize_t flush_memory(struct conn *c, bool *full)
{
  struct iovec v[GATHER];
  int n = 0;
  size_t total = 0;
  const struct conn_seg *s = c->out;
  for (; s && s->fd < 0 && n < GATHER; s = s->next) {
    v[n++] = (struct iovec){(char *)s->data + s->from, s->to - s->from};
    total += s->to - s->from;
  }
  ssize_t r = c->io->write(c, v, n, s != NULL);
  if (r < 0)
    return r;
  out_taken(c, (size_t)r);
  *full = (size_t)r < total;
  return r;
}

/* The socket is full; from now on its readiness is waited for. */
static void conn_block(struct conn *c)
{
  set_blocked(c, true);
  c->stall_at = uv_now(c->net->loop);
  if (c->stall_ms)
    net_wake(c->net, c->stall_at + c->stall_ms);
  if (!c->stepping)
    conn_rearm(c);
}

/* True when something went out. */
static bool conn_flush(struct conn *c)
{
  size_t sent = 0;
  bool full = false;
  while (c->out && !full && sent < FLUSH_BYTES) {
    ssize_t r = c->out->fd >= 0 ? flush_file(c, &full) : flush_memory(c, &full);
    if (r == -EINTR)
      continue;
    if (r == -EAGAIN)
      break;
    if (r < 0) {
      out_fail(c, (int)r);
      return sent > 0;
    }
    sent += (size_t)r;
  }
  set_blocked(c, c->out != NULL);
  if (sent || !c->stall_at)
    c->stall_at = uv_now(c->net->loop);
  if (c->blocked && c->stall_ms)
    net_wake(c->net, c->stall_at + c->stall_ms);
  shut_when_empty(c);
  return sent > 0;
}

static size_t total_of(const struct iovec *v, int n)
{
  size_t total = 0;
  for (int i = 0; i < n; i++)
    total += v[i].iov_len;
  return total;
}

/* Corked bytes and v in one call, when the corked ones are a single block. Returns how much of v went out. */
static ssize_t write_through(struct conn *c, const struct iovec *v, int n)
{
  struct iovec all[GATHER];
  int k = 0;
  size_t held = c->queued_mem;
  if (c->out)
    all[k++] = (struct iovec){c->out->data + c->out->from, c->out->to - c->out->from};
  for (int i = 0; i < n; i++)
    all[k++] = v[i];
  ssize_t r = c->io->write(c, all, k, false);
  if (r == -EAGAIN || r == -EINTR)
    return 0;
  if (r < 0)
    return r;
  out_taken(c, MIN((size_t)r, held));
  return (size_t)r > held ? r - (ssize_t)held : 0;
}

static int write_check(struct conn *c)
{
  if (c->closed || c->out_error || c->shut_asked)
    return -EPIPE;
  if (c->queued_mem <= OUT_MAX)
    return 0;
  out_fail(c, -ENOBUFS);
  return -ENOBUFS;
}

/* True when output may wait for the end of gathering: there is little of it, and all in memory. */
static bool gathers(const struct conn *c, size_t more)
{
  return c->net->gathering && !c->blocked && c->queued == c->queued_mem && c->queued_mem + more <= SEG_SIZE;
}

int conn_write(struct conn *c, const struct iovec *v, int n, bool cork)
{
  int rc = write_check(c);
  if (rc < 0)
    return rc;
  ssize_t sent = 0;
  bool single = !c->out || (c->out == c->out_last && c->out->fd < 0), later = gathers(c, total_of(v, n));
  if (!c->blocked && !cork && !later && single && n < GATHER) {
    sent = write_through(c, v, n);
    if (sent < 0) {
      out_fail(c, (int)sent);
      return -EPIPE;
    }
  }
  if ((size_t)sent < total_of(v, n) && out_keep(c, v, n, (size_t)sent) < 0) {
    out_fail(c, -ENOMEM);
    return -ENOBUFS;
  }
  if (later)
    net_gather_add(c->net, &c->node);
  else if (c->out && !c->blocked)
    cork ? conn_defer(c) : single ? conn_block(c) : conn_push_now(c);
  return 0;
}

static int write_from(struct conn *c, int fd, bool piped, uint64_t offset, uint64_t n)
{
  cleanup_fd int file = fd;
  int rc = write_check(c);
  if (rc < 0 || n == 0)
    return rc;
  struct conn_seg *s = seg_new(c->net, 0);
  if (!s)
    return -ENOBUFS;
  s->fd = steal_fd(&file);
  s->piped = piped;
  s->copied = false;
  s->offset = offset;
  s->left = n;
  out_append(c, s);
  c->queued += n;
  if (piped) {
    c->npiped++;
    conn_hold(c, n + PIPE_COST);
  }
  conn_push_now(c);
  return c->out_error ? -EPIPE : 0;
}

int conn_write_file(struct conn *c, int fd, uint64_t offset, uint64_t n)
{
  return write_from(c, fd, false, offset, n);
}

int conn_write_pipe(struct conn *c, int fd, size_t n)
{
  return write_from(c, fd, true, 0, n);
}

void conn_push(struct conn *c)
{
  if (!c->closed && c->out && gathers(c, 0))
    net_gather_add(c->net, &c->node);
  else
    conn_push_now(c);
}

/* What is only gathered leaves with no event of its own. */
void conn_full(struct conn *c)
{
  if (c->node.gathered)
    conn_defer(c);
}

void conn_push_now(struct conn *c)
{
  if (c->closed || c->blocked || !c->out)
    return;
  c->stall_at = 0;
  conn_flush(c);
  if (!c->stepping)
    conn_rearm(c);
}

void conn_shut(struct conn *c)
{
  if (c->closed || c->shut_asked)
    return;
  c->shut_asked = true;
  conn_push(c);
  shut_when_empty(c);
}

/* ---- reading ---- */

/* What the step said leaves when it is over; an answer that is out makes room for the next request, so it is asked
 * again. */
static void conn_step(struct conn *c, struct str *in)
{
  bool said;
  do {
    net_gather(c->net);
    c->stepping = true;
    c->ops->step(c, in);
    c->stepping = false;
    said = c->node.gathered;
    net_let_go(c->net);
  } while (said && !c->node.gathered && !c->closed && !c->out && !c->busy);
  if (c->node.gathered) /* inside a larger pair: it leaves later, and is asked then */
    conn_defer(c);
}

static void conn_feed_all(struct conn *c, struct str fresh)
{
  struct str in = fresh;
  bool kept = conn_waiting(c) > 0;
  if (kept) {
    if (fresh.n && c->in_off) {
      buf_drop(&c->in, c->in_off);
      c->in_off = 0;
    }
    if (buf_adds(&c->in, fresh) < 0) {
      c->ops->broken(c, -ENOBUFS, false);
      return;
    }
    in = str_skip(buf_str(&c->in), c->in_off);
  }
  conn_step(c, &in);
  if (c->closed)
    return;
  if (kept) {
    c->in_off = c->in.n - in.n;
    if (in.n == 0) {
      buf_free(&c->in);
      c->in_off = 0;
    }
  } else if (in.n && buf_adds(&c->in, in) < 0) {
    c->ops->broken(c, -ENOBUFS, false);
  }
}

/* Offers what waits, and `fresh` behind it. */
static void conn_feed(struct conn *c, struct str fresh)
{
  conn_feed_all(c, fresh);
  if (c->in.n == c->in_held || c->closed)
    return;
  conn_release(c, c->in_held);
  c->in_held = c->in.n;
  conn_hold(c, c->in_held);
}

/* At most `most` bytes of what has come, into the other's queue. Their number, 0 at end of file, negative errno;
 * -ENOSYS: not these sockets. */
static ssize_t conn_splice(struct conn *from, struct conn *to, uint64_t most)
{
  int *pipe = from->net->pipe;
  if (splice_pipe_open(pipe) < 0)
    return -ENOSYS;
  ssize_t came = splice_into(from->fd, pipe[1], most);
  if (came <= 0)
    return came == -ENOBUFS ? -EAGAIN : came; /* the pipe was empty: the bytes came this very moment */
  conn_push_now(to);                          /* a head may wait for the first bytes of its body */
  size_t left = (size_t)came;
  while (left && !to->out) {
    ssize_t went = splice_out(pipe[0], to->fd, left);
    if (went <= 0)
      break;
    left -= (size_t)went;
  }
  if (left) {
    int rest = pipe[0];
    close(pipe[1]);
    pipe[0] = pipe[1] = 0;
    conn_write_pipe(to, rest, left);
  }
  return came;
}

/* The bytes that came, unseen to where they go; -ENOSYS: they are to be read. */
static ssize_t conn_pass(struct conn *c)
{
  struct conn_way to = {0};
  if (!c->ops->pass || c->io != &conn_io_plain || !c->want || conn_waiting(c) > 0)
    return -ENOSYS;
  uint64_t most = c->ops->pass(c, &to);
  if (to.wait)
    return -EAGAIN;
  if (most < PASS_MIN || to.conn->io != &conn_io_plain || to.conn->npiped >= PIPES_MAX || write_check(to.conn) < 0)
    return -ENOSYS;
  return conn_splice(c, to.conn, most);
}

static void conn_passed(struct conn *c, size_t n)
{
  c->stepping = true;
  c->ops->passed(c, n);
  c->stepping = false;
  if (!c->closed)
    conn_feed(c, STR_NONE);
}

static void conn_read(struct conn *c)
{
  for (int round = 0; round < READ_ROUNDS; round++) {
    size_t room = c->want ? NET_IN_SIZE : LOOK_AHEAD;
    ssize_t r = conn_pass(c);
    bool passed = r != -ENOSYS;
    if (!passed)
      r = c->io->read(c, c->net->in, room);
    if (r == -EAGAIN)
      return;
    if (r == -EINTR)
      continue;
    if (r < 0) {
      c->failed = true;
      c->eof = true;
      c->ops->broken(c, (int)r, false);
      return;
    }
    if (r == 0) {
      c->eof = true;
      c->ops->eof(c);
      return;
    }
    if (passed)
      conn_passed(c, (size_t)r);
    else
      conn_feed(c, str_make(c->net->in, (size_t)r));
    bool drained = c->io->pending ? !c->closed && !c->io->pending(c) : !passed && (size_t)r < room;
    if (c->closed || !conn_reads(c) || (drained && !c->failed))
      return;
  }
  if (c->failed)
    conn_defer(c);
}

static bool was_reset(const struct conn *c)
{
  int error = 0;
  socklen_t n = sizeof(error);
  return !getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &error, &n) && error == ECONNRESET;
}

static void conn_readable(struct conn *c, int events)
{
  if (conn_reads(c)) {
    conn_read(c);
  } else if (!c->eof && !c->gone && (((events & UV_DISCONNECT) && !c->busy) || c->failed)) {
    c->gone = true;
    c->cut = was_reset(c);
    c->ops->left(c);
  }
}

static void tell_error(struct conn *c)
{
  if (c->closed || !c->out_error || c->error_told)
    return;
  c->error_told = true;
  c->ops->broken(c, c->out_error, true);
}

static void conn_writable(struct conn *c)
{
  if (!conn_flush(c))
    return;
  c->ops->moved(c);
  if (!c->closed)
    conn_feed(c, STR_NONE);
}

static void on_poll(uv_poll_t *h, int status, int events)
{
  struct conn *c = h->data;
  c->spent = 0;
  if (status < 0) { /* an error is pending on the socket and libuv has stopped watching it */
    c->failed = true;
    c->events = 0;
    events = UV_READABLE | UV_WRITABLE;
  }
  if ((events & UV_WRITABLE) && c->read_waits) {
    c->read_waits = false;
    events |= UV_READABLE;
  }
  if ((events & UV_WRITABLE) && c->out)
    conn_writable(c);
  if (!c->closed && (events & (UV_READABLE | UV_DISCONNECT)))
    conn_readable(c, events);
  conn_rearm(c);
}

static struct conn *conn_of(const struct net_member *m)
{
  return container_of(m, struct conn, node);
}

static void conn_run_deferred(struct net_member *m)
{
  struct conn *c = conn_of(m);
  if (c->closed)
    return;
  c->spent = 0;
  c->busy = false;
  conn_push(c);
  c->ops->moved(c);
  if (!c->closed)
    tell_error(c);
  if (!c->closed)
    conn_feed(c, STR_NONE);
  if (!c->closed && ((c->failed && !c->eof && c->want) || conn_holds(c)))
    conn_read(c);
  conn_rearm(c);
}

/* ---- life ---- */

static uint64_t member_due(const struct net_member *m)
{
  const struct conn *c = conn_of(m);
  if (c->closed)
    return 0;
  uint64_t stall = c->blocked && c->stall_ms ? c->stall_at + c->stall_ms : 0;
  if (!c->deadline || !stall)
    return c->deadline ? c->deadline : stall;
  return MIN(c->deadline, stall);
}

static void member_postpone(struct net_member *m, uint64_t ms)
{
  struct conn *c = conn_of(m);
  if (c->deadline)
    c->deadline += ms;
  c->stall_at += ms;
}

static void member_expire(struct net_member *m, uint64_t now)
{
  struct conn *c = conn_of(m);
  if (c->deadline && c->deadline <= now) {
    c->deadline = 0;
    c->ops->due(c);
  } else {
    c->ops->broken(c, -ETIMEDOUT, true);
  }
  conn_rearm(c);
}

static void member_push(struct net_member *m)
{
  conn_push_now(conn_of(m));
}

static void member_cut(struct net_member *m)
{
  struct conn *c = conn_of(m);
  c->ops->broken(c, -ENOBUFS, true);
  conn_reset(c);
}

static const struct net_member_ops member_ops = {conn_run_deferred, member_push,     member_due,
                                                 member_expire,     member_postpone, member_cut};

int conn_start(struct conn *c, struct net *net, int fd, const struct conn_ops *ops, size_t in_max)
{
  int rc = uv_poll_init(net->loop, &c->poll, fd);
  if (rc < 0) {
    close(fd);
    return rc;
  }
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int)); /* no matter for unix sockets */
  c->poll.data = c;
  c->net = net;
  c->fd = fd;
  c->ops = ops;
  c->io = &conn_io_plain;
  c->want = true;
  buf_init(&c->in, in_max + 2 * NET_IN_SIZE);
  c->node.ops = &member_ops;
  net_join(net, &c->node);
  conn_rearm(c);
  return 0;
}

void conn_deadline(struct conn *c, unsigned ms)
{
  c->deadline = ms ? uv_now(c->net->loop) + ms : 0;
  if (ms)
    net_wake(c->net, c->deadline);
}

static void on_closed(uv_handle_t *h)
{
  struct conn *c = h->data;
  struct net *n = c->net;
  net_defer_cancel(n, &c->node);
  buf_free(&c->in);
  c->ops->freed(c);
  net_unref(n);
}

static void conn_end(struct conn *c, bool clean)
{
  if (c->node.gathered) /* said before the end, so heard before it */
    conn_push_now(c);
  c->closed = true;
  if (c->io->close)
    c->io->close(c, clean && !c->out && !c->out_error && !c->failed);
  out_drop(c);
  net_leave(c->net, &c->node);
  uv_close((uv_handle_t *)&c->poll, on_closed);
  close(c->fd);
  c->fd = -1;
}

/* Whether a close, also one by the end of the process, is a reset. */
static void close_resets(struct conn *c, bool on)
{
  setsockopt(c->fd, SOL_SOCKET, SO_LINGER, &(struct linger){.l_onoff = on}, sizeof(struct linger));
}

void conn_close(struct conn *c)
{
  if (c->closed)
    return;
  if (c->exit_resets)
    close_resets(c, false);
  conn_end(c, true);
}

void conn_reset(struct conn *c)
{
  if (c->closed)
    return;
  close_resets(c, true);
  conn_end(c, false);
}

void conn_reset_by_exit(struct conn *c)
{
  if (c->closed)
    return;
  c->exit_resets = true;
  close_resets(c, true);
}
