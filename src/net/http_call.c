/* SPDX-License-Identifier: Apache-2.0 */
/* http_call.c - the client side: requests over one connected socket, one after another.
 *
 * The mirror of http1.c. Answers are read by the same strict parser, so a service inside a box can't make us take one
 * answer for two, nor switch to a protocol that the request did not offer. A call that failed while writing goes on
 * reading: a server may answer and close before it has read a whole body, and that answer is worth more than the broken
 * pipe. Between requests the socket is watched; a byte or an end that nobody asked for closes it, and
 * http_call_reusable() says no. */
#include "net/exchange.h"
#include "net/head_write.h"
#include "net/http.h"

#include <netinet/tcp.h>
#include <stdio.h>

#define ARENA_MAX    ((size_t)1 << 20)
#define INTERIMS_MAX 16 /* answers of 1xx before the real one */
/* What the kernel keeps of an answer that nobody takes; the way is never long: it ends in this machine */
#define RECEIVE_MAX  (512 << 10)
#define HEAD_COST    8192
#define CHUNK_COST   512

static struct http_call *call_of(struct conn *conn)
{
  return container_of(conn, struct http_call, conn);
}

struct conn *call_conn(struct http_call *c)
{
  return &c->conn;
}

static struct iovec iov_of(struct str s)
{
  return (struct iovec){(char *)s.p, s.n};
}

static bool in_answer(const struct http_call *c)
{
  return c->started && !c->ended && !c->failed;
}

static void call_fail(struct http_call *c, int code, const char *why)
{
  if (c->failed || c->freed)
    return;
  c->failed = true;
  conn_close(&c->conn);
  if (c->ops && c->ops->fail)
    c->ops->fail(c, code, why);
}

/* The connection ended while it carried nothing. */
static void call_lose(struct http_call *c)
{
  if (c->conn.closed)
    return;
  conn_close(&c->conn);
  if (c->lost)
    c->lost(c, c->lost_arg);
}

/* ---- the answer ---- */

static void take_head(struct http_call *c)
{
  c->tunnel = c->head.status == 101;
  if (c->tunnel)
    c->frame = (struct h1_frame){.kind = H1_UNTIL_EOF};
  h1_body_start(&c->body, &c->frame);
  buf_free(&c->kept);
  buf_init(&c->kept, H1_TRAILERS_MAX);
  c->body.kept = c->limits.trailers ? &c->kept : NULL;
  c->head_seen = true;
  conn_deadline(&c->conn, 0);
  if (c->ops && c->ops->head)
    c->ops->head(c, &c->head);
}

/* Says what is wrong with a head that came in its place, or NULL. */
static const char *out_of_place(struct http_call *c)
{
  if (c->head.status == 101)
    return c->sent && c->upgrade[0] && http_upgrade_taken(str_of(c->upgrade), &c->head)
               ? NULL
               : "it switched to a protocol that was not asked for";
  if (c->head.status < 200 && ++c->interims > INTERIMS_MAX)
    return "too many interim answers";
  return NULL;
}

static bool head_advance(struct http_call *c, struct str *in)
{
  const char *why = "";
  ptrdiff_t n = in->n ? h1_scan(&c->scan, H1_RESPONSE, *in, &c->limits, &why) : 0;
  if (n == 0)
    return false;
  int rc = n < 0 ? -1 : 0;
  if (rc == 0) {
    arena_free(&c->arena);
    c->arena = ARENA_INIT(ARENA_MAX);
    size_t lines = c->scan.lines;
    struct str kept = arena_str(&c->arena, str_sub(*in, 0, (size_t)n));
    struct http_header *hv = arena_alloc(&c->arena, lines * sizeof(*hv));
    why = "out of memory";
    rc = kept.p && hv ? h1_response(kept, c->head_request, &c->head, hv, lines, &c->frame, &why) : -1;
    c->scan = (struct h1scan){0};
    *in = str_skip(*in, (size_t)n);
    conn_spend(&c->conn, HEAD_COST + (size_t)n);
  }
  const char *wrong = rc < 0 ? why : out_of_place(c);
  if (wrong)
    call_fail(c, -EPROTO, wrong);
  else if (c->head.status >= 200 || c->head.status == 101)
    take_head(c);
  return true;
}

