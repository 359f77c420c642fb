/* SPDX-License-Identifier: Apache-2.0 */
/* http2_call.c - the client side of HTTP/2: a connection (struct http_link) that carries many calls of http.h at once.
 *
 * The connection is made by TLS and offers h2 and http/1.1. Where the server takes the latter, it becomes an ordinary
 * call. Each call of a link is a stream. Handlers are called from link_notify only, outside of nghttp2: what comes is
 * first put into its stream.
 *
 * Flow control: no window opens by itself. An answer's bytes are given back to the windows when the handler takes them,
 * so a paused call holds at most STREAM_WINDOW; the connection's window has room for all streams, so that one which
 * stands still delays no other. A request's bytes wait in their stream, where the call is congested at the high-water
 * mark.
 *
 * A server may reset a stream, go away, flood or fall silent: header sections have the limits of HTTP/1.1 as they are
 * decoded, control frames a rate, answers a deadline. After GOAWAY, or a time-out, there is no new call on a link;
 * those under way come to their end. Pushes are refused. No field of a request enters the compression table: some are
 * secret.
 */
#include "net/exchange.h"
#include "net/tls.h"
#include <nghttp2/nghttp2.h>

#define STREAM_WINDOW     (512 << 10)
#define STREAMS_MOST      256 /* more are never had at once, whatever is asked for */
#define SOCKET_AHEAD      ((size_t)128 << 10)
#define OUT_MAX           ((size_t)4 << 20)
#define ARENA_MAX         ((size_t)2 << 20)
#define INTERIMS_MAX      16
#define CHATTER_BURST     2000
#define CHATTER_PER_S     200
#define CONTINUATIONS_MAX 8
#define LOOK_MS           1000
#define HEAD_COST         8192 /* of conn_spend */
#define FRAME_COST        512
#define FIELD_COST        128

struct lane {
  struct http_link *link; /* NULL: it was cut off */
  struct http_call *call;
  struct lane *prev, *next, *todo_next;
  int32_t id; /* 0: not begun */
  /* the answer */
  VEC(struct http_header) headers;
  int status;
  size_t section;
  const char *bad; /* why it can't be taken */
  struct buf backlog;
  size_t backlog_off;
  bool head_due, in_end;
  /* the request */
  struct buf out;
  size_t out_off;
  nghttp2_nv *trailers;
  size_t ntrailers;
  uint64_t due, moved_at; /* loop time; due 0 = none */
  bool all_said, deferred;
  bool closed;                 /* nothing more comes */
  uint32_t error;              /* with closed */
  bool in_todo, dead, telling; /* telling: its handler is being called */
};

struct http_link {
  struct http_call *trunk; /* owns the connection */
  struct conn *conn;
  nghttp2_session *session; /* NULL while the protocol is not chosen */
  http_link_opened opened;
  void (*closed)(struct http_link *l, void *arg);
  void *arg;
  struct lane *lanes, *todo, **todo_tail;
  size_t nlanes, streams_max;
  size_t block_bytes, block_fields; /* of the header section that is being read */
  uint64_t chatter_at;
  double chatter;
  int code; /* with lame */
  const char *why;
  bool ready, inside, send_due;
  bool going; /* no new calls */
  bool lame;  /* the connection is of no more use */
};

static struct http_link *link_of(struct conn *c)
{
  return container_of(c, struct http_call, conn)->link;
}

static uint64_t link_now(const struct http_link *l)
{
  return uv_now(l->conn->net->loop);
}

