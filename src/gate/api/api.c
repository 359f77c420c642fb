/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - the REST API: from a request to its handler, and from a handler to an answer. */
#include "gate/api/api.h"

#include <stdio.h>

static const struct route_entry routes[] = {
    {"GET", "health", health, NO_AUTH},
    {"GET", "readyz", health, NO_AUTH},
    {"GET", "livez", alive, NO_AUTH},
    {"GET", "metrics", metrics, KEY_OR_ADMIN},
    {"GET", "nodes", node_list, ADMIN},
    {"GET", "nodes/{id}", node_get, ADMIN},
    {"POST", "nodes/{id}", node_change, ADMIN | BODY_IGNORED},
    {"GET", "admin/sandboxes/running-counts", admin_counts, ADMIN},
    {"POST", "admin/teams/{id}/sandboxes/kill", admin_kill, ADMIN | BODY_IGNORED},
    {"POST", "admin/teams/{id}/builds/cancel", build_cancel, ADMIN | BODY_IGNORED},
    {"POST", "admin/teams/{id}/api-keys", admin_key_create, ADMIN | BODY_REQUIRED},
    {"DELETE", "admin/teams/{id}/api-keys/{second}", admin_key_delete, ADMIN | BODY_IGNORED},
    {"POST", "sandboxes", sandbox_create_v1, BODY_REQUIRED},
    {"POST", "v2/sandboxes", sandbox_create_v2, BODY_REQUIRED},
    {"GET", "sandboxes", sandbox_list_v1, 0},
    {"GET", "v2/sandboxes", sandbox_list_v2, 0},
    {"GET", "sandboxes/metrics", sandbox_metrics_many, 0}, /* before {id}: the first match wins */
    {"GET", "sandboxes/{id}", sandbox_get, 0},
    {"DELETE", "sandboxes/{id}", sandbox_kill, BODY_OPTIONAL},
    {"POST", "sandboxes/{id}/timeout", sandbox_timeout, BODY_REQUIRED},
    {"POST", "sandboxes/{id}/refreshes", sandbox_refresh, BODY_OPTIONAL},
    {"POST", "sandboxes/{id}/connect", sandbox_connect_v1, BODY_REQUIRED},
    {"POST", "v2/sandboxes/{id}/connect", sandbox_connect_v2, BODY_OPTIONAL},
    {"POST", "sandboxes/{id}/pause", sandbox_pause, BODY_OPTIONAL},
    {"POST", "sandboxes/{id}/resume", sandbox_resume, BODY_OPTIONAL},
    {"PUT", "sandboxes/{id}/network", sandbox_network, BODY_REQUIRED},
    {"GET", "sandboxes/{id}/metrics", sandbox_metrics, 0},
    {"GET", "sandboxes/{id}/logs", sandbox_logs_v1, 0},
    {"GET", "v2/sandboxes/{id}/logs", sandbox_logs_v2, 0},
    {"POST", "sandboxes/{id}/fork", sandbox_fork, BODY_OPTIONAL},
    {"POST", "sandboxes/{id}/snapshots", snapshot_create, BODY_OPTIONAL},
    {"GET", "snapshots", snapshot_list, 0},
    {"GET", "templates", template_list, 0},
    {"GET", "v2/templates", template_list_v2, 0},
    {"GET", "templates/aliases/{id}", template_alias, 0},
    {"POST", "templates/tags", template_tag, BODY_REQUIRED},
    {"DELETE", "templates/tags", template_untag, BODY_REQUIRED},
    {"GET", "templates/{id}/tags", template_tags, 0},
    {"GET", "templates/{id}", template_get, 0},
    {"PATCH", "templates/{id}", template_update, BODY_OPTIONAL},
    {"PATCH", "v2/templates/{id}", template_update_v2, BODY_OPTIONAL},
    {"DELETE", "templates/{id}", template_delete, BODY_IGNORED},
    {"POST", "v3/templates", build_request, BODY_REQUIRED},
    {"POST", "v2/templates", build_request_v2, BODY_REQUIRED},
    {"POST", "templates", unsupported_builds, BODY_IGNORED},
    {"POST", "templates/{id}", unsupported_builds, BODY_IGNORED},
    {"GET", "templates/{id}/files/{second}", upload_link, 0},
    {"PUT", "uploads/{id}/{second}", upload_put, NO_AUTH | BODY_STREAM},
    {"POST", "templates/{id}/builds/{second}", unsupported_builds, BODY_IGNORED},
    {"POST", "v2/templates/{id}/builds/{second}", build_start, BODY_REQUIRED},
    {"GET", "templates/{id}/builds/{second}/status", build_status, 0},
    {"GET", "templates/{id}/builds/{second}/logs", build_logs, 0},
    {"GET", "volumes", unsupported_volumes, 0},
    {"POST", "volumes", unsupported_volumes, BODY_IGNORED},
    {"GET", "volumes/{id}", unsupported_volumes, 0},
    {"DELETE", "volumes/{id}", unsupported_volumes, BODY_IGNORED},
    {"GET", "volumecontent/{id}/{second}", unsupported_volumes, NO_AUTH},
    {"PATCH", "volumecontent/{id}/{second}", unsupported_volumes, NO_AUTH | BODY_IGNORED},
    {"POST", "volumecontent/{id}/{second}", unsupported_volumes, NO_AUTH | BODY_IGNORED},
    {"PUT", "volumecontent/{id}/{second}", unsupported_volumes, NO_AUTH | BODY_IGNORED},
    {"DELETE", "volumecontent/{id}/{second}", unsupported_volumes, NO_AUTH | BODY_IGNORED},
    {"GET", "secrets", unsupported_secrets, 0},
    {"POST", "secrets", unsupported_secrets, BODY_IGNORED},
    {"GET", "secrets/{id}", unsupported_secrets, 0},
    {"POST", "secrets/{id}", unsupported_secrets, BODY_IGNORED},
    {"DELETE", "secrets/{id}", unsupported_secrets, BODY_IGNORED},
    {"POST", "access-tokens", unsupported_access_tokens, BODY_IGNORED},
    {"DELETE", "access-tokens/{id}", unsupported_access_tokens, BODY_IGNORED},
    {"GET", "teams", team_list, 0},
    {"GET", "api-keys", key_list, 0},
    {"POST", "api-keys", key_create, BODY_REQUIRED},
    {"PATCH", "api-keys/{id}", key_rename, BODY_REQUIRED},
    {"DELETE", "api-keys/{id}", key_delete, BODY_OPTIONAL},
};

