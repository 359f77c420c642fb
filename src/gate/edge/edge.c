/* SPDX-License-Identifier: Apache-2.0 */
/* edge.c - proxying into boxes.
 *
 * A request finds its route (requested from the warden once per box), passes the token check, gets a connection into
 * the box (an idle one, or a new socket the warden made inside), and then bytes stream both ways; the slower side holds
 * the other back. A box that ends cuts its exchanges at once, without a final chunk, so that clients know. */
#include "gate/edge/edge.h"
#include "gate/edge/edge_headers.h"
#include "gate/edge/edge_trace.h"
#include "gate/edge/edge_unknown.h"
#include "gate/metrics.h"
#include "gate/team_usage.h"
#include "gate/warden_client.h"
#include "net/tls.h"

#include <stdio.h>

#define EDGE_CAUSE_MAX 512
#define UPSTREAM_TRIES 5 /* a service that is just starting is waited for: 100, 200, 300, 400 ms */

struct edge {
  struct gate *gate;
  struct http_x *x;
  struct edge_target target;
  struct route *route;
  struct usage *usage;
  struct edge *next, **link; /* in route->live */
  struct http_call *call;
  uint64_t pending_call; /* request to the warden, 0 = none */
  uv_timer_t *timer;
  int64_t began_us;
  struct cell_trace cell;
  int tries;
  unsigned wait_s; /* of a client that showed too many wrong tokens */
  int upstream_fd; /* a connection into the box that came with the route, or -1 */
  bool rerouted;   /* the route was requested a second time */
  bool asked;      /* the question for its route counts against the client (edge_unknown.h) */
  bool vouched;    /* the warden knows this client as one of the box's; see edge_token.c */
  bool reused;     /* the connection came from the pool: a failure before the answer is tried again */
  bool body_begun, body_done, head_sent, tunnel, over;
};

static void route_leave(struct edge *e);

static void record(struct edge *e, int status)
{
  const struct http_head *h = http_x_head(e->x);
  bool cell = cell_is(e->target.port, str_skip(h->path, e->target.skip));
  unsigned port = e->target.port;
  enum metrics_class class = port == ENVD_PORT          ? CLASS_AGENT
                             : port == INTERPRETER_PORT ? CLASS_INTERPRETER
                                                        : CLASS_PORT;
  metrics_record(e->gate, e->x,
                 &(struct metrics_answer){.class = class,
                                          .box = e->target.box,
                                          .team = e->route ? e->route->team : NULL,
                                          .trace = cell_trace_headed(e->gate, h, cell, status, &e->cell),
                                          .cell = cell,
                                          .status = status,
                                          .took_us = clock_mono_us() - e->began_us});
}

/* The exchange stops counting at once, not when the client has read the refusal: clients without a token could use up
 * the limit of a box otherwise. */
static void refuse(struct edge *e, enum edge_error what, struct str detail)
{
  if (e->over)
    return;
  e->over = true;
  const struct gate_config *config = e->gate->config;
  unsigned number = e->target.port;
  if (what == EDGE_TOO_MANY || what == EDGE_TEAM_BUSY)
    number = what == EDGE_TOO_MANY ? config->box_connections_max : usage_most(e->gate, USAGE_BOX);
  if (what == EDGE_THROTTLED || what == EDGE_UNKNOWN_MANY)
    number = e->wait_s;
  int status = edge_refuse(e->x, what, e->target.box, number, detail);
  e->gate->metrics_slot->refused[what]++;
  record(e, status);
  route_leave(e);
  usage_leave(e->gate, USAGE_BOX, &e->usage);
}

/* ---- routes ---- */

static void route_free(struct gate *g, struct route *rt)
{
  map_del(&g->routes, str_of(rt->id));
  upstream_pool_free(rt);
  free(rt);
}

static void request_route(struct edge *e);
static void drop_timer(struct edge *e);

void edge_box_held(struct gate *g, struct str id)
{
  struct route *rt = map_get(&g->routes, id);
  if (rt)
    rt->held = true;
}

