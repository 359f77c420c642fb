/* SPDX-License-Identifier: Apache-2.0 */
/* rpc_call.c - Connect over an HTTP exchange: checks in the API's order, one answer, deadlines and keepalives.
 *
 * Errors of a streaming call always travel in an end-stream frame under HTTP 200, because a stock client reads any
 * other status as a transport failure. Timers belong to the loop until closed, so each open one holds the call. */
#include "rpc/rpc_call.h"
#include <stdio.h>

#define HEADERS_MAX         16
#define KEEPALIVE_DEFAULT_S 90

struct rpc_call {
  struct http_x *x; /* NULL once the peer is gone or the answer is complete */
  const struct rpc_method *method;
  struct rpc_setup setup;
  enum rpc_codec codec;
  uv_loop_t *loop;
  struct arena arena;   /* lives as long as the call */
  struct arena request; /* the decoded message; on a client stream, the one being handled */
  struct buf in;        /* request bytes not handled yet */
  struct buf out;       /* one frame being made */
  const struct rpc_ops *ops;
  void *data;
  uv_timer_t *deadline, *keepalive;
  const void *keepalive_msg;
  uint64_t keepalive_ms;
  int64_t born_us, sent_us;
  uint64_t timeout_ms;
  unsigned refs;
  bool begun, done, all_in, waiting, handling;
};

/* ---- life ---- */

void rpc_hold(struct rpc_call *c)
{
  c->refs++;
}

void rpc_release(struct rpc_call *c)
{
  if (--c->refs)
    return;
  buf_free(&c->in);
  buf_free(&c->out);
  arena_free(&c->request);
  arena_free(&c->arena);
  free(c);
}

static void timer_closed(uv_handle_t *h)
{
  rpc_release(h->data);
  free(h);
}

static void timer_stop(uv_timer_t **t)
{
  uv_timer_t *timer = steal(t);
  if (timer)
    uv_close((uv_handle_t *)timer, timer_closed);
}

static uv_timer_t *timer_start(struct rpc_call *c, uv_timer_cb fn, uint64_t ms)
{
  uv_timer_t *t = xcalloc(1, sizeof(*t));
  uv_timer_init(c->loop, t);
  t->data = c;
  rpc_hold(c);
  uv_timer_start(t, fn, ms, 0);
  return t;
}

void *rpc_context(const struct rpc_call *c)
{
  return c->setup.context;
}

struct str rpc_user(const struct rpc_call *c)
{
  return c->setup.user;
}

struct str rpc_header(const struct rpc_call *c, const char *name)
{
  return c->x ? http_header(http_x_head(c->x), name) : STR_NONE;
}

struct arena *rpc_arena(struct rpc_call *c)
{
  return &c->arena;
}

uv_loop_t *rpc_loop(const struct rpc_call *c)
{
  return c->loop;
}

void *rpc_data(const struct rpc_call *c)
{
  return c->data;
}

enum rpc_codec rpc_codec_of(const struct rpc_call *c)
{
  return c->codec;
}

void rpc_watch(struct rpc_call *c, const struct rpc_ops *ops, void *data)
{
  c->ops = ops;
  c->data = data;
}

bool rpc_open(const struct rpc_call *c)
{
  return c->x && !c->done;
}

bool rpc_congested(const struct rpc_call *c)
{
  return rpc_open(c) && http_congested(c->x);
}

/* ---- answering ---- */

static bool streams(const struct rpc_call *c)
{
  return c->method->kind != RPC_UNARY;
}

static const char *content_type(const struct rpc_call *c)
{
  if (streams(c))
    return c->codec == RPC_JSON ? "application/connect+json" : "application/connect+proto";
  return c->codec == RPC_JSON ? "application/json" : "application/proto";
}

static size_t head_fill(const struct rpc_call *c, const char *type, struct http_header out[HEADERS_MAX])
{
  size_t n = 0;
  out[n++] = (struct http_header){STR("Content-Type"), str_of(type)};
  for (size_t i = 0; i < c->setup.nheaders && n < HEADERS_MAX; i++)
    out[n++] = c->setup.headers[i];
  return n;
}

static void answered(struct rpc_call *c)
{
  c->done = true;
  c->ops = NULL;
  timer_stop(&c->deadline);
  timer_stop(&c->keepalive);
}

static void unary_answer(struct rpc_call *c, int status, const char *type, struct str body)
{
  struct http_header headers[HEADERS_MAX];
  size_t n = head_fill(c, type, headers);
  struct http_x *x = c->x;
  answered(c);
  http_reply_with(x, status, headers, n, body);
}

