/* auth.c - API keys. A gate never sees the table of keys: it asks with the hash and remembers the answer for a minute, or
 * until the warden says that keys changed. */
#include "gate/api.h"

#define REMEMBER_US  60000000
#define REMEMBER_MAX 10000

struct waiting {
  handler_fn then;
  uint8_t hash[SHA256_LEN];
};

void gate_keys_changed(struct gate *g)
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
    api_error(r, 403, "this key belongs to another team than X-Team-ID says");
  else
    then(r);
}

static void told(const struct answer *a, void *arg)
{
  struct req *r = arg;
  struct waiting *wait = r->state;
  r->ask = 0;
  if (a->status) {
    refuse(r, "Invalid API key: it is unknown to this server; create one with 'cloche key create'");
    return;
  }
  wire_copyz(a->packet, W_TEAM, r->team.id, sizeof(r->team.id));
  wire_copyz(a->packet, W_NAME, r->team.name, sizeof(r->team.name));
  wire_copyz(a->packet, W_SLUG, r->team.slug, sizeof(r->team.slug));
  r->team.timeout_max_s = (unsigned)wire_u64(a->packet, W_LIMIT_TIMEOUT, 3600);
  r->team.until_us = clock_mono_us() + REMEMBER_US;
  if (r->gate->teams.n >= REMEMBER_MAX)
    gate_keys_changed(r->gate);
  struct team *t = xmalloc(sizeof(*t));
  *t = r->team;
  free(map_put(&r->gate->teams, str_make(wait->hash, SHA256_LEN), t));
  go_on(r, wait->then);
}

static struct str presented_key(struct req *r)
{
  const struct http_head *h = http_x_head(r->x);
  struct str key = http_header(h, "x-api-key"), bearer = http_header(h, "authorization");
  if (!key.p && str_istarts(bearer, STR("bearer ")))
    key = str_trim(str_skip(bearer, 7));
  return key;
}

void auth_check(struct req *r, handler_fn then)
{
  struct waiting *wait = arena_alloc(r->arena, sizeof(*wait));
  struct str key = presented_key(r);
  if (!key.n) {
    refuse(r, "an API key is missing: send it as the header X-API-Key");
    return;
  }
  if (!wait || key_hash(key, wait->hash)) {
    refuse(r, "Invalid API key format: expected e2b_ and hexadecimal digits");
    return;
  }
  struct team *t = map_get(&r->gate->teams, str_make(wait->hash, SHA256_LEN));
  if (t && t->until_us > clock_mono_us()) {
    r->team = *t;
    go_on(r, then);
    return;
  }
  wait->then = then;
  r->state = wait;
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_AUTH, 0, 0);
  wire_put(&b, W_KEYHASH, str_make(wait->hash, SHA256_LEN));
  api_ask(r, &b, NULL, told);
}

void auth_check_admin(struct req *r, handler_fn then)
{
  struct str given = http_header(http_x_head(r->x), "x-admin-token"), have = str_of(r->gate->config->admin_token);
  if (!have.n)
    api_error(r, 403, "administration over HTTP is off: set 'admin_token' to turn it on");
  else if (!given.n || !str_eq_secret(given, have))
    api_error(r, 401, "the header X-Admin-Token is missing or wrong");
  else
    then(r);
}
