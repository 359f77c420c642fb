/* SPDX-License-Identifier: Apache-2.0 */
/* http2_head.c - the heads of HTTP/2 requests, put together as if they had come by HTTP/1.1.
 *
 * :authority becomes Host and wins over a host field beside it, :path the target, cookies that were cut into many
 * fields become one again. The limits and the strictness are those of h1parse.c; a head that breaks them is remembered
 * and refused when it is complete, because the compression state must be kept whole for the streams after it. */
#include "net/http2.h"

static void head_refuse(struct stream *s, int status)
{
  if (!s->refuse)
    s->refuse = status;
}

/* A browser may cut its cookies into many lines; a service behind us expects one. All into the first of them, when all
 * are there. */
static int join_cookies(struct arena *a, struct http_header *hv, size_t *n)
{
  struct http_header *first = NULL;
  size_t kept = 0;
  cleanup_buf struct buf all = BUF_INIT((size_t)1 << 20);
  for (size_t i = 0; i < *n; i++) {
    bool cookie = str_is(hv[i].name, "cookie");
    if (cookie && first)
      buf_addz(&all, "; ");
    if (cookie)
      buf_adds(&all, hv[i].value);
    if (cookie && first)
      continue;
    hv[kept] = hv[i];
    if (cookie)
      first = &hv[kept];
    kept++;
  }
  *n = kept;
  if (!first)
    return 0;
  first->value = buf_failed(&all) ? STR_NONE : arena_str(a, buf_str(&all));
  return first->value.p ? 0 : 431;
}

static void take_header(struct stream *s, struct str name, struct str value)
{
  struct str kept = arena_str(&s->x->arena, value);
  if (!kept.p)
    head_refuse(s, 431);
  else if (str_is(name, ":method"))
    s->method = kept;
  else if (str_is(name, ":path"))
    s->path = kept;
  else if (str_is(name, ":authority"))
    s->authority = kept;
  else if (str_is(name, ":protocol"))
    s->protocol = kept;
  else if (name.n && name.p[0] != ':')
    vec_push(&s->headers, ((struct http_header){arena_str(&s->x->arena, name), kept}));
}

static void take_trailer(struct stream *s, struct str name, struct str value)
{
  const struct http_limits *l = &s->h2->peer->server->limits;
  if (!l->trailers || s->h2->block_bytes > l->head_max || s->headers.n >= l->headers_max || !h1_token(name) ||
      !h1_value(value))
    return;
  struct http_header kept = {arena_str(&s->x->arena, name), arena_str(&s->x->arena, value)};
  if (kept.name.p && kept.value.p)
    vec_push(&s->headers, kept);
}

void trailers_done(struct stream *s)
{
  struct http_header *hv = s->headers.n ? arena_alloc(&s->x->arena, s->headers.n * sizeof(*hv)) : NULL;
  if (hv)
    memcpy(hv, s->headers.p, s->headers.n * sizeof(*hv));
  s->x->trailers = hv;
  s->x->ntrailers = hv ? s->headers.n : 0;
  vec_free(&s->headers);
}

/* Each field that nghttp2 decodes, whatever becomes of it: 0, or to be returned to nghttp2. */
static int head_counted(struct h2 *h, size_t n)
{
  const struct http_limits *l = &h->peer->server->limits;
  h->block_bytes += n + 32; /* as the protocol counts */
  h->block_fields++;
  if (h->block_bytes > 2 * l->head_max || h->block_fields > 2 * l->headers_max)
    h2_end_session(h, NGHTTP2_ENHANCE_YOUR_CALM, "a header section far beyond the limits");
  return conn_spend(&h->peer->conn, FIELD_COST + BYTE_COST * n) || h->leaving ? NGHTTP2_ERR_PAUSE : 0;
}

