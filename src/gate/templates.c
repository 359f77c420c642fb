/* templates.c - the templates a team can use. */
#include "gate/api.h"

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

static void put_names(struct req *r, struct jw *w, struct str packet)
{
  struct str alias = wire_get(packet, W_ALIAS);
  jw_key(w, "aliases");
  jw_open(w, '[');
  if (alias.n)
    jw_str(w, alias);
  jw_close(w, ']');
  jw_key(w, "names");
  jw_open(w, '[');
  if (alias.n)
    jw_z(w, arena_fmt(r->arena, STR_FMT "/" STR_FMT, STR_ARG(wire_get(packet, W_SLUG)), STR_ARG(alias)));
  jw_close(w, ']');
}

static void put_template(struct req *r, struct jw *w, struct str p)
{
  jw_open(w, '{');
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
  jw_key(w, "public");
  jw_bool(w, wire_u64(p, W_PUBLIC, 0));
  put_names(r, w, p);
  put_time(w, "createdAt", wire_u64(p, W_CREATED, 0));
  put_time(w, "updatedAt", wire_u64(p, W_LAST, 0) ? wire_u64(p, W_LAST, 0) : wire_u64(p, W_CREATED, 0));
  put_time(w, "lastSpawnedAt", wire_u64(p, W_STARTED, 0));
  jw_key(w, "createdBy");
  jw_null(w);
  jw_key(w, "spawnCount");
  jw_uint(w, wire_u64(p, W_SPAWNS, 0));
  jw_key(w, "buildCount");
  jw_int(w, 1);
  jw_key(w, "envdVersion");
  jw_z(w, ENVD_VERSION);
  jw_key(w, "buildStatus");
  jw_z(w, "ready");
  jw_close(w, '}');
}

static void list_item(const struct answer *a, void *arg)
{
  struct req *r = arg;
  put_template(r, r->state, a->packet);
}

static void list_done(const struct answer *a, void *arg)
{
  struct req *r = arg;
  struct jw *w = r->state;
  r->ask = 0;
  jw_close(w, ']');
  api_json(r, 200, buf_str(w->b));
}

void template_list(struct req *r)
{
  struct str team = api_query(r, "teamID");
  if (team.n && !str_is(team, r->team.id)) {
    api_error(r, 400, "'teamID' " STR_FMT " is not the team of this key", STR_ARG(team));
    return;
  }
  struct jw *w = arena_alloc(r->arena, sizeof(*w));
  *w = JW(&r->body);
  buf_clear(&r->body);
  jw_open(w, '[');
  r->state = w;
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_TEMPLATE_LIST, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  api_ask(r, &b, list_item, list_done);
}

static void alias_found(const struct answer *a, void *arg)
{
  struct req *r = arg;
  r->ask = 0;
  if (a->status) {
    api_warden_error(r, a);
    return;
  }
  if (!str_is(wire_get(a->packet, W_TEAM), r->team.id)) {
    api_error(r, 403, "template '" STR_FMT "' belongs to another team", STR_ARG(r->id));
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "templateID");
  jw_str(&w, wire_get(a->packet, W_TEMPLATE));
  jw_key(&w, "public");
  jw_bool(&w, wire_u64(a->packet, W_PUBLIC, 0));
  jw_close(&w, '}');
  api_json(r, 200, buf_str(&b));
}

void template_alias(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  wire_begin(&b, WIRE_TEMPLATE_FIND, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put(&b, W_REF, r->id);
  api_ask(r, &b, NULL, alias_found);
}
