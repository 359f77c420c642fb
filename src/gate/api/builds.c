/* SPDX-License-Identifier: Apache-2.0 */
/* builds.c - requesting a template's build, starting it, its status and log. */
#include "gate/api/api.h"
#include "gate/api/recipe_json.h"

#include "wire/buildlog.h"

#define PAGE_MOST 100

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
  r->pending_call = 0;
  if (reply->status) {
    api_warden_error(r, reply);
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  struct jw w = JW(&b);
  jw_open(&w, '{');
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

static void call_build_request(struct req *r, warden_reply_fn done)
{
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX), tags = BUF_INIT(8192);
  struct str name = json_text(json_get(r->json, "name"), STR_NONE),
             team = json_text(json_get(r->json, "teamID"), STR_NONE);
  uint64_t cpus, memory, disk;
  char build[UUID_TEXT], template_id[21];
  name = name.n ? name : json_text(json_get(r->json, "alias"), STR_NONE);
  if (!name.n)
    api_error(r, 400, "'name' must be the template's name");
  else if (team.n && !str_is(team, r->team.id))
    api_error(r, 400, "'teamID' " STR_FMT " is not the team of this key", STR_ARG(str_sub(team, 0, 100)));
  else if (!join(json_get(r->json, "tags"), &tags))
    api_error(r, 400, "'tags' must be a list of tags");
  if (r->answered || !size_of(r, "cpuCount", 2, &cpus) || !size_of(r, "memoryMB", 1024, &memory) ||
      !size_of(r, "minFreeDiskMb", 0, &disk))
    return;
  uuid4(build);
  random_id(template_id, 20);
  wire_begin(&b, WIRE_BUILD_REQUEST, 0, 0);
  wire_putz(&b, W_TEAM, r->team.id);
  wire_put(&b, W_REF, name);
  wire_put(&b, W_TAG, buf_str(&tags));
  wire_putz(&b, W_BUILD, build);
  wire_putz(&b, W_TEMPLATE, template_id);
  wire_put_u64(&b, W_CPUS, cpus);
  wire_put_u64(&b, W_MEMORY_MB, memory);
  wire_put_u64(&b, W_DISK_MB, disk);
  api_call_warden(r, &b, NULL, done);
}

