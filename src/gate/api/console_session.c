/* SPDX-License-Identifier: Apache-2.0 */
/* console_session.c - POST /console/session: a browser brings the one-time code of a sign-in link, as the header
 * X-Console-Code, and gets an API key that ends by itself. The code came in the fragment of a URL, which browsers send
 * to nobody. Guesses count as wrong keys do (throttle.h). POST /console-links makes such a code for the key's team. */
#include "gate/api/api.h"
#include "wire/api_key.h"

struct session {
  char key[KEY_TEXT];
  uint8_t client[CLIENT_LEN];
};

static void wipe(struct req *r)
{
  struct session *s = r->state;
  explicit_bzero(s->key, sizeof(s->key));
}

static void told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct session *s = r->state;
  r->pending_call = 0;
  if (reply->status == -EACCES) {
    throttle_log(&r->gate->throttle, r->x, "sign-in code", STR_NONE);
    api_error(r, 401, STR_FMT, STR_ARG(wire_get(reply->packet, W_MESSAGE)));
    return;
  }
  throttle_forgive(&r->gate->throttle, s->client, clock_mono_us());
  if (reply->status) {
    api_warden_error(r, reply);
    return;
  }
  char when[CLOCK_TEXT];
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct jw w = JW(&b);
  clock_text((int64_t)wire_u64(reply->packet, W_END, 0), when);
  const struct {
    const char *name;
    struct str value;
  } members[] = {{"key", str_of(s->key)},
                 {"keyID", wire_get(reply->packet, W_ID)},
                 {"teamID", wire_get(reply->packet, W_TEAM)},
                 {"teamName", wire_get(reply->packet, W_NAME)},
                 {"expiresAt", str_of(when)}};
  jw_open(&w, '{');
  for (size_t i = 0; i < ARRAY_LEN(members); i++) {
    jw_key(&w, members[i].name);
    jw_str(&w, members[i].value);
  }
  jw_close(&w, '}');
  api_json(r, 201, buf_str(&b));
  if (b.p)
    explicit_bzero(b.p, b.n);
}

void console_session(struct req *r)
{
  struct str code = http_header(http_x_head(r->x), "x-console-code");
  struct session *s = arena_alloc(r->arena, sizeof(*s));
  uint8_t hash[SHA256_LEN];
  char mask[KEY_MASK_SIZE];
  if (!code.n || code.n > 128 || !s) {
    api_error(r, 400, "the header X-Console-Code must hold the code of a sign-in link; 'cloche open' prints one");
    return;
  }
  client_of(r->x, s->client);
  unsigned wait = throttle_wait(&r->gate->throttle, s->client, clock_mono_us());
  if (wait) {
    api_too_fast(r, STR("too many wrong keys or codes from this address; try again later"), wait);
    return;
  }
  throttle_count(&r->gate->throttle, s->client, clock_mono_us());
  r->state = s;
  r->drop = wipe;
  cleanup_buf struct buf b = BUF_INIT(4096);
  wire_begin(&b, WIRE_LOGIN, 0, 0);
  sha256_of(code.p, code.n, hash);
  wire_put(&b, W_SECRET, str_make(hash, sizeof(hash)));
  key_make(s->key, hash, mask);
  wire_put(&b, W_KEYHASH, str_make(hash, sizeof(hash)));
  wire_putz(&b, W_MASK, mask);
  api_call_warden(r, &b, NULL, told);
}

static void link_made(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  cleanup_buf struct buf b = BUF_INIT(1024);
  struct jw w = JW(&b);
  if (api_refused(r, reply))
    return;
  jw_open(&w, '{');
  jw_key(&w, "code");
  jw_str(&w, wire_get(reply->packet, W_SECRET));
  jw_key(&w, "expiresInSeconds");
  jw_uint(&w, wire_u64(reply->packet, W_TIMEOUT, 0));
  jw_close(&w, '}');
  api_json(r, 201, buf_str(&b));
  if (b.p)
    explicit_bzero(b.p, b.n);
}

void console_link(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_LOGIN_CODE, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  api_call_warden(r, &b, NULL, link_made);
}