static struct lane *lane_of(nghttp2_session *session, int32_t id)
{
  return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

static size_t lane_queued(const struct lane *s)
{
  return s->out.n - s->out_off;
}

static void lane_todo(struct lane *s)
{
  struct http_link *l = s->link;
  if (!l || s->in_todo || s->dead)
    return;
  s->in_todo = true;
  s->todo_next = NULL;
  *l->todo_tail = s;
  l->todo_tail = &s->todo_next;
  if (!l->conn->stepping)
    conn_defer(l->conn);
}

/* ---- sending ---- */

static void link_lame(struct http_link *l, int code, const char *why)
{
  if (l->lame)
    return;
  l->lame = l->going = true;
  l->code = code;
  l->why = why;
  for (struct lane *s = l->lanes; s; s = s->next) {
    s->closed = true;
    lane_todo(s);
  }
  conn_defer(l->conn);
}

static ssize_t on_send(nghttp2_session *session, const uint8_t *p, size_t n, int flags, void *arg)
{
  struct http_link *l = arg;
  struct iovec v = {(void *)p, n};
  (void)session, (void)flags;
  if (l->conn->queued_mem >= SOCKET_AHEAD)
    return NGHTTP2_ERR_WOULDBLOCK;
  return conn_write(l->conn, &v, 1, true) < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : (ssize_t)n;
}

static void link_send(struct http_link *l)
{
  l->send_due = true;
  if (l->inside || l->lame || l->conn->closed)
    return;
  l->send_due = false;
  l->inside = true;
  int r = nghttp2_session_send(l->session);
  l->inside = false;
  conn_push(l->conn);
  if (r < 0)
    link_lame(l, -ECONNRESET, "the connection broke");
}

static void out_took(struct lane *s, size_t n)
{
  conn_release(s->link->conn, n);
  s->moved_at = link_now(s->link);
  s->out_off += n;
  if (s->out_off < s->out.n / 2)
    return;
  buf_drop(&s->out, s->out_off);
  s->out_off = 0;
}

static ssize_t out_read(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
                        nghttp2_data_source *source, void *arg)
{
  struct lane *s = lane_of(session, id);
  (void)source, (void)arg;
  if (!s)
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  size_t k = MIN(n, lane_queued(s));
  if (k) {
    memcpy(p, s->out.p + s->out_off, k);
    out_took(s, k);
  } else if (!s->all_said) {
    s->deferred = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  if (s->all_said && !lane_queued(s)) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (s->ntrailers && nghttp2_submit_trailer(session, id, s->trailers, s->ntrailers) == 0)
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
  }
  if (s->call->drain_due && lane_queued(s) <= s->call->limits.high_water / 4)
    lane_todo(s);
  return (ssize_t)k;
}

/* ---- what comes ---- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
  struct http_link *l = arg;
  (void)session, (void)frame;
  l->block_bytes = l->block_fields = 0;
  conn_spend(l->conn, HEAD_COST);
  return 0;
}

/* A field is one of many that may stand for kilobytes each: 0, or to be returned to nghttp2. */
static int field_counted(struct http_link *l, size_t n)
{
  const struct http_limits *limits = &l->trunk->limits;
  l->block_bytes += n + 32;
  l->block_fields++;
  conn_spend(l->conn, FIELD_COST + n);
  if (l->block_bytes <= 2 * limits->head_max && l->block_fields <= 2 * limits->headers_max)
    return 0;
  link_lame(l, -EPROTO, "a header section far beyond the limits");
  return NGHTTP2_ERR_CALLBACK_FAILURE;
}

static void lane_bad(struct lane *s, const char *why)
{
  if (!s->bad)
    s->bad = why;
}

static void take_status(struct lane *s, struct str value)
{
  uint64_t status = 0;
  if (value.n != 3 || str_u64(value, &status) || status < 100 || status > 599)
    lane_bad(s, "the answer's status is malformed");
  s->status = (int)status;
}

static int on_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t nname,
                    const uint8_t *value, size_t nvalue, uint8_t flags, void *arg)
{
  struct http_link *l = arg;
  struct lane *s = lane_of(session, frame->hd.stream_id);
  struct str n = str_make(name, nname), v = str_make(value, nvalue);
  (void)flags;
  int verdict = field_counted(l, nname + nvalue);
  if (verdict || !s || s->bad)
    return verdict;
  const struct http_limits *limits = &s->call->limits;
  s->section += nname + nvalue + 32;
  if (s->section > limits->head_max || s->headers.n >= limits->headers_max) {
    lane_bad(s, "the answer's head is too large");
  } else if (str_is(n, ":status")) {
    take_status(s, v);
  } else if (!h1_token(n) || !h1_value(v)) {
    lane_bad(s, "a header of the answer is malformed");
  } else {
    struct http_header kept = {arena_str(&s->call->arena, n), arena_str(&s->call->arena, v)};
    if (kept.name.p && kept.value.p)
      vec_push(&s->headers, kept);
    else
      lane_bad(s, "the answer's head is too large");
  }
  return 0;
}

