/* SPDX-License-Identifier: Apache-2.0 */
/* http1.c - the server side of an HTTP/1.1 connection: heads in, bodies in, one exchange after another.
 *
 * A connection (struct peer) carries at most one exchange at a time; bytes of a following request wait until the
 * answer before it is complete and out. All progress is made in peer_step, which the connection calls with whatever
 * bytes there are and which goes on until nothing changes. Handlers are called from there and from nowhere else but the
 * closing of the connection, so no handler is ever entered from inside its own call.
 *
 * An exchange ends in one of two places: exchange_finish, when the answer is out (HTTP_DONE, the connection may go
 * on), or peer_freed, after the connection was closed under it. Each calls `gone`, and p->x can be in only one of them.
 *
 * A peer that closes its direction while its request is being answered is taken to have left: clients abort that
 * way, and waiting for more would keep work alive that nobody reads. Once the answer is complete it is still
 * delivered to a peer that only closed its sending side. */
#include "net/exchange.h"

#include "base/base.h"
#include <fcntl.h>

#define DISCARD_BYTES ((uint64_t)256 << 10) /* unread body that is read away to keep a connection */
#define DISCARD_MS    10000
#define LINGER_BYTES  ((uint64_t)16 << 20) /* the same after an answer that closes, so that it is not lost to a RST */
#define LINGER_MS     2000
#define ARENA_MAX     ((size_t)64 << 20)
#define STORE_MAX     64
/* Costs for conn_spend: a request costs its handler more than its bytes do, a chunk a little. */
#define REQUEST_COST  16384
#define CHUNK_COST    512

/* ---- exchanges ---- */

struct http_x *exchange_new(struct peer *p)
{
  struct http_server *s = p->server;
  struct http_x *x = s->store;
  if (x) {
    s->store = x->next;
    s->nstore--;
  } else {
    x = xmalloc(sizeof(*x));
  }
  *x = (struct http_x){.peer = p, .arena = ARENA_INIT(ARENA_MAX), .body_max = s->limits.body_max};
  return x;
}

void exchange_free(struct http_server *s, struct http_x *x)
{
  arena_free(&x->arena);
  if (s->nstore == STORE_MAX || s->freed) {
    free(x);
    return;
  }
  x->next = s->store;
  s->store = x;
  s->nstore++;
}

void exchange_gone(struct http_x *x, enum http_end how)
{
  struct peer *p = x->peer;
  if (p->x == x)
    p->x = NULL;
  x->begun = x->ended = true;
  if (x->ops && x->ops->gone)
    x->ops->gone(x, how);
  exchange_free(p->server, x);
}

static void linger(struct peer *p)
{
  p->phase = PEER_LINGER;
  p->discarded = 0;
  p->conn.want = true;
  conn_shut(&p->conn);
  conn_deadline(&p->conn, LINGER_MS);
}

static void peer_refuse(struct peer *p, int status, const char *why)
{
  server_idle_remove(p->server, p);
  if (answer_error(p, status, why) < 0)
    peer_end(p, HTTP_ABORTED, true);
  else
    linger(p);
}

/* We answer in the handler's place; where its own answer has begun, only cutting is left. */
static void exchange_refuse(struct http_x *x, int status, const char *why, enum http_end how)
{
  struct peer *p = x->peer;
  if (x->begun) {
    peer_end(p, how, true);
    return;
  }
  exchange_gone(x, how);
  if (!p->conn.closed)
    peer_refuse(p, status, why);
}

static void exchange_finish(struct http_x *x)
{
  struct peer *p = x->peer;
  bool tunnel = x->tunnel;
  exchange_gone(x, HTTP_DONE);
  p->restart = true;
  if (p->conn.closed)
    return;
  if (tunnel || (p->last && p->conn.eof))
    peer_end(p, HTTP_DONE, false);
  else if (p->last)
    linger(p);
}

static bool finished(const struct http_x *x, size_t waiting)
{
  const struct peer *p = x->peer;
  if (!x->ended || p->conn.out)
    return false;
  return !x->tunnel || (p->body.done && (x->body_told || waiting == 0));
}

static bool body_advance(struct http_x *x, struct str *in)
{
  struct peer *p = x->peer;
  struct str piece;
  int rc = h1_body_next(&p->body, in, &piece);
  if (rc < 0) {
    exchange_refuse(x, -rc, "broken chunk in the request body", HTTP_ABORTED);
    return true;
  }
  if (rc != H1_DATA)
    return rc == H1_END;
  p->restart = true;
  conn_spend(&p->conn, CHUNK_COST);
  x->body_seen += piece.n;
  if (x->body_seen > x->body_max && !x->tunnel)
    exchange_refuse(x, 413, "request body too large", HTTP_ABORTED);
  else if (x->ops && x->ops->body)
    x->ops->body(x, piece);
  return true;
}

