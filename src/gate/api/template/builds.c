/* SPDX-License-Identifier: Apache-2.0 */
/* builds.c - requesting a template's build, starting and cancelling it; build_logs.c tells how it goes on. */
#include "gate/api/api.h"
#include "gate/api/template/recipe_dockerfile.h"
#include "gate/api/template/recipe_json.h"
#include "wire/isolation.h"

/* ---- requesting one ---- */

static void put_parts(struct jw *w, struct str joined)
{
  struct str one;
  jw_open(w, '[');
  while (joined.n) {
    str_cut(joined, ',', &one, &joined);
    jw_str(w, one);
  }
  jw_close(w, ']');
}

static void put_requested(struct req *r, struct jw *w, struct str packet)
{
  struct str alias = wire_get(packet, W_ALIAS);
  jw_key(w, "templateID");
  jw_str(w, wire_get(packet, W_TEMPLATE));
  jw_key(w, "buildID");
  jw_str(w, wire_get(packet, W_BUILD));
  jw_key(w, "public");
  jw_bool(w, wire_u64(packet, W_PUBLIC, 0));
  jw_key(w, "names");
  jw_open(w, '[');
  jw_z(w, arena_fmt(r->arena, STR_FMT "/" STR_FMT, STR_ARG(wire_get(packet, W_SLUG)), STR_ARG(alias)));
  jw_close(w, ']');
  jw_key(w, "aliases");
  jw_open(w, '[');
  jw_str(w, alias);
  jw_close(w, ']');
  jw_key(w, "tags");
  put_parts(w, wire_get(packet, W_TAG));
}

static void tell_requested(const struct warden_reply *reply, struct req *r, void (*more)(struct req *r, struct jw *w))
{
  if (api_refused(r, reply))
    return;
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  r->made = wire_get(reply->packet, W_BUILD);
  put_requested(r, &w, reply->packet);
  if (more)
    more(r, &w);
  jw_close(&w, '}');
  api_json(r, 202, buf_str(&b));
}

static void requested(const struct warden_reply *reply, void *arg)
{
  tell_requested(reply, arg, NULL);
}

/* Strings of a list joined by commas; false: it is none. */
static bool join(const struct json *list, struct buf *out)
{
  if (!json_given(list))
    return true;
  if (list->type != JSON_ARRAY)
    return false;
  for (const struct json *k = list->kids; k; k = k->next) {
    if (k->type != JSON_STRING || !k->text.n || str_find(k->text, ',') >= 0)
      return false;
    if (out->n)
      buf_addc(out, ',');
    buf_adds(out, str_trim(k->text));
  }
  return !buf_failed(out);
}

static bool size_of(struct req *r, const char *name, uint64_t otherwise, uint64_t *out)
{
  const struct json *v = json_get(r->json, name);
  int64_t n;
  *out = otherwise;
  if (!json_given(v))
    return true;
  if (v->type != JSON_NUMBER || json_int(v, &n) || n < 0 || n > 1 << 24) {
    api_error(r, 400, "'%s' must be a whole number from 0 to %d, not '" STR_FMT "'", name, 1 << 24,
              STR_ARG(str_sub(v->text, 0, 40)));
    return false;
  }
  *out = (uint64_t)n;
  return true;
}

/* A field of ours: the tier of its sandboxes. False: answered. */
static bool want_isolation(struct req *r, unsigned *out)
{
  const struct json *v = json_get(r->json, "isolation");
  *out = ISOLATION_ANY;
  if (!json_given(v) || !isolation_read(json_text(v, STR_NONE), out))
    return true;
  api_error(r, 400, "'isolation' must be \"process\", \"microvm\" or \"default\"");
  return false;
}

/* How one is requested beyond its body. */
struct asked {
  struct str recipe; /* goes with it; empty: its start brings one */
  struct str again;  /* the template that is there; empty: the body names it */
  bool nameless;     /* a template without a name is named by its ID */
};