/* "it ended at ..., why"; empty where that is not known. */
static struct str cause_of(struct str packet, char *out, size_t size)
{
  struct str cause = wire_get(packet, W_CAUSE);
  char when[CLOCK_TEXT];
  if (!cause.n)
    return STR_NONE;
  clock_text((int64_t)wire_u64(packet, W_END, 0), when);
  snprintf(out, size, "it ended at %s, " STR_FMT, when, STR_ARG(cause));
  return str_of(out);
}

static void refuse_gone(struct edge *e, struct str packet)
{
  char text[EDGE_CAUSE_MAX];
  refuse(e, EDGE_NOT_FOUND, cause_of(packet, text, sizeof(text)));
}

static void drop_route(struct gate *g, struct str id, struct str packet)
{
  struct route *rt = map_get(&g->routes, id);
  VEC(struct edge *) early = {0};
  if (!rt)
    return;
  while (rt->live) {
    struct edge *e = rt->live;
    rt->live = e->next;
    if (e->next)
      e->next->link = &rt->live;
    e->link = NULL;
    e->route = NULL;
    if (e->pending_call)
      warden_call_cancel(g, e->pending_call);
    e->pending_call = 0;
    if (!e->call && !e->over && !e->rerouted) { /* not connected yet: the box may run again by now */
      e->rerouted = true;
      drop_timer(e);
      vec_push(&early, e);
      continue;
    }
    if (e->call)
      http_call_cut(steal(&e->call)); /* a box that only pauses must not take it for a client that left */
    if (e->over && !e->tunnel)
      continue; /* the answer is whole, only its exchange is not closed yet: the client keeps its connection */
    if (e->head_sent)
      http_abort(e->x);
    else
      refuse_gone(e, packet);
    e->over = true;
  }
  route_free(g, rt);
  for (size_t i = 0; i < early.n; i++)
    request_route(early.p[i]);
  vec_free(&early);
}

void edge_box_ended(struct gate *g, struct str packet)
{
  drop_route(g, wire_get(packet, W_ID), packet);
}

static void route_join(struct route *rt, struct edge *e)
{
  e->route = rt;
  e->next = rt->live;
  e->link = &rt->live;
  if (rt->live)
    rt->live->link = &e->next;
  rt->live = e;
  rt->nlive++;
  rt->peak = MAX(rt->peak, rt->nlive);
  rt->busiest = MAX(rt->busiest, rt->nlive);
}

static void route_leave(struct edge *e)
{
  if (!e->link)
    return;
  *e->link = e->next;
  if (e->next)
    e->next->link = e->link;
  e->route->nlive--;
  e->link = NULL;
  e->route = NULL;
}

/* ---- ends ---- */

static void timer_closed(uv_handle_t *h)
{
  free(h);
}

static void drop_timer(struct edge *e)
{
  if (e->timer) {
    uv_timer_stop(e->timer);
    uv_close((uv_handle_t *)steal(&e->timer), timer_closed);
  }
}

static void drop_upstream(struct edge *e)
{
  if (e->upstream_fd >= 0)
    close(steal_fd(&e->upstream_fd));
}

static void edge_gone(struct http_x *x, enum http_end how)
{
  struct edge *e = http_x_data(x);
  cell_trace_end(e->gate, &e->cell, e->began_us, e->target.box, e->route ? e->route->team : NULL);
  if (e->pending_call)
    warden_call_cancel(e->gate, e->pending_call);
  if (e->call && how == HTTP_DONE)
    upstream_pool_put(e->gate, e->route, steal(&e->call), e->target.port);
  else if (e->call)
    http_call_free(steal(&e->call));
  drop_timer(e);
  route_leave(e);
  drop_upstream(e);
  usage_leave(e->gate, USAGE_BOX, &e->usage);
  e->gate->metrics_slot->open--;
}

/* ---- the answer's way back ---- */

/* One header of an answer as the client gets it; false: no memory. */
static bool put_header(struct edge *e, const struct http_header *h, struct http_header *out)
{
  *out = *h;
  if (str_ieq(h->name, STR("set-cookie")))
    out->value = cookie_host_only(http_x_arena(e->x), h->value);
  return out->value.p != NULL || !h->value.p;
}

