/* SPDX-License-Identifier: Apache-2.0 */
/* http2_link.c - the client side of HTTP/2: a connection (struct http_link) that carries many calls of http.h at once.
 *
 * The connection is made by TLS and offers h2 and http/1.1. Where the server takes the latter, it becomes an ordinary
 * call. Each call of a link is a stream. Handlers are called from link_notify only (http2_call.c), outside of nghttp2:
 * what comes is first put into its stream.
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
#include "net/http2_link.h"

#define STREAMS_MOST      256 /* more are never had at once, whatever is asked for */
#define SOCKET_AHEAD      ((size_t)128 << 10)
#define OUT_MAX           ((size_t)4 << 20)
#define ARENA_MAX         ((size_t)2 << 20)
#define INTERIMS_MAX      16
#define CHATTER_BURST     2000
#define CHATTER_PER_S     200
#define CONTINUATIONS_MAX 8
#define HEAD_COST         8192 /* of conn_spend */
#define FRAME_COST        512
#define FIELD_COST        128

static struct http_link *link_of(struct conn *c)
{
  return container_of(c, struct http_call, conn)->link;
}

uint64_t link_now(const struct http_link *l)
{
  return uv_now(l->conn->net->loop);
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

void link_send(struct http_link *l)
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
    l->http1 |= frame->goaway.error_code == NGHTTP2_HTTP_1_1_REQUIRED;
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

int link_begin(struct http_link *l)
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
  if (nghttp2_session_set_local_window_size(l->session, NGHTTP2_FLAG_NONE, 0, window))
    return -ENOMEM;
  l->conn->ops = &link_ops;
  l->opened = NULL;
  link_send(l);
  conn_defer(l->conn);
  return 0;
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

struct http_link *link_new(uv_loop_t *loop, int fd, const struct http_link_plan *plan)
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
  return l;
}

struct http_link *http_link_open(uv_loop_t *loop, int fd, const struct http_link_plan *plan)
{
  struct http_link *l = link_new(loop, fd, plan);
  if (!l)
    return NULL;
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
  buf_init(&s->backlog, BACKLOG_MAX);
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
