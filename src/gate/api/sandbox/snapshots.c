/* SPDX-License-Identifier: Apache-2.0 */
/* snapshots.c - copies of running sandboxes: snapshots under a name, and forks. A snapshot is a template whose id can
 * be used wherever a template's can. */
#include "gate/api/api.h"
#include "gate/api/template/template_rows.h"

#define FORKS_MAX 100

/* Both are for running sandboxes only, and say so each in its own way. */
static bool refused(struct req *r, const struct warden_reply *reply, int paused)
{
  struct str message = wire_get(reply->packet, W_MESSAGE);
  if (reply->status == -EHOSTDOWN)
    api_error(r, paused, "Sandbox \"" STR_FMT "\" is paused; resume it first", STR_ARG(r->id));
  else if (reply->status == -EBUSY && paused == 409) /* a fork: that word is taken */
    api_fail(r, &(struct api_failure){.status = 503, .retry_after_s = 1}, STR_FMT, STR_ARG(message));
  else
    return sandbox_refused(r, reply);
  r->pending_call = 0;
  return true;
}

static bool begin(struct req *r, struct buf *b, enum wire_type type)
{
  struct str id;
  char build[UUID_TEXT];
  if (!api_box_id(r, &id))
    return false;
  uuid4(build);
  wire_begin(b, type, 0, 0);
  wire_put(b, W_ID, id);
  wire_putz(b, W_TEAM, r->team.id);
  wire_putz(b, W_BUILD, build);
  return true;
}

/* ---- making a snapshot ---- */

static struct str full_name(struct req *r, struct str p)
{
  struct str alias = wire_get(p, W_ALIAS);
  return alias.n ? str_of(arena_fmt(r->arena, STR_FMT "/" STR_FMT, STR_ARG(wire_get(p, W_SLUG)), STR_ARG(alias)))
                 : STR_NONE;
}

static struct str snapshot_id(struct req *r, struct str p)
{
  struct str name = full_name(r, p);
  return str_of(arena_fmt(r->arena, STR_FMT ":" STR_FMT, STR_ARG(name.n ? name : wire_get(p, W_TEMPLATE)),
                          STR_ARG(wire_get(p, W_TAG))));
}

/* Not of the public API, and left out of full copies: only the files were kept, as asked or as far as this host can. */
static void put_files_only(struct jw *w, struct str p)
{
  if (!wire_u64(p, W_COLD, 0))
    return;
  jw_key(w, "memory");
  jw_bool(w, false);
}

static void put_snapshot(struct req *r, struct jw *w, struct str p)
{
  struct str name = full_name(r, p);
  jw_open(w, '{');
  jw_key(w, "snapshotID");
  jw_str(w, snapshot_id(r, p));
  jw_key(w, "names");
  jw_open(w, '[');
  if (name.n)
    jw_str(w, name);
  jw_close(w, ']');
  put_files_only(w, p);
  jw_close(w, '}');
}

static void made(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  if (refused(r, reply, 404))
    return;
  r->pending_call = 0;
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct jw w = JW(&b);
  r->made = snapshot_id(r, reply->packet);
  put_snapshot(r, &w, reply->packet);
  api_json(r, 201, buf_str(&b));
}

void snapshot_create(struct req *r)
{
  const struct json *name = json_get(r->json, "name");
  bool memory;
  cleanup_buf struct buf b = BUF_INIT(4096);
  if (json_given(name) && (name->type != JSON_STRING || !str_trim(name->text).n)) {
    api_error(r, 400, "'name' must be a name such as my-snapshot or my-snapshot:v1");
    return;
  }
  if (!sandbox_want_memory(r, &memory) || !begin(r, &b, WIRE_SNAPSHOT))
    return;
  wire_put(&b, W_REF, json_text(name, STR("")));
  wire_put_u64(&b, W_COLD, !memory);
  api_call_warden(r, &b, NULL, made);
}

/* ---- listing ---- */

struct filter {
  struct rows rows;
  struct str source, space, name, tag;
};

static struct str lowered(struct req *r, struct str s)
{
  char *p = arena_z(r->arena, s);
  for (size_t i = 0; p && i < s.n; i++)
    p[i] = p[i] >= 'A' && p[i] <= 'Z' ? (char)(p[i] + 32) : p[i];
  return str_make(p, p ? s.n : 0);
}