static int on_invalid_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t nname,
                            const uint8_t *value, size_t nvalue, uint8_t flags, void *arg)
{
  struct lane *s = lane_of(session, frame->hd.stream_id);
  (void)name, (void)value, (void)flags;
  if (s)
    lane_bad(s, "a header of the answer is malformed");
  return field_counted(arg, nname + nvalue);
}

/* What was read of a section, in the call's arena. */
static struct http_header *take_section(struct lane *s, size_t *n)
{
  struct http_header *hv = s->headers.n ? arena_alloc(&s->call->arena, s->headers.n * sizeof(*hv)) : NULL;
  *n = hv ? s->headers.n : 0;
  if (hv)
    memcpy(hv, s->headers.p, *n * sizeof(*hv));
  else if (s->headers.n)
    lane_bad(s, "the answer's head is too large");
  vec_free(&s->headers);
  s->section = 0;
  return hv;
}

static void section_done(struct lane *s)
{
  struct http_call *c = s->call;
  if (c->head_seen) {
    c->trailers = take_section(s, &c->ntrailers);
    if (!c->limits.trailers)
      c->ntrailers = 0;
    return;
  }
  if (s->status < 200) {
    if (++c->interims > INTERIMS_MAX)
      lane_bad(s, "too many interim answers");
    vec_free(&s->headers);
    s->section = 0;
    return;
  }
  c->head = (struct http_head){.status = s->status, .minor = 1};
  c->head.headers = take_section(s, &c->head.nheaders);
  c->head_seen = s->head_due = true;
  s->due = 0;
}

static bool is_chatter(const nghttp2_frame *f)
{
  switch (f->hd.type) {
  case NGHTTP2_SETTINGS:
  case NGHTTP2_PING:
  case NGHTTP2_PRIORITY:
    return !(f->hd.flags & NGHTTP2_FLAG_ACK);
  case NGHTTP2_DATA:
    return f->hd.length == 0 && !(f->hd.flags & NGHTTP2_FLAG_END_STREAM);
  default:
    return false;
  }
}

static bool chatter_allowed(struct http_link *l)
{
  uint64_t now = link_now(l);
  double left = l->chatter + (double)(now - l->chatter_at) * CHATTER_PER_S / 1000;
  l->chatter = MIN(left, (double)CHATTER_BURST) - 1;
  l->chatter_at = now;
  return l->chatter >= 0;
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
  struct http_link *l = arg;
  struct lane *s = lane_of(session, frame->hd.stream_id);
  conn_spend(l->conn, FRAME_COST);
  if (is_chatter(frame) && !chatter_allowed(l))
    link_lame(l, -EPROTO, "too many control frames");
  if (frame->hd.type == NGHTTP2_GOAWAY) {
    l->going = true;
    conn_defer(l->conn);
  }
  if (!s || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
    return 0;
  if (frame->hd.type == NGHTTP2_HEADERS)
    section_done(s);
  if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)
    s->in_end = true;
  lane_todo(s);
  return 0;
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *arg)
{
  struct http_link *l = arg;
  struct lane *s = lane_of(session, id);
  (void)flags;
  if (!s || buf_add(&s->backlog, p, n) < 0) {
    if (s)
      lane_bad(s, "out of memory");
    nghttp2_session_consume(session, id, n);
    return 0;
  }
  conn_hold(l->conn, n);
  lane_todo(s);
  return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
  struct lane *s = lane_of(session, id);
  (void)arg;
  if (!s)
    return 0;
  nghttp2_session_set_stream_user_data(session, id, NULL);
  s->closed = true;
  s->error = code;
  lane_todo(s);
  return 0;
}

/* A head that did not go out, as after GOAWAY: it may be said elsewhere. */
static int on_frame_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int code, void *arg)
{
  struct http_link *l = arg;
  (void)session, (void)code;
  for (struct lane *s = l->lanes; s && frame->hd.type == NGHTTP2_HEADERS; s = s->next)
    if (s->id == frame->hd.stream_id && !s->closed) {
      s->closed = true;
      s->error = NGHTTP2_REFUSED_STREAM;
      lane_todo(s);
    }
  return 0;
}

/* ---- telling handlers ---- */