static void stream_begin(struct rpc_call *c)
{
  if (c->begun)
    return;
  struct http_header headers[HEADERS_MAX];
  size_t n = head_fill(c, content_type(c), headers);
  if (n < HEADERS_MAX) /* nginx in front of the server passes events on as they come */
    headers[n++] = (struct http_header){STR("X-Accel-Buffering"), STR("no")};
  c->begun = true;
  http_respond(c->x, 200, headers, n, HTTP_CHUNKED);
}

static void stream_end(struct rpc_call *c, enum rpc_code code, struct str message)
{
  struct http_x *x = c->x;
  stream_begin(c);
  frame_end(&c->out, code, message);
  answered(c);
  http_send(x, buf_str(&c->out));
  buf_free(&c->out);
  http_end(x);
}

void rpc_fail(struct rpc_call *c, enum rpc_code code, const char *fmt, ...)
{
  if (!rpc_open(c))
    return;
  cleanup_buf struct buf text = BUF_INIT(64 << 10);
  va_list ap;
  va_start(ap, fmt);
  buf_vaddf(&text, fmt, ap);
  va_end(ap);
  buf_clear(&c->out);
  if (streams(c)) {
    stream_end(c, code, buf_str(&text));
    return;
  }
  cleanup_buf struct buf body = BUF_INIT(256 << 10);
  rpc_error_body(&body, code, buf_str(&text));
  unary_answer(c, rpc_code_status(code), "application/json", buf_str(&body));
}

void rpc_reply(struct rpc_call *c, const void *msg)
{
  if (!rpc_open(c))
    return;
  if (streams(c)) {
    rpc_send(c, msg);
    rpc_finish(c);
    return;
  }
  cleanup_buf struct buf body = BUF_INIT(RPC_MESSAGE_MAX);
  rpc_encode(c->codec, c->method->response, msg, &body);
  if (buf_failed(&body))
    rpc_fail(c, RPC_RESOURCE_EXHAUSTED, "the answer is too large");
  else
    unary_answer(c, 200, content_type(c), buf_str(&body));
}

void rpc_send_frame(struct rpc_call *c, struct str frame)
{
  if (!rpc_open(c))
    return;
  stream_begin(c);
  c->sent_us = clock_mono_us();
  http_send(c->x, frame);
}

void rpc_send(struct rpc_call *c, const void *msg)
{
  if (!rpc_open(c))
    return;
  buf_clear(&c->out);
  frame_message(&c->out, c->codec, c->method->response, msg);
  if (buf_failed(&c->out)) {
    rpc_fail(c, RPC_RESOURCE_EXHAUSTED, "the message is too large");
    return;
  }
  rpc_send_frame(c, buf_str(&c->out));
  buf_free(&c->out);
}

void rpc_finish(struct rpc_call *c)
{
  if (!rpc_open(c))
    return;
  buf_clear(&c->out);
  stream_end(c, RPC_OK, STR(""));
}

/* ---- deadline and keepalive ---- */

static void deadline_reached(uv_timer_t *t)
{
  struct rpc_call *c = t->data;
  const struct rpc_ops *ops = c->ops;
  rpc_hold(c);
  rpc_fail(c, RPC_DEADLINE_EXCEEDED, "context deadline exceeded");
  if (ops && ops->gone)
    ops->gone(c);
  rpc_release(c);
}

uint64_t rpc_deadline_take(struct rpc_call *c)
{
  if (!c->timeout_ms)
    return 0;
  timer_stop(&c->deadline);
  int64_t spent = (clock_mono_us() - c->born_us) / 1000;
  return spent >= (int64_t)c->timeout_ms ? 1 : c->timeout_ms - (uint64_t)spent;
}

static void keepalive_due(uv_timer_t *t)
{
  struct rpc_call *c = t->data;
  uint64_t silent = (uint64_t)((clock_mono_us() - c->sent_us) / 1000);
  uint64_t next = c->keepalive_ms;
  if (silent < c->keepalive_ms)
    next = c->keepalive_ms - silent;
  else if (!rpc_congested(c))
    rpc_send(c, c->keepalive_msg);
  if (c->keepalive)
    uv_timer_start(t, keepalive_due, next, 0);
}

void rpc_keepalive(struct rpc_call *c, const void *msg)
{
  int64_t seconds = 0;
  if (!rpc_open(c) || c->keepalive)
    return;
  struct str asked = http_header(http_x_head(c->x), "Keepalive-Ping-Interval");
  if (str_i64(str_trim(asked), &seconds) < 0 || seconds <= 0 || seconds > 86400)
    seconds = KEEPALIVE_DEFAULT_S;
  c->keepalive_msg = msg;
  c->keepalive_ms = (uint64_t)seconds * 1000;
  c->sent_us = clock_mono_us();
  c->keepalive = timer_start(c, keepalive_due, c->keepalive_ms);
}