static bool exchange_advance(struct http_x *x, struct str *in)
{
  struct peer *p = x->peer;
  if (finished(x, in->n)) {
    exchange_finish(x);
    return true;
  }
  if (!x->reading || x->body_told || (x->ended && !x->tunnel))
    return false;
  if (x->frame.kind == H1_LENGTH && x->frame.length > x->body_max && !x->tunnel) {
    exchange_refuse(x, 413, "request body too large", HTTP_ABORTED);
    return true;
  }
  if (!p->body.done)
    return body_advance(x, in);
  x->body_told = true;
  if (!x->tunnel)
    x->ntrailers = h1_trailers(&x->arena, buf_str(&p->kept), &x->trailers);
  if (x->ops && x->ops->body_end)
    x->ops->body_end(x);
  return true;
}

/* ---- heads ---- */

static int read_head(struct http_x *x, struct str bytes, size_t lines, const char **why)
{
  struct str kept = arena_str(&x->arena, bytes);
  struct http_header *hv = arena_alloc(&x->arena, lines * sizeof(*hv));
  if (!kept.p || !hv) {
    *why = "out of memory";
    return -503;
  }
  return h1_request(kept, &x->head, hv, lines, &x->frame, why);
}

static bool head_advance(struct peer *p, struct str *in)
{
  struct http_server *s = p->server;
  const char *why = "";
  ptrdiff_t n = in->n ? h1_scan(&p->scan, H1_REQUEST, *in, &s->limits, &why) : 0;
  if (n < 0)
    peer_refuse(p, (int)-n, why);
  if (n <= 0)
    return n < 0;
  struct http_x *x = exchange_new(p);
  int rc = read_head(x, str_sub(*in, 0, (size_t)n), p->scan.lines, &why);
  p->scan = (struct h1scan){0};
  *in = str_skip(*in, (size_t)n);
  if (rc < 0) {
    exchange_free(s, x);
    peer_refuse(p, -rc, why);
    return true;
  }
  h1_body_start(&p->body, &x->frame);
  buf_free(&p->kept);
  buf_init(&p->kept, H1_TRAILERS_MAX);
  p->body.kept = s->limits.trailers ? &p->kept : NULL;
  x->continue_due = x->frame.expect && !p->body.done;
  p->x = x;
  p->discarded = 0;
  conn_spend(&p->conn, REQUEST_COST + (size_t)n);
  server_idle_remove(s, p);
  s->fn(x, s->arg);
  return true;
}

/* What the handler did not read is read away, so that the next request is found. */
static bool discard_advance(struct peer *p, struct str *in)
{
  struct str piece;
  int rc = h1_body_next(&p->body, in, &piece);
  if (rc == H1_DATA)
    p->discarded += piece.n, conn_spend(&p->conn, CHUNK_COST);
  if (rc >= 0 && p->discarded <= DISCARD_BYTES)
    return rc != H1_MORE;
  linger(p);
  return true;
}

static void linger_advance(struct peer *p, struct str *in)
{
  p->discarded += in->n;
  *in = str_skip(*in, in->n);
  if (p->discarded > LINGER_BYTES)
    peer_end(p, HTTP_DONE, false);
}

/* True when something changed and another look is worth it. */
static bool peer_advance(struct peer *p, struct str *in)
{
  if (p->conn.closed)
    return false;
  if (p->phase == PEER_LINGER) {
    linger_advance(p, in);
    return false;
  }
  if (p->x)
    return exchange_advance(p->x, in);
  return p->body.done ? head_advance(p, in) : discard_advance(p, in);
}

/* ---- what the connection waits for ---- */

static enum peer_phase phase_now(const struct peer *p, size_t waiting)
{
  const struct http_x *x = p->x;
  if (x)
    return x->reading && !x->ended && !x->tunnel && !p->body.done ? PEER_BODY : PEER_ANSWER;
  if (!p->body.done)
    return PEER_DISCARD;
  return waiting ? PEER_HEAD : PEER_IDLE;
}

static unsigned phase_ms(const struct http_limits *l, enum peer_phase phase)
{
  switch (phase) {
  case PEER_IDLE:
    return l->idle_ms;
  case PEER_HEAD:
    return l->head_ms;
  case PEER_BODY:
    return l->body_ms;
  case PEER_DISCARD:
    return DISCARD_MS;
  default:
    return 0;
  }
}

static void peer_settle(struct peer *p, size_t waiting)
{
  const struct http_x *x = p->x;
  if (p->phase == PEER_LINGER)
    return;
  enum peer_phase phase = phase_now(p, waiting);
  p->conn.want = x ? x->reading && !p->body.done && (!x->ended || x->tunnel) : true;
  if (phase == p->phase && !p->restart)
    return;
  if (phase == PEER_IDLE)
    server_idle_add(p->server, p);
  p->phase = phase;
  p->restart = false;
  bool untimed = phase == PEER_BODY && x && x->untimed;
  conn_deadline(&p->conn, untimed ? 0 : phase_ms(&p->server->limits, phase));
}

static void peer_step(struct conn *c, struct str *in)
{
  struct peer *p = container_of(c, struct peer, conn);
  while (!c->busy && peer_advance(p, in))
    continue;
  if (!c->closed)
    peer_settle(p, in->n);
}