static void read_filter(struct req *r, struct filter *l)
{
  struct str name = lowered(r, str_trim(api_query(r, "name"))), rest;
  l->source = api_query(r, "sandboxID");
  if (str_cut(name, '/', &l->space, &rest))
    name = rest;
  else
    l->space = STR_NONE;
  if (!str_cut(name, ':', &l->name, &l->tag))
    l->tag = STR_NONE;
}

static bool wanted(const struct rows *rows, struct str row)
{
  const struct filter *l = (const struct filter *)rows;
  struct str alias = wire_get(row, W_ALIAS);
  if (l->source.n && !str_eq(l->source, wire_get(row, W_ID)))
    return false;
  if (l->name.n && !str_eq(l->name, wire_get(row, W_TEMPLATE)) && !(alias.n && str_eq(l->name, alias)))
    return false;
  return (!l->space.n || str_eq(l->space, wire_get(row, W_SLUG))) &&
         (!l->tag.n || str_eq(l->tag, wire_get(row, W_TAG)));
}

/* A template with several tags is one row: that of its default tag, else of its newest snapshot. */
static bool better(struct str have, struct str row)
{
  if (str_is(wire_get(have, W_TAG), "default"))
    return false;
  return str_is(wire_get(row, W_TAG), "default") || wire_u64(row, W_CREATED, 0) > wire_u64(have, W_CREATED, 0);
}

void snapshot_list(struct req *r)
{
  struct filter *l = arena_alloc(r->arena, sizeof(*l));
  l->rows.wanted = wanted;
  l->rows.put = put_snapshot;
  l->rows.better = better;
  if (!rows_page(r, &l->rows))
    return;
  read_filter(r, l);
  rows_tell(r, &l->rows, WIRE_SNAPSHOT_LIST);
}

/* ---- forks ---- */

static void fork_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct jw *w = r->state;
  struct box_view v;
  jw_open(w, '{');
  if (!reply->status) {
    box_view(reply->packet, &v);
    jw_key(w, "sandbox");
    box_put_sandbox(r, w, &v);
    put_files_only(w, reply->packet);
  } else {
    jw_key(w, "error");
    jw_open(w, '{');
    jw_key(w, "code");
    jw_uint(w, (uint64_t)api_failure_of(reply->status, 0, true).status);
    jw_key(w, "message");
    jw_str(w, wire_get(reply->packet, W_MESSAGE));
    jw_close(w, '}');
  }
  jw_close(w, '}');
}

static void forked(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct jw *w = r->state;
  if (refused(r, reply, 409))
    return;
  r->pending_call = 0;
  jw_close(w, ']');
  api_json(r, 201, buf_str(w->b));
}

static void drop_list(struct req *r)
{
  struct jw *w = r->state;
  buf_free(w->b);
}

static bool want_number(struct req *r, const char *name, int64_t least, int64_t most, int64_t *out)
{
  const struct json *v = json_get(r->json, name);
  if (json_given(v) && (v->type != JSON_NUMBER || json_int(v, out))) {
    api_error(r, 400, "'%s' must be a whole number", name);
    return false;
  }
  if (*out < least || *out > most) {
    api_error(r, 400, "'%s' must be from %lld to %lld, not %lld", name, (long long)least, (long long)most,
              (long long)*out);
    return false;
  }
  return true;
}

void sandbox_fork(struct req *r)
{
  int64_t timeout = 15, count = 1;
  cleanup_buf struct buf b = BUF_INIT(8192), ids = BUF_INIT(4096);
  if (!want_number(r, "count", 1, FORKS_MAX, &count) || !want_number(r, "timeout", 1, INT32_MAX, &timeout))
    return;
  if (timeout > r->team.timeout_max_s) {
    api_timeout_error(r);
    return;
  }
  if (!begin(r, &b, WIRE_BOX_FORK))
    return;
  for (int64_t i = 0; i < count; i++) {
    char id[BOX_ID_SIZE] = "i";
    random_id(id + 1, 20);
    buf_addf(&ids, "%s%s", i ? "," : "", id);
  }
  wire_put_u64(&b, W_TIMEOUT, (uint64_t)timeout);
  wire_put(&b, W_REF, buf_str(&ids));
  struct buf *list = arena_alloc(r->arena, sizeof(*list));
  struct jw *w = arena_alloc(r->arena, sizeof(*w));
  buf_init(list, (size_t)4 << 20);
  *w = JW(list);
  r->state = w;
  r->drop = drop_list;
  jw_open(w, '[');
  api_call_warden(r, &b, fork_item, forked);
}
