/* SPDX-License-Identifier: Apache-2.0 */
/* http2.c - the server side of an HTTP/2 connection: streams in, each one exchange of http.h. Framing and HPACK are
 * nghttp2's; what is here is the meaning and the limits.
 *
 * nghttp2 must not be entered from its own callbacks. Handlers are called from some of them (a head, a piece of a
 * body), and what they say is only submitted; it is sent when nghttp2 is left. Everything else a handler hears (the end
 * of the body, drain, gone) is reported by h2_notify, outside of nghttp2, for the streams that asked for it by h2_todo.
 *
 * Flow control: no window opens by itself. Body bytes that the handler takes are given back to the windows at once;
 * those of a paused stream wait in its backlog, at most STREAM_WINDOW of them, and hold that stream back. All streams
 * of a connection together never hold more than SESSION_WINDOW. Output waits in its stream until the socket has less
 * than SOCKET_AHEAD before it, so a slow stream's bytes do not stand in a fast one's way.
 *
 * Abuse: at most STREAMS_MAX at once; a client that resets streams faster than RESETS_PER_S, or chats (settings, pings,
 * priorities, empty frames) faster than CHATTER_PER_S, after a generous burst, gets GOAWAY with ENHANCE_YOUR_CALM.
 * Heads have the size, count and time limits of HTTP/1.1, and what that parser would refuse is refused here. A byte of
 * HPACK may stand for kilobytes, so fields are counted as they are decoded, those of trailers too: a section of twice
 * the limit ends the connection then and there, many that are merely too large end it as well, and decoding is work
 * that conn_spend counts, which pauses nghttp2 inside a section. Trailers are kept where the
 * server wants them (http_limits.trailers). CONNECT exists for
 * WebSockets alone, where the server takes them (http2_connect.c); other upgrades go by HTTP/1.1.
 *
 * An abort is RST_STREAM with INTERNAL_ERROR, so the client sees a broken transfer and its other streams go on. */
#include "net/http2.h"

#define STREAMS_MAX       250
#define STREAM_WINDOW     (1 << 20)
#define SESSION_WINDOW    (4 << 20)
#define SOCKET_AHEAD      ((size_t)128 << 10)
#define DATA_FRAME        (16384 - 9) /* with its head it fills one TLS record */
#define RESETS_BURST      500
#define RESETS_PER_S      50
#define CHATTER_BURST     2000
#define CHATTER_PER_S     200
#define OVERSIZED_BURST   10
#define OVERSIZED_PER_S   1
#define CONTINUATIONS_MAX 8
#define LINGER_MS         2000
#define REQUEST_COST      16384 /* of conn_spend */
#define FRAME_COST        512

static struct h2 *h2_of(struct conn *c)
{
  return container_of(c, struct peer, conn)->session;
}

static uint64_t h2_now(const struct h2 *h)
{
  return uv_now(h->peer->conn.net->loop);
}

/* ---- streams ---- */

bool stream_open(const struct stream *s)
{
  return s->x && !s->closed && !s->aborted && !s->cut && !s->h2->over && !s->h2->peer->conn.closed;
}

static struct stream *stream_new(struct h2 *h, int32_t id)
{
  struct stream *s = xcalloc(1, sizeof(*s));
  s->h2 = h;
  s->id = id;
  s->active_at = h2_now(h);
  s->x = exchange_new(h->peer);
  s->x->stream = s;
  s->live = true;
  h->nlive++;
  buf_init(&s->backlog, 2 * STREAM_WINDOW + 65536);
  s->next = h->streams;
  if (h->streams)
    h->streams->prev = s;
  h->streams = s;
  return s;
}

static void stream_give_back(struct stream *s, size_t n)
{
  if (n && !s->h2->fatal)
    nghttp2_session_consume(s->h2->session, s->id, n);
}

static void backlog_drop(struct stream *s)
{
  stream_give_back(s, s->backlog.n - s->backlog_off);
  conn_release(&s->h2->peer->conn, s->backlog.n - s->backlog_off);
  buf_free(&s->backlog);
  s->backlog_off = 0;
}

/* The exchange is over; the stream may have a last frame to go. A head that never became whole was reported to nobody.
 */
static void stream_gone(struct stream *s, enum http_end how)
{
  struct http_x *x = steal(&s->x);
  if (!s->live)
    return;
  s->live = false;
  s->h2->nlive--;
  if (s->head_done && !s->refuse)
    exchange_gone(x, how);
  else
    exchange_free(s->h2->peer->server, x);
}