static void call_head(struct http_call *c, const struct http_head *head)
{
  struct edge *e = http_call_data(c);
  http_x_accepted(e->x); /* the box has answered it */
  struct http_header *out = arena_alloc(http_x_arena(e->x), (head->nheaders + 2) * sizeof(*out));
  size_t n = 0;
  uint64_t length;
  struct str given = http_header(head, "content-length");
  e->tunnel = head->status == 101;
  for (size_t i = 0; out && i < head->nheaders; i++) {
    if (e->target.shared && about_origin(head->headers[i].name))
      continue;
    if (hop_by_hop(head->headers[i].name) && (!e->tunnel || str_ieq(head->headers[i].name, STR("content-length"))))
      continue;
    if (put_header(e, &head->headers[i], &out[n]))
      n++;
  }
  if (out && e->target.shared)
    out[n++] = (struct http_header){STR("Content-Security-Policy"),
                                    STR("sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads")};
  int r = !out        ? -ENOMEM
          : e->tunnel ? http_tunnel(e->x, 101, out, n)
                      : http_respond(e->x, head->status, out, n,
                                     given.n && !str_u64(given, &length) ? (int64_t)length : HTTP_CHUNKED);
  if (r) {
    http_call_free(steal(&e->call));
    refuse(e, EDGE_BROKEN, STR("The service in the sandbox sent an answer that can't be passed on"));
    return;
  }
  e->head_sent = true;
  record(e, head->status);
}

static void call_body(struct http_call *c, struct str chunk)
{
  struct edge *e = http_call_data(c);
  e->gate->metrics_slot->edge_out += chunk.n;
  if (http_send(e->x, chunk))
    return;
  if (http_congested(e->x))
    http_call_pause(c);
}

static void call_end(struct http_call *c)
{
  struct edge *e = http_call_data(c);
  e->over = true;
  http_end(e->x); /* `gone` pools or closes the connection */
}

static void call_drain(struct http_call *c)
{
  struct edge *e = http_call_data(c);
  http_x_resume(e->x);
}

static void connect_in(struct edge *e);

static void call_fail(struct http_call *c, int code, const char *why)
{
  struct edge *e = http_call_data(c);
  http_call_free(steal(&e->call));
  if (e->head_sent) {
    e->over = true;
    http_abort(e->x);
  } else if (e->reused && !e->body_begun &&
             code != -EPROTO) { /* it was closed meanwhile; an answered request is not repeated */
    e->reused = false;
    http_x_pause(e->x); /* what came before there is a call would be lost */
    connect_in(e);
  } else {
    char text[200];
    snprintf(text, sizeof(text), "The service in the sandbox broke the connection: %s", why);
    refuse(e, EDGE_BROKEN, str_of(text));
  }
}

/* Bodies of a known length are not parsed: see src/net/splice.c. */
static struct http_x *call_pass(struct http_call *c)
{
  struct edge *e = http_call_data(c);
  return e->head_sent && !e->over ? e->x : NULL;
}

static void call_passed(struct http_call *c, size_t n)
{
  struct edge *e = http_call_data(c);
  e->gate->metrics_slot->edge_out += n;
  if (http_congested(e->x))
    http_call_pause(c);
}

static const struct http_call_ops call_ops = {call_head, call_body, call_end,   call_drain,
                                              call_fail, call_pass, call_passed};

/* ---- the request's way in ---- */

static void edge_body(struct http_x *x, struct str chunk)
{
  struct edge *e = http_x_data(x);
  if (!e->call)
    return;
  e->body_begun = true;
  e->gate->metrics_slot->edge_in += chunk.n;
  http_call_send(e->call, chunk);
  if (http_call_congested(e->call))
    http_x_pause(x);
}

static void edge_body_end(struct http_x *x)
{
  struct edge *e = http_x_data(x);
  e->body_done = true;
  if (e->call)
    http_call_end(e->call);
}

static void edge_drain(struct http_x *x)
{
  struct edge *e = http_x_data(x);
  if (e->call)
    http_call_resume(e->call);
}

static struct http_call *edge_pass(struct http_x *x)
{
  struct edge *e = http_x_data(x);
  return e->over ? NULL : e->call;
}

static void edge_passed(struct http_x *x, size_t n)
{
  struct edge *e = http_x_data(x);
  e->body_begun = true;
  e->gate->metrics_slot->edge_in += n;
  if (http_call_congested(e->call))
    http_x_pause(x);
}

