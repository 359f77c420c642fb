/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.c - volumes of a team: create, list, read, delete. */
#include "gate/api/api.h"

static bool name_good(struct str s)
{
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'))
      return false;
  }
  return s.n > 0 && s.n < VOLUME_NAME_SIZE;
}

static bool begin(struct req *r, struct buf *b, enum wire_type type)
{
  wire_begin(b, type, 0, 0);
  wire_putz(b, W_TEAM, r->team.id);
  wire_put(b, W_ID, r->id);
  if (!uuid_valid(r->id))
    api_error(r, 400, "'" STR_FMT "' is not the id of a volume: a UUID is expected", STR_ARG(str_sub(r->id, 0, 64)));
  return uuid_valid(r->id);
}

static void put_volume(struct jw *w, struct str p)
{
  struct str token = wire_get(p, W_TOKEN);
  jw_open(w, '{');
  jw_key(w, "volumeID");
  jw_str(w, wire_get(p, W_ID));
  jw_key(w, "name");
  jw_str(w, wire_get(p, W_NAME));
  if (token.p) {
    jw_key(w, "token");
    jw_str(w, token);
  }
  jw_close(w, '}');
}

static void answer(struct req *r, const struct warden_reply *reply, int status)
{
  static const struct http_header private = {{"Cache-Control", 13}, {"no-store", 8}};
  if (api_refused(r, reply))
    return;
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct jw w = JW(&b);
  put_volume(&w, reply->packet);
  api_json_with(r, status, buf_str(&b), &private, 1);
}

static void created(const struct warden_reply *reply, void *arg)
{
  answer(arg, reply, 201);
}

static void told(const struct warden_reply *reply, void *arg)
{
  answer(arg, reply, 200);
}

static void deleted(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (!api_refused(r, reply))
    api_empty(r, 204);
}

static void list_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  put_volume(r->state, reply->packet);
}

void volume_create(struct req *r)
{
  struct str name = json_text(json_get(r->json, "name"), STR_NONE);
  cleanup_buf struct buf b = BUF_INIT(4096);
  char id[UUID_TEXT];
  if (!name_good(name)) {
    api_error(r, 400, "'name' must be 1 to %d letters, digits, '_' or '-'", VOLUME_NAME_SIZE - 1);
    return;
  }
  uuid4(id);
  wire_begin(&b, WIRE_VOLUME_CREATE, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_putz(&b, W_ID, id);
  wire_put(&b, W_NAME, name);
  api_call_warden(r, &b, NULL, created);
}

void volume_list(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  api_items_begin(r, '[');
  wire_begin(&b, WIRE_VOLUME_LIST, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  api_call_warden_list(r, &b, list_item, api_items_told);
}

void volume_get(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  if (begin(r, &b, WIRE_VOLUME_GET))
    api_call_warden(r, &b, NULL, told);
}

void volume_delete(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  if (begin(r, &b, WIRE_VOLUME_DELETE))
    api_call_warden(r, &b, NULL, deleted);
}