static void lane_unlink(struct lane *s)
{
  struct http_link *l = s->link;
  if (!l)
    return;
  if (s->prev)
    s->prev->next = s->next;
  else
    l->lanes = s->next;
  if (s->next)
    s->next->prev = s->prev;
  for (struct lane **at = &l->todo; s->in_todo && *at; at = &(*at)->todo_next)
    if (*at == s) {
      *at = s->todo_next;
      if (!*at)
        l->todo_tail = at;
      break;
    }
  l->nlanes--;
  conn_release(l->conn, s->backlog.n - s->backlog_off + lane_queued(s));
  s->link = NULL;
}

static void lane_free(struct lane *s)
{
  struct http_call *c = s->call;
  buf_free(&s->backlog);
  buf_free(&s->out);
  vec_free(&s->headers);
  free(s);
  arena_free(&c->arena);
  free(c);
}

/* The stream has no more use for anybody; the server is told, and what of it waits is given back. */
static void lane_quit(struct lane *s)
{
  struct http_link *l = s->link;
  if (!l)
    return;
  if (s->id && l->session && !l->lame) {
    size_t left = s->backlog.n - s->backlog_off;
    if (left)
      nghttp2_session_consume(l->session, s->id, left);
    if (!s->closed) {
      nghttp2_session_set_stream_user_data(l->session, s->id, NULL);
      nghttp2_submit_rst_stream(l->session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_CANCEL);
    }
    l->send_due = true;
  }
  lane_unlink(s);
  conn_defer(l->conn);
}

static void lane_fail(struct lane *s, int code, const char *why)
{
  struct http_call *c = s->call;
  if (c->failed || c->ended)
    return;
  c->failed = true;
  lane_quit(s);
  if (c->ops && c->ops->fail)
    c->ops->fail(c, code, why);
}

static void lane_lost(struct lane *s)
{
  const struct http_link *l = s->link;
  bool refused = s->error == NGHTTP2_REFUSED_STREAM;
  int code = l->lame ? l->code : refused ? -ECONNRESET : -EPROTO;
  if (s->call->head_seen && code == -ECONNRESET)
    code = -EPROTO;
  lane_fail(s, code, l->lame ? l->why : refused ? "the server refused it" : nghttp2_http2_strerror(s->error));
}

static bool goes_on(const struct lane *s)
{
  return !s->dead && s->link && !s->call->failed;
}

static void tell_body(struct lane *s)
{
  struct http_call *c = s->call;
  while (goes_on(s) && !c->paused && s->backlog_off < s->backlog.n) {
    struct str piece = str_sub(str_skip(buf_str(&s->backlog), s->backlog_off), 0, NET_IN_SIZE);
    s->backlog_off += piece.n;
    conn_release(s->link->conn, piece.n);
    if (!s->link->lame)
      nghttp2_session_consume(s->link->session, s->id, piece.n);
    s->link->send_due = true;
    if (c->ops && c->ops->body)
      c->ops->body(c, piece);
  }
  if (s->backlog_off == s->backlog.n) {
    buf_free(&s->backlog);
    buf_init(&s->backlog, 2 * STREAM_WINDOW + 65536);
    s->backlog_off = 0;
  } else if (s->backlog_off >= s->backlog.n / 2) {
    buf_drop(&s->backlog, s->backlog_off);
    s->backlog_off = 0;
  }
}

static void lane_tell(struct lane *s)
{
  struct http_call *c = s->call;
  if (s->bad && !c->ended) {
    lane_fail(s, -EPROTO, s->bad);
    return;
  }
  if (s->head_due && !c->paused) {
    s->head_due = false;
    if (c->ops && c->ops->head)
      c->ops->head(c, &c->head);
  }
  tell_body(s);
  if (goes_on(s) && c->drain_due && lane_queued(s) <= c->limits.high_water / 4) {
    c->drain_due = false;
    if (c->ops && c->ops->drain)
      c->ops->drain(c);
  }
  if (!goes_on(s) || c->ended || s->head_due || s->backlog.n || c->paused)
    return;
  if (s->in_end && c->head_seen) {
    c->ended = true;
    if (c->ops && c->ops->end)
      c->ops->end(c);
  } else if (s->closed) {
    lane_lost(s);
  }
}