static const struct http_x_ops edge_ops = {edge_body, edge_body_end, edge_drain, edge_gone,
                                           edge_pass, edge_passed,   NULL};

/* What opens the API is nothing for the agent and the interpreter, which the root user of a box can replace; nor for
 * what is reached by a path of the API's own origin, where a page could be made to send its key with a request that it
 * takes for one of the API. Services on other ports may have headers of these names of their own. */
static bool opens_api(const struct edge *e, struct str name)
{
  return (e->target.port == ENVD_PORT || e->target.port == INTERPRETER_PORT || e->target.skip) &&
         (str_ieq(name, STR("x-api-key")) || str_ieq(name, STR("x-admin-token")));
}

static bool dropped_on_the_way(const struct edge *e, struct str name)
{
  return hop_by_hop(name) || opens_api(e, name) || (e->target.skip && str_ieq(name, STR("cookie"))) ||
         str_istarts(name, STR("x-forwarded-")) || str_ieq(name, STR("forwarded")) || str_ieq(name, STR("expect"));
}

static struct str masked_host(struct edge *e)
{
  struct str mask = str_of(e->route->mask_host);
  ptrdiff_t at = str_search(mask, STR("${PORT}"));
  if (at < 0)
    return mask;
  return str_of(arena_fmt(http_x_arena(e->x), STR_FMT "%u" STR_FMT, STR_ARG(str_sub(mask, 0, (size_t)at)),
                          e->target.port, STR_ARG(str_skip(mask, (size_t)at + 7))));
}

/* Path style: what is left behind /box/{id}/{port}. Pages from there share the API's origin, so the browser is told to
 * treat them as strangers (see call_head) and cookies pass neither way. */
static struct str inner_target(const struct edge *e)
{
  const struct http_head *h = http_x_head(e->x);
  if (!e->target.skip)
    return h->target;
  const char *end = h->target.p + h->target.n, *from = h->path.p + e->target.skip;
  struct str rest = {from, (size_t)(end - from)};
  if (rest.n && rest.p[0] == '/')
    return rest;
  return str_of(arena_fmt(http_x_arena(e->x), "/" STR_FMT, STR_ARG(rest)));
}

static void send_request(struct edge *e)
{
  const struct http_head *h = http_x_head(e->x);
  struct http_header *out = arena_alloc(http_x_arena(e->x), (h->nheaders + 5) * sizeof(*out));
  struct str upgrade = http_upgrade(h, http_x_body_length(e->x) != 0);
  bool mask = e->route->mask_host[0] && e->target.port != ENVD_PORT;
  size_t n = 0;
  e->cell.asked_us = clock_mono_us();
  if (!out) {
    http_abort(e->x);
    return;
  }
  for (size_t i = 0; i < h->nheaders; i++) {
    struct str name = h->headers[i].name;
    if (dropped_on_the_way(e, name))
      continue;
    if (mask && str_ieq(name, STR("host"))) {
      out[n++] = (struct http_header){STR("Host"), masked_host(e)};
      out[n++] = (struct http_header){STR("X-Forwarded-Host"), h->headers[i].value};
      continue;
    }
    out[n++] = h->headers[i];
  }
  if (upgrade.n) {
    out[n++] = (struct http_header){STR("Connection"), STR("Upgrade")};
    out[n++] = (struct http_header){STR("Upgrade"), upgrade};
  }
  if (e->target.skip)
    out[n++] = (struct http_header){STR("X-Forwarded-Prefix"), str_sub(h->path, 0, e->target.skip)};
  http_call_handle(e->call, &call_ops, e);
  if (http_call_start(e->call, h->method, inner_target(e), out, n, http_x_body_length(e->x))) {
    call_fail(e->call, -EPIPE, "it could not be written to");
    return;
  }
  if (e->body_done)
    http_call_end(e->call);
  else
    http_x_resume(e->x);
}

/* ---- connections into the box ---- */

static void try_again(uv_timer_t *t)
{
  struct edge *e = t->data;
  drop_timer(e);
  connect_in(e);
}

