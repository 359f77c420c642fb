/* SPDX-License-Identifier: Apache-2.0 */
/* http2_call.c - the calls on a connection of HTTP/2 (http2_link.c): what their handlers hear, and what they say. */
#include "net/http2_link.h"

struct lane *lane_of(nghttp2_session *session, int32_t id)
{
  return id ? nghttp2_session_get_stream_user_data(session, id) : NULL;
}

size_t lane_queued(const struct lane *s)
{
  return s->out.n - s->out_off;
}

void lane_todo(struct lane *s)
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

void lane_bad(struct lane *s, const char *why)
{
  if (!s->bad)
    s->bad = why;
}

/* ---- the request's body ---- */

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

/* ---- telling handlers ---- */

void lane_unlink(struct lane *s)
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

void lane_fail(struct lane *s, int code, const char *why)
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
  bool http1 = s->error == NGHTTP2_HTTP_1_1_REQUIRED || (l->http1 && refused);
  int code = http1 ? -EPROTONOSUPPORT : refused ? -ECONNABORTED : l->lame ? l->code : -EPROTO;
  if (s->call->head_seen && (http1 || refused || code == -ECONNRESET))
    code = -EPROTO;
  lane_fail(s, code,
            http1     ? "the server wants HTTP/1.1"
            : refused ? "the server refused it"
            : l->lame ? l->why
                      : nghttp2_http2_strerror(s->error));
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
    buf_init(&s->backlog, BACKLOG_MAX);
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

void link_notify(struct http_link *l)
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

const struct call_carrier lane_carrier = {lane_start,    lane_send, lane_end,  lane_congested,
                                          lane_deadline, lane_flow, lane_leave};
