/* SPDX-License-Identifier: Apache-2.0 */
/* keys.c - teams, their API keys and access tokens. */
#include "gate/api/api.h"
#include "wire/api_key.h"

/* ---- teams ---- */

static void tell_team(struct req *r, struct str key)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct jw w = JW(&b);
  jw_open(&w, '[');
  jw_open(&w, '{');
  jw_key(&w, "teamID");
  jw_z(&w, r->team.id);
  jw_key(&w, "name");
  jw_z(&w, r->team.name);
  jw_key(&w, "apiKey");
  jw_str(&w, key);
  jw_key(&w, "isDefault");
  jw_bool(&w, true);
  jw_close(&w, '}');
  jw_close(&w, ']');
  api_json(r, 200, buf_str(&b));
}

static void begin(struct req *r, struct buf *b, enum wire_type type)
{
  wire_begin(b, type, 0, 0);
  wire_putz(b, W_TEAM, r->team.id);
}

static void team_key_made(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  r->pending_call = 0;
  if (reply->status)
    api_warden_error(r, reply);
  else
    tell_team(r, str_of(r->state));
}

/* The answer holds a key that works: the caller's own, or a new one for who came with an access token, as a login of
 * the command line does. A token has a few such keys, and they go with it. */
void team_list(struct req *r)
{
  struct str shown = auth_presented(r);
  if (!str_starts(shown, STR(ACCESS_TOKEN_PREFIX))) {
    tell_team(r, shown);
    return;
  }
  uint8_t hash[SHA256_LEN];
  char mask[KEY_MASK_SIZE], *text = arena_alloc(r->arena, KEY_TEXT);
  key_make(text, hash, mask);
  r->state = text;
  cleanup_buf struct buf b = BUF_INIT(4096);
  begin(r, &b, WIRE_KEY_CREATE);
  wire_put_u64(&b, W_MODE, 2);
  wire_put(&b, W_KEYHASH, str_make(hash, sizeof(hash)));
  wire_putz(&b, W_MASK, mask);
  api_call_warden(r, &b, NULL, team_key_made);
}

/* ---- keys ---- */

/* "prefix:length:first two:last four" as the store keeps it. */
static void put_mask(struct jw *w, struct str mask)
{
  struct str prefix, length, head, tail;
  str_cut(mask, ':', &prefix, &mask);
  str_cut(mask, ':', &length, &mask);
  str_cut(mask, ':', &head, &tail);
  jw_key(w, "mask");
  jw_open(w, '{');
  jw_key(w, "prefix");
  jw_str(w, prefix);
  jw_key(w, "valueLength");
  jw_raw(w, length.n ? length : STR("0"));
  jw_key(w, "maskedValuePrefix");
  jw_str(w, head);
  jw_key(w, "maskedValueSuffix");
  jw_str(w, tail);
  jw_close(w, '}');
}

/* text: what is shown this once, under `member`; NULL later. */
static void put_key(struct jw *w, struct str p, const char *member, const char *text)
{
  char when[CLOCK_TEXT];
  jw_open(w, '{');
  jw_key(w, "id");
  jw_str(w, wire_get(p, W_ID));
  jw_key(w, "name");
  jw_str(w, wire_get(p, W_NAME));
  put_mask(w, wire_get(p, W_MASK));
  clock_text((int64_t)wire_u64(p, W_CREATED, 0), when);
  jw_key(w, "createdAt");
  jw_z(w, when);
  uint64_t used = wire_u64(p, W_LAST, 0);
  if (used) {
    clock_text((int64_t)used, when);
    jw_key(w, "lastUsed");
    jw_z(w, when);
  }
  uint64_t ends = wire_u64(p, W_END, 0);
  if (ends) {
    clock_text((int64_t)ends, when);
    jw_key(w, "expiresAt");
    jw_z(w, when);
  }
  if (text) {
    jw_key(w, member);
    jw_z(w, text);
  }
  jw_close(w, '}');
}

static void key_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  put_key(r->state, reply->packet, NULL, NULL);
}

void key_list(struct req *r)
{
  api_items_begin(r, '[');
  cleanup_buf struct buf b = BUF_INIT(1024);
  begin(r, &b, WIRE_KEY_LIST);
  api_call_warden(r, &b, key_item, api_items_told);
}

static bool want_name(struct req *r, struct str *name)
{
  *name = json_text(json_get(r->json, "name"), STR_NONE);
  if (name->n && name->n < DISPLAY_NAME_SIZE)
    return true;
  api_error(r, 400, "'name' must be a text of 1 to %d bytes", DISPLAY_NAME_SIZE - 1);
  return false;
}

static void tell_created(const struct warden_reply *reply, struct req *r, const char *member)
{
  if (api_refused(r, reply))
    return;
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct jw w = JW(&b);
  r->made = wire_get(reply->packet, W_ID);
  put_key(&w, reply->packet, member, r->state);
  api_json(r, 201, buf_str(&b));
}

static void key_created(const struct warden_reply *reply, void *arg)
{
  tell_created(reply, arg, "key");
}

static void token_created(const struct warden_reply *reply, void *arg)
{
  tell_created(reply, arg, "token");
}

static void create(struct req *r, void (*make)(char text[KEY_TEXT], uint8_t hash[SHA256_LEN], char mask[KEY_MASK_SIZE]),
                   warden_reply_fn created)
{
  struct str name;
  uint8_t hash[SHA256_LEN];
  char mask[KEY_MASK_SIZE], *text = arena_alloc(r->arena, KEY_TEXT);
  if (!want_name(r, &name))
    return;
  make(text, hash, mask);
  r->state = text;
  cleanup_buf struct buf b = BUF_INIT(4096);
  begin(r, &b, WIRE_KEY_CREATE);
  wire_put(&b, W_NAME, name);
  wire_put(&b, W_KEYHASH, str_make(hash, sizeof(hash)));
  wire_putz(&b, W_MASK, mask);
  api_call_warden(r, &b, NULL, created);
}

void key_create(struct req *r)
{
  create(r, key_make, key_created);
}

void access_token_create(struct req *r)
{
  create(r, access_token_make, token_created);
}

static void key_renamed(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (!api_refused(r, reply))
    api_empty(r, 200);
}

void key_rename(struct req *r)
{
  struct str name;
  if (!want_name(r, &name))
    return;
  cleanup_buf struct buf b = BUF_INIT(4096);
  begin(r, &b, WIRE_KEY_RENAME);
  wire_put(&b, W_ID, r->id);
  wire_put(&b, W_NAME, name);
  api_call_warden(r, &b, NULL, key_renamed);
}

static void key_deleted(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (!api_refused(r, reply))
    api_empty(r, 204);
}

void key_delete(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  begin(r, &b, WIRE_KEY_DELETE);
  wire_put(&b, W_ID, r->id);
  api_call_warden(r, &b, NULL, key_deleted);
}

void access_token_delete(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  begin(r, &b, WIRE_KEY_DELETE);
  wire_put(&b, W_ID, r->id);
  wire_put_u64(&b, W_MODE, 1);
  api_call_warden(r, &b, NULL, key_deleted);
}