/* ---- answers ---- */

#define TEXT(lit)                                                                                                      \
  {                                                                                                                    \
    lit, sizeof(lit) - 1                                                                                               \
  }
static const struct http_header cors[] = {
    {TEXT("Access-Control-Allow-Origin"), TEXT("*")},
    {TEXT("Access-Control-Expose-Headers"),
     TEXT("X-Next-Token, X-Total-Running, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After")},
};

void api_json_with(struct req *r, int status, struct str body, const struct http_header *headers, size_t n)
{
  if (r->answered)
    return;
  r->answered = true;
  metrics_api(r, status);
  struct http_header all[8];
  size_t k = 0;
  if (body.n)
    all[k++] = (struct http_header){STR("Content-Type"), STR("application/json")};
  if (http_header(http_x_head(r->x), "origin").p)
    for (size_t i = 0; i < ARRAY_LEN(cors); i++)
      all[k++] = cors[i];
  for (size_t i = 0; i < n && k < ARRAY_LEN(all); i++)
    all[k++] = headers[i];
  http_reply_with(r->x, status, all, k, body);
}

void api_json(struct req *r, int status, struct str body)
{
  api_json_with(r, status, body, NULL, 0);
}

void api_empty(struct req *r, int status)
{
  api_json(r, status, STR_NONE);
}

static void put_error(struct buf *b, int status, const char *fmt, va_list ap)
{
  char text[1024];
  vsnprintf(text, sizeof(text), fmt, ap);
  struct jw w = JW(b);
  jw_open(&w, '{');
  jw_key(&w, "code");
  jw_int(&w, status);
  jw_key(&w, "message");
  jw_z(&w, text);
  jw_close(&w, '}');
}

void api_error(struct req *r, int status, const char *fmt, ...)
{
  cleanup_buf struct buf b = BUF_INIT(8192);
  va_list ap;
  va_start(ap, fmt);
  put_error(&b, status, fmt, ap);
  va_end(ap);
  api_json(r, status, buf_str(&b));
}

