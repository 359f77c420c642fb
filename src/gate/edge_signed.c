/* edge_signed.c - a signed file URL on a host that names no box (the client was told one URL for all sandboxes). Only the
 * box whose token made the signature can be meant, so each running box's token is tried. */
#include "gate/edge.h"

struct search {
  struct gate *gate;
  struct http_x *x;
  uint64_t ask;
  struct str text;    /* "path:operation:username:" */
  struct str expires; /* ":<unix>" or empty */
  struct str signature;
  char found[64];
};

static struct str query_of(struct http_x *x, const char *name, bool *given)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  int k = query_get(http_x_head(x)->query, name, &b);
  *given = k == 1;
  return k == 1 ? arena_str(http_x_arena(x), buf_str(&b)) : STR("");
}

static void try_box(const struct answer *a, void *arg)
{
  struct search *s = arg;
  struct str id = wire_get(a->packet, W_ID);
  if (s->found[0] || !(wire_u64(a->packet, W_FLAGS, 0) & BOX_SECURE))
    return;
  char token[TOKEN_TEXT];
  uint8_t digest[SHA256_LEN];
  cleanup_buf struct buf text = BUF_INIT(1 << 17), mine = BUF_INIT(128);
  token_make(str_of(s->gate->secret), TOKEN_ACCESS, id, token);
  buf_adds(&text, s->text);
  buf_addz(&text, token);
  buf_adds(&text, s->expires);
  sha256_of(text.p, text.n, digest);
  buf_addz(&mine, "v1_");
  base64_add(&mine, digest, sizeof(digest), false);
  if (str_eq_secret(buf_str(&mine), s->signature))
    str_copyz(id, s->found, sizeof(s->found));
}

static void tried(const struct answer *a, void *arg)
{
  struct search *s = arg;
  s->ask = 0;
  if (!s->found[0]) {
    edge_refuse(s->x, EDGE_UNSIGNED, NULL, 0, STR("invalid signature"));
    return;
  }
  struct edge_target t = {.port = ENVD_PORT};
  memcpy(t.box, s->found, sizeof(t.box));
  edge_request(s->gate, s->x, &t);
}

static void search_gone(struct http_x *x, enum http_end how)
{
  struct search *s = http_x_data(x);
  if (s->ask)
    ask_forget(s->gate, s->ask);
}

static void ignore_body(struct http_x *x, struct str chunk)
{
}

static void ignore(struct http_x *x)
{
}

static const struct http_x_ops search_ops = {.body = ignore_body, .body_end = ignore, .drain = ignore, .gone = search_gone};

void edge_signed(struct gate *g, struct http_x *x)
{
  struct arena *a = http_x_arena(x);
  struct search *s = arena_alloc(a, sizeof(*s));
  bool has_path, has_user, has_expiry, has_signature;
  struct str path = query_of(x, "path", &has_path), user = query_of(x, "username", &has_user);
  struct str expiry = query_of(x, "signature_expiration", &has_expiry);
  const char *operation = str_is(http_x_head(x)->method, "POST") ? "write" : "read";
  cleanup_buf struct buf text = BUF_INIT(1 << 17);
  buf_adds(&text, path);
  buf_addf(&text, ":%s:", operation);
  buf_adds(&text, user);
  buf_addc(&text, ':');
  if (!s) {
    http_abort(x);
    return;
  }
  *s = (struct search){.gate = g, .x = x, .signature = query_of(x, "signature", &has_signature), .text = arena_str(a, buf_str(&text))};
  buf_clear(&text);
  buf_addc(&text, ':');
  buf_adds(&text, expiry);
  s->expires = has_expiry ? arena_str(a, buf_str(&text)) : STR("");
  http_x_handle(x, &search_ops, s);
  cleanup_buf struct buf b = BUF_INIT(256);
  wire_begin(&b, WIRE_BOX_LIST, 0, 0);
  s->ask = ask_warden(g, &b, try_box, tried, s);
}