/* ---- the request ---- */

static void message_handle(struct rpc_call *c, struct str payload)
{
  struct err err = ERR_NONE;
  void *msg = NULL;
  if (rpc_decode(c->codec, c->method->request, payload, &c->request, &msg, &err) < 0)
    rpc_fail(c, RPC_INVALID_ARGUMENT, "unmarshal message: %s", err.msg);
  else
    c->method->handle(c, msg);
}

/* Takes the next frame off the request: 1 = *payload is one, 0 = none complete, -1 = answered with an error. */
static int frame_take(struct rpc_call *c, struct str *payload, size_t *used)
{
  uint8_t flags = 0;
  ssize_t n = frame_next(str_skip(buf_str(&c->in), *used), &flags, payload);
  if (n < 0) {
    rpc_fail(c, RPC_RESOURCE_EXHAUSTED, "message size is larger than %zu bytes", RPC_MESSAGE_MAX);
    return -1;
  }
  if (n == 0)
    return 0;
  if (flags & FRAME_COMPRESSED) {
    rpc_fail(c, RPC_INTERNAL, "protocol error: sent compressed message without compression support");
    return -1;
  }
  if (flags) {
    rpc_fail(c, RPC_INVALID_ARGUMENT, "protocol error: invalid envelope flags %u", flags);
    return -1;
  }
  *used += (size_t)n;
  return 1;
}

static void server_stream_request(struct rpc_call *c)
{
  struct str first, second;
  size_t used = 0;
  if (c->in.n == 0) {
    rpc_fail(c, RPC_UNIMPLEMENTED, "unary request has zero messages");
    return;
  }
  int rc = frame_take(c, &first, &used);
  if (rc == 0)
    rpc_fail(c, RPC_INVALID_ARGUMENT, "protocol error: incomplete envelope");
  if (rc <= 0)
    return;
  if (used < c->in.n) {
    rc = frame_take(c, &second, &used);
    if (rc == 0)
      rpc_fail(c, RPC_INVALID_ARGUMENT, "protocol error: incomplete envelope");
    else if (rc > 0)
      rpc_fail(c, RPC_UNIMPLEMENTED, "unary request has multiple messages");
    return;
  }
  message_handle(c, first);
}

/* Messages of a client stream may point into c->in when they are handled, so what is used leaves only afterwards, and
 * the decoded message with it: a long stream does not grow. */
static void client_stream_step(struct rpc_call *c)
{
  if (c->handling)
    return;
  c->handling = true;
  while (rpc_open(c) && !c->waiting) {
    struct str payload;
    size_t used = 0;
    if (frame_take(c, &payload, &used) <= 0)
      break;
    message_handle(c, payload);
    buf_drop(&c->in, used);
    arena_free(&c->request);
  }
  c->handling = false;
  if (!rpc_open(c) || c->waiting || !c->all_in)
    return;
  if (c->in.n)
    rpc_fail(c, RPC_INVALID_ARGUMENT, "protocol error: incomplete envelope");
  else
    c->method->finish(c);
}

void rpc_wait(struct rpc_call *c)
{
  c->waiting = true;
  if (rpc_open(c) && !c->all_in)
    http_x_pause(c->x);
}

void rpc_more(struct rpc_call *c)
{
  if (!c->waiting)
    return;
  c->waiting = false;
  rpc_hold(c);
  client_stream_step(c);
  if (rpc_open(c) && !c->waiting && !c->all_in)
    http_x_resume(c->x);
  rpc_release(c);
}

static bool encoding_known(const struct rpc_call *c)
{
  struct str e = http_header(http_x_head(c->x), streams(c) ? "Connect-Content-Encoding" : "Content-Encoding");
  e = str_trim(e);
  return e.n == 0 || str_ieq(e, STR("identity"));
}

static bool request_refused(struct rpc_call *c)
{
  const struct http_head *head = http_x_head(c->x);
  struct str timeout = http_header(head, "Connect-Timeout-Ms");
  struct str version = http_header(head, "Connect-Protocol-Version");
  if (c->setup.refuse != RPC_OK)
    rpc_fail(c, c->setup.refuse, "%s", c->setup.refuse_message);
  else if (timeout.p && rpc_timeout_parse(timeout, &c->timeout_ms) < 0)
    rpc_fail(c, RPC_INVALID_ARGUMENT, "protocol error: invalid timeout: " STR_FMT, STR_ARG(str_sub(timeout, 0, 64)));
  else if (!encoding_known(c))
    rpc_fail(c, RPC_UNIMPLEMENTED, "unknown compression: supported encodings are identity");
  else if (version.p && !str_is(version, "1"))
    rpc_fail(c, RPC_INVALID_ARGUMENT, "connect-protocol-version must be \"1\": got \"" STR_FMT "\"",
             STR_ARG(str_sub(version, 0, 64)));
  return c->done;
}