void api_timeout_error(struct req *r)
{
  unsigned max = r->team.timeout_max_s;
  bool hours = max % 3600 == 0;
  api_error(r, 400, "Timeout cannot be greater than %u %s", hours ? max / 3600 : max, hours ? "hours" : "seconds");
}

/* Too fast: the client may try again after whole seconds. */
void api_too_fast(struct req *r, struct str message, uint64_t seconds)
{
  char text[24];
  struct http_header h = {
      STR("Retry-After"),
      {text, (size_t)snprintf(text, sizeof(text), "%llu", (unsigned long long)MAX(seconds, (uint64_t)1))}};
  cleanup_buf struct buf b = BUF_INIT(8192);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "code");
  jw_int(&w, 429);
  jw_key(&w, "message");
  jw_str(&w, message);
  jw_close(&w, '}');
  api_json_with(r, 429, buf_str(&b), &h, 1);
}

void api_warden_error(struct req *r, const struct warden_reply *reply)
{
  struct str message = wire_get(reply->packet, W_MESSAGE);
  int status = 500;
  if (reply->status == -EDQUOT) {
    api_too_fast(r, message, wire_u64(reply->packet, W_RETRY, 1));
    return;
  }
  switch (-reply->status) {
  case EINVAL:
  case E2BIG:
    status = 400;
    break;
  case ENOENT:
  case ESTALE:
    status = 404;
    break;
  case EPERM:
    status = 403;
    break;
  case EBUSY:
  case EALREADY:
  case EEXIST:
    status = 409;
    break;
  case EAGAIN:
    status = 429;
    break;
  case EACCES: /* the key was good a moment ago */
    status = 401;
    break;
  case ENOBUFS:
  case ESHUTDOWN:
    status = 503;
    break;
  case ENOSPC:
    status = 507;
    break;
  case EFBIG:
    status = 422;
    break;
  }
  if (status == 500)
    api_error(r, status, "Failed to place sandbox: " STR_FMT, STR_ARG(message));
  else
    api_error(r, status, STR_FMT, STR_ARG(message));
}

/* ---- calls to the warden ---- */

bool api_status(struct req *r, const struct warden_reply *reply, struct wire_status *out)
{
  struct str raw = wire_get(reply->packet, W_STATUS);
  r->pending_call = 0;
  if (raw.n != sizeof(*out)) {
    api_error(r, 500, "the warden returned no status");
    return false;
  }
  memcpy(out, raw.p, sizeof(*out));
  return true;
}

static void put_proof(const struct req *r, struct buf *b)
{
  uint8_t client[CLIENT_LEN];
  client_of(r->x, client);
  wire_put(b, W_CLIENT, str_make(client, sizeof(client)));
  if (r->proof_tag)
    wire_put(b, r->proof_tag, str_make(r->proof, sizeof(r->proof)));
}

void api_call_warden(struct req *r, struct buf *b, warden_reply_fn on_item, warden_reply_fn on_reply)
{
  put_proof(r, b);
  if (buf_failed(b)) {
    api_error(r, 413, "the request is too large: its settings exceed %u bytes", WIRE_MAX);
    return;
  }
  r->called_us = clock_mono_us();
  r->pending_call = warden_call(r->gate, b, on_item, on_reply, r);
}

struct str api_query(struct req *r, const char *name)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  int k = query_get(http_x_head(r->x)->query, name, &b);
  return k == 1 ? arena_str(r->arena, buf_str(&b)) : STR_NONE;
}

void api_counted(struct req *r, const struct warden_reply *reply, const char *name)
{
  r->pending_call = 0;
  if (reply->status) {
    api_warden_error(r, reply);
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(256);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, name);
  jw_uint(&w, wire_u64(reply->packet, W_COUNT, 0));
  jw_key(&w, "failedCount");
  jw_uint(&w, 0);
  jw_close(&w, '}');
  api_json(r, 200, buf_str(&b));
}

bool api_limit(struct req *r, uint64_t most, uint64_t *out)
{
  struct str limit = api_query(r, "limit");
  *out = most;
  if (!limit.p || (!str_u64(limit, out) && *out >= 1 && *out <= most))
    return true;
  api_error(r, 400, "'limit' must be from 1 to %llu, not '" STR_FMT "'", (unsigned long long)most,
            STR_ARG(str_sub(limit, 0, 100)));
  return false;
}