int head_field(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t nname,
               const uint8_t *value, size_t nvalue, uint8_t flags, void *arg)
{
  struct stream *s = stream_of(session, frame->hd.stream_id);
  struct h2 *h = arg;
  const struct http_limits *l = &h->peer->server->limits;
  (void)flags;
  int verdict = head_counted(h, nname + nvalue);
  if (!h->leaving && s && s->x && s->head_done)
    take_trailer(s, str_make(name, nname), str_make(value, nvalue));
  if (h->leaving || !s || !s->x || s->head_done)
    return verdict;
  s->head_bytes += nname + nvalue + 32; /* as the protocol counts */
  bool first_line = nname && name[0] == ':';
  if (first_line && s->head_bytes > l->head_max)
    head_refuse(s, 414);
  else if (s->head_bytes > l->head_max || s->headers.n >= l->headers_max)
    head_refuse(s, 431);
  else if (!h1_value(str_make(value, nvalue)))
    head_refuse(s, 400);
  else
    take_header(s, str_make(name, nname), str_make(value, nvalue));
  return verdict;
}

int head_invalid(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name, size_t nname,
                 const uint8_t *value, size_t nvalue, uint8_t flags, void *arg)
{
  struct stream *s = stream_of(session, frame->hd.stream_id);
  (void)name, (void)value, (void)flags;
  if (s && s->x && !s->head_done)
    head_refuse(s, 400);
  return head_counted(arg, nname + nvalue);
}

/* Puts the head together as if it had come by HTTP/1.1. */
static int head_build(struct stream *s, bool ends)
{
  struct http_x *x = s->x;
  struct http_header *hv = arena_alloc(&x->arena, (s->headers.n + 1 + CONNECT_FIELDS) * sizeof(*hv));
  size_t n = 0;
  uint64_t length;
  if (!hv)
    return 431;
  s->connect = str_is(s->method, "CONNECT");
  if (s->connect && !connect_is_known(s->protocol))
    return 501;
  if (!h1_token(s->method) || !h1_target(s->path) || (s->path.p[0] != '/' && !str_is(s->path, "*")))
    return 400;
  if (s->authority.n)
    hv[n++] = (struct http_header){STR("host"), s->authority};
  for (size_t i = 0; i < s->headers.n; i++)
    if (!s->authority.n || !str_is(s->headers.p[i].name, "host"))
      hv[n++] = s->headers.p[i];
  if (join_cookies(&x->arena, hv, &n))
    return 431;
  if (s->connect && (ends || connect_head(&x->arena, hv, &n)))
    return ends ? 400 : 431;
  x->head = (struct http_head){
      .method = s->connect ? STR("GET") : s->method, .target = s->path, .minor = 1, .headers = hv, .nheaders = n};
  str_cut(s->path, '?', &x->head.path, &x->head.query);
  struct str given = http_header(&x->head, "content-length");
  x->frame = (struct h1_frame){
      .kind = H1_CHUNKED, .keep = true, .expect = http_header_has(&x->head, "expect", "100-continue")};
  if (ends || s->connect)
    x->frame.kind = H1_NONE;
  else if (given.p && str_u64(given, &length) == 0)
    x->frame.kind = H1_LENGTH, x->frame.length = length;
  x->continue_due = x->frame.expect && !ends && !s->connect;
  return 0;
}

static const char *refusal(int status)
{
  return status == 414   ? "request target too long"
         : status == 431 ? "header section too large"
         : status == 501 ? "CONNECT is not served, but for WebSockets where they are offered"
                         : "malformed header";
}

void head_done(struct stream *s, bool ends)
{
  struct http_server *server = s->h2->peer->server;
  s->in_end = ends;
  if (!s->refuse)
    s->refuse = head_build(s, ends);
  s->head_done = true;
  vec_free(&s->headers);
  if (s->refuse == 431 || s->refuse == 414)
    h2_oversized(s->h2);
  if (s->refuse) {
    stream_refuse(s, s->refuse, refusal(s->refuse), HTTP_ABORTED);
    return;
  }
  server->fn(s->x, server->arg);
}
