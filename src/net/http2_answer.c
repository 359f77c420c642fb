/* SPDX-License-Identifier: Apache-2.0 */
/* http2_answer.c - what a handler says on a stream of HTTP/2.
 *
 * Bytes are queued in the stream and leave as its window, the connection's window and the socket allow; congestion is
 * judged by that queue alone, so one slow stream does not hold up its neighbours. A head without a body yet is held
 * until the end of the loop iteration: when the answer ends meanwhile, the head itself ends the stream. */
#include "net/http2.h"

#include <stdio.h>

#define PIECE_SIZE   ((size_t)16384)
#define OUT_MAX      ((uint64_t)64 << 20) /* queued memory at which a stream is given up */

/* One connection's streams together may have this many times the high-water mark of one; over it each has a small one.
 */
#define SHARED_MARKS 8
#define SMALL_MARK   ((uint64_t)16384)

/* ---- queued output ---- */

static void memory_add(struct stream *s, size_t n)
{
  s->h2->queued += n;
  conn_hold(&s->h2->peer->conn, n);
}

static void memory_take(struct stream *s, size_t n)
{
  s->h2->queued -= n;
  conn_release(&s->h2->peer->conn, n);
}

uint64_t answer_mark(const struct stream *s)
{
  uint64_t high = s->h2->peer->server->limits.high_water;
  return s->h2->queued > SHARED_MARKS * high ? MIN(SMALL_MARK, high) : high;
}

static void piece_free(struct piece *p)
{
  if (p->fd >= 0)
    close(p->fd);
  free(p);
}

static struct piece *piece_add(struct stream *s, size_t room)
{
  struct piece *p = malloc(sizeof(*p) + room);
  if (!p)
    return NULL;
  *p = (struct piece){.fd = -1, .cap = room};
  if (s->out)
    s->out_last->next = p;
  else
    s->out = p;
  s->out_last = p;
  return p;
}

void answer_drop(struct stream *s)
{
  while (s->out) {
    struct piece *p = s->out;
    s->out = p->next;
    memory_take(s, p->to - p->from);
    piece_free(p);
  }
  s->queued = 0;
}

static void note_queued(struct stream *s, uint64_t n)
{
  if (!s->queued)
    s->moved_at = uv_now(s->h2->peer->conn.net->loop);
  s->queued += n;
}

/* Pieces double, so that what is said byte by byte takes few: memory is counted by its bytes. */
static int queue_bytes(struct stream *s, struct str data)
{
  struct piece *last = s->out && s->out_last->fd < 0 ? s->out_last : NULL;
  size_t k = last ? MIN(last->cap - last->to, data.n) : 0, wish = MAX(4 * data.n, last ? 2 * last->cap : 0);
  if (s->queued > OUT_MAX)
    return -ENOBUFS;
  if (k)
    memcpy(last->data + last->to, data.p, k), last->to += k;
  if (data.n > k) {
    struct piece *p = piece_add(s, MAX(data.n - k, MIN(PIECE_SIZE, wish)));
    if (!p)
      return -ENOBUFS;
    memcpy(p->data, data.p + k, data.n - k);
    p->to = data.n - k;
  }
  memory_add(s, data.n);
  note_queued(s, data.n);
  return 0;
}

/* The front of the queue is a file: its next n bytes become memory before it. */
static int load(struct stream *s, size_t n)
{
  struct piece *f = s->out, *p = malloc(sizeof(*p) + n);
  if (!p)
    return -ENOMEM;
  *p = (struct piece){.next = f, .fd = -1, .to = n, .cap = n};
  if (pread(f->fd, p->data, n, (off_t)f->offset) != (ssize_t)n) { /* shorter than was promised */
    free(p);
    return -EIO;
  }
  s->out = p;
  memory_add(s, n);
  f->offset += n;
  f->left -= n;
  if (f->left)
    return 0;
  p->next = f->next;
  if (s->out_last == f)
    s->out_last = p;
  piece_free(f);
  return 0;
}

/* ---- nghttp2 asks ---- */