static void link_notify(struct http_link *l)
{
  while (l->todo) {
    struct lane *s = l->todo;
    l->todo = s->todo_next;
    if (!l->todo)
      l->todo_tail = &l->todo;
    s->in_todo = false;
    s->telling = true;
    lane_tell(s);
    s->telling = false;
    if (s->dead)
      lane_free(s);
  }
}

/* ---- the connection ---- */

static void tell_closed(struct http_link *l)
{
  void (*closed)(struct http_link *, void *) = steal(&l->closed);
  if (closed)
    closed(l, l->arg);
}

static void link_feed(struct http_link *l, struct str *in)
{
  if (l->lame) {
    *in = STR_NONE;
    return;
  }
  if (!in->n || l->conn->busy)
    return;
  l->inside = true;
  ssize_t n = nghttp2_session_mem_recv(l->session, (const uint8_t *)in->p, in->n);
  l->inside = false;
  if (n < 0)
    link_lame(l, -EPROTO, "it does not speak HTTP/2 properly");
  *in = n < 0 || l->lame ? STR_NONE : str_skip(*in, (size_t)n);
}

static void link_step(struct conn *c, struct str *in)
{
  struct http_link *l = link_of(c);
  link_feed(l, in);
  do {
    link_notify(l);
    link_send(l);
  } while (!c->closed && l->todo);
  if (c->closed)
    return;
  bool over = !l->lame && !nghttp2_session_want_read(l->session) && !nghttp2_session_want_write(l->session);
  if (over)
    link_lame(l, -ECONNRESET, "the connection ended");
  if (l->going)
    tell_closed(l);
  if (l->going && !l->nlanes && (l->lame || !nghttp2_session_want_write(l->session)))
    conn_close(c);
  else if (l->nlanes && !c->deadline)
    conn_deadline(c, LOOK_MS);
}

static void link_eof(struct conn *c)
{
  link_lame(link_of(c), -ECONNRESET, c->refusal ? c->refusal : "the connection ended");
}

static void link_moved(struct conn *c)
{
  (void)c; /* a step follows, and sends more */
}

static void link_broken(struct conn *c, int code, bool writing)
{
  struct http_link *l = link_of(c);
  bool now = writing && (code == -ENOBUFS || code == -ENOMEM); /* the connection is cut at once, no step follows */
  link_lame(l, code == -EPIPE ? -ECONNRESET : code,
            now                  ? "too much output is queued"
            : code == -ETIMEDOUT ? "the peer takes no more bytes"
                                 : "the connection broke");
  if (!now)
    return;
  tell_closed(l);
  while (l->lanes) {
    struct lane *s = l->lanes;
    lane_unlink(s);
    s->call->failed = true;
    if (!s->call->ended && s->call->ops && s->call->ops->fail)
      s->call->ops->fail(s->call, -EPROTO, l->why);
  }
  conn_close(c);
}

static void link_due(struct conn *c)
{
  struct http_link *l = link_of(c);
  uint64_t now = link_now(l);
  for (struct lane *s = l->lanes, *next; s; s = next) {
    unsigned patience = s->call->limits.linger_ms;
    next = s->next;
    bool stuck = patience && lane_queued(s) && s->moved_at + patience <= now;
    if (!stuck && (!s->due || s->due > now))
      continue;
    l->going = true; /* it may be dead: the next call takes another connection */
    lane_fail(s, -ETIMEDOUT, stuck ? "the peer takes no more bytes" : "the answer's head did not arrive in time");
    next = l->lanes ? next : NULL;
  }
  conn_defer(c);
}

static void link_freed(struct conn *c)
{
  struct http_link *l = link_of(c);
  nghttp2_session_del(l->session);
  free(l->trunk);
  free(l);
}

static const struct conn_ops link_ops = {link_step, link_eof,   link_eof, link_moved, link_broken,
                                         link_due,  link_freed, NULL,     NULL};

/* ---- calls ---- */

