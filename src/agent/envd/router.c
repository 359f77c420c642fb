/* SPDX-License-Identifier: Apache-2.0 */
/* router.c - the order of checks decides which error a caller sees: CORS, then access token, then user, then route. */
#include "agent/envd/router.h"
#include "agent/envd/http_reply.h"
#include "agent/envd/files.h"
#include "agent/envd/init.h"
#include "agent/envd/box_metrics.h"
#include "agent/envd/service.h"

static void health_request(struct http_x *x, struct agent *a UNUSED)
{
  static const struct http_header headers[] = {{STR("Cache-Control"), STR("no-store")}};
  http_x_handle(x, &answer_no_ops, NULL);
  answer(x, 204, headers, 1, STR(""));
}

static const struct route {
  const char *method, *path;
  void (*handle)(struct http_x *x, struct agent *a);
  bool open; /* needs no access token, or has a rule of its own */
} routes[] = {
    {"GET", "/health", health_request, true},    {"GET", "/files", files_download, true},
    {"POST", "/files", files_upload, true},      {"POST", "/files/compose", files_compose, false},
    {"GET", "/metrics", metrics_request, false}, {"GET", "/envs", envs_request, false},
    {"POST", "/init", init_request, true},
};

static const struct route *route_find(const struct http_head *head)
{
  for (size_t i = 0; i < ARRAY_LEN(routes); i++)
    if (str_is(head->path, routes[i].path) && str_is(head->method, routes[i].method))
      return &routes[i];
  return NULL;
}

/* ---- CORS ---- */

static bool preflight(struct http_x *x)
{
  const struct http_head *head = http_x_head(x);
  struct str wanted = http_header(head, "Access-Control-Request-Method");
  if (!str_is(head->method, "OPTIONS") || !wanted.p)
    return false;
  static const char *const methods[] = {"HEAD", "GET", "POST", "PUT", "PATCH", "DELETE"};
  bool allowed = false;
  for (size_t i = 0; i < ARRAY_LEN(methods); i++)
    allowed |= str_is(wanted, methods[i]);
  struct http_header out[5];
  size_t n = 0;
  out[n++] =
      (struct http_header){STR("Vary"), STR("Origin, Access-Control-Request-Method, Access-Control-Request-Headers")};
  if (http_header(head, "Origin").p && allowed) {
    struct str names = http_header(head, "Access-Control-Request-Headers");
    out[n++] = (struct http_header){STR("Access-Control-Allow-Origin"), STR("*")};
    out[n++] = (struct http_header){STR("Access-Control-Allow-Methods"), wanted};
    if (names.n)
      out[n++] = (struct http_header){STR("Access-Control-Allow-Headers"), names};
    out[n++] = (struct http_header){STR("Access-Control-Max-Age"), STR("7200")};
  }
  http_x_handle(x, &answer_no_ops, NULL);
  http_reply_with(x, 204, out, n, STR(""));
  return true;
}

/* ---- who calls ---- */

static bool token_refused(struct http_x *x, struct agent *a, const struct route *route)
{
  if ((route && route->open) || agent_token_ok(a, http_header(http_x_head(x), "X-Access-Token")))
    return false;
  http_x_handle(x, &answer_no_ops, NULL);
  answer_fail(x, 401, "unauthorized access, please provide a valid access token or method signing if supported");
  return true;
}

static void reply_bad_user(struct http_x *x, const char *message)
{
  cleanup_buf struct buf body = BUF_INIT(256 << 10);
  rpc_error_body(&body, RPC_UNAUTHENTICATED, str_of(message));
  http_x_handle(x, &answer_no_ops, NULL);
  answer_json(x, rpc_code_status(RPC_UNAUTHENTICATED), false, buf_str(&body));
}

/* ---- where to ---- */

static void reply_text(struct http_x *x, int status, const char *allow, const char *text)
{
  struct http_header headers[] = {{STR("Content-Type"), STR("text/plain; charset=utf-8")},
                                  {STR("Allow"), str_of(allow)}};
  http_x_handle(x, &answer_no_ops, NULL);
  answer(x, status, headers, allow ? 2 : 1, str_of(text));
}

static void no_route(struct http_x *x, const struct rpc_method *rpc)
{
  const struct http_head *head = http_x_head(x);
  char allow[64] = "";
  struct buf list = BUF_INIT(sizeof(allow));
  if (rpc)
    buf_addz(&list, "POST");
  for (size_t i = 0; i < ARRAY_LEN(routes); i++)
    if (str_is(head->path, routes[i].path)) {
      buf_addz(&list, list.n ? ", " : "");
      buf_addz(&list, routes[i].method);
    }
  str_copyz(buf_str(&list), allow, sizeof(allow));
  buf_free(&list);
  if (allow[0])
    reply_text(x, 405, allow, "");
  else
    reply_text(x, 404, NULL, "404 page not found\n");
}

static void rpc_request(struct http_x *x, struct agent *a, const struct rpc_method *m, struct str user,
                        const char *refused)
{
  struct http_header *cors = arena_alloc(http_x_arena(x), ANSWER_CORS_MAX * sizeof(*cors));
  struct rpc_setup setup = {.context = a, .user = user, .headers = cors};
  setup.nheaders = cors ? answer_cors(http_x_head(x), cors) : 0;
  if (refused) {
    setup.refuse = RPC_UNAUTHENTICATED;
    setup.refuse_message = refused;
  }
  rpc_accept(x, m, &setup);
}

void router_request(struct http_x *x, void *agent)
{
  const struct http_head *head = http_x_head(x);
  const struct route *route = route_find(head);
  const char *refused = NULL;
  struct user unused;
  struct str user = STR_NONE;
  if (preflight(x) || token_refused(x, agent, route))
    return;
  cleanup_buf struct buf name = BUF_INIT(64 << 10);
  if (agent_basic_user(http_header(head, "Authorization"), &name)) {
    user = arena_str(http_x_arena(x), buf_str(&name));
    if (user_find(user, &unused) == -ENOENT)
      refused = arena_fmt(http_x_arena(x), "invalid username: '" STR_FMT "'", STR_ARG(user));
  }
  const struct rpc_method *rpc = str_is(head->method, "POST") ? service_method(head->path) : NULL;
  if (refused && !rpc)
    reply_bad_user(x, refused);
  else if (rpc)
    rpc_request(x, agent, rpc, user, refused);
  else if (route)
    route->handle(x, agent);
  else
    no_route(x, service_method(head->path));
}