/* Nobody vouches for a certificate inside a box: TLS there is for services that speak nothing else. */
static struct http_call *call_into(struct edge *e, int fd)
{
  const uint16_t *tls = e->route ? e->route->tls_ports : NULL;
  for (size_t i = 0; tls && i < ARRAY_LEN(e->route->tls_ports) && tls[i]; i++) {
    if (tls[i] != e->target.port)
      continue;
    if (!e->gate->tls_inward)
      e->gate->tls_inward = tls_client_new();
    return http_call_new_tls(e->gate->loop, fd, &http_limits_default, e->gate->tls_inward, NULL);
  }
  return http_call_new(e->gate->loop, fd, &http_limits_default);
}

static void upstream_start(struct edge *e, int fd)
{
  e->call = call_into(e, fd);
  if (!e->call) {
    refuse(e, EDGE_BROKEN, STR("The connection into the sandbox could not be used"));
    return;
  }
  http_call_cut_by_exit(e->call); /* a gate that ends is no client that left: what runs in the box goes on */
  send_request(e);
}

static void upstream_opened(const struct warden_reply *reply, void *arg)
{
  struct edge *e = arg;
  e->pending_call = 0;
  if (reply->status == -ENOENT || reply->status == -EHOSTDOWN) {
    struct route *rt = e->route;
    route_leave(e);
    if (rt && !rt->live)
      route_free(e->gate, rt);
    if (reply->status == -EHOSTDOWN && !e->rerouted) { /* it paused a moment ago; traffic may resume it */
      e->rerouted = true;
      request_route(e);
      return;
    }
    refuse_gone(e, reply->packet);
    return;
  }
  if (reply->status && ++e->tries < UPSTREAM_TRIES) {
    e->timer = xcalloc(1, sizeof(*e->timer));
    uv_timer_init(e->gate->loop, e->timer);
    e->timer->data = e;
    uv_timer_start(e->timer, try_again, (uint64_t)e->tries * 100, 0);
    return;
  }
  if (reply->status || reply->fd < 0) {
    refuse(e, EDGE_PORT_CLOSED, STR_NONE);
    return;
  }
  upstream_start(e, reply->fd);
}

static void connect_in(struct edge *e)
{
  if (e->over || !e->route)
    return;
  e->call = upstream_pool_take(e->route, e->target.port);
  if (e->call) {
    e->reused = true;
    send_request(e);
    return;
  }
  if (e->upstream_fd >= 0) {
    upstream_start(e, steal_fd(&e->upstream_fd));
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_BOX_DIAL, 0, 0);
  wire_putz(&b, W_ID, e->target.box);
  wire_put_u64(&b, W_PORT, e->target.port);
  e->pending_call = warden_call(e->gate, &b, NULL, upstream_opened, e);
}

/* ---- admission ---- */

/* Too many wrong tokens: the client is told to wait; until then it is told what was wrong. */
static void wrong_token(struct edge *e, enum edge_error what, const char *name)
{
  uint8_t client[CLIENT_LEN];
  client_of(e->x, client);
  e->wait_s = throttle_wait(&e->gate->throttle, client, clock_mono_us());
  throttle_failed(&e->gate->throttle, e->x, name, STR_NONE);
  refuse(e, e->wait_s ? EDGE_THROTTLED : what, STR_NONE);
}

static bool traffic_good(struct edge *e)
{
  if (!(e->route->flags & BOX_PRIVATE) || e->target.port == ENVD_PORT)
    return true;
  struct str given = http_header(http_x_head(e->x), "e2b-traffic-access-token");
  if (token_is(given, e->route->traffic))
    return true;
  if (given.n)
    wrong_token(e, EDGE_TOKEN_WRONG, "traffic token");
  else
    refuse(e, EDGE_TOKEN_MISSING, STR_NONE);
  return false;
}

/* The agent answers a wrong token in its own words; a throttled client does not get that far. */
static bool agent_good(struct edge *e, struct str given)
{
  uint8_t client[CLIENT_LEN];
  if (!given.n || !(e->route->flags & BOX_SECURE))
    return true;
  if (token_is(given, e->route->access)) {
    route_note_client(e->gate, e->route, e->x, given);
    return true;
  }
  client_of(e->x, client);
  if (throttle_wait(&e->gate->throttle, client, clock_mono_us())) {
    wrong_token(e, EDGE_ACCESS_WRONG, "access token");
    return false;
  }
  throttle_failed(&e->gate->throttle, e->x, "access token", STR_NONE);
  return true;
}

