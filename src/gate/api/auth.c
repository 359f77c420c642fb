/* SPDX-License-Identifier: Apache-2.0 */
/* auth.c - API keys. A gate never sees the table of keys: it sends the hash and caches the reply for a minute,
 * or until the warden says that keys changed. The hash goes along with every call to the warden that the request leads
 * to: it is by the hash that the warden knows the team, not by the gate's word. Wrong keys are counted per client; see
 * throttle.h. */
#include "gate/api/api.h"
#include "wire/api_key.h"

#define REMEMBER_US  60000000
#define REMEMBER_MAX 10000

struct waiting {
  handler_fn then;
  uint8_t client[CLIENT_LEN]; /* whose guess was counted before it was answered: of an administrator's token, which
                                 people choose */
};

void auth_forget(struct gate *g)
{
  void *value;
  for (size_t i = 0; map_next(&g->teams, &i, NULL, &value);)
    free(value);
  map_free(&g->teams);
}

static void refuse(struct req *r, const char *why)
{
  api_error(r, 401, "%s", why);
}

/* A dashboard names the team it means; a key opens only its own. */
static void go_on(struct req *r, handler_fn then)
{
  struct str wanted = http_header(http_x_head(r->x), "x-team-id");
  if (wanted.n && !str_is(wanted, r->team.id))
    api_error(r, 403, "this key does not belong to the team in X-Team-ID");
  else
    then(r);
}

struct str auth_presented(struct req *r)
{
  const struct http_head *h = http_x_head(r->x);
  struct str key = http_header(h, "x-api-key");
  return key.p ? key : http_bearer(h);
}

/* An access token is a bearer and nothing else. */
static bool is_token(struct req *r, struct str key)
{
  return !http_header(http_x_head(r->x), "x-api-key").p && str_starts(key, STR(ACCESS_TOKEN_PREFIX));
}

static void told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct waiting *wait = r->state;
  r->pending_call = 0;
  if (reply->status && reply->status != -EACCES) {
    api_warden_error(r, reply);
    return;
  }
  if (reply->status) {
    r->proof_tag = 0;
    throttle_failed(&r->gate->throttle, r->x, "API key", auth_presented(r));
    refuse(r, is_token(r, auth_presented(r))
                  ? "Invalid access token: it is unknown to this server; create one with 'cloche key create --token'"
                  : "Invalid API key: it is unknown to this server; create one with 'cloche key create'");
    return;
  }
  wire_copyz(reply->packet, W_ID, r->team.key, sizeof(r->team.key));
  wire_copyz(reply->packet, W_TEAM, r->team.id, sizeof(r->team.id));
  wire_copyz(reply->packet, W_NAME, r->team.name, sizeof(r->team.name));
  wire_copyz(reply->packet, W_SLUG, r->team.slug, sizeof(r->team.slug));
  r->team.timeout_max_s = (unsigned)wire_u64(reply->packet, W_LIMIT_TIMEOUT, 3600);
  uint64_t ends = wire_u64(reply->packet, W_END, 0); /* of a key that ends by itself */
  r->team.until_us = clock_mono_us() + REMEMBER_US;
  if (ends)
    r->team.until_us = MIN(r->team.until_us, clock_mono_us() + (int64_t)ends - clock_wall_us());
  memcpy(r->team.proof, r->proof, sizeof(r->proof));
  if (r->gate->teams.n >= REMEMBER_MAX)
    auth_forget(r->gate);
  struct team *t = xmalloc(sizeof(*t));
  *t = r->team;
  free(map_put(&r->gate->teams, str_make(r->proof, SHA256_LEN), t));
  go_on(r, wait->then);
}

static bool throttled(struct req *r)
{
  uint8_t client[CLIENT_LEN];
  client_of(r->x, client);
  unsigned wait = throttle_wait(&r->gate->throttle, client, clock_mono_us());
  if (wait)
    api_too_fast(r, STR("too many wrong keys from this address; try again later"), wait);
  return wait != 0;
}

void auth_check(struct req *r, handler_fn then)
{
  struct waiting *wait = arena_alloc(r->arena, sizeof(*wait));
  struct str key = auth_presented(r);
  if (!key.n || !wait) {
    refuse(r, "an API key is missing: send it as the header X-API-Key");
    return;
  }
  bool token = r->by_token = is_token(r, key);
  if (token && !(r->entry->flags & ACCESS_TOKEN)) {
    refuse(r, "an access token is not accepted here: send an API key as the header X-API-Key");
    return;
  }
  bool formed = !(token ? access_token_hash(key, r->proof) : key_hash(key, r->proof));
  const struct team *t = formed ? map_get(&r->gate->teams, str_make(r->proof, SHA256_LEN)) : NULL;
  if (t && t->until_us > clock_mono_us()) {
    r->team = *t;
    r->proof_tag = W_PROOF;
    go_on(r, then);
    return;
  }
  if (!t && throttled(r)) /* one that was good before is checked again, whoever guesses at the same address */
    return;
  if (!formed) {
    throttle_failed(&r->gate->throttle, r->x, "API key", key);
    refuse(r, token ? "Invalid access token format: expected " ACCESS_TOKEN_PREFIX " and 40 hexadecimal digits"
                    : "Invalid API key format: expected e2b_ and hexadecimal digits");
    return;
  }
  wait->then = then;
  r->state = wait;
  r->proof_tag = W_PROOF;
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_AUTH, 0, 0);
  api_call_warden(r, &b, NULL, told);
}

static void told_admin(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct waiting *wait = r->state;
  r->pending_call = 0;
  if (!reply->status) {
    throttle_forgive(&r->gate->throttle, wait->client, clock_mono_us());
    wait->then(r);
    return;
  }
  throttle_log(&r->gate->throttle, r->x, "administrator's token", STR_NONE);
  api_error(r, 401, "the header X-Admin-Token is missing or wrong");
}

void auth_check_admin(struct req *r, handler_fn then)
{
  struct waiting *wait = arena_alloc(r->arena, sizeof(*wait));
  struct str given = http_header(http_x_head(r->x), "x-admin-token");
  if (!r->gate->admin_on)
    api_error(r, 403, "administration over HTTP is off: set 'admin_token' to turn it on");
  else if (!given.n || !wait)
    api_error(r, 401, "the header X-Admin-Token is missing or wrong");
  if (r->answered || throttled(r))
    return;
  wait->then = then;
  r->state = wait;
  r->proof_tag = W_ADMIN;
  sha256_of(given.p, given.n, r->proof);
  client_of(r->x, wait->client);
  throttle_count(&r->gate->throttle, wait->client, clock_mono_us());
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_AUTH, 0, 0);
  api_call_warden(r, &b, NULL, told_admin);
}
