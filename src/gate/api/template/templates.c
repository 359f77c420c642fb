/* SPDX-License-Identifier: Apache-2.0 */
/* templates.c - the templates a team can use. */
#include "gate/api/api.h"
#include "gate/api/template/template_rows.h"
#include "wire/isolation.h"

static void put_time(struct jw *w, const char *name, uint64_t us)
{
  char text[CLOCK_TEXT];
  jw_key(w, name);
  if (!us) {
    jw_null(w);
    return;
  }
  clock_text((int64_t)us, text);
  jw_z(w, text);
}

static void put_full_names(struct req *r, struct jw *w, struct str packet)
{
  struct str alias = wire_get(packet, W_ALIAS);
  jw_open(w, '[');
  if (alias.n)
    jw_z(w, arena_fmt(r->arena, STR_FMT "/" STR_FMT, STR_ARG(wire_get(packet, W_SLUG)), STR_ARG(alias)));
  jw_close(w, ']');
}

static void put_names(struct req *r, struct jw *w, struct str packet)
{
  struct str alias = wire_get(packet, W_ALIAS);
  jw_key(w, "aliases");
  jw_open(w, '[');
  if (alias.n)
    jw_str(w, alias);
  jw_close(w, ']');
  jw_key(w, "names");
  put_full_names(r, w, packet);
}

static void put_times(struct jw *w, struct str p, bool mine)
{
  uint64_t created = wire_u64(p, W_CREATED, 0), updated = wire_u64(p, W_LAST, 0);
  put_time(w, "createdAt", created);
  put_time(w, "updatedAt", updated ? updated : created);
  put_time(w, "lastSpawnedAt", mine ? wire_u64(p, W_STARTED, 0) : 0);
}

static void put_status(struct jw *w, struct str packet)
{
  static const char *const names[] = {"ready", "waiting", "building", "error", "ready"};
  jw_z(w, names[MIN(wire_u64(packet, W_STATE, 0), (uint64_t)JOB_READY)]);
}

/* A field of ours, of templates that say which tier their sandboxes have. */
static void put_isolation(struct jw *w, struct str p)
{
  uint64_t isolation = wire_u64(p, W_ISOLATION, ISOLATION_ANY);
  if (isolation == ISOLATION_ANY)
    return;
  jw_key(w, "isolation");
  jw_z(w, isolation_name(isolation));
}

/* A template's members. mine: what only its own team may know is told. */
static void put_members(struct req *r, struct jw *w, struct str p, bool mine)
{
  jw_key(w, "templateID");
  jw_str(w, wire_get(p, W_TEMPLATE));
  jw_key(w, "buildID");
  jw_str(w, wire_get(p, W_BUILD));
  jw_key(w, "cpuCount");
  jw_uint(w, wire_u64(p, W_CPUS, 0));
  jw_key(w, "memoryMB");
  jw_uint(w, wire_u64(p, W_MEMORY_MB, 0));
  jw_key(w, "diskSizeMB");
  jw_uint(w, wire_u64(p, W_DISK_MB, 0));
  put_isolation(w, p);
  jw_key(w, "public");
  jw_bool(w, wire_u64(p, W_PUBLIC, 0));
  put_names(r, w, p);
  put_times(w, p, mine);
  jw_key(w, "createdBy");
  jw_null(w);
  jw_key(w, "spawnCount");
  jw_uint(w, mine ? wire_u64(p, W_SPAWNS, 0) : 0);
  jw_key(w, "buildCount");
  jw_uint(w, mine ? wire_u64(p, W_BUILDS, 0) : 0);
  jw_key(w, "envdVersion");
  jw_z(w, ENVD_VERSION);
  jw_key(w, "buildStatus");
  put_status(w, p);
}

static void put_template(struct req *r, struct jw *w, struct str p)
{
  jw_open(w, '{');
  put_members(r, w, p, true);
  jw_close(w, '}');
}

static void put_default_template(struct req *r, struct jw *w, struct str p)
{
  jw_open(w, '{');
  put_members(r, w, p, false);
  jw_key(w, "isDefault");
  jw_bool(w, true);
  jw_close(w, '}');
}

/* ---- lists ---- */