/* Input for a process, frame by frame, for as long as the client likes: silence is no sign of a dead peer there. */
static bool is_input_stream(const struct edge *e)
{
  return e->target.port == ENVD_PORT &&
         str_is(str_skip(http_x_head(e->x)->path, e->target.skip), "/process.Process/StreamInput");
}

/* An id is no right: who shows nothing more is a known client when the box has answered. */
static bool showed_token(const struct edge *e)
{
  const struct http_head *h = http_x_head(e->x);
  return token_is(http_header(h, "x-access-token"), e->route->access) ||
         token_is(http_header(h, "e2b-traffic-access-token"), e->route->traffic);
}

static void let_in(struct edge *e)
{
  if (e->vouched || showed_token(e))
    http_x_accepted(e->x);
  if (is_input_stream(e))
    http_x_body_untimed(e->x);
  connect_in(e);
}

static void vouched(const struct warden_reply *reply, void *arg)
{
  struct edge *e = arg;
  uint8_t client[CLIENT_LEN];
  e->pending_call = 0;
  if (reply->status) {
    if (reply->status == -ENOENT)
      refuse_gone(e, reply->packet);
    else
      refuse(e, EDGE_ACCESS_MISSING, STR_NONE);
    return;
  }
  e->vouched = true;
  if (!e->route) { /* it is paused, or was a moment ago */
    request_route(e);
    return;
  }
  client_of(e->x, client);
  route_meet(e->route, client);
  let_in(e);
}

static void request_voucher(struct edge *e)
{
  uint8_t client[CLIENT_LEN];
  client_of(e->x, client);
  if (e->route && (e->vouched || route_knows(e->route, client))) {
    let_in(e);
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_BOX_VOUCH, 0, 0);
  wire_putz(&b, W_ID, e->target.box);
  wire_put(&b, W_CLIENT, str_make(client, sizeof(client)));
  e->pending_call = warden_call(e->gate, &b, NULL, vouched, e);
}

/* Looks at the tokens, and goes in where they are right. */
static void pass_in(struct edge *e)
{
  const struct http_head *h = http_x_head(e->x);
  struct str given = http_header(h, "x-access-token");
  if (!traffic_good(e) || (e->target.port == ENVD_PORT && !agent_good(e, given)))
    return;
  enum token_verdict verdict = e->target.port == INTERPRETER_PORT
                                   ? token_interpreter(e->gate, e->route, h, str_skip(h->path, e->target.skip))
                                   : TOKEN_GOOD;
  if (verdict == TOKEN_WRONG)
    wrong_token(e, EDGE_ACCESS_WRONG, "access token");
  else if (verdict == TOKEN_MISSING)
    refuse(e, EDGE_ACCESS_MISSING, STR_NONE);
  else if (verdict == TOKEN_VOUCH)
    request_voucher(e);
  else {
    if (e->target.port == INTERPRETER_PORT && token_is(given, e->route->access))
      route_note_client(e->gate, e->route, e->x, given);
    let_in(e);
  }
}

static void admit(struct edge *e, struct route *rt)
{
  unsigned most = e->gate->config->box_connections_max;
  if (most && rt->nlive >= most) {
    refuse(e, EDGE_TOO_MANY, STR_NONE);
    return;
  }
  if (usage_enter(e->gate, rt->team, USAGE_BOX, &e->usage)) {
    refuse(e, EDGE_TEAM_BUSY, STR_NONE);
    return;
  }
  route_join(rt, e);
  pass_in(e);
}

static void note_tls_ports(struct route *rt, const struct json *list)
{
  size_t n = 0;
  for (const struct json *k = list ? list->kids : NULL; k && n < ARRAY_LEN(rt->tls_ports); k = k->next) {
    int64_t port;
    if (k->type == JSON_NUMBER && !json_int(k, &port) && port > 0 && port < 65536)
      rt->tls_ports[n++] = (uint16_t)port;
  }
}

/* A missing hash stays zeros, which no token hashes to. */
static void route_hash(struct str packet, enum wire_tag tag, uint8_t out[SHA256_LEN])
{
  struct str hash = wire_get(packet, tag);
  if (hash.n == SHA256_LEN)
    memcpy(out, hash.p, SHA256_LEN);
}