bool api_token(struct req *r, struct str *plain)
{
  struct str token = api_query(r, "nextToken");
  cleanup_buf struct buf b = BUF_INIT(1024);
  *plain = STR("");
  if (!token.n)
    return true;
  if (base64_decode(token, &b) || !b.n) {
    api_error(r, 400, "'nextToken' is not a token of this listing");
    return false;
  }
  *plain = arena_str(r->arena, buf_str(&b));
  return true;
}

/* base64url without padding. */
void api_token_add(struct buf *out, struct str plain)
{
  size_t from = out->n;
  base64_add(out, plain.p, plain.n, false);
  for (size_t i = from; i < out->n; i++)
    out->p[i] = out->p[i] == '+' ? '-' : out->p[i] == '/' ? '_' : out->p[i];
}

bool api_box_id(struct req *r, struct str *id)
{
  struct str head, tail;
  bool legacy = str_cut(r->id, '-', &head, &tail);
  bool good = head.n > 0 && head.n < 48 && !(legacy && str_find(tail, '-') >= 0);
  for (size_t i = 0; i < head.n; i++)
    good &= (head.p[i] >= 'a' && head.p[i] <= 'z') || (head.p[i] >= '0' && head.p[i] <= '9');
  if (!good)
    api_error(r, 400, "Invalid sandbox ID");
  *id = head;
  return good;
}

/* ---- the way to a handler ---- */

static void api_gone(struct http_x *x, enum http_end how)
{
  struct req *r = http_x_data(x);
  if (r->pending_call)
    warden_call_cancel(r->gate, r->pending_call);
  if (r->drop)
    r->drop(r);
  usage_leave(r->gate, USAGE_API, &r->usage);
  http_x_hold(x, -r->held);
  buf_free(&r->body);
}

static void api_body(struct http_x *x, struct str chunk)
{
  struct req *r = http_x_data(x);
  if (!r->answered && r->stream)
    r->stream(r, chunk);
  else if (!r->answered && !(r->entry->flags & BODY_IGNORED) && !buf_adds(&r->body, chunk)) {
    r->held += (int64_t)chunk.n;
    http_x_hold(x, (int64_t)chunk.n);
  }
}

static bool read_json(struct req *r)
{
  struct str text = str_trim(buf_str(&r->body));
  if (!text.n && (r->entry->flags & BODY_REQUIRED)) {
    api_error(r, 400, "a JSON body is required");
    return false;
  }
  if (!text.n)
    return true;
  struct json_error why;
  r->json = json_read(r->arena, text, 0, &why);
  if (!r->json)
    api_error(r, 400, "the body is not valid JSON: %s at byte %zu", why.what, why.offset);
  else if (r->json->type == JSON_NULL && !(r->entry->flags & BODY_REQUIRED))
    r->json = NULL;
  else if (r->json->type != JSON_OBJECT)
    api_error(r, 400, "the body must be a JSON object");
  return !r->answered;
}

static void api_body_end(struct http_x *x)
{
  struct req *r = http_x_data(x);
  if (r->answered)
    return;
  if (r->stream)
    r->stream(r, STR_NONE);
  else if (!(r->entry->flags & (BODY_OPTIONAL | BODY_REQUIRED)) || read_json(r))
    r->entry->handler(r);
}

static const struct http_x_ops api_ops = {.body = api_body, .body_end = api_body_end, .gone = api_gone};

static void authorised(struct req *r)
{
  bool keyed = !(r->entry->flags & NO_AUTH);
  if (keyed && r->team.id[0] && usage_enter(r->gate, r->team.id, USAGE_API, &r->usage)) {
    api_error(r, 429, "this team has %u requests open, as many as it may: wait for some to end",
              r->gate->config->team_connections_max);
    return;
  }
  if (keyed)
    http_x_accepted(r->x);
  if (r->entry->flags &
      (BODY_STREAM | NO_AUTH)) /* who showed no key is answered at the head: a body would be read for nobody */
    r->entry->handler(r);
  else
    http_x_resume(r->x);
}

/* Splits first, decodes after: a segment may hold %2F. */
static int split_path(struct req *r)
{
  struct str rest = http_x_head(r->x)->path, part;
  while (rest.n && rest.p[0] == '/')
    rest = str_skip(rest, 1);
  while (rest.n) {
    str_cut(rest, '/', &part, &rest);
    if (r->nsegments == API_SEGMENTS)
      return -EINVAL;
    cleanup_buf struct buf b = BUF_INIT(4096);
    if (percent_decode(part, false, &b))
      return -EINVAL;
    r->segments[r->nsegments++] = arena_str(r->arena, buf_str(&b));
  }
  return 0;
}