/* How much of the front can go now; files are read a frame at a time. */
static ssize_t front(struct stream *s, size_t n)
{
  size_t k = 0;
  for (const struct piece *o = s->out; o && o->fd < 0 && k < n; o = o->next)
    k += o->to - o->from;
  if (k || !s->out)
    return (ssize_t)MIN(k, n);
  k = (size_t)MIN(s->out->left, (uint64_t)n);
  int r = load(s, k);
  return r < 0 ? r : (ssize_t)k;
}

ssize_t answer_read(nghttp2_session *session, int32_t id, uint8_t *p, size_t n, uint32_t *flags,
                    nghttp2_data_source *source, void *arg)
{
  struct stream *s = source->ptr;
  (void)p, (void)arg;
  ssize_t k = front(s, n);
  if (k < 0) {
    s->aborted = true;
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  }
  if (k == 0 && !s->ended) {
    s->deferred = true;
    return NGHTTP2_ERR_DEFERRED;
  }
  *flags |= NGHTTP2_DATA_FLAG_NO_COPY;
  if (s->ended && (uint64_t)k == s->queued) {
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (s->x && s->ntrailers && nghttp2_submit_trailer(session, id, s->trailers, s->ntrailers) == 0)
      *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
  }
  return k;
}

int answer_write(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head, size_t n,
                 nghttp2_data_source *source, void *arg)
{
  struct stream *s = source->ptr;
  struct conn *c = &s->h2->peer->conn;
  struct iovec v = {(void *)head, 9};
  (void)session, (void)arg;
  if (s->aborted || s->cut || s->queued < n) /* dropped after the frame was planned */
    return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
  int r = conn_write(c, &v, 1, true);
  s->moved_at = uv_now(c->net->loop);
  while (r == 0 && n) {
    struct piece *o = s->out;
    size_t k = MIN(o->to - o->from, n);
    v = (struct iovec){o->data + o->from, k};
    r = conn_write(c, &v, 1, true);
    n -= k;
    s->queued -= k;
    memory_take(s, k);
    o->from += k;
    if (o->from < o->to)
      continue;
    s->out = o->next;
    piece_free(o);
  }
  if (r)
    return NGHTTP2_ERR_CALLBACK_FAILURE; /* half a frame is out: the connection can't be saved */
  if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
    s->end_sent = true;
    h2_todo(s);
  } else if (s->x && s->x->drain_due && s->queued <= answer_mark(s) / 4) {
    h2_todo(s);
  }
  return 0;
}

/* ---- heads ---- */

static nghttp2_nv pair(struct str name, struct str value)
{
  return (nghttp2_nv){(uint8_t *)name.p, (uint8_t *)value.p, name.n, value.n, NGHTTP2_NV_FLAG_NONE};
}