static void stream_free(struct stream *s)
{
  struct h2 *h = s->h2;
  if (s->prev)
    s->prev->next = s->next;
  else
    h->streams = s->next;
  if (s->next)
    s->next->prev = s->prev;
  backlog_drop(s);
  answer_drop(s);
  vec_free(&s->headers);
  free(s);
}

struct stream *stream_of(nghttp2_session *session, int32_t id)
{
  return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

void h2_todo(struct stream *s)
{
  struct h2 *h = s->h2;
  if (s->in_todo)
    return;
  s->in_todo = true;
  *h->todo_tail = s;
  h->todo_tail = &s->todo_next;
  if (!h->telling && !h->peer->conn.stepping)
    conn_defer(&h->peer->conn);
}

void h2_reset(struct stream *s, uint32_t code)
{
  if (s->closed || s->h2->fatal)
    return;
  nghttp2_submit_rst_stream(s->h2->session, NGHTTP2_FLAG_NONE, s->id, code);
  h2_send_soon(s->h2);
}

void stream_refuse(struct stream *s, int status, const char *why, enum http_end how)
{
  bool begun = s->x->begun;
  stream_gone(s, how);
  backlog_drop(s);
  if (!begun) {
    answer_refuse(s, status, why);
    return;
  }
  s->aborted = true;
  answer_drop(s);
  h2_reset(s, NGHTTP2_INTERNAL_ERROR);
}

/* ---- the end of a connection ---- */

void h2_end_session(struct h2 *h, uint32_t code, const char *why)
{
  if (h->over || h->leaving)
    return;
  h->leaving = true;
  h->why_over = why;
  nghttp2_session_terminate_session(h->session, code);
  if (code)
    log_debug("HTTP/2 connection ended: %s", why);
  h2_send_soon(h);
}

void h2_oversized(struct h2 *h)
{
  if (!bucket_take(&h->oversized, h2_now(h), OVERSIZED_PER_S, OVERSIZED_BURST))
    h2_end_session(h, NGHTTP2_ENHANCE_YOUR_CALM, "too many oversized header sections");
}

/* GOAWAY is queued behind all there was. Exchanges that are still open are lost with the connection. */
static void h2_leave(struct h2 *h)
{
  struct conn *c = &h->peer->conn;
  h->over = true;
  server_idle_remove(h->peer->server, h->peer);
  for (struct stream *s = h->streams; s; s = s->next)
    h2_todo(s);
  c->want = true;
  conn_shut(c);
  conn_deadline(c, LINGER_MS);
}

/* ---- sending ---- */

static ssize_t on_send(nghttp2_session *session, const uint8_t *p, size_t n, int flags, void *arg)
{
  struct h2 *h = arg;
  struct conn *c = &h->peer->conn;
  struct iovec v = {(void *)p, n};
  (void)session, (void)flags;
  if (c->queued_mem >= SOCKET_AHEAD)
    return NGHTTP2_ERR_WOULDBLOCK;
  return conn_write(c, &v, 1, true) < 0 ? NGHTTP2_ERR_CALLBACK_FAILURE : (ssize_t)n;
}

static int on_send_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n,
                        nghttp2_data_source *source, void *arg)
{
  struct h2 *h = arg;
  if (h->peer->conn.queued_mem >= SOCKET_AHEAD)
    return NGHTTP2_ERR_WOULDBLOCK;
  return answer_write(session, frame, head, n, source, arg);
}

static ssize_t data_frame_length(nghttp2_session *session, uint8_t type, int32_t id, int32_t session_room,
                                 int32_t stream_room, uint32_t frame_max, void *arg)
{
  (void)session, (void)type, (void)id, (void)arg;
  return MIN(MIN(session_room, stream_room), MIN((int32_t)frame_max, (int32_t)DATA_FRAME));
}

void h2_send(struct h2 *h)
{
  struct conn *c = &h->peer->conn;
  h->send_due = true;
  if (h->inside || c->closed || h->over)
    return;
  h->send_due = false;
  h->inside++;
  int r = nghttp2_session_send(h->session);
  h->inside--;
  conn_push(c);
  if (r < 0) { /* no more memory, or the socket is broken, which is reported separately */
    h->fatal = true;
    peer_end(h->peer, HTTP_ABORTED, true);
  }
}