static bool ours_to_write(struct str name)
{
  static const char *const names[] = {"connection", "keep-alive", "proxy-connection", "transfer-encoding",
                                      "upgrade",    "host",       "content-length",   "http2-settings"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (str_ieq(name, str_of(names[i])))
      return true;
  return false;
}

static nghttp2_nv pair(struct str name, struct str value, uint8_t flags)
{
  return (nghttp2_nv){(uint8_t *)name.p, (uint8_t *)value.p, name.n, value.n, flags};
}

static struct str lower(struct arena *a, struct str name)
{
  char *z = arena_z(a, name);
  for (size_t i = 0; z && i < name.n; i++)
    if (z[i] >= 'A' && z[i] <= 'Z')
      z[i] = (char)(z[i] + 32);
  return str_make(z, z ? name.n : 0);
}

/* Those that may go, from nv[k] on; the number of all, or negative. */
static ssize_t put_fields(struct arena *a, nghttp2_nv *nv, size_t k, const struct http_header *headers, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    if (!h1_token(headers[i].name) || !h1_value(headers[i].value))
      return -EINVAL;
    if (ours_to_write(headers[i].name))
      continue;
    struct str name = lower(a, headers[i].name);
    if (!name.p)
      return -ENOBUFS;
    nv[k++] = pair(name, str_trim(headers[i].value), NGHTTP2_NV_FLAG_NO_INDEX);
  }
  return (ssize_t)k;
}

static int lane_start(struct http_call *c, struct str method, struct str target, const struct http_header *headers,
                      size_t n, int64_t length)
{
  struct lane *s = c->stream;
  struct http_link *l = s->link;
  struct http_head asked = {.headers = (struct http_header *)headers, .nheaders = n};
  struct str host = http_header(&asked, "host");
  nghttp2_nv *nv = arena_alloc(&c->arena, (n + 5) * sizeof(*nv));
  size_t k = 0;
  if (!l || l->going || l->lame)
    return -EPIPE;
  if (c->started)
    return -EBUSY;
  if (!nv)
    return -ENOBUFS;
  if (!host.n || !h1_token(method) || !h1_target(target) || !h1_value(host))
    return -EINVAL;
  nv[k++] = pair(STR(":method"), method, NGHTTP2_NV_FLAG_NONE);
  nv[k++] = pair(STR(":scheme"), STR("https"), NGHTTP2_NV_FLAG_NONE);
  nv[k++] = pair(STR(":authority"), host, NGHTTP2_NV_FLAG_NONE);
  nv[k++] = pair(STR(":path"), target, NGHTTP2_NV_FLAG_NO_INDEX);
  ssize_t all = put_fields(&c->arena, nv, k, headers, n);
  if (all < 0)
    return (int)all;
  bool bodied = str_is(method, "POST") || str_is(method, "PUT") || str_is(method, "PATCH");
  char *size = length > 0 || (length == 0 && bodied) ? arena_fmt(&c->arena, "%lld", (long long)length) : NULL;
  if (size)
    nv[all++] = pair(STR("content-length"), str_of(size), NGHTTP2_NV_FLAG_NO_INDEX);
  nghttp2_data_provider from = {.source.ptr = s, .read_callback = out_read};
  s->id = nghttp2_submit_request(l->session, NULL, nv, (size_t)all, length ? &from : NULL, s);
  if (s->id < 0) {
    s->id = 0;
    return -EPIPE;
  }
  c->started = true;
  c->out_left = length < 0 ? HTTP_CHUNKED : length;
  s->all_said = c->sent = length == 0;
  link_send(l);
  return 0;
}

static bool lane_congested(const struct http_call *c)
{
  const struct lane *s = c->stream;
  return s->link && !s->closed && lane_queued(s) >= c->limits.high_water;
}

static void lane_offer(struct lane *s)
{
  if (s->deferred) {
    s->deferred = false;
    nghttp2_session_resume_data(s->link->session, s->id);
  }
  link_send(s->link);
}

static int lane_send(struct http_call *c, struct str data)
{
  struct lane *s = c->stream;
  if (!s->link || !c->started || c->failed || c->sent || s->closed)
    return -EPIPE;
  if (c->out_left >= 0 && data.n > (uint64_t)c->out_left)
    return -EMSGSIZE;
  if (data.n == 0)
    return 0;
  if (!lane_queued(s))
    s->moved_at = link_now(s->link);
  if (buf_adds(&s->out, data) < 0) {
    lane_bad(s, "too much output is queued");
    lane_todo(s);
    return -ENOBUFS;
  }
  conn_hold(s->link->conn, data.n);
  if (c->out_left >= 0)
    c->out_left -= (int64_t)data.n;
  lane_offer(s);
  if (lane_congested(c))
    c->drain_due = true;
  return 0;
}