/* What belongs to one hop of HTTP/1.1, and the length, which is written from what was promised. */
static bool left_out(struct str name)
{
  static const char *const names[] = {"connection",        "keep-alive", "proxy-connection",
                                      "transfer-encoding", "upgrade",    "content-length"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (str_ieq(name, str_of(names[i])))
      return true;
  return false;
}

static struct str lower(struct arena *a, struct str name)
{
  char *z = arena_z(a, name);
  for (size_t i = 0; z && i < name.n; i++)
    if (z[i] >= 'A' && z[i] <= 'Z')
      z[i] = (char)(z[i] + 32);
  return str_make(z, name.n);
}

static bool is_bare(int status)
{
  return status < 200 || status == 204 || status == 304;
}

/* Fields in the exchange's arena. Returns their number, or negative. */
static ssize_t fields(struct http_x *x, int status, const struct http_header *headers, size_t n, int64_t length,
                      nghttp2_nv **out)
{
  struct arena *a = &x->arena;
  nghttp2_nv *nv = arena_alloc(a, (n + 3) * sizeof(*nv));
  char *code = arena_fmt(a, "%d", status);
  size_t k = 0;
  bool dated = false;
  if (!nv || !code)
    return -ENOBUFS;
  nv[k++] = pair(STR(":status"), str_of(code));
  for (size_t i = 0; i < n; i++) {
    if (!h1_token(headers[i].name) || !h1_value(headers[i].value))
      return -EINVAL;
    if (left_out(headers[i].name))
      continue;
    struct str name = lower(a, headers[i].name), value = arena_str(a, str_trim(headers[i].value));
    if (!name.p || !value.p)
      return -ENOBUFS;
    dated |= str_is(name, "date");
    nv[k++] = pair(name, value);
  }
  if (!dated && status >= 200)
    nv[k++] = pair(STR("date"), arena_str(a, net_date(x->peer->conn.net)));
  char *size = length >= 0 && !is_bare(status) ? arena_fmt(a, "%lld", (long long)length) : NULL;
  if (size)
    nv[k++] = pair(STR("content-length"), str_of(size));
  *out = nv;
  return (ssize_t)k;
}

static int submit(struct stream *s, const nghttp2_nv *nv, size_t n, bool bodied)
{
  nghttp2_data_provider from = {.source.ptr = s, .read_callback = answer_read};
  s->submitted = true;
  return nghttp2_submit_response(s->h2->session, s->id, nv, n, bodied ? &from : NULL) ? -ENOBUFS : 0;
}

void answer_submit_held(struct stream *s)
{
  nghttp2_nv *nv = steal(&s->held);
  if (nv && submit(s, nv, s->nheld, !s->ended || s->queued || s->ntrailers) == 0)
    h2_send_soon(s->h2);
}

static int check_open(const struct http_x *x, int status)
{
  if (x->begun)
    return -EALREADY;
  if (!stream_open(x->stream))
    return -EPIPE;
  if (((const struct stream *)x->stream)->connect && status / 100 == 2)
    return -EPROTO; /* the client would take it for a tunnel */
  return status < 100 || status > 599 || status == 101 ? -EINVAL : 0;
}

static int begin(struct http_x *x, int status, const struct http_header *headers, size_t n, int64_t length)
{
  struct stream *s = x->stream;
  ssize_t k = fields(x, status, headers, n, length, &s->held);
  if (k < 0)
    return (int)k;
  s->nheld = (size_t)k;
  x->begun = true;
  x->bare = str_is(x->head.method, "HEAD") || is_bare(status);
  x->out_left = length < 0 ? HTTP_CHUNKED : length;
  return 0;
}

static int interim(struct http_x *x, int status, const struct http_header *headers, size_t n)
{
  struct stream *s = x->stream;
  nghttp2_nv *nv;
  ssize_t k = fields(x, status, headers, n, HTTP_CHUNKED, &nv);
  if (k < 0)
    return (int)k;
  if (nghttp2_submit_headers(s->h2->session, NGHTTP2_FLAG_NONE, s->id, NULL, nv, (size_t)k, NULL) < 0)
    return -ENOBUFS;
  h2_send(s->h2);
  return 0;
}

static int x_respond(struct http_x *x, int status, const struct http_header *headers, size_t n, int64_t length)
{
  int r = check_open(x, status);
  if (r < 0)
    return r;
  if (status < 200)
    return interim(x, status, headers, n);
  r = begin(x, status, headers, n, length);
  if (r == 0)
    h2_todo(x->stream);
  return r;
}

static int x_reply(struct http_x *x, int status, const struct http_header *headers, size_t n, struct str body)
{
  struct stream *s = x->stream;
  int r = check_open(x, status);
  if (r == 0 && status < 200)
    r = -EINVAL;
  if (r == 0)
    r = begin(x, status, headers, n, (int64_t)body.n);
  if (r == 0 && body.n && !x->bare)
    r = queue_bytes(s, body);
  if (r < 0)
    return r;
  x->out_left = 0;
  x->ended = s->ended = true;
  answer_submit_held(s);
  h2_send(s->h2);
  return 0;
}

static int x_tunnel(struct http_x *x, const struct http_header *headers, size_t n)
{
  struct stream *s = x->stream;
  struct http_header *kept;
  size_t nkept;
  if (!s->connect)
    return -EPROTONOSUPPORT;
  if (x->begun || !stream_open(s))
    return x->begun ? -EALREADY : -EPIPE;
  int r = connect_answer(x, headers, n, &kept, &nkept);
  r = r ? r : begin(x, 200, kept, nkept, HTTP_CHUNKED);
  if (r)
    return r;
  x->tunnel = x->reading = true;
  x->body_told = false;
  h2_todo(s);
  return 0;
}

/* ---- bodies ---- */

static bool x_congested(const struct http_x *x)
{
  const struct stream *s = x->stream;
  return stream_open(s) && s->queued >= answer_mark(s);
}

/* New output is there. */
static void offer(struct stream *s)
{
  answer_submit_held(s);
  if (s->deferred) {
    s->deferred = false;
    nghttp2_session_resume_data(s->h2->session, s->id);
  }
  h2_send(s->h2);
  if (s->x && x_congested(s->x))
    s->x->drain_due = true;
}

static int x_send(struct http_x *x, struct str data)
{
  struct stream *s = x->stream;
  int r = answer_may_send(x, stream_open(s), data.n);
  if (r < 0 || x->bare || data.n == 0)
    return r;
  r = queue_bytes(s, data);
  if (r == 0)
    offer(s);
  else
    http2_carrier.abort(x);
  return r;
}

static int x_file(struct http_x *x, int fd, uint64_t offset, uint64_t n)
{
  cleanup_fd int file = fd;
  struct stream *s = x->stream;
  int r = answer_may_send(x, stream_open(s), n);
  if (r < 0 || x->bare || n == 0)
    return r;
  struct piece *p = piece_add(s, 0);
  if (!p)
    return -ENOBUFS;
  p->fd = steal_fd(&file);
  p->offset = offset;
  p->left = n;
  note_queued(s, n);
  offer(s);
  return 0;
}

static void x_abort(struct http_x *x)
{
  struct stream *s = x->stream;
  if (!stream_open(s))
    return;
  s->aborted = true;
  s->held = NULL;
  answer_drop(s);
  h2_reset(s, NGHTTP2_INTERNAL_ERROR);
  h2_todo(s);
}

static void x_trailers(struct http_x *x, const struct http_header *trailers, size_t n)
{
  struct stream *s = x->stream;
  s->trailers = arena_alloc(&x->arena, n * sizeof(*s->trailers));
  s->ntrailers = 0;
  for (size_t i = 0; s->trailers && !x->bare && i < n; i++) {
    struct str name = lower(&x->arena, trailers[i].name), value = arena_str(&x->arena, str_trim(trailers[i].value));
    if (name.p && value.p && h1_token(name) && h1_value(value) && !left_out(name))
      s->trailers[s->ntrailers++] = pair(name, value);
  }
}

static void x_end(struct http_x *x)
{
  struct stream *s = x->stream;
  if (!stream_open(s) || x->ended)
    return;
  if (!x->begun || (!x->bare && x->out_left > 0)) { /* no whole answer can come of this */
    x_abort(x);
    return;
  }
  x->ended = s->ended = true;
  offer(s);
}

/* ---- the request body ---- */

static void x_flow(struct http_x *x, bool on)
{
  struct stream *s = x->stream;
  if (!stream_open(s) || x->reading == on)
    return;
  x->reading = on;
  if (!on)
    return;
  s->active_at = uv_now(s->h2->peer->conn.net->loop);
  bool fits = x->frame.kind != H1_LENGTH || x->frame.length <= x->body_max;
  if (x->continue_due && fits && !x->begun)
    interim(x, 100, NULL, 0);
  x->continue_due = false;
  h2_todo(s);
}

void answer_refuse(struct stream *s, int status, const char *why)
{
  char body[192], size[24], code[8];
  int n = snprintf(body, sizeof(body), "{\"code\":%d,\"message\":\"%s\"}", status, why);
  snprintf(size, sizeof(size), "%d", n);
  snprintf(code, sizeof(code), "%d", status);
  const nghttp2_nv nv[] = {
      pair(STR(":status"), str_of(code)),
      pair(STR("content-type"), STR("application/json")),
      pair(STR("date"), net_date(s->h2->peer->conn.net)),
      pair(STR("content-length"), str_of(size)),
  };
  answer_drop(s);
  if (queue_bytes(s, str_make(body, (size_t)n)))
    return;
  s->ended = true;
  submit(s, nv, ARRAY_LEN(nv), true);
  h2_todo(s);
  h2_send_soon(s->h2);
}

const struct carrier http2_carrier = {x_respond,  x_reply, x_send,  x_file, x_tunnel,  x_congested,
                                      x_trailers, x_end,   x_abort, x_flow, http2_drop};