static struct rows *rows_new(struct req *r)
{
  struct str team = api_query(r, "teamID");
  if (team.n && !str_is(team, r->team.id)) {
    api_error(r, 400, "'teamID' " STR_FMT " is not the team of this key", STR_ARG(team));
    return NULL;
  }
  struct rows *l = arena_alloc(r->arena, sizeof(*l));
  l->put = put_template;
  return l;
}

void template_list(struct req *r)
{
  struct rows *l = rows_new(r);
  if (l)
    rows_tell(r, l, WIRE_TEMPLATE_LIST);
}

void template_list_v2(struct req *r)
{
  struct rows *l = rows_new(r);
  if (l && rows_page(r, l))
    rows_tell(r, l, WIRE_TEMPLATE_LIST);
}

void template_list_default(struct req *r)
{
  struct rows *l = arena_alloc(r->arena, sizeof(*l));
  *l = (struct rows){.put = put_default_template, .by_id = true};
  rows_begin(r, l);
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_TEMPLATE_LIST, 0, 0);
  wire_put_u64(&b, W_PUBLIC, 1);
  api_call_warden_list(r, &b, rows_found, rows_told);
}

/* ---- one ---- */

static void call_about(struct req *r, enum wire_type type, warden_reply_fn on_item, warden_reply_fn on_reply)
{
  cleanup_buf struct buf b = BUF_INIT(8192);
  wire_begin(&b, type, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put(&b, W_REF, r->id);
  api_call_warden(r, &b, on_item, on_reply);
}

static void put_build(struct req *r, struct jw *w, struct str p)
{
  jw_open(w, '{');
  jw_key(w, "buildID");
  jw_str(w, wire_get(p, W_BUILD));
  jw_key(w, "status");
  put_status(w, p);
  uint64_t made = wire_u64(p, W_CREATED, 0), asked = wire_u64(p, W_STARTED, made), finished = wire_u64(p, W_END, 0);
  bool over = wire_u64(p, W_STATE, JOB_READY) >= JOB_ERROR;
  put_time(w, "createdAt", asked);
  put_time(w, "updatedAt", finished ? finished : made);
  if (over)
    put_time(w, "finishedAt", finished ? finished : made);
  jw_key(w, "cpuCount");
  jw_uint(w, wire_u64(p, W_CPUS, 0));
  jw_key(w, "memoryMB");
  jw_uint(w, wire_u64(p, W_MEMORY_MB, 0));
  jw_key(w, "diskSizeMB");
  jw_uint(w, wire_u64(p, W_DISK_MB, 0));
  put_isolation(w, p);
  jw_key(w, "envdVersion");
  jw_z(w, ENVD_VERSION);
  jw_close(w, '}');
}

static void template_told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct rows *builds = r->state;
  if (api_refused(r, reply))
    return;
  cleanup_buf struct buf b = BUF_INIT((size_t)16 << 20), token = BUF_INIT(256);
  struct jw w = JW(&b);
  struct str p = reply->packet;
  jw_open(&w, '{');
  put_members(r, &w, p, str_is(wire_get(p, W_TEAM), r->team.id));
  jw_key(&w, "builds");
  rows_put(r, &w, builds, &token);
  jw_close(&w, '}');
  struct http_header h = {STR("X-Next-Token"), buf_str(&token)};
  api_json_with(r, 200, buf_str(&b), &h, token.n ? 1 : 0);
}

void template_get(struct req *r)
{
  struct rows *builds = arena_alloc(r->arena, sizeof(*builds));
  builds->put = put_build;
  if (!rows_page(r, builds))
    return;
  rows_begin(r, builds);
  call_about(r, WIRE_TEMPLATE_BUILDS, rows_found, template_told);
}

static void changed_v2(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (api_refused(r, reply))
    return;
  cleanup_buf struct buf b = BUF_INIT(8192);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "names");
  put_full_names(r, &w, reply->packet);
  jw_close(&w, '}');
  api_json(r, 200, buf_str(&b));
}

static void changed(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (!api_refused(r, reply))
    api_json(r, 200, STR("null"));
}

