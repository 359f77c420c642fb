/* SPDX-License-Identifier: Apache-2.0 */
/* webhooks.c - webhooks of a team: register, list, read, change, delete. A secret goes in and never comes out. */
#include "gate/api/api.h"
#include "gate/api/event/webhook_url.h"
#include "wire/event_type.h"

#define NAME_MAX_BYTES   255
#define SECRET_MAX_BYTES 1024

void webhook_type_error(struct req *r, const char *where, struct str type)
{
  api_error(r, 400, "'%s' holds '" STR_FMT "'; the types are " EVENT_NAMES_TEXT, where, STR_ARG(str_sub(type, 0, 100)));
}

bool webhook_begin(struct req *r, struct buf *b, enum wire_type type)
{
  wire_begin(b, type, 0, 0);
  wire_putz(b, W_TEAM, r->team.id);
  if (type == WIRE_WEBHOOK_LIST || type == WIRE_WEBHOOK_CREATE)
    return true;
  wire_put(b, W_ID, r->id);
  if (!uuid_valid(r->id))
    api_error(r, 404, "no webhook with the id " STR_FMT, STR_ARG(str_sub(r->id, 0, 64)));
  return uuid_valid(r->id);
}

/* ---- fields of a body; each answers 400 itself ---- */

static bool put_name(struct req *r, struct buf *b, const struct json *v)
{
  struct str name = str_trim(json_text(v, STR_NONE));
  if (!name.n || name.n > NAME_MAX_BYTES || memchr(name.p, 0, name.n)) {
    api_error(r, 400, "'name' must be a text of 1 to %d bytes", NAME_MAX_BYTES);
    return false;
  }
  wire_put(b, W_NAME, name);
  return true;
}

static bool put_url(struct req *r, struct buf *b, const struct json *v)
{
  cleanup_buf struct buf origin = BUF_INIT(WEBHOOK_URL_MAX + 64);
  struct err err = ERR_NONE;
  struct str url = json_text(v, STR_NONE);
  const struct receiver_rules rules = {.private_allowed = r->gate->config->webhook_private_allowed};
  if (webhook_url_check(url, &origin, &err) || webhook_address_check(buf_str(&origin), &rules, &err)) {
    api_error(r, 400, "%s", err.msg);
    return false;
  }
  wire_put(b, W_URL, url);
  wire_put(b, W_ORIGIN, buf_str(&origin));
  return true;
}

static bool has_type(struct str list, struct str type)
{
  struct str one;
  while (list.n) {
    str_cut(list, ',', &one, &list);
    if (str_eq(one, type))
      return true;
  }
  return false;
}

static bool put_events(struct req *r, struct buf *b, const struct json *v)
{
  cleanup_buf struct buf list = BUF_INIT(1024);
  if (!json_is(v, JSON_ARRAY) || !v->kids) {
    api_error(r, 400, "'events' must be an array with at least one of " EVENT_NAMES_TEXT);
    return false;
  }
  for (const struct json *e = v->kids; e; e = e->next) {
    struct str type = json_text(e, STR("(no text)"));
    if (!event_type_of(type)) {
      webhook_type_error(r, "events", type);
      return false;
    }
    if (!has_type(buf_str(&list), type))
      buf_addf(&list, "%s" STR_FMT, list.n ? "," : "", STR_ARG(type));
  }
  wire_put(b, W_EVENTS, buf_str(&list));
  return true;
}

static bool put_secret(struct req *r, struct buf *b, const struct json *v)
{
  struct str secret = json_text(v, STR_NONE);
  if (!secret.n || secret.n > SECRET_MAX_BYTES) {
    api_error(r, 400, "'signatureSecret' must be a text of 1 to %d bytes", SECRET_MAX_BYTES);
    return false;
  }
  wire_put(b, W_SECRET, secret);
  return true;
}

static bool put_enabled(struct req *r, struct buf *b, const struct json *v)
{
  if (!json_is(v, JSON_BOOL)) {
    api_error(r, 400, "'enabled' must be true or false");
    return false;
  }
  wire_put_u64(b, W_ENABLED, v->flag);
  return true;
}

