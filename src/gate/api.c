/* api.c - the REST face: from a request to its handler, and from a handler to an answer. */
#include "gate/api.h"

#include <stdio.h>

static const struct route_entry routes[] = {
    {"GET", "health", health, NO_AUTH},
    {"POST", "sandboxes", sandbox_create_v1, BODY_REQUIRED},
    {"POST", "v2/sandboxes", sandbox_create_v2, BODY_REQUIRED},
    {"GET", "sandboxes", sandbox_list_v1, 0},
    {"GET", "v2/sandboxes", sandbox_list_v2, 0},
    {"GET", "sandboxes/{id}", sandbox_get, 0},
    {"DELETE", "sandboxes/{id}", sandbox_kill, BODY_OPTIONAL},
    {"POST", "sandboxes/{id}/timeout", sandbox_timeout, BODY_REQUIRED},
    {"POST", "sandboxes/{id}/refreshes", sandbox_refresh, BODY_OPTIONAL},
    {"POST", "sandboxes/{id}/connect", sandbox_connect_v1, BODY_REQUIRED},
    {"POST", "v2/sandboxes/{id}/connect", sandbox_connect_v2, BODY_OPTIONAL},
    {"GET", "sandboxes/{id}/metrics", sandbox_metrics, 0},
    {"GET", "templates", template_list, 0},
    {"GET", "templates/aliases/{id}", template_alias, 0},
    {"GET", "teams", team_list, 0},
    {"GET", "api-keys", key_list, 0},
    {"POST", "api-keys", key_create, BODY_REQUIRED},
    {"PATCH", "api-keys/{id}", key_rename, BODY_REQUIRED},
    {"DELETE", "api-keys/{id}", key_delete, BODY_OPTIONAL},
};

/* ---- answers ---- */

#define TEXT(lit) {lit, sizeof(lit) - 1}
static const struct http_header cors[] = {
    {TEXT("Access-Control-Allow-Origin"), TEXT("*")},
    {TEXT("Access-Control-Expose-Headers"), TEXT("X-Next-Token, X-Total-Running, RateLimit-Limit, RateLimit-Remaining, RateLimit-Reset, Retry-After")},
};

void api_json_with(struct req *r, int status, struct str body, const struct http_header *headers, size_t n)
{
  if (r->answered)
    return;
  r->answered = true;
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

void api_error(struct req *r, int status, const char *fmt, ...)
{
  char text[1024];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(text, sizeof(text), fmt, ap);
  va_end(ap);
  cleanup_buf struct buf b = BUF_INIT(8192);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "code");
  jw_int(&w, status);
  jw_key(&w, "message");
  jw_z(&w, text);
  jw_close(&w, '}');
  api_json(r, status, buf_str(&b));
}

void api_warden_error(struct req *r, const struct answer *a)
{
  struct str message = wire_get(a->packet, W_MESSAGE);
  int status = 500;
  switch (-a->status) {
  case EINVAL:
  case E2BIG:
    status = 400;
    break;
  case ENOENT:
  case ESTALE:
    status = 404;
    break;
  case EBUSY:
    status = 409;
    break;
  case EAGAIN:
    status = 429;
    break;
  case ESHUTDOWN:
    status = 503;
    break;
  }
  if (status == 500)
    api_error(r, status, "Failed to place sandbox: " STR_FMT, STR_ARG(message));
  else
    api_error(r, status, STR_FMT, STR_ARG(message));
}

/* ---- asking ---- */

void api_ask(struct req *r, struct buf *b, answer_fn on_item, answer_fn on_reply)
{
  if (buf_failed(b)) {
    api_error(r, 413, "the request is too large: its settings exceed %u bytes", WIRE_MAX);
    return;
  }
  r->ask = ask_warden(r->gate, b, on_item, on_reply, r);
}

struct str api_query(struct req *r, const char *name)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  int k = query_get(http_x_head(r->x)->query, name, &b);
  return k == 1 ? arena_str(r->arena, buf_str(&b)) : STR_NONE;
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
  if (r->ask)
    ask_forget(r->gate, r->ask);
  if (r->drop)
    r->drop(r);
  buf_free(&r->body);
}

static void api_body(struct http_x *x, struct str chunk)
{
  struct req *r = http_x_data(x);
  buf_adds(&r->body, chunk);
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
  if (!(r->entry->flags & (BODY_OPTIONAL | BODY_REQUIRED)) || read_json(r))
    r->entry->handler(r);
}

static const struct http_x_ops api_ops = {.body = api_body, .body_end = api_body_end, .gone = api_gone};

static void authorised(struct req *r)
{
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

void api_request(struct gate *g, struct http_x *x)
{
  struct arena *a = http_x_arena(x);
  struct req *r = arena_alloc(a, sizeof(*r));
  if (!r) {
    http_abort(x);
    return;
  }
  *r = (struct req){.gate = g, .x = x, .arena = a, .body = BUF_INIT(g->config->api_body_max)};
  http_x_handle(x, &api_ops, r);
  http_x_body_max(x, g->config->api_body_max);
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
  else
    auth_check(r, authorised);
}

void health(struct req *r)
{
  if (r->gate->greeted)
    http_reply(r->x, 200, "text/plain; charset=utf-8", STR("Health check successful"));
  else
    api_error(r, 503, "the warden is not connected");
  r->answered = true;
}