static void call_end(struct http_call *c, size_t waiting)
{
  c->ended = true;
  c->stray = waiting > 0;
  c->ntrailers = h1_trailers(&c->arena, buf_str(&c->kept), &c->trailers);
  if (c->ops && c->ops->end)
    c->ops->end(c);
}

static bool body_advance(struct http_call *c, struct str *in)
{
  struct str piece;
  int rc = h1_body_next(&c->body, in, &piece);
  conn_spend(&c->conn, CHUNK_COST);
  if (rc < 0)
    call_fail(c, -EPROTO, "broken chunk in the answer");
  else if (rc == H1_END)
    call_end(c, in->n);
  else if (rc == H1_DATA && c->ops && c->ops->body)
    c->ops->body(c, piece);
  return rc != H1_MORE;
}

static bool call_advance(struct http_call *c, struct str *in)
{
  if (c->conn.closed)
    return false;
  if (c->broke) {
    call_fail(c, c->broke, c->why);
    return false;
  }
  if (in_answer(c) && c->paused)
    return false;
  if (in_answer(c))
    return c->head_seen ? body_advance(c, in) : head_advance(c, in);
  if (in->n)
    call_lose(c);
  return false;
}

static void call_step(struct conn *conn, struct str *in)
{
  struct http_call *c = call_of(conn);
  while (!conn->busy && call_advance(c, in))
    continue;
  if (conn->closed)
    return;
  conn->want = !in_answer(c) || !c->paused;
  if (in_answer(c) && !c->head_seen && in->n && !conn->deadline)
    conn_deadline(conn, c->limits.head_ms);
}

/* ---- what happens to the connection ---- */

/* Nothing more will come. True when the answer is nevertheless whole. */
static bool call_whole(struct http_call *c)
{
  struct str none = STR_NONE, piece;
  if (!c->head_seen)
    return false;
  if (c->body.kind == H1_UNTIL_EOF && !c->conn.failed)
    c->body.done = true;
  return h1_body_next(&c->body, &none, &piece) == H1_END;
}

static void call_cut(struct http_call *c, int code)
{
  if (!in_answer(c))
    call_lose(c);
  else if (call_whole(c))
    conn_defer(&c->conn);
  else if (!c->head_seen && c->conn.in.n == c->conn.in_off)
    call_fail(c, code, c->conn.refusal ? c->conn.refusal : "the connection ended before an answer came");
  else
    call_fail(c, code == -ECONNRESET ? -EPROTO : code, "the connection ended inside the response");
}

static void call_eof(struct conn *conn)
{
  int code = conn->out_error && conn->out_error != -EPIPE ? conn->out_error : -ECONNRESET;
  call_cut(call_of(conn), code);
}

static void call_left(struct conn *conn)
{
  (void)conn; /* what waits will be read at resume, and the end after it */
}

static void call_moved(struct conn *conn)
{
  struct http_call *c = call_of(conn);
  if (!c->drain_due || c->failed || conn->queued > c->limits.high_water / 4)
    return;
  c->drain_due = false;
  if (c->ops && c->ops->drain)
    c->ops->drain(c);
}

static void call_broken(struct conn *conn, int code, bool writing)
{
  struct http_call *c = call_of(conn);
  bool final = code == -ETIMEDOUT || code == -ENOBUFS || code == -ENOMEM;
  if (!writing)
    call_cut(c, conn->out_error && conn->out_error != -EPIPE ? conn->out_error : code);
  else if (final && in_answer(c))
    call_fail(c, code, code == -ETIMEDOUT ? "the peer takes no more bytes" : "too much output is queued");
}

static void call_due(struct conn *conn)
{
  call_fail(call_of(conn), -ETIMEDOUT, "the answer's head did not arrive in time");
}

static void call_release(struct http_call *c)
{
  arena_free(&c->arena);
  buf_free(&c->kept);
  free(c);
}

static void call_freed(struct conn *conn)
{
  struct http_call *c = call_of(conn);
  c->released = true;
  if (c->freed)
    call_release(c);
}

static uint64_t call_pass(struct conn *conn, struct conn_way *to)
{
  struct http_call *c = call_of(conn);
  if (!in_answer(c) || !c->head_seen || c->paused || c->body.kind != H1_LENGTH || !c->ops || !c->ops->pass)
    return 0;
  struct http_x *x = c->ops->pass(c);
  uint64_t room = x ? answer_room(x) : 0;
  if (room)
    to->conn = &x->peer->conn;
  return MIN(room, c->body.left);
}