static void update(struct req *r, warden_reply_fn then)
{
  const struct json *public = json_get(r->json, "public");
  if (json_given(public) && public->type != JSON_BOOL) {
    api_error(r, 400, "'public' must be true or false");
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(8192);
  wire_begin(&b, WIRE_TEMPLATE_CHANGE, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put(&b, W_REF, r->id);
  if (json_given(public))
    wire_put_u64(&b, W_PUBLIC, public->flag);
  api_call_warden(r, &b, NULL, then);
}

void template_update(struct req *r)
{
  update(r, changed);
}

void template_update_v2(struct req *r)
{
  update(r, changed_v2);
}

static void deleted(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (!api_refused(r, reply))
    api_empty(r, 204);
}

void template_delete(struct req *r)
{
  call_about(r, WIRE_TEMPLATE_DELETE, NULL, deleted);
}

/* ---- tags ---- */

static void tag_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct jw *w = r->state;
  jw_open(w, '{');
  jw_key(w, "tag");
  jw_str(w, wire_get(reply->packet, W_TAG));
  jw_key(w, "buildID");
  jw_str(w, wire_get(reply->packet, W_BUILD));
  put_time(w, "createdAt", wire_u64(reply->packet, W_CREATED, 0));
  jw_close(w, '}');
}

void template_tags(struct req *r)
{
  api_items_begin(r, '[');
  call_about(r, WIRE_TEMPLATE_TAGS, tag_item, api_items_told);
}

/* `name` and `tags` of the body as the warden takes them. Answers 400 itself. */
static bool put_tags(struct req *r, struct buf *b, const char *name)
{
  struct str ref = json_text(json_get(r->json, name), STR_NONE);
  const struct json *tags = json_get(r->json, "tags");
  cleanup_buf struct buf joined = BUF_INIT(8192);
  bool good = ref.n && json_is(tags, JSON_ARRAY) && tags->count;
  for (const struct json *k = good ? tags->kids : NULL; k; k = k->next) {
    good &= k->type == JSON_STRING && k->text.n && str_find(k->text, ',') < 0;
    if (joined.n)
      buf_addc(&joined, ',');
    buf_adds(&joined, json_text(k, STR("")));
  }
  if (!good || buf_failed(&joined)) {
    api_error(r, 400, "'%s' must be a template's name and 'tags' a list of tags", name);
    return false;
  }
  wire_put(b, W_REF, ref);
  wire_put(b, W_TAG, buf_str(&joined));
  return true;
}

static void tagged(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (api_refused(r, reply))
    return;
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "tags");
  jw_value(&w, json_get(r->json, "tags"));
  jw_key(&w, "buildID");
  jw_str(&w, wire_get(reply->packet, W_BUILD));
  jw_close(&w, '}');
  api_json(r, 201, buf_str(&b));
}

void template_tag(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 14);
  wire_begin(&b, WIRE_TAG_PUT, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  if (put_tags(r, &b, "target"))
    api_call_warden(r, &b, NULL, tagged);
}

void template_untag(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 14);
  wire_begin(&b, WIRE_TAG_DELETE, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  if (put_tags(r, &b, "name"))
    api_call_warden(r, &b, NULL, deleted);
}

/* ---- aliases ---- */

static void alias_found(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (api_refused(r, reply))
    return;
  if (!str_is(wire_get(reply->packet, W_TEAM), r->team.id)) {
    api_error(r, 403, "template '" STR_FMT "' belongs to another team", STR_ARG(r->id));
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "templateID");
  jw_str(&w, wire_get(reply->packet, W_TEMPLATE));
  jw_key(&w, "public");
  jw_bool(&w, wire_u64(reply->packet, W_PUBLIC, 0));
  jw_close(&w, '}');
  api_json(r, 200, buf_str(&b));
}

void template_alias(struct req *r)
{
  struct str space, name;
  if (str_cut(r->id, '/', &space, &name) && !str_ieq(str_trim(space), str_of(r->team.slug))) {
    api_error(r, 400, "the namespace '" STR_FMT "' is not your team's ('%s')", STR_ARG(str_sub(space, 0, 100)),
              r->team.slug);
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(4096);
  wire_begin(&b, WIRE_TEMPLATE_FIND, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put(&b, W_REF, r->id);
  api_call_warden(r, &b, NULL, alias_found);
}