static struct route *route_new(struct gate *g, struct arena *a, struct str packet)
{
  struct route *rt = xcalloc(1, sizeof(*rt));
  wire_copyz(packet, W_ID, rt->id, sizeof(rt->id));
  wire_copyz(packet, W_TEAM, rt->team, sizeof(rt->team));
  route_hash(packet, W_TOKEN_HASH, rt->access);
  route_hash(packet, W_TRAFFIC_HASH, rt->traffic);
  rt->flags = (unsigned)wire_u64(packet, W_FLAGS, 0);
  rt->run = wire_u64(packet, W_RUN, 0);
  struct json *config = json_read(a, wire_get(packet, W_CONFIG), 0, NULL);
  str_copyz(json_text(json_get(json_get(config, "network"), "maskRequestHost"), STR("")), rt->mask_host,
            sizeof(rt->mask_host));
  note_tls_ports(rt, json_get(json_get(config, "network"), "httpsPorts"));
  map_put(&g->routes, str_of(rt->id), rt);
  return rt;
}

/* A request about contexts that shows no token, of a client that may have shown it before. */
static bool wants_voucher(const struct edge *e, unsigned flags)
{
  const struct http_head *h = http_x_head(e->x);
  return e->target.port == INTERPRETER_PORT && (flags & BOX_SECURE) && !e->vouched &&
         !http_header(h, "x-access-token").n && token_contexts_path(str_skip(h->path, e->target.skip));
}

/* The caller of a paused box must show the tokens that a running one would require. */
static bool may_resume(struct edge *e, struct str packet, unsigned flags)
{
  const struct http_head *h = http_x_head(e->x);
  uint8_t access[SHA256_LEN] = {0}, traffic[SHA256_LEN] = {0};
  bool compatible = e->gate->config->interpreter_compatible && (flags & BOX_FIRST_API);
  bool own = e->target.port == ENVD_PORT || (e->target.port == INTERPRETER_PORT && !compatible);
  route_hash(packet, W_TOKEN_HASH, access);
  route_hash(packet, W_TRAFFIC_HASH, traffic);
  if (own && (flags & BOX_SECURE) && !e->vouched && !token_is(http_header(h, "x-access-token"), access))
    return false;
  return e->target.port == ENVD_PORT || !(flags & BOX_PRIVATE) ||
         token_is(http_header(h, "e2b-traffic-access-token"), traffic);
}

static void route_told(const struct warden_reply *reply, void *arg);

static void resume(struct edge *e, struct str packet, unsigned state)
{
  bool paused = box_state_paused(state);
  unsigned flags = (unsigned)wire_u64(packet, W_FLAGS, 0);
  bool cold = state == BOX_PAUSED && wire_u64(packet, W_TIER, TIER_FROZEN) == TIER_FILES;
  if (paused && (cold || !(flags & BOX_AUTO_RESUME))) {
    refuse(e, EDGE_PAUSED, STR_NONE);
    return;
  }
  bool may = !paused || may_resume(e, packet, flags);
  if (!may && wants_voucher(e, flags)) {
    request_voucher(e);
    return;
  }
  if (!may) {
    refuse(e, EDGE_RESUME_REFUSED, STR_NONE);
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_BOX_CONNECT, 0, 0);
  wire_putz(&b, W_ID, e->target.box);
  wire_put_u64(&b, W_MODE, paused ? CONNECT_TRAFFIC : CONNECT_JOIN);
  e->pending_call = warden_call(e->gate, &b, NULL, route_told, e);
}

static void no_route(struct edge *e, const struct warden_reply *reply)
{
  if (reply->status == -EAGAIN)
    refuse(e, EDGE_TEAM_LIMIT, wire_get(reply->packet, W_MESSAGE));
  else if (reply->status == -ESHUTDOWN)
    refuse(e, EDGE_DRAINING, wire_get(reply->packet, W_MESSAGE));
  else if (reply->status == -ENOBUFS)
    refuse(e, EDGE_NO_MEMORY, wire_get(reply->packet, W_MESSAGE));
  else if (reply->status == -EBUSY)
    refuse(e, EDGE_TRANSITION, STR_NONE);
  else
    refuse_gone(e, reply->packet);
}