static void call_passed(struct conn *conn, size_t n)
{
  struct http_call *c = call_of(conn);
  c->body.left -= n;
  answer_took(c->ops->pass(c), n);
  c->ops->passed(c, n);
}

const struct conn_ops call_conn_ops = {call_step, call_eof,   call_left, call_moved, call_broken,
                                       call_due,  call_freed, call_pass, call_passed};

/* ---- the request ---- */

static void note_queue(struct http_call *c)
{
  if (!http_call_congested(c))
    return;
  c->drain_due = true;
  conn_full(&c->conn);
}

struct http_call *http_call_new(uv_loop_t *loop, int fd, const struct http_limits *limits)
{
  struct http_call *c = xcalloc(1, sizeof(*c));
  struct net *net = net_of(loop);
  c->limits = limits ? *limits : http_limits_default;
  fd_cloexec(fd);
  if (!c->limits.far)
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &(int){RECEIVE_MAX / 2}, sizeof(int)); /* the kernel doubles it */
  setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &(int){UNSENT_MAX}, sizeof(int));
  int rc = conn_start(&c->conn, net, fd, &call_conn_ops, c->limits.head_max);
  net_unref(net);
  if (rc < 0) {
    free(c);
    return NULL;
  }
  c->conn.stall_ms = c->limits.linger_ms;
  return c;
}

void http_call_handle(struct http_call *c, const struct http_call_ops *ops, void *data)
{
  c->ops = ops;
  c->data = data;
}

void *http_call_data(const struct http_call *c)
{
  return c->data;
}

void http_call_lost(struct http_call *c, void (*lost)(struct http_call *c, void *arg), void *arg)
{
  c->lost = lost;
  c->lost_arg = arg;
}

static void call_renew(struct http_call *c)
{
  if (c->paused)
    conn_release(&c->conn, RECEIVE_MAX);
  c->head = (struct http_head){0};
  c->frame = (struct h1_frame){0};
  c->scan = (struct h1scan){0};
  c->interims = 0;
  c->ntrailers = 0;
  c->started = true;
  c->sent = c->head_seen = c->ended = c->tunnel = c->paused = c->drain_due = c->stray = false;
}

int http_call_start(struct http_call *c, struct str method, struct str target, const struct http_header *headers,
                    size_t n, int64_t length)
{
  if (c->via)
    return c->via->start(c, method, target, headers, n, length);
  struct buf *b = &c->conn.net->head;
  if (c->conn.closed || c->failed || c->conn.eof || c->conn.out_error)
    return -EPIPE;
  if (c->started && !http_call_reusable(c))
    return -EBUSY;
  bool bodied = length != 0 || str_is(method, "POST") || str_is(method, "PUT") || str_is(method, "PATCH");
  struct headout o = {.headers = headers, .n = n, .length = length, .framed = bodied};
  int rc = head_write_request(b, method, target, &o);
  if (rc < 0)
    return rc;
  call_renew(c);
  c->head_request = str_is(method, "HEAD");
  c->upgrade[0] = 0;
  struct http_head asked = {.headers = (struct http_header *)headers, .nheaders = n, .minor = 1};
  str_copyz(http_upgrade(&asked, length != 0), c->upgrade, sizeof(c->upgrade));
  c->chunked = length < 0;
  c->out_left = length < 0 ? HTTP_CHUNKED : length;
  c->sent = length == 0;
  struct iovec v = iov_of(buf_str(b));
  conn_write(&c->conn, &v, 1, !c->sent); /* errors are reported by `fail` */
  return 0;
}

int http_call_send(struct http_call *c, struct str data)
{
  if (c->via)
    return c->via->send(c, data);
  if (!c->started || c->failed || c->conn.closed || (c->sent && !c->tunnel))
    return -EPIPE;
  bool counted = !c->tunnel && c->out_left >= 0;
  if (counted && data.n > (uint64_t)c->out_left)
    return -EMSGSIZE;
  if (data.n == 0)
    return 0;
  char size[24];
  bool chunk = c->chunked && !c->tunnel;
  int k = chunk ? snprintf(size, sizeof(size), "%zx\r\n", data.n) : 0;
  struct iovec v[] = {{size, (size_t)k}, iov_of(data), iov_of(STR("\r\n"))};
  int rc = chunk ? conn_write(&c->conn, v, 3, false) : conn_write(&c->conn, &v[1], 1, false);
  if (counted) {
    c->out_left -= (int64_t)data.n;
    c->sent = c->out_left == 0;
  }
  note_queue(c);
  return rc;
}