static struct str first_segment(struct str path)
{
  struct str head, rest;
  while (path.n && path.p[0] == '/')
    path = str_skip(path, 1);
  str_cut(path, '/', &head, &rest);
  return head;
}

bool api_owns(struct str path)
{
  struct str name = first_segment(path);
  for (size_t i = 0; i < sizeof(routes) / sizeof(*routes); i++)
    if (!(routes[i].flags & (NO_AUTH | ADMIN | KEY_OR_ADMIN)) && str_eq(name, first_segment(str_of(routes[i].path))))
      return true;
  return false;
}

static bool path_matches(struct req *r, const char *pattern)
{
  struct str rest = str_of(pattern), part;
  size_t i = 0;
  for (; rest.n; i++) {
    str_cut(rest, '/', &part, &rest);
    if (i >= r->nsegments)
      return false;
    if (str_is(part, "{id}"))
      r->id = r->segments[i];
    else if (str_is(part, "{second}"))
      r->second = r->segments[i];
    else if (!str_eq(part, r->segments[i]))
      return false;
  }
  return i == r->nsegments;
}

static void find_route(struct req *r)
{
  struct str method = http_x_head(r->x)->method;
  bool path_known = false;
  for (size_t i = 0; i < ARRAY_LEN(routes); i++) {
    if (!path_matches(r, routes[i].path))
      continue;
    path_known = true;
    if (!str_is(method, routes[i].method))
      continue;
    r->entry = &routes[i];
    return;
  }
  if (path_known)
    api_error(r, 405, "method " STR_FMT " is not allowed here", STR_ARG(method));
  else
    api_error(r, 404, "no such route: " STR_FMT " " STR_FMT, STR_ARG(method), STR_ARG(http_x_head(r->x)->path));
}

static void preflight(struct req *r)
{
  struct str wanted = http_header(http_x_head(r->x), "access-control-request-headers");
  const struct http_header h[] = {
      {STR("Access-Control-Allow-Origin"), STR("*")},
      {STR("Access-Control-Allow-Methods"), STR("GET, POST, PUT, PATCH, DELETE, OPTIONS")},
      {STR("Access-Control-Allow-Headers"), wanted.n ? wanted : STR("*")},
      {STR("Access-Control-Max-Age"), STR("7200")},
  };
  r->answered = true;
  http_reply_with(r->x, 204, h, ARRAY_LEN(h), STR_NONE);
}

static struct req *req_new(struct gate *g, struct http_x *x)
{
  struct arena *a = http_x_arena(x);
  struct req *r = arena_alloc(a, sizeof(*r));
  if (!r) {
    http_abort(x);
    return NULL;
  }
  *r = (struct req){
      .gate = g, .x = x, .arena = a, .body = BUF_INIT(g->config->api_body_max), .began_us = clock_mono_us()};
  http_x_handle(x, &api_ops, r);
  http_x_body_max(x, g->config->api_body_max);
  return r;
}

void api_metrics_request(struct http_x *x, void *arg)
{
  struct req *r = req_new(arg, x);
  if (!r)
    return;
  if (!split_path(r))
    find_route(r);
  bool open = r->entry && (r->entry->handler == metrics || r->entry->handler == health || r->entry->handler == alive);
  if (open)
    authorised(r);
  else
    api_error(r, 404, "only /metrics, /health, /readyz and /livez are served here");
}

void api_request(struct gate *g, struct http_x *x)
{
  struct req *r = req_new(g, x);
  if (!r)
    return;
  const struct http_head *h = http_x_head(x);
  if (str_is(h->method, "OPTIONS") && http_header(h, "access-control-request-method").p) {
    preflight(r);
    return;
  }
  if (split_path(r)) {
    api_error(r, 400, "the path '" STR_FMT "' can't be decoded", STR_ARG(h->path));
    return;
  }
  find_route(r);
  if (r->answered)
    return;
  if (r->entry->flags & NO_AUTH)
    authorised(r);
  else if (r->entry->flags & ADMIN || (r->entry->flags & KEY_OR_ADMIN && http_header(h, "x-admin-token").p))
    auth_check_admin(r, authorised);
  else
    auth_check(r, authorised);
}