static void lane_end(struct http_call *c, const struct http_header *trailers, size_t n)
{
  struct lane *s = c->stream;
  if (!s->link || !c->started || c->failed || c->sent || s->closed)
    return;
  if (c->out_left > 0) {
    lane_bad(s, "the request ended before its promised length");
    lane_todo(s);
    return;
  }
  s->trailers = n ? arena_alloc(&c->arena, n * sizeof(*s->trailers)) : NULL;
  for (size_t i = 0; s->trailers && i < n; i++) {
    struct str value = arena_str(&c->arena, trailers[i].value);
    ssize_t k =
        value.p ? put_fields(&c->arena, s->trailers, s->ntrailers, &(struct http_header){trailers[i].name, value}, 1)
                : -1;
    s->ntrailers = k < 0 ? s->ntrailers : (size_t)k;
  }
  c->sent = s->all_said = true;
  lane_offer(s);
}

static void lane_deadline(struct http_call *c, unsigned ms)
{
  struct lane *s = c->stream;
  if (!s->link || c->head_seen || s->closed)
    return;
  s->due = ms ? link_now(s->link) + ms : 0;
  if (ms && !s->link->conn->deadline)
    conn_deadline(s->link->conn, MIN(ms, LOOK_MS));
}

static void lane_flow(struct http_call *c, bool on)
{
  struct lane *s = c->stream;
  if (c->paused == !on)
    return;
  c->paused = !on;
  if (on)
    lane_todo(s);
}

static void lane_leave(struct http_call *c)
{
  struct lane *s = c->stream;
  c->ops = NULL;
  c->freed = true;
  lane_quit(s);
  s->dead = true;
  if (!s->telling)
    lane_free(s);
}

static const struct call_carrier lane_carrier = {lane_start,    lane_send, lane_end,  lane_congested,
                                                 lane_deadline, lane_flow, lane_leave};

/* ---- links ---- */