static const struct field {
  const char *name;
  bool (*put)(struct req *r, struct buf *b, const struct json *v);
  bool required;
} fields[] = {
    {"name", put_name, true},        {"url", put_url, true},
    {"events", put_events, true},    {"signatureSecret", put_secret, true},
    {"enabled", put_enabled, false},
};

static bool put_fields(struct req *r, struct buf *b, bool all)
{
  for (size_t i = 0; i < ARRAY_LEN(fields); i++) {
    const struct json *v = json_get(r->json, fields[i].name);
    if (!v && all && fields[i].required) {
      api_error(r, 400, "'%s' is missing: name, url, events and signatureSecret are required", fields[i].name);
      return false;
    }
    if (v && !fields[i].put(r, b, v))
      return false;
  }
  return true;
}

/* ---- answers ---- */

static void put_webhook(struct jw *w, struct str p)
{
  char when[CLOCK_TEXT];
  struct str events = wire_get(p, W_EVENTS), one;
  jw_open(w, '{');
  jw_key(w, "id");
  jw_str(w, wire_get(p, W_ID));
  jw_key(w, "teamId");
  jw_str(w, wire_get(p, W_TEAM));
  jw_key(w, "teamID"); /* as older programs spell it */
  jw_str(w, wire_get(p, W_TEAM));
  jw_key(w, "name");
  jw_str(w, wire_get(p, W_NAME));
  clock_text((int64_t)wire_u64(p, W_CREATED, 0), when);
  jw_key(w, "createdAt");
  jw_z(w, when);
  jw_key(w, "url");
  jw_str(w, wire_get(p, W_URL));
  jw_key(w, "enabled");
  jw_bool(w, wire_u64(p, W_ENABLED, 0) != 0);
  jw_key(w, "events");
  jw_open(w, '[');
  while (events.n) {
    str_cut(events, ',', &one, &events);
    jw_str(w, one);
  }
  jw_close(w, ']');
  jw_close(w, '}');
}

static void answer_one(struct req *r, const struct warden_reply *reply, int status)
{
  r->pending_call = 0;
  if (reply->status) {
    api_warden_error(r, reply);
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  struct jw w = JW(&b);
  put_webhook(&w, reply->packet);
  api_json(r, status, buf_str(&b));
}

static void created(const struct warden_reply *reply, void *arg)
{
  answer_one(arg, reply, 201);
}

static void told(const struct warden_reply *reply, void *arg)
{
  answer_one(arg, reply, 200);
}

static void deleted(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  r->pending_call = 0;
  if (reply->status)
    api_warden_error(r, reply);
  else
    api_empty(r, 200);
}

static void list_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  put_webhook(r->state, reply->packet);
}

static void list_done(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct jw *w = r->state;
  r->pending_call = 0;
  if (reply->status) {
    api_warden_error(r, reply);
    return;
  }
  jw_close(w, ']');
  api_json(r, 200, buf_str(w->b));
}

/* ---- routes ---- */

void webhook_create(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  char id[UUID_TEXT];
  uuid4(id);
  webhook_begin(r, &b, WIRE_WEBHOOK_CREATE);
  wire_putz(&b, W_ID, id);
  if (put_fields(r, &b, true))
    api_call_warden(r, &b, NULL, created);
}

void webhook_list(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  struct jw *w = arena_alloc(r->arena, sizeof(*w));
  *w = JW(&r->body);
  buf_clear(&r->body);
  jw_open(w, '[');
  r->state = w;
  webhook_begin(r, &b, WIRE_WEBHOOK_LIST);
  api_call_warden_list(r, &b, list_item, list_done);
}

void webhook_get(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  if (webhook_begin(r, &b, WIRE_WEBHOOK_GET))
    api_call_warden(r, &b, NULL, told);
}

void webhook_update(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  if (webhook_begin(r, &b, WIRE_WEBHOOK_CHANGE) && put_fields(r, &b, false))
    api_call_warden(r, &b, NULL, told);
}

void webhook_delete(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  if (webhook_begin(r, &b, WIRE_WEBHOOK_DELETE))
    api_call_warden(r, &b, NULL, deleted);
}
