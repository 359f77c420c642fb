/* SPDX-License-Identifier: Apache-2.0 */
/* api.c - from a request to its handler: the route, the key, the body; and the helpers that handlers share. */
#include "gate/api/api.h"

/* ---- calls to the warden ---- */

bool api_put_proof(struct req *r, struct buf *b)
{
  uint8_t client[CLIENT_LEN];
  client_of(r->x, client);
  wire_put(b, W_CLIENT, str_make(client, sizeof(client)));
  if (r->proof_tag)
    wire_put(b, r->proof_tag, str_make(r->proof, sizeof(r->proof)));
  if (buf_failed(b))
    api_error(r, 413, "the request is too large: its settings exceed %u bytes", WIRE_MAX);
  return !buf_failed(b);
}

void api_call_warden(struct req *r, struct buf *b, warden_reply_fn on_item, warden_reply_fn on_reply)
{
  if (!api_put_proof(r, b))
    return;
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
  if (api_refused(r, reply))
    return;
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

bool api_limit_named(struct req *r, const char *name, uint64_t most, uint64_t otherwise, uint64_t *out)
{
  struct str limit = api_query(r, name);
  *out = otherwise;
  if (!limit.p || (!str_u64(limit, out) && *out >= 1 && *out <= most))
    return true;
  api_error(r, 400, "'%s' must be from 1 to %llu, not '" STR_FMT "'", name, (unsigned long long)most,
            STR_ARG(str_sub(limit, 0, 100)));
  return false;
}

bool api_limit(struct req *r, uint64_t most, uint64_t *out)
{
  return api_limit_named(r, "limit", most, most, out);
}

bool api_ms(struct req *r, const char *name, int64_t *us)
{
  struct str text = api_query(r, name);
  int64_t ms;
  if (!text.n)
    return true;
  if (str_i64(text, &ms) || ms < 0 || ms > INT64_MAX / 1000) {
    api_error(r, 400, "'%s' must be whole milliseconds since 1970, not '" STR_FMT "'", name,
              STR_ARG(str_sub(text, 0, 100)));
    return false;
  }
  *us = ms * 1000;
  return true;
}

bool api_token_named(struct req *r, const char *name, struct str *plain)
{
  struct str token = api_query(r, name);
  cleanup_buf struct buf b = BUF_INIT(1024);
  *plain = STR("");
  if (!token.n)
    return true;
  if (base64_decode(token, &b) || !b.n) {
    api_error(r, 400, "'%s' is not a token of this listing", name);
    return false;
  }
  *plain = arena_str(r->arena, buf_str(&b));
  return true;
}

bool api_token(struct req *r, struct str *plain)
{
  return api_token_named(r, "nextToken", plain);
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
  bool good = head.n > 0 && head.n < BOX_ID_SIZE && !(legacy && str_find(tail, '-') >= 0);
  for (size_t i = 0; i < head.n; i++)
    good &= (head.p[i] >= 'a' && head.p[i] <= 'z') || (head.p[i] >= '0' && head.p[i] <= '9');
  if (!good)
    api_error(r, 400, "Invalid sandbox ID");
  *id = head;
  return good;
}

/* ---- the way to a handler ---- */

#define API_JSON_MAX ((size_t)4 << 20) /* bytes of the tree that a body is read into */

static void api_gone(struct http_x *x, enum http_end how)
{
  struct req *r = http_x_data(x);
  if (r->pending_call)
    warden_call_cancel(r->gate, r->pending_call);
  list_call_leave(r);
  if (r->drop)
    r->drop(r);
  usage_leave(r->gate, USAGE_API, &r->usage);
  http_x_hold(x, -r->held);
  if (r->entry && (r->entry->flags & NO_STORE) && r->body.p)
    explicit_bzero(r->body.p, r->body.cap);
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

/* A tree takes up to 40 times its text ("1," makes a node), so it has a limit of its own, and counts as held until the
 * exchange ends. What a build is to do may be as long as a body may. */
static struct json *read_tree(struct req *r, struct str text, struct json_error *why)
{
  struct arena *a = r->arena;
  size_t before = a->used, most = a->max;
  if (r->entry->handler != build_start)
    a->max = MIN(most, before + API_JSON_MAX);
  struct json *tree = json_read(a, text, 0, why);
  a->max = most;
  r->held += (int64_t)(a->used - before);
  http_x_hold(r->x, (int64_t)(a->used - before));
  return tree;
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
  r->json = read_tree(r, text, &why);
  if (!r->json && str_is(str_of(why.what), "too large"))
    api_error(r, 413, "the body is too large: its values up to byte %zu take more than %zu bytes of memory", why.offset,
              r->entry->handler == build_start ? r->arena->max : API_JSON_MAX);
  else if (!r->json)
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

static void api_drain(struct http_x *x)
{
  struct req *r = http_x_data(x);
  if (r->drained)
    r->drained(r);
}

static enum http_lend api_lend(struct http_x *x, int fd, uint64_t most)
{
  struct req *r = http_x_data(x);
  return r->lend && !r->answered ? r->lend(r, fd, most) : HTTP_LEND_NOT;
}

static void api_passed(struct http_x *x, size_t n)
{
  struct req *r = http_x_data(x);
  r->passed(r, n);
}

static const struct http_x_ops api_ops = {.body = api_body,
                                          .body_end = api_body_end,
                                          .drain = api_drain,
                                          .gone = api_gone,
                                          .lend = api_lend,
                                          .passed = api_passed};

bool api_count(struct req *r, const char *team)
{
  if (!usage_enter(r->gate, team, USAGE_API, &r->usage))
    return true;
  struct api_failure f = {.status = 429, .retry_after_s = 1};
  api_fail(r, &f, "this team has %u requests open, as many as it may: wait for some to end",
           usage_most(r->gate, USAGE_API));
  return false;
}

static void authorised(struct req *r)
{
  bool keyed = !(r->entry->flags & NO_AUTH);
  if (keyed && r->team.id[0] && !api_count(r, r->team.id))
    return;
  if (keyed)
    http_x_accepted(r->x);
  if (r->entry->flags &
      (BODY_STREAM | NO_AUTH)) /* who showed no key is answered at the head: a body would be read for nobody */
    r->entry->handler(r);
  else
    http_x_resume(r->x);
}

static void find_route(struct req *r)
{
  const struct http_head *h = http_x_head(r->x);
  struct route_path path;
  struct route_match m;
  if (route_split(r->arena, h->path, &path)) {
    api_error(r, 400, "the path '" STR_FMT "' can't be decoded", STR_ARG(h->path));
    return;
  }
  int e = route_find(h->method, &path, &m);
  if (e == -ENOENT)
    api_error(r, 404, "no such route: " STR_FMT " " STR_FMT, STR_ARG(h->method), STR_ARG(h->path));
  else if (e)
    api_error(r, 405, "method " STR_FMT " is not allowed here", STR_ARG(h->method));
  r->entry = m.entry;
  r->id = m.id;
  r->second = m.second;
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
  find_route(r);
  if (r->answered)
    return;
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
  find_route(r);
  if (r->answered)
    return;
  if (r->entry->flags & NO_AUTH)
    authorised(r);
  else if (r->entry->flags & ADMIN)
    auth_check_admin(r, authorised);
  else
    auth_check(r, authorised);
}