static void call_build_request(struct req *r, const struct asked *asked, warden_reply_fn done)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX), tags = BUF_INIT(8192);
  struct str name = json_text(json_get(r->json, "name"), STR_NONE),
             team = json_text(json_get(r->json, "teamID"), STR_NONE);
  uint64_t cpus, memory, disk;
  unsigned isolation;
  char build[UUID_TEXT], template_id[21];
  uuid4(build);
  random_id(template_id, 20);
  name = name.n ? name : json_text(json_get(r->json, "alias"), STR_NONE);
  if (!name.n && asked->nameless)
    name = str_of(template_id);
  if (!name.n && !asked->again.n)
    api_error(r, 400, "'name' must be the template's name");
  else if (team.n && !str_is(team, r->team.id))
    api_error(r, 400, "'teamID' " STR_FMT " is not the team of this key", STR_ARG(str_sub(team, 0, 100)));
  else if (!join(json_get(r->json, "tags"), &tags))
    api_error(r, 400, "'tags' must be a list of tags");
  if (r->answered || !size_of(r, "cpuCount", 2, &cpus) || !size_of(r, "memoryMB", 1024, &memory) ||
      !size_of(r, "minFreeDiskMb", 0, &disk) || !want_isolation(r, &isolation))
    return;
  wire_begin(&b, WIRE_BUILD_REQUEST, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put(&b, W_REF, asked->again.n ? asked->again : name);
  wire_put(&b, W_TAG, buf_str(&tags));
  wire_putz(&b, W_BUILD, build);
  wire_putz(&b, W_TEMPLATE, template_id);
  wire_put_u64(&b, W_CPUS, cpus);
  wire_put_u64(&b, W_MEMORY_MB, memory);
  wire_put_u64(&b, W_DISK_MB, disk);
  wire_put_u64(&b, W_ISOLATION, isolation);
  if (asked->recipe.n)
    wire_put(&b, W_RECIPE, asked->recipe);
  if (asked->again.n) {
    wire_put_u64(&b, W_MODE, 1);
    wire_put(&b, W_ALIAS, name);
  }
  api_call_warden(r, &b, NULL, done);
}

void build_request(struct req *r)
{
  call_build_request(r, &(struct asked){0}, requested);
}

/* Clients from 2.1 to 2.5 read the answer as a whole template. */
static void put_new_template(struct req *r, struct jw *w)
{
  uint64_t cpus, memory;
  size_of(r, "cpuCount", 2, &cpus);
  size_of(r, "memoryMB", 1024, &memory);
  const struct {
    const char *name;
    uint64_t n;
  } numbers[] = {{"cpuCount", cpus}, {"memoryMB", memory}, {"diskSizeMB", 0}, {"spawnCount", 0}, {"buildCount", 1}};
  for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++) {
    jw_key(w, numbers[i].name);
    jw_uint(w, numbers[i].n);
  }
  char now[CLOCK_TEXT];
  clock_text(clock_wall_us(), now);
  jw_key(w, "createdAt");
  jw_z(w, now);
  jw_key(w, "updatedAt");
  jw_z(w, now);
  jw_key(w, "lastSpawnedAt");
  jw_null(w);
  jw_key(w, "createdBy");
  jw_null(w);
  jw_key(w, "envdVersion");
  jw_z(w, ENVD_VERSION);
}

static void requested_v2(const struct warden_reply *reply, void *arg)
{
  tell_requested(reply, arg, put_new_template);
}

void build_request_v2(struct req *r)
{
  call_build_request(r, &(struct asked){0}, requested_v2);
}

/* Clients of before 2.1 sent a Dockerfile, pushed the image they built of it, and named no recipe at the start. Here
 * the server builds it: the recipe waits with the build. */
static void request_dockerfile(struct req *r, struct asked asked)
{
  cleanup_buf struct buf recipe = BUF_INIT(2 * RECIPE_MAX);
  struct err err = ERR_NONE;
  if (recipe_from_dockerfile(r->json, &recipe, &err)) {
    api_error(r, 400, "%s", err.msg);
    return;
  }
  asked.recipe = buf_str(&recipe);
  call_build_request(r, &asked, requested_v2);
}

void build_request_dockerfile(struct req *r)
{
  request_dockerfile(r, (struct asked){.nameless = true});
}

void build_again_dockerfile(struct req *r)
{
  request_dockerfile(r, (struct asked){.again = r->id});
}

/* ---- starting it ---- */

static void started(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  r->pending_call = 0;
  if (reply->status)
    api_warden_error(r, reply);
  else
    api_empty(r, 202);
}

bool build_call_about(struct req *r, struct buf *b, enum wire_type type)
{
  if (!uuid_valid(r->second)) {
    api_error(r, 400, "'" STR_FMT "' is not a build ID", STR_ARG(str_sub(r->second, 0, 100)));
    return false;
  }
  wire_begin(b, type, 0, 0);
  wire_putz(b, W_TEAM, r->team.id);
  wire_put(b, W_REF, r->id);
  wire_put(b, W_BUILD, r->second);
  return true;
}

void build_start(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX), recipe = BUF_INIT(2 * RECIPE_MAX);
  struct err err = ERR_NONE;
  if (!build_call_about(r, &b, WIRE_BUILD_START))
    return;
  if (recipe_from_json(r->json, &recipe, &err)) {
    api_error(r, 400, "%s", err.msg);
    return;
  }
  wire_put(&b, W_RECIPE, buf_str(&recipe));
  api_call_warden(r, &b, NULL, started);
}

void build_start_requested(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  if (build_call_about(r, &b, WIRE_BUILD_START))
    api_call_warden(r, &b, NULL, started);
}

static void cancelled(const struct warden_reply *reply, void *arg)
{
  api_counted(arg, reply, "cancelledCount");
}

void build_cancel(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  wire_begin(&b, WIRE_BUILD_CANCEL, 0, 0);
  wire_put(&b, W_TEAM, r->id);
  api_call_warden(r, &b, NULL, cancelled);
}
