/* SPDX-License-Identifier: Apache-2.0 */
/* admin_teams.c - /admin/teams: teams and their limits, with the administrator's token. A limit of 0 is the server's
 * own (the settings team_*). */
#include "gate/api/api.h"
#include "wire/isolation.h"

static const struct {
  const char *name;
  enum wire_tag tag;
} limits[] = {{"sandboxes", W_LIMIT_BOXES},        {"createsPerSecond", W_LIMIT_RATE},
              {"timeoutSeconds", W_LIMIT_TIMEOUT}, {"cpuCount", W_LIMIT_CPUS},
              {"memoryMB", W_LIMIT_MEMORY_MB},     {"diskSizeMB", W_LIMIT_DISK_MB},
              {"totalMemoryMB", W_LIMIT_TOTAL_MB}, {"storageMB", W_LIMIT_STORAGE_MB},
              {"pausedSandboxes", W_LIMIT_PAUSED}, {"snapshots", W_LIMIT_SNAPSHOTS}};

static void put_team(struct jw *w, struct str team, bool running)
{
  jw_open(w, '{');
  jw_key(w, "teamID");
  jw_str(w, wire_get(team, W_TEAM));
  jw_key(w, "name");
  jw_str(w, wire_get(team, W_NAME));
  if (running) {
    jw_key(w, "runningSandboxes");
    jw_uint(w, wire_u64(team, W_COUNT, 0));
  }
  jw_key(w, "limits");
  jw_open(w, '{');
  for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
    jw_key(w, limits[i].name);
    jw_uint(w, wire_u64(team, limits[i].tag, 0));
  }
  jw_key(w, "isolation");
  jw_z(w, isolation_name(wire_u64(team, W_ISOLATION, ISOLATION_ANY)));
  jw_close(w, '}');
  jw_close(w, '}');
}

/* ---- reading ---- */

static void team_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  put_team(r->state, reply->packet, true);
}

static void list_teams(struct req *r, warden_reply_fn on_item, warden_reply_fn on_reply)
{
  cleanup_buf struct buf b = BUF_INIT(256);
  wire_begin(&b, WIRE_TEAM_LIST, 0, 0);
  api_call_warden(r, &b, on_item, on_reply);
}

void admin_team_list(struct req *r)
{
  api_items_begin(r, '[');
  list_teams(r, team_item, api_items_told);
}

static void team_found(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct jw w = JW(&r->body);
  if (str_eq(wire_get(reply->packet, W_TEAM), r->id) && !r->body.n)
    put_team(&w, reply->packet, true);
}

static void not_found(struct req *r)
{
  api_error(r, 404, "team '" STR_FMT "' not found; GET /admin/teams lists them", STR_ARG(str_sub(r->id, 0, 100)));
}

static void team_told(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (api_refused(r, reply))
    return;
  if (r->body.n)
    api_json(r, 200, buf_str(&r->body));
  else
    not_found(r);
}

void admin_team_get(struct req *r)
{
  buf_clear(&r->body);
  list_teams(r, team_found, team_told);
}

/* ---- changing ---- */

static void team_put(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct jw w = JW(&b);
  if (api_refused(r, reply))
    return;
  put_team(&w, reply->packet, false);
  api_json(r, str_is(str_of(r->entry->method), "POST") ? 201 : 200, buf_str(&b));
}

static bool known(struct str name)
{
  if (str_is(name, "isolation"))
    return true;
  for (size_t i = 0; i < ARRAY_LEN(limits); i++)
    if (str_is(name, limits[i].name))
      return true;
  return false;
}

/* The one that is a word; false: answered. */
static bool put_isolation(struct req *r, const struct json *v, struct buf *b)
{
  unsigned isolation = ISOLATION_ANY;
  if (!v)
    return true;
  if (!json_is(v, JSON_NULL) && isolation_read(json_text(v, STR_NONE), &isolation)) {
    api_error(r, 400, "'isolation' must be \"process\", \"microvm\" or \"default\" (the server's own)");
    return false;
  }
  wire_put_u64(b, W_ISOLATION, isolation);
  return true;
}

/* False: answered. */
static bool put_limits(struct req *r, struct buf *b)
{
  const struct json *all = json_get(r->json, "limits");
  if (!all || json_is(all, JSON_NULL))
    return true;
  if (!json_is(all, JSON_OBJECT)) {
    api_error(r, 400, "'limits' must be an object of numbers");
    return false;
  }
  for (const struct json *v = all->kids; v; v = v->next)
    if (!known(v->key)) {
      api_error(r, 400, "'" STR_FMT "' is not a limit; GET /admin/teams names them", STR_ARG(str_sub(v->key, 0, 100)));
      return false;
    }
  for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
    const struct json *v = json_get(all, limits[i].name);
    int64_t n = 0;
    if (!v)
      continue;
    if (!json_is(v, JSON_NULL) && (json_int(v, &n) || n < 0 || n > INT32_MAX)) {
      api_error(r, 400, "'%s' must be a whole number from 0 (the server's own limit) to %d", limits[i].name, INT32_MAX);
      return false;
    }
    wire_put_u64(b, limits[i].tag, (uint64_t)n);
  }
  return put_isolation(r, json_get(all, "isolation"), b);
}

static void change(struct req *r, bool create)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  const struct json *given = json_get(r->json, "name");
  struct str name = str_trim(json_text(given, STR_NONE));
  if (given ? name.n == 0 || name.n >= DISPLAY_NAME_SIZE : create) {
    api_error(r, 400, "'name' must be a text of 1 to %d bytes", DISPLAY_NAME_SIZE - 1);
    return;
  }
  wire_begin(&b, WIRE_TEAM_PUT, 0, 0);
  if (!create)
    wire_put(&b, W_TEAM, r->id);
  if (name.n)
    wire_put(&b, W_NAME, name);
  if (put_limits(r, &b))
    api_call_warden(r, &b, NULL, team_put);
}

void admin_team_create(struct req *r)
{
  change(r, true);
}

void admin_team_change(struct req *r)
{
  if (uuid_valid(r->id))
    change(r, false);
  else
    not_found(r);
}
