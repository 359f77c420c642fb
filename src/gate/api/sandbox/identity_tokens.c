/* SPDX-License-Identifier: Apache-2.0 */
/* identity_tokens.c - identity tokens that a sandbox is created with, and what those who verify them ask for: the keys,
 * without any key of ours. */
#include "gate/api/api.h"

#include "gate/api/sandbox/identity_tokens.h"

#define TOKENS_MAX   5
#define NAME_BYTES   128
#define AUDIENCE_MAX 1024
#define KEPT_US      2000000 /* how long a gate answers by itself: anyone may ask */

/* ---- iam of a create ---- */

/* As the clients have it: no braces, and no character of Unicode's category Cc. */
static bool plain(struct str s, const char *but)
{
  for (size_t i = 0; i < s.n; i++) {
    unsigned char c = (unsigned char)s.p[i], next = i + 1 < s.n ? (unsigned char)s.p[i + 1] : 0;
    if (c < 32 || c == 127 || strchr(but, c) || (c == 0xc2 && next >= 0x80 && next <= 0x9f))
      return false;
  }
  return true;
}

static int read_token(const struct json *t, struct buf *lines, struct err *err)
{
  struct str name = t->key, audience = json_text(json_get(t, "audience"), STR_NONE),
             type = json_text(json_get(t, "tokenType"), STR_NONE);
  if (!name.n || name.n > NAME_BYTES || !plain(name, "{}"))
    return err_set(err, -EINVAL, "a name in 'iam.tokens' must have 1 to %d bytes and no '{', '}' or control character",
                   NAME_BYTES);
  if (!json_is(t, JSON_OBJECT) || !audience.n || audience.n > AUDIENCE_MAX || !plain(audience, ""))
    return err_set(err, -EINVAL,
                   "'iam.tokens." STR_FMT ".audience' must be a text of 1 to %d bytes without control characters",
                   STR_ARG(name), AUDIENCE_MAX);
  if (!str_is(type, "JWT-SVID"))
    return err_set(err, -EINVAL, "'iam.tokens." STR_FMT ".tokenType' must be \"JWT-SVID\", not '" STR_FMT "'",
                   STR_ARG(name), STR_ARG(str_sub(type, 0, 64)));
  buf_addf(lines, STR_FMT "\t" STR_FMT "\n", STR_ARG(name), STR_ARG(audience));
  return 0;
}

int identity_tokens_read(const struct json *iam, struct buf *lines, struct err *err)
{
  const struct json *tokens = json_get(iam, "tokens");
  if (!json_given(iam))
    return 0;
  if (iam->type != JSON_OBJECT || (json_given(tokens) && tokens->type != JSON_OBJECT))
    return err_set(err, -EINVAL, "'iam' must be an object with an object 'tokens'");
  if (!json_given(tokens))
    return 0;
  if (tokens->count > TOKENS_MAX)
    return err_set(err, -EINVAL, "'iam.tokens' has %zu tokens; at most %d are allowed", tokens->count, TOKENS_MAX);
  int r = 0;
  for (const struct json *t = tokens->kids; !r && t; t = t->next) {
    for (const struct json *other = tokens->kids; other != t; other = other->next)
      if (str_eq(other->key, t->key))
        return err_set(err, -EINVAL, "'iam.tokens' has a name twice");
    r = read_token(t, lines, err);
  }
  return r ? r : buf_failed(lines);
}

/* ---- what verifies them ---- */

static struct {
  struct buf keys, issuer;
  int64_t until_us;
} kept = {.keys = BUF_INIT(WIRE_MAX), .issuer = BUF_INIT(4096)};

static void tell(struct req *r, struct str body)
{
  struct http_header kept_by_all = {STR("Cache-Control"), STR("public, max-age=60")};
  api_json_with(r, 200, body, &kept_by_all, 1);
}

static void answer(struct req *r)
{
  if (strcmp(r->entry->path, ".well-known/jwks.json") == 0) {
    tell(r, buf_str(&kept.keys));
    return;
  }
  if (!kept.issuer.n) {
    api_error(r, 404, "identity tokens of this server name no issuer; its operator sets identity_issuer");
    return;
  }
  struct str issuer = buf_str(&kept.issuer);
  cleanup_buf struct buf b = BUF_INIT(8192), url = BUF_INIT(4096);
  buf_addf(&url, STR_FMT "/.well-known/jwks.json",
           STR_ARG(str_ends(issuer, STR("/")) ? str_sub(issuer, 0, issuer.n - 1) : issuer));
  const char *const lists[][2] = {{"response_types_supported", "id_token"},
                                  {"subject_types_supported", "public"},
                                  {"id_token_signing_alg_values_supported", "ES256"}};
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "issuer");
  jw_str(&w, issuer);
  jw_key(&w, "jwks_uri");
  jw_str(&w, buf_str(&url));
  for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
    jw_key(&w, lists[i][0]);
    jw_open(&w, '[');
    jw_z(&w, lists[i][1]);
    jw_close(&w, ']');
  }
  jw_close(&w, '}');
  tell(r, buf_str(&b));
}

static void told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (api_refused(r, reply))
    return;
  buf_clear(&kept.keys);
  buf_clear(&kept.issuer);
  buf_adds(&kept.keys, wire_get(reply->packet, W_BODY));
  buf_adds(&kept.issuer, wire_get(reply->packet, W_URL));
  kept.until_us = clock_mono_us() + KEPT_US;
  answer(r);
}

void identity_keys_forget(void)
{
  kept.until_us = 0;
}

void identity_keys(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  if (kept.until_us > clock_mono_us()) {
    answer(r);
    return;
  }
  wire_begin(&b, WIRE_IDENTITY_KEYS, 0, 0);
  api_call_warden(r, &b, NULL, told);
}