/* ---- what happens to the connection ---- */

void peer_end(struct peer *p, enum http_end how, bool reset)
{
  if (p->conn.closed)
    return;
  p->how = how;
  server_idle_remove(p->server, p);
  server_known(p->server, p);
  p->server->nconns--;
  if (reset)
    conn_reset(&p->conn);
  else
    conn_close(&p->conn);
}

void peer_drop(struct peer *p)
{
  if (p->via) {
    p->via->drop(p);
    return;
  }
  peer_end(p, HTTP_ABORTED, true);
  if (p->x && !p->conn.stepping)
    exchange_gone(p->x, HTTP_ABORTED);
}

static void peer_eof(struct conn *c)
{
  struct peer *p = container_of(c, struct peer, conn);
  struct http_x *x = p->x;
  if (x && x->tunnel) {
    p->body.done = true;
    conn_defer(c);
  } else if (x && x->ended) {
    p->last = true;
  } else {
    peer_end(p, c->cut ? HTTP_PEER_CUT : HTTP_PEER_GONE, false);
  }
}

static void peer_left(struct conn *c)
{
  struct peer *p = container_of(c, struct peer, conn);
  if (p->x && p->x->tunnel)
    return; /* its last bytes are still to be read */
  peer_eof(c);
}

static void peer_moved(struct conn *c)
{
  struct peer *p = container_of(c, struct peer, conn);
  struct http_x *x = p->x;
  if (!x || !x->drain_due || x->ended || c->queued > p->server->limits.high_water / 4)
    return;
  x->drain_due = false;
  if (x->ops && x->ops->drain)
    x->ops->drain(x);
}

static void peer_broken(struct conn *c, int code, bool writing)
{
  struct peer *p = container_of(c, struct peer, conn);
  bool ours = writing && (code == -EIO || code == -ENOBUFS || code == -ENOMEM);
  bool cut = code == -ECONNRESET || code == -ENOTCONN;
  peer_end(p, ours ? HTTP_ABORTED : cut ? HTTP_PEER_CUT : HTTP_PEER_GONE, true);
}

static void peer_due(struct conn *c)
{
  struct peer *p = container_of(c, struct peer, conn);
  if (p->phase == PEER_HEAD)
    peer_refuse(p, 408, "the request head did not arrive in time");
  else if (p->phase == PEER_BODY && p->x)
    exchange_refuse(p->x, 408, "the request body stopped coming", HTTP_PEER_GONE);
  else
    peer_end(p, HTTP_PEER_GONE, false);
}

static void peer_freed(struct conn *c)
{
  struct peer *p = container_of(c, struct peer, conn);
  struct http_server *s = p->server;
  if (p->x)
    exchange_gone(p->x, p->how);
  server_left(p);
  buf_free(&p->kept);
  free(p);
  server_unref(s);
}

static bool may_pass(const struct peer *p, const struct http_x *x)
{
  return x && x->ops && x->ops->passed && x->reading && !x->ended && !x->tunnel && p->body.kind == H1_LENGTH &&
         x->frame.length <= x->body_max;
}

static void peer_lend(struct peer *p, struct http_x *x, struct conn_way *to)
{
  int fd = fcntl(p->conn.fd, F_DUPFD_CLOEXEC, 3);
  enum http_lend way = fd < 0 ? HTTP_LEND_NOT : x->ops->lend(x, fd, p->body.left);
  p->conn.lent = way == HTTP_LEND_TAKEN;
  to->wait = way != HTTP_LEND_NOT;
  if (fd >= 0 && way != HTTP_LEND_TAKEN)
    close(fd);
}

static uint64_t peer_pass(struct conn *c, struct conn_way *to)
{
  struct peer *p = container_of(c, struct peer, conn);
  struct http_x *x = p->x;
  if (!may_pass(p, x))
    return 0;
  struct http_call *call = x->ops->pass ? x->ops->pass(x) : NULL;
  uint64_t room = call ? call_room(call) : 0;
  if (room)
    to->conn = call_conn(call);
  else if (p->body.left && x->ops->lend && !p->look)
    peer_lend(p, x, to);
  p->look = false;
  return MIN(room, p->body.left);
}

static void peer_passed(struct conn *c, size_t n)
{
  struct peer *p = container_of(c, struct peer, conn);
  struct http_x *x = p->x;
  p->body.left -= n;
  p->restart = true;
  x->body_seen += n;
  if (x->ops->pass)
    call_took(x->ops->pass(x), n);
  x->ops->passed(x, n);
}

void http_x_lent(struct http_x *x, uint64_t n)
{
  struct conn *c = &x->peer->conn;
  c->lent = false;
  x->peer->look = !n;
  if (n)
    peer_passed(c, (size_t)n);
  conn_defer(c);
}

const struct conn_ops peer_ops = {peer_step, peer_eof,   peer_left, peer_moved, peer_broken,
                                  peer_due,  peer_freed, peer_pass, peer_passed};