uint64_t call_room(const struct http_call *c)
{
  bool takes = c->started && !c->sent && !c->failed && !c->conn.closed && !c->tunnel && !c->chunked && c->out_left > 0;
  return takes ? (uint64_t)c->out_left : 0;
}

void call_took(struct http_call *c, size_t n)
{
  c->out_left -= (int64_t)n;
  c->sent = c->out_left == 0;
  note_queue(c);
}

static void end_short(struct http_call *c)
{
  c->broke = -EPROTO;
  c->why = "the request ended before its promised length";
  conn_defer(&c->conn);
}

size_t http_call_trailers(const struct http_call *c, const struct http_header **out)
{
  *out = c->trailers;
  return c->ntrailers;
}

void http_call_end(struct http_call *c)
{
  http_call_end_with(c, NULL, 0);
}

void http_call_end_with(struct http_call *c, const struct http_header *trailers, size_t n)
{
  if (c->via) {
    c->via->end(c, trailers, n);
    return;
  }
  if (!c->started || c->failed || c->conn.closed)
    return;
  if (c->tunnel) {
    conn_shut(&c->conn);
    return;
  }
  if (c->sent)
    return;
  if (!c->chunked) {
    end_short(c);
    return;
  }
  struct iovec v = iov_of(head_write_end(&c->conn.net->head, trailers, n));
  conn_write(&c->conn, &v, 1, false);
  c->sent = true;
}

bool http_call_shared(const struct http_call *c)
{
  return c->via != NULL;
}

bool http_call_congested(const struct http_call *c)
{
  if (c->via)
    return c->via->congested(c);
  return !c->conn.closed && c->conn.queued >= c->limits.high_water;
}

static void set_paused(struct http_call *c, bool paused)
{
  if (c->via) {
    c->via->flow(c, !paused);
    return;
  }
  if (c->paused == paused || c->conn.closed)
    return;
  c->paused = paused;
  (paused ? conn_hold : conn_release)(&c->conn, RECEIVE_MAX);
  if (!c->conn.stepping)
    conn_defer(&c->conn);
}

void http_call_deadline(struct http_call *c, unsigned ms)
{
  if (c->via)
    c->via->deadline(c, ms);
  else if (in_answer(c) && !c->head_seen && !c->conn.closed)
    conn_deadline(&c->conn, ms);
}

void http_call_pause(struct http_call *c)
{
  set_paused(c, true);
}

void http_call_resume(struct http_call *c)
{
  set_paused(c, false);
}

bool http_call_reusable(const struct http_call *c)
{
  return !c->via && c->started && c->ended && c->sent && c->frame.keep && !c->tunnel && !c->stray && !c->failed &&
         !c->conn.closed && !c->conn.eof && !c->conn.out_error && !c->conn.out;
}

bool http_call_alive(const struct http_call *c)
{
  char byte;
  return !c->via && !c->conn.closed && recv(c->conn.fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN;
}

static void call_leave(struct http_call *c, bool reset)
{
  if (!c || c->freed)
    return;
  if (c->via) {
    c->via->leave(c);
    return;
  }
  c->freed = true;
  c->ops = NULL;
  c->lost = NULL;
  if (c->released)
    call_release(c);
  else if (reset)
    conn_reset(&c->conn);
  else
    conn_close(&c->conn);
}

/* Closing with bytes unread sends a reset at once; the end of our direction before it makes this an orderly leave for
 * the far side, whatever comes behind. */
void http_call_free(struct http_call *c)
{
  if (c && !c->via && !c->freed && !c->released && !c->conn.closed) {
    conn_push_now(&c->conn);
    shutdown(c->conn.fd, SHUT_WR);
  }
  call_leave(c, false);
}

void http_call_cut_by_exit(struct http_call *c)
{
  conn_reset_by_exit(&c->conn);
}

void http_call_cut(struct http_call *c)
{
  call_leave(c, true);
}