static void on_body(struct http_x *x, struct str chunk)
{
  struct rpc_call *c = http_x_data(x);
  if (c->done)
    return;
  rpc_hold(c);
  if (buf_adds(&c->in, chunk) < 0)
    rpc_fail(c, RPC_RESOURCE_EXHAUSTED, "message size is larger than %zu bytes", RPC_MESSAGE_MAX);
  else if (c->method->kind == RPC_CLIENT_STREAM && c->setup.refuse == RPC_OK)
    client_stream_step(c);
  rpc_release(c);
}

static void on_body_end(struct http_x *x)
{
  struct rpc_call *c = http_x_data(x);
  if (c->done)
    return;
  rpc_hold(c);
  c->all_in = true;
  if (c->method->kind == RPC_CLIENT_STREAM)
    client_stream_step(c);
  else if (!request_refused(c) && c->method->kind == RPC_UNARY)
    message_handle(c, buf_str(&c->in));
  else if (!c->done)
    server_stream_request(c);
  rpc_release(c);
}

static void on_drain(struct http_x *x)
{
  struct rpc_call *c = http_x_data(x);
  if (c->ops && c->ops->drain)
    c->ops->drain(c);
}

static void on_gone(struct http_x *x, enum http_end how UNUSED)
{
  struct rpc_call *c = http_x_data(x);
  const struct rpc_ops *ops = c->ops;
  c->x = NULL;
  answered(c);
  if (ops && ops->gone)
    ops->gone(c);
  rpc_release(c);
}

static const struct http_x_ops http_ops = {
    .body = on_body,
    .body_end = on_body_end,
    .drain = on_drain,
    .gone = on_gone,
};

static const struct http_x_ops no_ops = {0};

static void reply_unsupported(struct http_x *x, const struct rpc_method *m, const struct rpc_setup *setup)
{
  struct http_header headers[HEADERS_MAX];
  size_t n = 0;
  headers[n++] = (struct http_header){
      STR("Accept-Post"), m->kind == RPC_UNARY ? STR("application/json, application/proto")
                                               : STR("application/connect+json, application/connect+proto")};
  for (size_t i = 0; i < setup->nheaders && n < HEADERS_MAX; i++)
    headers[n++] = setup->headers[i];
  http_x_handle(x, &no_ops, NULL);
  http_reply_with(x, 415, headers, n, STR(""));
}

void rpc_accept(struct http_x *x, const struct rpc_method *m, const struct rpc_setup *setup)
{
  enum rpc_codec codec = RPC_JSON;
  bool known = rpc_content_type(http_header(http_x_head(x), "Content-Type"), m->kind != RPC_UNARY, &codec) == 0;
  if (!known && setup->refuse == RPC_OK) {
    reply_unsupported(x, m, setup);
    return;
  }
  struct rpc_call *c = xcalloc(1, sizeof(*c));
  c->x = x;
  c->method = m;
  c->setup = *setup;
  c->codec = codec;
  c->loop = http_x_loop(x);
  c->arena = ARENA_INIT(RPC_MESSAGE_MAX);
  c->request = ARENA_INIT(4 * RPC_MESSAGE_MAX);
  c->in = BUF_INIT(RPC_MESSAGE_MAX + FRAME_HEAD);
  c->out = BUF_INIT(RPC_MESSAGE_MAX);
  c->born_us = c->sent_us = clock_mono_us();
  c->refs = 1;
  c->setup.user = setup->user.p ? arena_str(&c->arena, setup->user) : STR_NONE;
  http_x_handle(x, &http_ops, c);
  http_x_body_max(x, m->kind == RPC_CLIENT_STREAM ? UINT64_MAX : RPC_MESSAGE_MAX + FRAME_HEAD);
  if (m->kind == RPC_CLIENT_STREAM && request_refused(c))
    return;
  if (m->kind == RPC_CLIENT_STREAM) /* its deadline, if any, and the peer's disconnect end it */
    http_x_body_untimed(x);
  uint64_t ms = 0;
  struct str timeout = http_header(http_x_head(x), "Connect-Timeout-Ms");
  if (timeout.p && rpc_timeout_parse(timeout, &ms) == 0 && ms) {
    c->timeout_ms = ms;
    c->deadline = timer_start(c, deadline_reached, ms);
  }
  http_x_resume(x);
}