void build_request(struct req *r)
{
  call_build_request(r, requested);
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
  call_build_request(r, requested_v2);
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

static bool call_about(struct req *r, struct buf *b, enum wire_type type)
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
  if (!call_about(r, &b, WIRE_BUILD_START))
    return;
  if (recipe_from_json(r->json, &recipe, &err)) {
    api_error(r, 400, "%s", err.msg);
    return;
  }
  wire_put(&b, W_RECIPE, buf_str(&recipe));
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

/* ---- how it goes on ---- */

static const char *const levels[] = {"debug", "info", "warn", "error"};

/* Which records are wanted, and where they go. */
struct page {
  struct jw w;
  int level;
  const char *step; /* NULL: of any */
  int64_t from_us;  /* 0: from the beginning */
  uint64_t skip, left;
};

static void put_entry(struct jw *w, const struct buildlog_head *h, struct str message)
{
  char text[CLOCK_TEXT];
  clock_text(h->wall_us, text);
  jw_open(w, '{');
  jw_key(w, "timestamp");
  jw_z(w, text);
  jw_key(w, "message");
  jw_str(w, message);
  jw_key(w, "level");
  jw_z(w, levels[MIN(h->level, ARRAY_LEN(levels) - 1)]);
  if (h->step[0]) {
    jw_key(w, "step");
    jw_z(w, h->step);
  }
  jw_close(w, '}');
}

static int page_take(const struct buildlog_head *h, struct str message, void *arg)
{
  struct page *p = arg;
  if (h->level < p->level || h->wall_us < p->from_us || (p->step && strcmp(p->step, h->step)))
    return 0;
  if (p->skip) {
    p->skip--;
    return 0;
  }
  if (!p->left)
    return 1;
  put_entry(&p->w, h, message);
  return --p->left == 0;
}

static void put_page(struct page *p, struct buf *b, int fd)
{
  p->w = JW(b);
  jw_open(&p->w, '[');
  if (fd >= 0)
    buildlog_each(fd, page_take, p);
  jw_close(&p->w, ']');
}

/* `level`, `limit`; answers 400 itself. */
static bool page_read(struct req *r, struct page *p)
{
  struct str level = api_query(r, "level");
  if (!api_limit(r, PAGE_MOST, &p->left))
    return false;
  for (size_t i = 0; level.n && i < ARRAY_LEN(levels); i++)
    if (str_ieq(level, str_of(levels[i]))) {
      p->level = (int)i;
      return true;
    }
  if (level.n)
    api_error(r, 400, "'level' may be debug, info, warn or error, not '" STR_FMT "'", STR_ARG(str_sub(level, 0, 100)));
  return !level.n;
}

static void put_reason(struct jw *w, struct str packet, int fd)
{
  char step[16] = "";
  wire_copyz(packet, W_STEP, step, sizeof(step));
  cleanup_buf struct buf lines = BUF_INIT(4 << 20);
  struct page warnings = {.level = LOG_WARN, .step = step, .left = PAGE_MOST};
  put_page(&warnings, &lines, fd);
  jw_key(w, "reason");
  jw_open(w, '{');
  jw_key(w, "message");
  jw_str(w, wire_get(packet, W_MESSAGE));
  if (step[0]) {
    jw_key(w, "step");
    jw_z(w, step);
  }
  jw_key(w, "logEntries");
  jw_raw(w, buf_str(&lines));
  jw_close(w, '}');
}

/* The state was told before the log is read here, so the last lines are never missed. */
static void told(const struct warden_reply *reply, void *arg)
{
  static const char *const names[] = {"", "waiting", "building", "error", "ready"};
  struct req *r = arg;
  struct page *p = r->state;
  cleanup_fd int fd = reply->fd;
  r->pending_call = 0;
  if (reply->status == -ENOENT) {
    api_error(r, 400, STR_FMT, STR_ARG(wire_get(reply->packet, W_MESSAGE)));
    return;
  }
  if (reply->status) {
    api_warden_error(r, reply);
    return;
  }
  uint64_t state = MIN(wire_u64(reply->packet, W_STATE, 0), (uint64_t)JOB_READY);
  cleanup_buf struct buf b = BUF_INIT(16 << 20), lines = BUF_INIT(8 << 20);
  struct jw w = JW(&b);
  put_page(p, &lines, fd);
  jw_open(&w, '{');
  jw_key(&w, "templateID");
  jw_str(&w, wire_get(reply->packet, W_TEMPLATE));
  jw_key(&w, "buildID");
  jw_str(&w, r->second);
  jw_key(&w, "status");
  jw_z(&w, names[state]);
  jw_key(&w, "logEntries");
  jw_raw(&w, buf_str(&lines));
  jw_key(&w, "logs");
  jw_raw(&w, STR("[]"));
  if (state == JOB_ERROR)
    put_reason(&w, reply->packet, fd);
  jw_close(&w, '}');
  api_json(r, 200, buf_str(&b));
}

void build_status(struct req *r)
{
  struct page *p = arena_alloc(r->arena, sizeof(*p));
  struct str offset = api_query(r, "logsOffset");
  cleanup_buf struct buf b = BUF_INIT(4096);
  r->state = p;
  if (!page_read(r, p))
    return;
  if (offset.n && str_u64(offset, &p->skip)) {
    api_error(r, 400, "'logsOffset' must be a whole number, not '" STR_FMT "'", STR_ARG(str_sub(offset, 0, 100)));
    return;
  }
  if (call_about(r, &b, WIRE_BUILD_GET))
    api_call_warden(r, &b, NULL, told);
}

/* ---- its log alone ---- */

struct count {
  struct page page;
  uint64_t n;
};

static int count_take(const struct buildlog_head *h, struct str message, void *arg)
{
  struct count *c = arg;
  c->n += h->level >= c->page.level && h->wall_us <= c->page.from_us;
  return 0;
}

/* The newest before the cursor: count them, then skip all but the last ones. */
static void turn_back(struct page *p, int fd)
{
  struct count c = {.page = *p};
  c.page.from_us = p->from_us ? p->from_us : INT64_MAX;
  if (fd >= 0)
    buildlog_each(fd, count_take, &c);
  p->from_us = 0;
  p->skip = c.n > p->left ? c.n - p->left : 0;
  p->left = MIN(p->left, c.n);
}

static void logged(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct page *p = r->state;
  cleanup_fd int fd = reply->fd;
  r->pending_call = 0;
  if (reply->status) {
    api_warden_error(r, reply);
    return;
  }
  if (str_ieq(api_query(r, "direction"), STR("backward")))
    turn_back(p, fd);
  cleanup_buf struct buf b = BUF_INIT(16 << 20), lines = BUF_INIT(8 << 20);
  struct jw w = JW(&b);
  if (p->left)
    put_page(p, &lines, fd);
  else
    buf_addz(&lines, "[]");
  jw_open(&w, '{');
  jw_key(&w, "logs");
  jw_raw(&w, buf_str(&lines));
  jw_close(&w, '}');
  api_json(r, 200, buf_str(&b));
}

void build_logs(struct req *r)
{
  struct page *p = arena_alloc(r->arena, sizeof(*p));
  struct str cursor = api_query(r, "cursor"), direction = api_query(r, "direction");
  cleanup_buf struct buf b = BUF_INIT(4096);
  int64_t ms = 0;
  r->state = p;
  if (!page_read(r, p))
    return;
  if ((cursor.n && (str_i64(cursor, &ms) || ms < 0 || ms > INT64_MAX / 1000)) ||
      (direction.n && !str_ieq(direction, STR("forward")) && !str_ieq(direction, STR("backward")))) {
    api_error(r, 400, "'cursor' must be milliseconds and 'direction' forward or backward");
    return;
  }
  p->from_us = ms * 1000;
  if (call_about(r, &b, WIRE_BUILD_GET))
    api_call_warden(r, &b, NULL, logged);
}