void h2_send_soon(struct h2 *h)
{
  h->send_due = true;
  if (!h->inside && !h->peer->conn.stepping)
    conn_defer(&h->peer->conn);
}

/* ---- what comes ---- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
  struct h2 *h = arg;
  h->block_bytes = h->block_fields = 0;
  conn_spend(&h->peer->conn, REQUEST_COST);
  if (frame->hd.type != NGHTTP2_HEADERS || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
    return 0;
  struct stream *s = stream_new(h, frame->hd.stream_id);
  nghttp2_session_set_stream_user_data(session, s->id, s);
  return 0;
}

static bool too_large(const struct http_x *x)
{
  if (((const struct stream *)x->stream)->connect)
    return false; /* a tunnel has no size */
  return x->body_seen > x->body_max || (x->reading && x->frame.kind == H1_LENGTH && x->frame.length > x->body_max);
}

/* The handler takes what comes now. */
static bool takes_body(const struct stream *s)
{
  return s->x->reading && (s->connect ? s->x->tunnel : !s->ended);
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *p, size_t n, void *arg)
{
  struct stream *s = stream_of(session, id);
  (void)flags, (void)arg;
  if (!s || !stream_open(s) || (s->ended && !s->x->tunnel)) {
    nghttp2_session_consume(session, id, n);
    return 0;
  }
  struct http_x *x = s->x;
  s->active_at = h2_now(s->h2);
  x->body_seen += n;
  if (too_large(x)) {
    nghttp2_session_consume(session, id, n);
    stream_refuse(s, 413, "request body too large", HTTP_ABORTED);
  } else if (takes_body(s) && !s->backlog.n) {
    if (x->ops && x->ops->body)
      x->ops->body(x, str_make(p, n));
    stream_give_back(s, n);
  } else if (buf_add(&s->backlog, p, n) < 0) {
    stream_refuse(s, 503, "out of memory", HTTP_ABORTED);
  } else {
    conn_hold(&s->h2->peer->conn, n);
  }
  return 0;
}

static bool is_chatter(const nghttp2_frame *f)
{
  switch (f->hd.type) {
  case NGHTTP2_SETTINGS:
  case NGHTTP2_PING:
  case NGHTTP2_PRIORITY:
  case NGHTTP2_PRIORITY_UPDATE:
    return !(f->hd.flags & NGHTTP2_FLAG_ACK);
  case NGHTTP2_DATA:
    return f->hd.length == 0 && !(f->hd.flags & NGHTTP2_FLAG_END_STREAM);
  default:
    return false;
  }
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
  struct h2 *h = arg;
  struct stream *s = stream_of(session, frame->hd.stream_id);
  bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
  conn_spend(&h->peer->conn, FRAME_COST);
  if (is_chatter(frame) && !bucket_take(&h->chatter, h2_now(h), CHATTER_PER_S, CHATTER_BURST))
    h2_end_session(h, NGHTTP2_ENHANCE_YOUR_CALM, "too many control frames");
  if (frame->hd.type == NGHTTP2_RST_STREAM && !bucket_take(&h->resets, h2_now(h), RESETS_PER_S, RESETS_BURST))
    h2_end_session(h, NGHTTP2_ENHANCE_YOUR_CALM, "streams are reset too fast");
  if (!s || h->leaving || h->peer->conn.closed)
    return 0;
  if (frame->hd.type == NGHTTP2_HEADERS && frame->headers.cat == NGHTTP2_HCAT_REQUEST) {
    head_done(s, ends);
    h2_todo(s);
  } else if (ends && (frame->hd.type == NGHTTP2_DATA || frame->hd.type == NGHTTP2_HEADERS)) {
    s->in_end = true;
    if (frame->hd.type == NGHTTP2_HEADERS && s->x && s->head_done)
      trailers_done(s);
    h2_todo(s);
  }
  return 0;
}

static int on_stream_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg)
{
  struct stream *s = stream_of(session, id);
  (void)code, (void)arg;
  if (!s)
    return 0;
  nghttp2_session_set_stream_user_data(session, id, NULL);
  s->closed = true;
  h2_todo(s);
  return 0;
}

