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
  struct edge_target t = {.port = ENVD_PORT, .shared = true};
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

/* What is known already goes in, whoever else guesses from the same address; a guesser waits, before more of the
 * request is read. False: neither, so it is searched for. */
static bool settled(struct search *s)
{
  const char *known = map_get(&s->gate->signed_urls, key_of(s));
  uint8_t client[CLIENT_LEN];
  if (known) {
    enter(s, str_of(known));
    return true;
  }
  client_of(s->x, client);
  unsigned wait = throttle_wait(&s->gate->throttle, client, clock_mono_us());
  if (wait)
    edge_refuse(s->x, EDGE_THROTTLED, NULL, wait, STR_NONE);
  return wait != 0;
}

static void count(struct search *s)
{
  uint8_t client[CLIENT_LEN];
  client_of(s->x, client);
  throttle_count(&s->gate->throttle, client, clock_mono_us());
}

static void search(struct search *s)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  put_search(s, &b);
  count(s);
  s->pending_call = warden_call(s->gate, &b, NULL, found, s);
}

static struct search *search_new(struct gate *g, struct http_x *x)
{
  struct search *s = arena_alloc(http_x_arena(x), sizeof(*s));
  if (!s) {
    http_abort(x);
    return NULL;
  }
  *s = (struct search){.gate = g, .x = x};
  http_x_handle(x, &search_ops, s);
  return s;
}

void edge_by_token(struct gate *g, struct http_x *x)
{
  struct search *s = search_new(g, x);
  struct str token = http_header(http_x_head(x), "x-access-token");
  bool possible = token.n <= TOKEN_GIVEN_MAX;
  if (!s)
    return;
  if (possible)
    sha256_of(token.p, token.n, s->token);
  if (settled(s))
    return;
  if (possible) {
    search(s);
    return;
  }
  count(s);
  not_found(s);
}

/* What the signature is of. */
static void read_text(struct search *s)
{
  struct arena *a = http_x_arena(s->x);
  bool has_path, has_user, has_expiry;
  struct str path = query_of(s->x, "path", &has_path), user = query_of(s->x, "username", &has_user);
  struct str expiry = query_of(s->x, "signature_expiration", &has_expiry);
  const char *operation = str_is(http_x_head(s->x)->method, "POST") ? "write" : "read";
  cleanup_buf struct buf text = BUF_INIT(4 * QUERY_TEXT_MAX);
  buf_adds(&text, path);
  buf_addf(&text, ":%s:", operation);
  buf_adds(&text, user);
  buf_addc(&text, ':');
  s->text = arena_str(a, buf_str(&text));
  buf_clear(&text);
  buf_addc(&text, ':');
  buf_adds(&text, expiry);
  s->expires = has_expiry ? arena_str(a, buf_str(&text)) : STR("");
}

void edge_signed(struct gate *g, struct http_x *x)
{
  struct search *s = search_new(g, x);
  bool given;
  if (!s)
    return;
  s->signature = query_of(x, "signature", &given);
  if (settled(s))
    return;
  bool possible = s->signature.n && s->signature.n <= TOKEN_GIVEN_MAX;
  if (possible)
    read_text(s);
  if (possible && signed_text_ok(s->text, s->expires)) {
    search(s);
    return;
  }
  throttle_failed(&g->throttle, x, "signature", STR_NONE);
  edge_refuse(x, EDGE_UNSIGNED, NULL, 0, STR("invalid signature"));
}
