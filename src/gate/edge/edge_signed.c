/* SPDX-License-Identifier: Apache-2.0 */
/* edge_signed.c - requests on a host that names no box (the client was told one URL for all sandboxes). Of a signed
 * file URL only the box whose token made the signature can be meant; npm e2b 2.7 to 2.10 sends files and health checks,
 * PyPI e2b 2.7 to 2.20 everything after connect(), with the box's token alone, which names it too. The warden has the
 * tokens and finds the box (src/warden/core/token_index.c). What was found is remembered; clients that show wrong ones
 * are refused after a while without a search, and what no client would write is refused here: a search costs the warden
 * a hash per box, of the text that the client chose. */
#include "gate/edge/edge.h"
#include "gate/warden_client.h"
#include "wire/signed_text.h"

struct search {
  struct gate *gate;
  struct http_x *x;
  uint64_t pending_call;
  struct str text;    /* "path:operation:username:" */
  struct str expires; /* ":<unix>" or empty */
  struct str signature;
  uint8_t token[SHA256_LEN]; /* hash of the token that is looked for, where there is no signature */
};

#define REMEMBER_MAX   4096
#define QUERY_TEXT_MAX ((size_t)64 << 10) /* of one parameter; a query is no longer */

static struct str query_of(struct http_x *x, const char *name, bool *given)
{
  cleanup_buf struct buf b = BUF_INIT(QUERY_TEXT_MAX);
  int k = query_get(http_x_head(x)->query, name, &b);
  *given = k == 1;
  return k == 1 ? arena_str(http_x_arena(x), buf_str(&b)) : STR("");
}

static void enter(struct search *s, struct str box)
{
  struct edge_target t = {.port = ENVD_PORT};
  if (str_copyz(box, t.box, sizeof(t.box)))
    edge_refuse(s->x, EDGE_UNSIGNED, NULL, 0, STR("invalid signature"));
  else
    edge_request(s->gate, s->x, &t); /* whose agent looks at the signature itself */
}

static void remember(struct gate *g, struct str signature, struct str box)
{
  void *value;
  if (g->signed_urls.n >= REMEMBER_MAX) {
    for (size_t i = 0; map_next(&g->signed_urls, &i, NULL, &value);)
      free(value);
    map_free(&g->signed_urls);
  }
  free(map_put(&g->signed_urls, signature, xstrndup(box.p, box.n)));
}

static struct str key_of(const struct search *s)
{
  return s->signature.n ? s->signature : str_make(s->token, sizeof(s->token));
}

static void not_found(struct search *s)
{
  throttle_log(&s->gate->throttle, s->x, s->signature.n ? "signature" : "access token", STR_NONE);
  if (s->signature.n)
    edge_refuse(s->x, EDGE_UNSIGNED, NULL, 0, STR("invalid signature"));
  else
    edge_refuse(s->x, EDGE_NOT_FOUND, NULL, ENVD_PORT, STR(""));
}

/* Counted before the answer; see throttle.h. */
static void forgive(struct search *s)
{
  uint8_t client[CLIENT_LEN];
  client_of(s->x, client);
  throttle_forgive(&s->gate->throttle, client, clock_mono_us());
}

static void found(const struct warden_reply *reply, void *arg)
{
  struct search *s = arg;
  struct str box = wire_get(reply->packet, W_ID);
  s->pending_call = 0;
  if (reply->status == -EAGAIN || reply->status == -ENOBUFS) { /* nobody looked */
    forgive(s);
    edge_refuse(s->x, EDGE_THROTTLED, NULL, 1, STR_NONE);
  } else if (reply->status || !box.n) {
    not_found(s);
  } else {
    forgive(s);
    remember(s->gate, key_of(s), box);
    enter(s, box);
  }
}

static void search_gone(struct http_x *x, enum http_end how)
{
  struct search *s = http_x_data(x);
  if (s->pending_call)
    warden_call_cancel(s->gate, s->pending_call);
}

static void ignore_body(struct http_x *x, struct str chunk)
{
}

static void ignore(struct http_x *x)
{
}

static const struct http_x_ops search_ops = {
    .body = ignore_body, .body_end = ignore, .drain = ignore, .gone = search_gone};

static void put_search(const struct search *s, struct buf *b)
{
  wire_begin(b, WIRE_SIGNED_FIND, 0, 0);
  if (!s->signature.n) {
    wire_put(b, W_TOKEN_HASH, key_of(s));
    return;
  }
  wire_put(b, W_NAME, s->text);
  wire_put(b, W_REF, s->expires);
  wire_put(b, W_SIGNATURE, s->signature);
}

static void search(struct search *s)
{
  const char *known = map_get(&s->gate->signed_urls, key_of(s));
  uint8_t client[CLIENT_LEN];
  client_of(s->x, client);
  unsigned wait = throttle_wait(&s->gate->throttle, client, clock_mono_us());
  if (known) {
    enter(s, str_of(known));
    return;
  }
  if (wait) {
    edge_refuse(s->x, EDGE_THROTTLED, NULL, wait, STR_NONE);
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  put_search(s, &b);
  throttle_count(&s->gate->throttle, client, clock_mono_us());
  s->pending_call = warden_call(s->gate, &b, NULL, found, s);
}

void edge_by_token(struct gate *g, struct http_x *x)
{
  struct search *s = arena_alloc(http_x_arena(x), sizeof(*s));
  if (!s) {
    http_abort(x);
    return;
  }
  struct str token = http_header(http_x_head(x), "x-access-token");
  *s = (struct search){.gate = g, .x = x};
  sha256_of(token.p, token.n, s->token);
  http_x_handle(x, &search_ops, s);
  search(s);
}

void edge_signed(struct gate *g, struct http_x *x)
{
  struct arena *a = http_x_arena(x);
  struct search *s = arena_alloc(a, sizeof(*s));
  bool has_path, has_user, has_expiry, has_signature;
  struct str path = query_of(x, "path", &has_path), user = query_of(x, "username", &has_user);
  struct str expiry = query_of(x, "signature_expiration", &has_expiry);
  const char *operation = str_is(http_x_head(x)->method, "POST") ? "write" : "read";
  cleanup_buf struct buf text = BUF_INIT(4 * QUERY_TEXT_MAX);
  buf_adds(&text, path);
  buf_addf(&text, ":%s:", operation);
  buf_adds(&text, user);
  buf_addc(&text, ':');
  if (!s) {
    http_abort(x);
    return;
  }
  *s = (struct search){
      .gate = g, .x = x, .signature = query_of(x, "signature", &has_signature), .text = arena_str(a, buf_str(&text))};
  buf_clear(&text);
  buf_addc(&text, ':');
  buf_adds(&text, expiry);
  s->expires = has_expiry ? arena_str(a, buf_str(&text)) : STR("");
  http_x_handle(x, &search_ops, s);
  if (s->signature.n && signed_text_ok(s->text, s->expires))
    search(s);
  else
    edge_refuse(x, EDGE_UNSIGNED, NULL, 0, STR("invalid signature"));
}