/* Header frames that end the stream; the ends of data are noticed where they are written. */
static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *arg)
{
  struct stream *s = stream_of(session, frame->hd.stream_id);
  (void)arg;
  if (s && (frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) {
    s->end_sent = true;
    h2_todo(s);
  }
  return 0;
}

/* A promise of bytes can't be kept when a head does not fit the peer's limits or memory is out. */
static int on_frame_not_sent(nghttp2_session *session, const nghttp2_frame *frame, int code, void *arg)
{
  struct stream *s = stream_of(session, frame->hd.stream_id);
  (void)code, (void)arg;
  if (s && frame->hd.type == NGHTTP2_HEADERS && !s->aborted) {
    s->aborted = true;
    nghttp2_submit_rst_stream(session, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_INTERNAL_ERROR);
    h2_todo(s);
  }
  return 0;
}

/* ---- telling handlers ---- */

static void tell_body(struct stream *s)
{
  struct http_x *x = s->x;
  if (too_large(x)) {
    stream_refuse(s, 413, "request body too large", HTTP_ABORTED);
    return;
  }
  if (s->connect && !x->tunnel) { /* the request itself has none */
    if (!x->reading || x->body_told)
      return;
    x->body_told = true;
    if (x->ops && x->ops->body_end)
      x->ops->body_end(x);
    return;
  }
  while (stream_open(s) && takes_body(s) && s->backlog_off < s->backlog.n) {
    struct str piece = str_sub(str_skip(buf_str(&s->backlog), s->backlog_off), 0, NET_IN_SIZE);
    s->backlog_off += piece.n;
    conn_release(&s->h2->peer->conn, piece.n);
    if (x->ops && x->ops->body)
      x->ops->body(x, piece);
    stream_give_back(s, piece.n);
  }
  if (s->backlog_off == s->backlog.n) {
    buf_free(&s->backlog);
    s->backlog_off = 0;
  } else if (s->backlog_off >= s->backlog.n / 2) {
    buf_drop(&s->backlog, s->backlog_off);
    s->backlog_off = 0;
  }
  if (stream_open(s) && takes_body(s) && s->in_end && !s->backlog.n && !x->body_told) {
    x->body_told = true;
    if (x->ops && x->ops->body_end)
      x->ops->body_end(x);
  }
}

static void tell_drain(struct stream *s)
{
  struct http_x *x = s->x;
  if (!x->drain_due || s->ended || s->queued > answer_mark(s) / 4)
    return;
  x->drain_due = false;
  if (x->ops && x->ops->drain)
    x->ops->drain(x);
}

/* The last callbacks of a handler, or true when there are none yet. */
static bool goes_on(struct stream *s)
{
  bool half = s->end_sent && s->x->tunnel && !s->x->body_told; /* the other direction of a tunnel */
  if (half && stream_open(s))
    return true;
  if (s->end_sent) {
    stream_gone(s, HTTP_DONE);
  } else if (s->aborted) {
    stream_gone(s, HTTP_ABORTED);
  } else if (s->closed || s->cut || s->h2->over) {
    stream_gone(s, HTTP_PEER_GONE);
  } else {
    return true;
  }
  backlog_drop(s);
  return false;
}

static void stream_tell(struct stream *s)
{
  if (s->x && s->head_done && goes_on(s)) {
    answer_submit_held(s);
    tell_body(s);
    if (s->x && stream_open(s))
      tell_drain(s);
  } else if (s->x && (s->closed || s->h2->over)) {
    stream_gone(s, HTTP_PEER_GONE);
  }
  if (!s->x && s->end_sent && !s->in_end) { /* the rest of the request is of no use to anybody */
    s->in_end = true;
    h2_reset(s, NGHTTP2_NO_ERROR);
  }
  if (s->closed && !s->x && !s->in_todo)
    stream_free(s);
}

static void h2_notify(struct h2 *h)
{
  h->telling = true;
  while (h->todo && !h->peer->conn.closed) {
    struct stream *s = h->todo;
    h->todo = s->todo_next;
    if (!h->todo)
      h->todo_tail = &h->todo;
    s->todo_next = NULL;
    s->in_todo = false;
    stream_tell(s);
  }
  h->telling = false;
}

/* ---- what the connection waits for ---- */

static unsigned look_ms(const struct http_limits *l)
{
  unsigned ms = l->head_ms;
  if (l->body_ms)
    ms = MIN(ms, l->body_ms);
  return l->linger_ms ? MIN(ms, l->linger_ms) : ms;
}

static void h2_settle(struct h2 *h)
{
  struct peer *p = h->peer;
  const struct http_limits *l = &p->server->limits;
  bool idle = h->nlive == 0;
  if (idle && !h->idle) {
    server_idle_add(p->server, p);
    conn_deadline(&p->conn, l->idle_ms);
  } else if (!idle && (h->idle || !p->conn.deadline)) {
    server_idle_remove(p->server, p);
    conn_deadline(&p->conn, look_ms(l)); /* h2_due looks closer */
  }
  h->idle = idle;
  if (idle && p->server->stopping)
    h2_end_session(h, NGHTTP2_NO_ERROR, "the server stops");
}

static void h2_feed(struct h2 *h, struct str *in)
{
  bool thrown_away = h->over || h->leaving;
  if (!thrown_away && (h->peer->conn.busy || (!in->n && !h->paused)))
    return;
  ssize_t n = 0;
  h->paused = false;
  h->inside++;
  if (!thrown_away)
    n = nghttp2_session_mem_recv(h->session, (const uint8_t *)(in->n ? in->p : ""), in->n);
  h->inside--;
  if (n < 0)
    h2_end_session(h, n == NGHTTP2_ERR_FLOODED ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR,
                   nghttp2_strerror((int)n));
  thrown_away |= h->over || h->leaving;
  *in = thrown_away ? STR_NONE : str_skip(*in, (size_t)MAX(n, 0));
}

static void h2_step(struct conn *c, struct str *in)
{
  struct h2 *h = h2_of(c);
  h2_feed(h, in);
  do {
    h2_notify(h);
    h2_send(h);
  } while (!c->closed && h->todo);
  if (c->closed)
    return;
  if (h->over)
    return;
  bool spoken = h->leaving && !nghttp2_session_want_write(h->session);
  if (spoken || (!nghttp2_session_want_read(h->session) && !nghttp2_session_want_write(h->session)))
    h2_leave(h);
  else
    h2_settle(h);
  if (h->send_due || h->todo)
    conn_defer(c);
}

/* ---- what happens to the connection ---- */

static void h2_eof(struct conn *c)
{
  peer_end(h2_of(c)->peer, HTTP_PEER_GONE, false);
}

static void h2_moved(struct conn *c)
{
  (void)c; /* a step follows, and sends more */
}

static void h2_broken(struct conn *c, int code, bool writing)
{
  bool ours = writing && (code == -ENOBUFS || code == -ENOMEM);
  peer_end(h2_of(c)->peer, ours ? HTTP_ABORTED : HTTP_PEER_GONE, true);
}

/* How long this stream may go on as it is, and since when. 0 = for ever. */
static unsigned patience(const struct stream *s, uint64_t *since)
{
  const struct http_limits *l = &s->h2->peer->server->limits;
  bool reads = s->x && s->head_done && s->x->reading && !s->in_end && !s->ended;
  *since = s->active_at;
  if (!s->head_done)
    return l->head_ms;
  if (s->queued && l->linger_ms) { /* its window stays shut */
    *since = s->moved_at;
    return l->linger_ms;
  }
  return reads && !s->x->untimed && !s->connect ? l->body_ms : 0;
}

static void lose_patience(struct stream *s)
{
  if (!s->head_done) {
    h2_end_session(s->h2, NGHTTP2_ENHANCE_YOUR_CALM, "a request head did not arrive in time");
  } else if (s->x && !s->queued) {
    stream_refuse(s, 408, "the request body stopped coming", HTTP_PEER_GONE);
  } else {
    s->cut = true;
    answer_drop(s);
    h2_reset(s, NGHTTP2_ENHANCE_YOUR_CALM);
    h2_todo(s);
  }
}

/* Ends what has lasted too long; returns when to look again. */
static uint64_t look_around(struct h2 *h, uint64_t now)
{
  uint64_t next = UINT64_MAX, since;
  for (struct stream *s = h->streams, *after; s; s = after) {
    after = s->next;
    unsigned ms = patience(s, &since);
    if (!ms || s->cut)
      continue;
    if (since + ms > now)
      next = MIN(next, since + ms - now);
    else
      lose_patience(s);
  }
  return next;
}

static void h2_due(struct conn *c)
{
  struct h2 *h = h2_of(c);
  if (h->over || h->leaving) {
    peer_end(h->peer, HTTP_PEER_GONE, false);
    return;
  }
  uint64_t next = look_around(h, h2_now(h));
  if (h->idle)
    h2_end_session(h, NGHTTP2_NO_ERROR, "idle");
  conn_deadline(c, (unsigned)MIN(next, (uint64_t)look_ms(&h->peer->server->limits)));
  conn_defer(c);
}

/* Everything is gone or goes now. */
static void h2_drop_all(struct h2 *h, enum http_end how)
{
  h->fatal = true;
  for (struct stream *s = h->streams; s; s = s->next)
    if (s->x)
      stream_gone(s, s->end_sent ? HTTP_DONE : how);
}

static void h2_freed(struct conn *c)
{
  struct h2 *h = h2_of(c);
  struct peer *p = h->peer;
  struct http_server *server = p->server;
  h2_drop_all(h, p->how);
  while (h->streams)
    stream_free(h->streams);
  nghttp2_session_del(h->session);
  free(h);
  server_left(p);
  free(p);
  server_unref(server);
}

static const struct conn_ops h2_ops = {h2_step, h2_eof, h2_eof, h2_moved, h2_broken, h2_due, h2_freed, NULL, NULL};

void http2_drop(struct peer *p)
{
  struct h2 *h = p->session;
  peer_end(p, HTTP_ABORTED, true);
  if (!p->conn.stepping && !h->inside)
    h2_drop_all(h, HTTP_ABORTED);
}

/* ---- the beginning ---- */

static nghttp2_session *session_new(struct h2 *h)
{
  nghttp2_session *session = NULL;
  nghttp2_session_callbacks *on = NULL;
  nghttp2_option *o = NULL;
  if (nghttp2_session_callbacks_new(&on) || nghttp2_option_new(&o)) {
    nghttp2_session_callbacks_del(on);
    return NULL;
  }
  nghttp2_session_callbacks_set_send_callback(on, on_send);
  nghttp2_session_callbacks_set_send_data_callback(on, on_send_data);
  nghttp2_session_callbacks_set_data_source_read_length_callback(on, data_frame_length);
  nghttp2_session_callbacks_set_on_begin_headers_callback(on, on_begin_headers);
  nghttp2_session_callbacks_set_on_header_callback(on, head_field);
  nghttp2_session_callbacks_set_on_invalid_header_callback(on, head_invalid);
  nghttp2_session_callbacks_set_on_data_chunk_recv_callback(on, on_data);
  nghttp2_session_callbacks_set_on_frame_recv_callback(on, on_frame);
  nghttp2_session_callbacks_set_on_frame_send_callback(on, on_frame_sent);
  nghttp2_session_callbacks_set_on_frame_not_send_callback(on, on_frame_not_sent);
  nghttp2_session_callbacks_set_on_stream_close_callback(on, on_stream_close);
  nghttp2_option_set_no_auto_window_update(o, 1);
  nghttp2_option_set_no_closed_streams(o, 1);
#ifdef HAVE_NGHTTP2_MAX_CONTINUATIONS
  nghttp2_option_set_max_continuations(o, CONTINUATIONS_MAX);
#endif
  nghttp2_session_server_new2(&session, on, h, o);
  nghttp2_option_del(o);
  nghttp2_session_callbacks_del(on);
  return session;
}

static int say_settings(struct h2 *h)
{
  const nghttp2_settings_entry ours[] = {
      {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_MAX},
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW},
      {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)h->peer->server->limits.head_max},
      {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
      {NGHTTP2_SETTINGS_ENABLE_CONNECT_PROTOCOL, 1},
  };
  size_t n = ARRAY_LEN(ours) - !h->peer->server->limits.connect;
  int r = nghttp2_submit_settings(h->session, NGHTTP2_FLAG_NONE, ours, n);
  return r ? r : nghttp2_session_set_local_window_size(h->session, NGHTTP2_FLAG_NONE, 0, SESSION_WINDOW);
}

void http2_begin(struct peer *p)
{
  struct h2 *h = xcalloc(1, sizeof(*h));
  h->peer = p;
  h->todo_tail = &h->todo;
  h->idle = true; /* as server_admit left it */
  h->session = session_new(h);
  if (!h->session || say_settings(h)) {
    nghttp2_session_del(h->session);
    free(h);
    peer_end(p, HTTP_ABORTED, true);
    return;
  }
  p->session = h;
  p->via = &http2_carrier;
  p->conn.ops = &h2_ops;
  h2_send_soon(h);
}
