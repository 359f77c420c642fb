/* SPDX-License-Identifier: Apache-2.0 */
/* inspect.c - requests to hosts that have a rule: TLS ends here, headers are set, and a connection of our own goes on.
 *
 * The name is the one that the box's hello named and its rule was found by. The server's certificate is verified for it
 * against public roots, so neither a lying name server nor a chosen address gets a secret; a request for another host
 * on the same connection is answered 421. The rule, its secrets and its tokens are looked up anew for each request: a
 * changed secret counts from the next one on. Values exist in the request's head only, which is wiped with its arena's
 * block; answers are passed on as they are.
 *
 * Connections to servers are kept for the next request of the same box to the same name and address, never for another
 * box. Servers that speak HTTP/2 get several requests of that box at once on one connection, whatever version the box
 * speaks; requests that ask for another protocol (WebSockets) go by HTTP/1.1. Bodies stream both ways, the slower side
 * holding the other back, and trailers follow them where the framing of both sides has a place for them. */
#include "egress/gateway.h"

#include "egress/dial.h"
#include "net/h1parse.h"
#include "egress/peek.h"
#include <stdio.h>

#define TOKENS_MAX      EGRESS_FILLED_MAX
#define MISSING_SECONDS 1 /* a token that does not exist is not asked for again */

struct held_token {
  struct str name, value; /* in the request's arena */
};

struct request {
  struct flow *flow;
  struct http_x *x;
  struct rules *rules; /* of this request */
  const struct egress_host *host;
  struct http_call *call;
  struct dial *dial;
  struct http_link *opening; /* the handshake is under way */
  struct held_token tokens[TOKENS_MAX];
  size_t ntokens;
  uint64_t ask; /* for a token, under way; 0 = none */
  struct str asked;
  struct http_header *headers;
  size_t nheaders;
  size_t filled, nfilled; /* which of them hold what the box must not see */
  int64_t began_us;
  uint64_t in, out;
  int status;
  struct buf replay; /* what was sent of the body, while all of that can be sent again */
  bool fresh;        /* it goes by a connection of its own: the second try */
  bool http1;        /* and by HTTP/1.1: the server asked for that */
  bool replayable, counted;
  bool reused, body_begun, body_done, head_sent, over;
};

/* ---- ends ---- */

static void tell(const struct request *q, enum egress_verdict verdict)
{
  const struct http_head *h = http_x_head(q->x);
  record_send(q->flow->box->gateway, q->flow->box, q->rules,
              &(struct record){.began_us = q->began_us,
                               .in = q->in,
                               .out = q->out,
                               .to = q->flow->to,
                               .port = q->flow->port,
                               .status = (uint16_t)q->status,
                               .proxied = q->rules->policy.proxy.kind != EGRESS_DIRECT,
                               .verdict = verdict,
                               .name = str_of(q->flow->name),
                               .rule = q->host ? q->host->pattern : STR_NONE,
                               .method = h->method,
                               .path = h->path});
}