static nghttp2_session *session_new(struct http_link *l)
{
  nghttp2_session *session = NULL;
  nghttp2_session_callbacks *on = NULL;
  nghttp2_option *o = NULL;
  if (nghttp2_session_callbacks_new(&on) || nghttp2_option_new(&o)) {
    nghttp2_session_callbacks_del(on);
    return NULL;
  }
  nghttp2_session_callbacks_set_send_callback(on, on_send);
  nghttp2_session_callbacks_set_on_begin_headers_callback(on, on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(on, on_field);
  nghttp2_session_callbacks_set_on_invalid_header_callback(on, on_invalid_field);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(on, on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(on, on_frame);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(on, on_frame_not_sent);
  nghttp2_session_callbacks_set_on_stream_close_callback(on, on_stream_close);
  nghttp2_option_set_no_auto_window_update(o, 1);
  nghttp2_option_set_no_closed_streams(o, 1);
#ifdef HAVE_NGHTTP2_MAX_CONTINUATIONS
  nghttp2_option_set_max_continuations(o, CONTINUATIONS_MAX);
#endif
  nghttp2_session_client_new2(&session, on, l, o);
  nghttp2_option_del(o);
  nghttp2_session_callbacks_del(on);
  return session;
}

static int link_begin(struct http_link *l)
{
  const nghttp2_settings_entry ours[] = {
      {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)l->trunk->limits.head_max},
  };
  l->session = session_new(l);
  if (!l->session || nghttp2_submit_settings(l->session, NGHTTP2_FLAG_NONE, ours, ARRAY_LEN(ours)))
    return -ENOMEM;
  int32_t window = (int32_t)l->streams_max * STREAM_WINDOW;
  return nghttp2_session_set_local_window_size(l->session, NGHTTP2_FLAG_NONE, 0, window) ? -ENOMEM : 0;
}

static void choice_failed(struct http_link *l, int code, const char *why)
{
  http_link_opened opened = steal(&l->opened);
  conn_close(l->conn);
  if (opened)
    opened(l->arg, NULL, NULL, code, why);
}

static void choice_ready(struct conn *c)
{
  link_of(c)->ready = true;
  conn_deadline(c, 0);
  conn_defer(c);
}

/* The handshake is over: this connection is what the server chose. */
static void choice_step(struct conn *c, struct str *in)
{
  struct http_link *l = link_of(c);
  struct http_call *trunk = l->trunk;
  http_link_opened opened = l->opened;
  void *arg = l->arg;
  (void)in; /* what came is offered again, to who is there then */
  if (!l->ready)
    return;
  if (!str_is(tls_conn_protocol(c), "h2")) {
    c->ops = &call_conn_ops;
    trunk->link = NULL;
    free(l);
    opened(arg, NULL, trunk, 0, NULL);
    return;
  }
  if (link_begin(l)) {
    choice_failed(l, -ENOMEM, "out of memory");
    return;
  }
  c->ops = &link_ops;
  l->opened = NULL;
  link_send(l);
  conn_defer(c);
  opened(arg, l, NULL, 0, NULL);
}

static void choice_eof(struct conn *c)
{
  choice_failed(link_of(c), -ECONNRESET, c->refusal ? c->refusal : "the connection ended before an answer came");
}

static void choice_broken(struct conn *c, int code, bool writing)
{
  (void)writing;
  choice_failed(link_of(c), code, c->refusal ? c->refusal : "the connection broke");
}

static void choice_due(struct conn *c)
{
  choice_failed(link_of(c), -ETIMEDOUT, "the TLS handshake took too long");
}

static const struct conn_ops choice_ops = {choice_step, choice_eof, choice_eof, link_moved, choice_broken,
                                           choice_due,  link_freed, NULL,       NULL};

struct http_link *http_link_open(uv_loop_t *loop, int fd, const struct http_link_plan *plan)
{
  struct http_call *trunk = http_call_new(loop, fd, plan->limits);
  if (!trunk)
    return NULL;
  struct http_link *l = xcalloc(1, sizeof(*l));
  *l = (struct http_link){.trunk = trunk, .conn = &trunk->conn, .opened = plan->opened, .arg = plan->arg};
  l->todo_tail = &l->todo;
  l->streams_max = MIN(plan->streams_max, STREAMS_MOST);
  l->chatter = CHATTER_BURST;
  l->chatter_at = link_now(l);
  trunk->link = l;
  l->conn->ops = &choice_ops;
  if (tls_conn_connect(l->conn, plan->client, plan->name, STR("\x02h2\x08http/1.1"), choice_ready)) {
    conn_close(l->conn);
    return NULL;
  }
  conn_deadline(l->conn, plan->hello_ms);
  l->conn->read_waits = true; /* the handshake begins when the socket can be written to */
  conn_defer(l->conn);
  return l;
}

void http_link_handle(struct http_link *l, void (*closed)(struct http_link *l, void *arg), void *arg)
{
  l->closed = closed;
  l->arg = arg;
}

size_t http_link_calls(const struct http_link *l)
{
  return l->nlanes;
}

bool http_link_usable(const struct http_link *l)
{
  if (l->going || l->lame || !l->session || l->conn->closed || l->conn->eof)
    return false;
  uint32_t theirs = nghttp2_session_get_remote_settings(l->session, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
  return l->nlanes < MIN(l->streams_max, theirs) && nghttp2_session_check_request_allowed(l->session);
}

struct http_call *http_link_call(struct http_link *l)
{
  if (!http_link_usable(l))
    return NULL;
  struct http_call *c = xcalloc(1, sizeof(*c));
  struct lane *s = xcalloc(1, sizeof(*s));
  c->via = &lane_carrier;
  c->stream = s;
  c->limits = l->trunk->limits;
  c->arena = ARENA_INIT(ARENA_MAX);
  s->call = c;
  s->link = l;
  buf_init(&s->backlog, 2 * STREAM_WINDOW + 65536);
  buf_init(&s->out, OUT_MAX);
  s->next = l->lanes;
  if (l->lanes)
    l->lanes->prev = s;
  l->lanes = s;
  l->nlanes++;
  return c;
}

void http_link_leave(struct http_link *l)
{
  if (!l)
    return;
  l->closed = NULL;
  l->opened = NULL;
  l->going = true;
  if (!l->session) {
    conn_close(l->conn);
    return;
  }
  if (!l->nlanes && !l->lame && !l->inside)
    nghttp2_session_terminate_session(l->session, NGHTTP2_NO_ERROR);
  conn_defer(l->conn);
}
