/* SPDX-License-Identifier: Apache-2.0 */
/* mcp_proxy.c - see mcp_proxy.h. A connection is a pair of sockets, of which the other side gets one end; each request
 * has one of its own. Headers that a client may set are named here, and no others pass. */
#include "gate/api/mcp_proxy.h"

#include "gate/api/api.h"
#include "wire/control.h"
#include "wire/mcp_link.h"
#include <sys/socket.h>

#define WAIT_MS   10000 /* for the role to start */
#define HEADERS_N 16

struct mcp_link {
  struct ipc *ipc;                /* NULL: there is none now */
  VEC(struct exchange *) waiting; /* for it */
  uv_timer_t timer;
};

struct exchange {
  struct req *r;
  struct http_call *call;
  bool headed;
};

static const char *const from_client[] = {"Authorization", "X-API-Key",      "Accept",
                                          "Content-Type",  "Mcp-Session-Id", "Mcp-Protocol-Version"};
static const char *const from_role[] = {"Content-Type", "Cache-Control", "Mcp-Session-Id", "Allow"};

/* ---- the answer ---- */

static void unavailable(struct exchange *e, const char *why)
{
  struct api_failure f = {.status = 503, .retry_after_s = 1};
  api_fail(e->r, &f, "the MCP server %s; try again", why);
}

static void on_head(struct http_call *c, const struct http_head *head)
{
  struct exchange *e = http_call_data(c);
  struct http_header h[HEADERS_N] = {{STR("Access-Control-Allow-Origin"), STR("*")},
                                     {STR("Access-Control-Expose-Headers"), STR("Mcp-Session-Id")}};
  size_t n = 2;
  for (size_t i = 0; i < ARRAY_LEN(from_role); i++) {
    struct str value = http_header(head, from_role[i]);
    if (value.n)
      h[n++] = (struct http_header){str_of(from_role[i]), value};
  }
  struct str length = http_header(head, "content-length");
  uint64_t bytes = 0;
  bool known = length.n && !str_u64(length, &bytes);
  e->headed = e->r->answered = true;
  http_respond(e->r->x, head->status, h, n, known ? (int64_t)bytes : head->status == 204 ? 0 : HTTP_CHUNKED);
}

static void on_body(struct http_call *c, struct str chunk)
{
  struct exchange *e = http_call_data(c);
  http_send(e->r->x, chunk);
  if (http_congested(e->r->x))
    http_call_pause(c);
}

static void drained(struct req *r)
{
  struct exchange *e = r->state;
  if (e->call)
    http_call_resume(e->call);
}

static void on_end(struct http_call *c)
{
  struct exchange *e = http_call_data(c);
  http_end(e->r->x);
}

static void on_fail(struct http_call *c, int code, const char *why)
{
  struct exchange *e = http_call_data(c);
  if (e->headed)
    http_abort(e->r->x);
  else
    unavailable(e, "ended while it worked on the request");
}

static void on_call_drain(struct http_call *c)
{
  struct exchange *e = http_call_data(c);
  http_x_resume(e->r->x);
}

static const struct http_call_ops call_ops = {
    .head = on_head, .body = on_body, .end = on_end, .drain = on_call_drain, .fail = on_fail};

/* ---- the request ---- */

static void send_body(struct req *r, struct str chunk)
{
  struct exchange *e = r->state;
  if (!e->call)
    return;
  if (!chunk.n) {
    http_call_end(e->call);
    return;
  }
  http_call_send(e->call, chunk);
  if (http_call_congested(e->call))
    http_x_pause(r->x);
}

static size_t request_headers(struct exchange *e, struct http_header *h)
{
  const struct http_head *head = http_x_head(e->r->x);
  size_t n = 0;
  h[n++] = (struct http_header){STR(MCP_TEAM_HEADER), str_of(e->r->team.id)};
  for (size_t i = 0; i < ARRAY_LEN(from_client); i++) {
    struct str value = http_header(head, from_client[i]);
    if (value.n)
      h[n++] = (struct http_header){str_of(from_client[i]), value};
  }
  return n;
}

static void go(struct exchange *e)
{
  struct gate *g = e->r->gate;
  const struct http_head *head = http_x_head(e->r->x);
  struct http_header h[HEADERS_N];
  char letter = MCP_LINK_SERVE;
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair)) {
    unavailable(e, "can't be reached");
    return;
  }
  int r = ipc_send(g->mcp->ipc, str_make(&letter, 1), pair[1]);
  close(pair[1]);
  e->call = http_call_new(g->loop, pair[0], &http_limits_default);
  http_call_handle(e->call, &call_ops, e);
  size_t n = request_headers(e, h);
  int64_t length = http_x_body_length(e->r->x);
  if (r || http_call_start(e->call, head->method, head->target, h, n, length)) {
    unavailable(e, "can't be reached");
    return;
  }
  e->r->stream = send_body;
  http_x_resume(e->r->x);
}

static void drop(struct req *r)
{
  struct exchange *e = r->state;
  struct mcp_link *l = r->gate->mcp;
  if (e->call)
    http_call_free(steal(&e->call));
  for (size_t i = 0; l && i < l->waiting.n; i++)
    if (l->waiting.p[i] == e) {
      vec_remove(&l->waiting, i);
      break;
    }
}

/* ---- the link ---- */

static void all_go(struct mcp_link *l)
{
  while (l->waiting.n) {
    struct exchange *e = l->waiting.p[0];
    vec_remove(&l->waiting, 0);
    if (l->ipc)
      go(e);
    else
      unavailable(e, "did not start in time");
  }
}

static void waited(uv_timer_t *t)
{
  all_go(t->data);
}

static void link_packet(struct ipc *ipc, struct str packet, int fd, void *arg)
{
  struct gate *g = arg;
  if (fd >= 0 && packet.n == 1 && packet.p[0] == MCP_LINK_API)
    http_server_adopt(g->server, fd);
  else if (fd >= 0)
    close(fd);
}

static void link_closed(struct ipc *ipc, void *arg)
{
  struct gate *g = arg;
  if (g->mcp->ipc == ipc)
    g->mcp->ipc = NULL;
  ipc_free(ipc);
}

static const struct ipc_ops link_ops = {link_packet, link_closed};

static struct mcp_link *link_of(struct gate *g)
{
  if (g->mcp)
    return g->mcp;
  g->mcp = xcalloc(1, sizeof(*g->mcp));
  uv_timer_init(g->loop, &g->mcp->timer);
  g->mcp->timer.data = g->mcp;
  return g->mcp;
}

void mcp_attach(struct gate *g, int fd)
{
  struct mcp_link *l = link_of(g);
  if (l->ipc)
    ipc_free(l->ipc);
  l->ipc = ipc_new(g->loop, fd, &link_ops, g);
  uv_timer_stop(&l->timer);
  all_go(l);
}

void mcp_request(struct req *r)
{
  struct gate *g = r->gate;
  struct mcp_link *l = link_of(g);
  struct exchange *e = arena_alloc(r->arena, sizeof(*e));
  if (!g->config->mcp || !e) {
    api_error(r, 404, "the MCP server is off on this server; the setting 'mcp' turns it on");
    return;
  }
  e->r = r;
  r->state = e;
  r->drop = drop;
  r->drained = drained;
  if (l->ipc) {
    go(e);
    return;
  }
  char letter = CONTROL_WANT_MCP;
  vec_push(&l->waiting, e);
  ipc_send(g->control, str_make(&letter, 1), -1);
  if (!uv_is_active((uv_handle_t *)&l->timer))
    uv_timer_start(&l->timer, waited, WAIT_MS, 0);
}