static void refuse(struct request *q, int status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static void refuse(struct request *q, int status, const char *fmt, ...)
{
  cleanup_buf struct buf b = BUF_INIT(4096), text = BUF_INIT(2048);
  struct jw w = JW(&b);
  va_list ap;
  if (q->over)
    return;
  q->over = true;
  q->status = status;
  va_start(ap, fmt);
  buf_vaddf(&text, fmt, ap);
  va_end(ap);
  jw_open(&w, '{');
  jw_key(&w, "code");
  jw_int(&w, status);
  jw_key(&w, "message");
  jw_z(&w, buf_z(&text));
  jw_close(&w, '}');
  http_reply(q->x, status, "application/json", buf_str(&b));
}

static struct upstream_key key_of(const struct request *q)
{
  return (struct upstream_key){q->flow->box, q->rules, q->flow->name, q->flow->to};
}

/* A request holds a connection to a server, or a part of one: many on one connection of HTTP/2 count as if each had
 * come by its own. */
static bool request_count(struct request *q)
{
  struct egress_box *b = q->flow->box;
  struct gateway *g = b->gateway;
  const struct egress_config *c = g->config;
  if (b->requests >= c->box_connections || b->team->requests >= c->team_connections || g->requests >= c->connections)
    return false;
  b->requests++;
  b->team->requests++;
  g->requests++;
  return q->counted = true;
}

static void request_uncount(const struct request *q)
{
  struct egress_box *b = q->flow->box;
  if (!q->counted)
    return;
  b->requests--;
  b->team->requests--;
  b->gateway->requests--;
}

/* The server has taken the request: it will not be sent again. */
static void replay_drop(struct request *q)
{
  http_x_hold(q->x, -(int64_t)q->replay.n);
  buf_free(&q->replay);
  q->replayable = false;
}

static void replay_add(struct request *q, struct str chunk)
{
  if (!q->replayable)
    return;
  if (buf_adds(&q->replay, chunk))
    replay_drop(q);
  else
    http_x_hold(q->x, (int64_t)chunk.n);
}

static void request_gone(struct http_x *x, enum http_end how)
{
  struct request *q = http_x_data(x);
  struct gateway *g = q->flow->box->gateway;
  const struct upstream_key key = key_of(q);
  request_uncount(q);
  replay_drop(q);
  if (q->ask)
    token_cancel(g, q->ask);
  dial_cancel(steal(&q->dial));
  http_link_leave(steal(&q->opening));
  if (q->call && how == HTTP_DONE)
    upstream_keep(&key, steal(&q->call));
  else if (q->call)
    http_call_cut(steal(&q->call));
  tell(q, q->head_sent ? EGRESS_INSPECTED : q->status == 502 || q->status == 504 ? EGRESS_UNREACHABLE : EGRESS_REFUSED);
  for (size_t i = q->filled; i < q->filled + q->nfilled; i++)
    explicit_bzero((char *)q->headers[i].value.p, q->headers[i].value.n);
  for (size_t i = 0; i < q->ntokens; i++)
    explicit_bzero((char *)q->tokens[i].value.p, q->tokens[i].value.n);
  rules_unref(q->rules);
}

/* ---- the answer's way back ---- */

static bool hop_by_hop(struct str name)
{
  static const char *const names[] = {
      "connection", "keep-alive",        "proxy-connection", "proxy-authenticate", "proxy-authorization", "te",
      "trailer",    "transfer-encoding", "upgrade",          "content-length",     "http2-settings"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (str_ieq(name, str_of(names[i])))
      return true;
  return false;
}

/* Which trailers are to come may be said to who comes next. */
static bool of_one_hop(struct str name)
{
  return hop_by_hop(name) && !str_ieq(name, STR("trailer"));
}

/* What says how a message is to be read, or who sends it, comes too late behind the body. */
static bool may_trail(struct str name)
{
  static const char *const names[] = {"host",         "expect",           "authorization", "cookie",
                                      "content-type", "content-encoding", "content-range", "set-cookie",
                                      "alt-svc",      "cache-control"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (str_ieq(name, str_of(names[i])))
      return false;
  return !hop_by_hop(name);
}

static bool is_set_by_rule(const struct request *q, struct str name);

/* Those of n that may go on, in the request's arena. */
static struct http_header *trailers_of(struct request *q, const struct http_header *given, size_t *n, bool outward)
{
  struct http_header *out = *n ? arena_alloc(http_x_arena(q->x), *n * sizeof(*out)) : NULL;
  size_t k = 0;
  for (size_t i = 0; out && i < *n; i++)
    if (may_trail(given[i].name) && !(outward && is_set_by_rule(q, given[i].name)))
      out[k++] = given[i];
  *n = k;
  return out;
}

static void call_head(struct http_call *c, const struct http_head *head)
{
  struct request *q = http_call_data(c);
  struct http_header *out = arena_alloc(http_x_arena(q->x), (head->nheaders + 1) * sizeof(*out));
  bool tunnel = head->status == 101;
  size_t n = 0;
  uint64_t length;
  struct str given = http_header(head, "content-length");
  for (size_t i = 0; out && i < head->nheaders; i++) {
    struct str name = head->headers[i].name;
    bool kept = tunnel ? !str_ieq(name, STR("content-length"))
                       : !of_one_hop(name) && !http_header_has(head, "connection", arena_z(http_x_arena(q->x), name));
    if (kept && !str_ieq(name, STR("alt-svc"))) /* QUIC would not be let out */
      out[n++] = head->headers[i];
  }
  int r = !out     ? -ENOMEM
          : tunnel ? http_tunnel(q->x, 101, out, n)
                   : http_respond(q->x, head->status, out, n,
                                  given.n && !str_u64(given, &length) ? (int64_t)length : HTTP_CHUNKED);
  if (r) {
    http_call_cut(steal(&q->call));
    refuse(q, 502, "%s sent an answer that can't be passed on", q->flow->name);
    return;
  }
  q->head_sent = true;
  q->status = head->status;
  replay_drop(q);
}

static void call_body(struct http_call *c, struct str chunk)
{
  struct request *q = http_call_data(c);
  q->in += chunk.n;
  if (!http_send(q->x, chunk) && http_congested(q->x))
    http_call_pause(c);
}

static void call_end(struct http_call *c)
{
  struct request *q = http_call_data(c);
  const struct http_header *given;
  size_t n = http_call_trailers(c, &given);
  const struct http_header *trailers = trailers_of(q, given, &n, false);
  q->over = true;
  http_end_with(q->x, trailers, n);
}

static void call_drain(struct http_call *c)
{
  struct request *q = http_call_data(c);
  http_x_resume(q->x);
}

static void connect_out(struct request *q);

/* Whether doing it twice is doing it once (RFC 9110, 9.2.2). */
static bool is_idempotent(struct str method)
{
  static const char *const names[] = {"GET", "HEAD", "OPTIONS", "PUT", "DELETE"};
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (str_is(method, names[i]))
      return true;
  return false;
}

/* Whether a request that a kept connection lost is asked again. One that was whole may have been done by a server that
 * did not come to its answer. */
static bool may_repeat(const struct request *q, int code)
{
  bool whole = q->body_done || http_x_body_length(q->x) == 0;
  if (!q->reused || q->body_begun || q->head_sent || code == -EPROTO || code == -ETIMEDOUT)
    return false;
  return code == -ECONNABORTED || !whole || is_idempotent(http_x_head(q->x)->method);
}

static void call_fail(struct http_call *c, int code, const char *why)
{
  struct request *q = http_call_data(c);
  bool http1 = code == -EPROTONOSUPPORT && !q->http1 && !q->head_sent;
  bool again = may_repeat(q, code);
  http_call_free(steal(&q->call));
  if (q->head_sent) {
    q->over = true;
    http_abort(q->x);
  } else if (http1 && !q->replayable) {
    refuse(q, 502,
           "%s wants this request by HTTP/1.1, and it can't be sent again: more than %u KiB of its body have gone "
           "(setting egress_replay_kb)",
           q->flow->name, q->flow->box->gateway->config->replay_kb);
  } else if (http1) {
    q->reused = false;
    q->fresh = q->http1 = true;
    http_x_pause(q->x);
    connect_out(q);
  } else if (again) { /* a kept connection that the server had just closed */
    q->reused = false;
    q->fresh = true;
    http_x_pause(q->x);
    connect_out(q);
  } else {
    refuse(q, code == -ETIMEDOUT ? 504 : 502, "%s can't be reached: %s", q->flow->name, why);
  }
}

static struct http_x *call_pass(struct http_call *c)
{
  struct request *q = http_call_data(c);
  return q->head_sent && !q->over ? q->x : NULL;
}

static void call_passed(struct http_call *c, size_t n)
{
  struct request *q = http_call_data(c);
  q->in += n;
  if (http_congested(q->x))
    http_call_pause(c);
}

static const struct http_call_ops call_ops = {call_head, call_body, call_end,   call_drain,
                                              call_fail, call_pass, call_passed};

/* ---- the request's way out ---- */

/* A server that is silent while nothing is sent to it. */
static void expect_answer(struct request *q)
{
  http_call_deadline(q->call, q->flow->box->gateway->config->idle_seconds * 1000);
}

static void request_body(struct http_x *x, struct str chunk)
{
  struct request *q = http_x_data(x);
  if (!q->call)
    return;
  q->body_begun = true;
  q->out += chunk.n;
  replay_add(q, chunk);
  http_call_send(q->call, chunk);
  expect_answer(q);
  if (http_call_congested(q->call))
    http_x_pause(x);
}

static void end_request(struct request *q)
{
  const struct http_header *given;
  size_t n = http_x_trailers(q->x, &given);
  const struct http_header *trailers = trailers_of(q, given, &n, true);
  http_call_end_with(q->call, trailers, n);
}

static void request_body_end(struct http_x *x)
{
  struct request *q = http_x_data(x);
  q->body_done = true;
  if (q->call)
    end_request(q);
}

static void request_drain(struct http_x *x)
{
  struct request *q = http_x_data(x);
  if (q->call)
    http_call_resume(q->call);
}

static const struct http_x_ops request_ops = {request_body, request_body_end, request_drain, request_gone, NULL, NULL,
                                              NULL};

static void send_request(struct request *q)
{
  const struct http_head *h = http_x_head(q->x);
  http_call_handle(q->call, &call_ops, q);
  if (http_call_start(q->call, h->method, h->target, q->headers, q->nheaders, http_x_body_length(q->x))) {
    call_fail(q->call, -EPIPE, "the request can't be written");
    return;
  }
  expect_answer(q);
  if (q->replay.n)
    http_call_send(q->call, buf_str(&q->replay));
  if (!http_call_shared(q->call))
    replay_drop(q); /* nobody asks for another version there */
  if (q->body_done)
    end_request(q);
  else
    http_x_resume(q->x);
}

static struct http_limits upstream_limits(const struct gateway *g)
{
  struct http_limits l = http_limits_default;
  l.head_max = (size_t)g->config->head_kb << 10;
  l.head_ms = g->config->idle_seconds * 1000;
  l.linger_ms = g->config->idle_seconds * 1000;
  l.far = true;
  l.trailers = true;
  return l;
}

/* The server has chosen what it speaks. */
static void opened(void *arg, struct http_link *link, struct http_call *call, int code, const char *why)
{
  struct request *q = arg;
  const struct upstream_key key = key_of(q);
  q->opening = NULL;
  q->call = call;
  if (link) {
    q->call = q->fresh ? NULL : upstream_shared(&key); /* one that was opened meanwhile */
    if (q->call) {
      http_link_leave(link);
    } else {
      q->call = http_link_call(link);
      upstream_share(&key, link);
    }
  }
  if (q->call)
    send_request(q);
  else
    refuse(q, code == -ETIMEDOUT ? 504 : 502, "%s can't be reached: %s", q->flow->name, why ? why : "no request taken");
}

static bool wants_upgrade(const struct request *q)
{
  return http_upgrade(http_x_head(q->x), http_x_body_length(q->x) != 0).n > 0;
}

static void connected(void *arg, int fd, const char *why)
{
  struct request *q = arg;
  struct gateway *g = q->flow->box->gateway;
  q->dial = NULL;
  if (fd < 0) {
    refuse(q, fd == -ETIMEDOUT ? 504 : 502, "%s can't be reached: %s%s", q->flow->name,
           q->rules->policy.proxy.kind ? "the proxy: " : "", why);
    return;
  }
  struct http_limits limits = upstream_limits(g);
  if (q->http1 || wants_upgrade(q))
    q->call = http_call_new_tls(g->loop, fd, &limits, g->client, q->flow->name);
  else
    q->opening = http_link_open(g->loop, fd,
                                &(struct http_link_plan){.limits = &limits,
                                                         .client = g->client,
                                                         .name = q->flow->name,
                                                         .hello_ms = g->config->connect_seconds * 1000,
                                                         .streams_max = g->config->streams,
                                                         .opened = opened,
                                                         .arg = q});
  if (q->call)
    send_request(q);
  else if (!q->opening)
    refuse(q, 502, "%s can't be reached: no TLS connection", q->flow->name);
}

static void connect_out(struct request *q)
{
  const struct upstream_key key = key_of(q);
  if (!q->fresh && !wants_upgrade(q))
    q->call = upstream_shared(&key);
  if (!q->fresh && !q->call)
    q->call = upstream_idle(&key);
  if (q->call) {
    q->reused = true;
    send_request(q);
    return;
  }
  const struct egress_policy *p = &q->rules->policy;
  bool by_name = p->proxy.kind && (!p->restricted || flow_name_listed(q->flow, p));
  q->dial = dial_start(q->flow->box->gateway, q->rules, by_name ? str_of(q->flow->name) : STR_NONE, q->flow->to,
                       q->flow->port, connected, q);
}

/* ---- headers ---- */

static const struct held_token *token_of(const struct request *q, struct str name)
{
  for (size_t i = 0; i < q->ntokens; i++)
    if (str_eq(q->tokens[i].name, name))
      return &q->tokens[i];
  return NULL;
}

static int hold_token(struct request *q, struct str name, struct str value)
{
  struct arena *a = http_x_arena(q->x);
  struct held_token t = {name, arena_str(a, value)};
  if (!t.value.p || q->ntokens == TOKENS_MAX)
    return -ENOMEM;
  q->tokens[q->ntokens++] = t;
  return 0;
}

static const struct minted *minted_of(struct egress_box *b, struct str name)
{
  int64_t now = clock_mono_us();
  for (struct minted **at = &b->minted; *at;) {
    struct minted *m = *at;
    if (m->until_us <= now) {
      *at = m->next;
      explicit_bzero((char *)m->value.p, m->value.n);
      free((char *)m->value.p);
      free(m);
      continue;
    }
    if (str_is(name, m->name))
      return m;
    at = &m->next;
  }
  return NULL;
}

/* value p NULL: there is no such token. */
static void mint(struct egress_box *b, struct str name, struct str value, uint32_t seconds)
{
  struct minted *m = xcalloc(1, sizeof(*m));
  if (str_copyz(name, m->name, sizeof(m->name))) {
    free(m);
    return;
  }
  m->missing = !value.p;
  m->value = (struct str){xstrndup(value.p ? value.p : "", value.n), value.n};
  m->until_us = clock_mono_us() + (int64_t)seconds * 1000000;
  m->next = b->minted;
  b->minted = m;
}

static void prepare(struct request *q);

static void token_came(void *arg, int status, struct str token, uint32_t good_for)
{
  struct request *q = arg;
  q->ask = 0;
  if (status == -ENOENT && !q->flow->box->removed)
    mint(q->flow->box, q->asked, STR_NONE, MISSING_SECONDS);
  if (status) {
    refuse(q, 502, "the identity token '" STR_FMT "' that the rule for %s needs %s", STR_ARG(q->asked), q->flow->name,
           status == -ENOENT ? "is not registered" : "can't be minted now");
    return;
  }
  if (hold_token(q, q->asked, token)) {
    refuse(q, 502, "the identity token '" STR_FMT "' is too long", STR_ARG(q->asked));
    return;
  }
  if (good_for && !q->flow->box->removed)
    mint(q->flow->box, q->asked, token, good_for);
  prepare(q);
}

/* 1: all that the rule needs is there; 0: a token was asked for. */
static int gather_token(struct request *q, struct str name)
{
  struct egress_box *b = q->flow->box;
  if (token_of(q, name))
    return 1;
  const struct minted *m = minted_of(b, name);
  q->asked = name;
  if (m && m->missing)
    return -ENOENT;
  if (m)
    return hold_token(q, name, m->value) ? -ENOMEM : 1;
  int r = token_request(b->gateway, b, name, token_came, q, &q->ask);
  return r ? r : 0;
}

static int gather_tokens(struct request *q)
{
  for (size_t i = 0; i < q->host->nheaders; i++)
    for (size_t k = 0; k < q->host->headers[i].npieces; k++) {
      const struct egress_piece *p = &q->host->headers[i].pieces[k];
      int r = p->kind == EGRESS_IDENTITY ? gather_token(q, p->text) : 1;
      if (r != 1)
        return r;
    }
  return 1;
}

/* The value with its placeholders filled, in the arena; p NULL: the request was refused. */
static struct str fill(struct request *q, const struct egress_header *h)
{
  cleanup_buf struct buf b = BUF_INIT((size_t)q->flow->box->gateway->config->value_kb << 10);
  for (size_t i = 0; i < h->npieces; i++) {
    const struct egress_piece *p = &h->pieces[i];
    const struct egress_secret *secret = p->kind == EGRESS_SECRET ? &q->rules->policy.secrets[p->secret] : NULL;
    if (secret && secret->missing) {
      refuse(q, 502, "the secret '" STR_FMT "' that the rule for %s needs does not exist", STR_ARG(p->text),
             q->flow->name);
      return STR_NONE;
    }
    buf_adds(&b, p->kind == EGRESS_LITERAL ? p->text : secret ? secret->value : token_of(q, p->text)->value);
  }
  struct str value = arena_str(http_x_arena(q->x), buf_failed(&b) ? STR_NONE : buf_str(&b));
  bool good = !buf_failed(&b) && value.p && h1_value(value);
  if (b.p)
    explicit_bzero(b.p, b.cap);
  if (!good) {
    refuse(q, 502, "the header '" STR_FMT "' of the rule for %s has a value that can't stand in a header",
           STR_ARG(h->name), q->flow->name);
    return STR_NONE;
  }
  return value;
}

static bool is_set_by_rule(const struct request *q, struct str name)
{
  for (size_t i = 0; i < q->host->nheaders; i++)
    if (str_ieq(q->host->headers[i].name, name))
      return true;
  return false;
}

/* Those that describe the connection or the body are ours to write, whatever a rule says. */
static bool may_be_set(struct str name)
{
  return !hop_by_hop(name) && !str_ieq(name, STR("host")) && !str_ieq(name, STR("expect"));
}

static bool passes(const struct request *q, const struct http_head *h, struct str name)
{
  char z[128];
  if (of_one_hop(name) || str_ieq(name, STR("expect")) || (may_be_set(name) && is_set_by_rule(q, name)))
    return false;
  /* Nobody takes Host away by naming it there. */
  return str_ieq(name, STR("host")) || str_copyz(name, z, sizeof(z)) || !http_header_has(h, "connection", z);
}

static bool write_headers(struct request *q)
{
  const struct http_head *h = http_x_head(q->x);
  struct http_header *out = arena_alloc(http_x_arena(q->x), (h->nheaders + q->host->nheaders + 2) * sizeof(*out));
  struct str upgrade = http_upgrade(h, http_x_body_length(q->x) != 0);
  size_t n = 0;
  if (!out) {
    refuse(q, 502, "out of memory");
    return false;
  }
  for (size_t i = 0; i < h->nheaders; i++)
    if (passes(q, h, h->headers[i].name))
      out[n++] = h->headers[i];
  q->headers = out;
  q->filled = n;
  for (size_t i = 0; i < q->host->nheaders; i++) {
    const struct egress_header *set = &q->host->headers[i];
    struct str value = may_be_set(set->name) ? fill(q, set) : STR_NONE;
    if (q->over)
      return false;
    if (value.p) {
      out[n++] = (struct http_header){set->name, value};
      q->nfilled++;
    }
  }
  if (upgrade.n) {
    out[n++] = (struct http_header){STR("Connection"), STR("Upgrade")};
    out[n++] = (struct http_header){STR("Upgrade"), upgrade};
  } else if (http_header_has(h, "te", "trailers")) {
    out[n++] = (struct http_header){STR("Connection"), STR("TE")};
    out[n++] = (struct http_header){STR("TE"), STR("trailers")};
  }
  q->nheaders = n;
  return true;
}

static void prepare(struct request *q)
{
  int r = gather_tokens(q);
  if (r == -ENOENT)
    refuse(q, 502, "the identity token '" STR_FMT "' that the rule for %s needs is not registered", STR_ARG(q->asked),
           q->flow->name);
  else if (r < 0)
    refuse(q, 502, "an identity token that the rule for %s needs can't be minted now", q->flow->name);
  else if (r && write_headers(q))
    connect_out(q);
}

/* ---- arrival ---- */

static bool is_host(const struct flow *f, struct str given)
{
  char name[DOMAIN_SIZE];
  struct str host, port;
  if (str_cut(given, ':', &host, &port) && !str_is(port, "443"))
    return false;
  return peek_name(host, name) && !strcmp(name, f->name);
}

static const char *unfit(const struct request *q)
{
  const struct http_head *h = http_x_head(q->x);
  if (!is_host(q->flow, http_header(h, "host")))
    return "the request's host is not the one that the connection was opened for";
  if (!h->target.n || (h->target.p[0] != '/' && !str_is(h->target, "*")) || str_is(h->method, "CONNECT"))
    return "the request's target must be a path";
  return NULL;
}

/* The server would return the rule's headers to the box. */
static bool is_echo(struct str method)
{
  return str_ieq(method, STR("TRACE")) || str_ieq(method, STR("TRACK"));
}

static void request_came(struct http_x *x, void *arg)
{
  struct flow *f = http_x_owner(x);
  struct request *q = arena_alloc(http_x_arena(x), sizeof(*q));
  if (!q || !f || !f->box->rules) {
    http_abort(x);
    return;
  }
  *q = (struct request){.flow = f, .x = x, .rules = rules_ref(f->box->rules), .began_us = clock_wall_us()};
  q->host = egress_host_find(&q->rules->policy, str_of(f->name));
  q->replayable = true;
  buf_init(&q->replay, (size_t)f->box->gateway->config->replay_kb << 10);
  http_x_handle(x, &request_ops, q);
  http_x_body_max(x, UINT64_MAX);
  http_x_accepted(x);
  const char *wrong = unfit(q);
  if (wrong)
    refuse(q, 421, "%s", wrong);
  else if (is_echo(http_x_head(x)->method))
    refuse(q, 405, "TRACE is not passed on to a host that has a rule: its answer would hold the rule's headers");
  else if (!request_count(q))
    refuse(q, 503,
           "too many requests under way: %u of the sandbox, %u of its team (settings egress_box_connections, "
           "egress_team_connections)",
           f->box->requests, f->box->team->requests);
  else if (!q->host || !flow_may_go(f, &q->rules->policy)) /* rule or list changed while the connection was open */
    http_abort(x);
  else
    prepare(q);
}

static void connection_left(void *owner)
{
  flow_end(owner);
}

static struct http_server *server_of(struct egress_box *b)
{
  const struct egress_config *c = b->gateway->config;
  struct http_limits l = http_limits_default;
  if (b->server)
    return b->server;
  l.head_max = (size_t)c->head_kb << 10;
  l.head_ms = c->hello_seconds * 1000;
  l.idle_ms = c->idle_seconds * 1000;
  l.body_ms = c->idle_seconds * 1000;
  l.linger_ms = c->idle_seconds * 1000;
  l.trailers = l.connect = true;
  l.conns_max = c->box_connections;
  b->server = http_server_new(b->gateway->loop, &l, request_came, b);
  http_server_owned(b->server, connection_left);
  return b->server;
}

int inspect_begin(struct flow *f, const struct egress_host *host)
{
  struct err err = ERR_NONE;
  struct tls *t = egress_box_leaf(f->box, f->name, &err);
  if (!t && err.code == -EAGAIN)
    return -EAGAIN; /* its box chose how often: no line each */
  if (!t) {
    log_warn("egress of %s: no certificate for %s: %s", f->box->id, f->name, err.msg);
    return -EINVAL;
  }
  return http_server_adopt_tls_for(server_of(f->box), steal_fd(&f->fd), t, f);
}

void inspect_drop(struct egress_box *b)
{
  upstreams_tick(b, UINT64_MAX);
  if (b->server)
    http_server_free(steal(&b->server));
}