static void route_told(const struct warden_reply *reply, void *arg)
{
  struct edge *e = arg;
  e->pending_call = 0;
  drop_upstream(e);
  e->upstream_fd = reply->fd;
  unsigned state = (unsigned)wire_u64(reply->packet, W_STATE, BOX_RUNNING);
  if (reply->status != -ENOENT && e->asked)
    unknown_forgive(e->gate, e->x);
  e->asked = false;
  if (reply->status) {
    no_route(e, reply);
    return;
  }
  if (state != BOX_RUNNING) {
    resume(e, reply->packet, state);
    return;
  }
  struct route *rt = map_get(&e->gate->routes, str_of(e->target.box));
  if (rt)
    rt->held = false; /* it did not pause after all */
  admit(e, rt ? rt : route_new(e->gate, http_x_arena(e->x), reply->packet));
}

/* ---- after a gap ---- */

struct recheck {
  struct gate *gate;
  char id[BOX_ID_SIZE];
  uint64_t run;
};

static void rechecked(const struct warden_reply *reply, void *arg)
{
  struct recheck *c = arg;
  struct route *rt = map_get(&c->gate->routes, str_of(c->id));
  bool same = !reply->status && wire_u64(reply->packet, W_STATE, 0) == BOX_RUNNING &&
              wire_u64(reply->packet, W_RUN, 0) == c->run;
  if (rt && rt->run == c->run && !same)
    drop_route(c->gate, str_of(c->id), reply->status ? reply->packet : STR_NONE);
  free(c);
}

void edge_recheck(struct gate *g)
{
  void *value;
  for (size_t i = 0; map_next(&g->routes, &i, NULL, &value);) {
    const struct route *rt = value;
    struct recheck *c = xcalloc(1, sizeof(*c));
    c->gate = g;
    c->run = rt->run;
    memcpy(c->id, rt->id, sizeof(c->id));
    cleanup_buf struct buf b = BUF_INIT(1024);
    wire_begin(&b, WIRE_BOX_GET, 0, 0);
    wire_putz(&b, W_ID, rt->id);
    warden_call(g, &b, NULL, rechecked, c);
  }
}

/* ---- the beginning ---- */

static bool reserved_path(struct str path)
{
  static const char *const names[] = {"/init", "/freeze", "/unfreeze", "/fsfreeze", "/fsthaw", "/collapse", "/upgrade"};
  cleanup_buf struct buf plain = BUF_INIT(1 << 16), clean = BUF_INIT(1 << 16);
  if (percent_decode(path, false, &plain) || path_clean(buf_str(&plain), &clean))
    return true;
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    if (str_is(buf_str(&clean), names[i]))
      return true;
  return false;
}

static void request_route(struct edge *e)
{
  e->wait_s = unknown_wait(e->gate, e->x, e->target.box, &e->asked);
  if (e->wait_s) {
    refuse(e, EDGE_UNKNOWN_MANY, STR_NONE);
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_BOX_GET, 0, 0);
  wire_putz(&b, W_ID, e->target.box);
  if (e->target.port == ENVD_PORT ||
      e->target.port == INTERPRETER_PORT) /* others are not touched before the token is seen */
    wire_put_u64(&b, W_PORT, e->target.port);
  e->pending_call = warden_call(e->gate, &b, NULL, route_told, e);
}

void edge_request(struct gate *g, struct http_x *x, const struct edge_target *t)
{
  struct edge *e = arena_alloc(http_x_arena(x), sizeof(*e));
  if (!e) {
    http_abort(x);
    return;
  }
  *e = (struct edge){.gate = g, .x = x, .target = *t, .began_us = clock_mono_us(), .upstream_fd = -1};
  g->metrics_slot->open++;
  http_x_handle(x, &edge_ops, e);
  http_x_body_max(x, UINT64_MAX);
  if (t->port == ENVD_PORT && reserved_path(str_skip(http_x_head(x)->path, t->skip))) {
    refuse(e, EDGE_INTERNAL, STR_NONE);
    return;
  }
  struct route *rt = map_get(&g->routes, str_of(t->box));
  if (rt && !rt->held) {
    admit(e, rt);
    return;
  }
  request_route(e);
}
