/* SPDX-License-Identifier: Apache-2.0 */
/* catalog_handlers.c - requests about teams, keys and templates. */
#include "warden/rpc/handlers.h"

#include "warden/box/box.h"
#include "warden/core/context.h"
#include "warden/core/quota.h"
#include "warden/build/builder.h"
#include "warden/db/tag_history.h"
#include "warden/rpc/authority.h"
#include "warden/warm/warm_pool.h"
#include "warden/box/fork.h"
#include "wire/isolation.h"

/* ---- accounts ---- */

static void put_team(struct buf *b, const struct row_team *t)
{
  wire_putz(b, W_TEAM, t->id);
  wire_putz(b, W_NAME, t->name);
  wire_putz(b, W_SLUG, t->slug);
  wire_put_u64(b, W_LIMIT_BOXES, t->boxes_max);
  wire_put_u64(b, W_LIMIT_RATE, t->creates_per_s);
  wire_put_u64(b, W_LIMIT_CPUS, t->cpus_max);
  wire_put_u64(b, W_LIMIT_MEMORY_MB, t->memory_max_mb);
  wire_put_u64(b, W_LIMIT_DISK_MB, t->disk_max_mb);
  wire_put_u64(b, W_LIMIT_TOTAL_MB, t->memory_total_mb);
  wire_put_u64(b, W_LIMIT_STORAGE_MB, t->storage_max_mb);
  wire_put_u64(b, W_LIMIT_PAUSED, t->paused_max);
  wire_put_u64(b, W_LIMIT_SNAPSHOTS, t->snapshots_max);
  wire_put_u64(b, W_ISOLATION, t->isolation);
}

void handle_auth(struct request *q)
{
  struct str hash = wire_get(q->packet, W_PROOF);
  if (wire_get(q->packet, W_ADMIN).p) {
    if (authority_admin(q))
      reply_ok(q);
    else
      reply_error(q, -EACCES, "the administrator's token is wrong");
    return;
  }
  const struct row_team *t = catalog_team_by_key(warden_catalog(q->warden), hash);
  if (!t) {
    reply_error(q, -EACCES, "unknown key");
    return;
  }
  catalog_key_used(warden_catalog(q->warden), hash, clock_wall_us());
  const struct row_key *k = catalog_key_by_hash(warden_catalog(q->warden), hash);
  reply_begin(q, WIRE_REPLY, 0);
  put_team(q->out, t);
  if (k)
    wire_putz(q->out, W_ID, k->id);
  if (k && k->expires_us)
    wire_put_u64(q->out, W_END, (uint64_t)k->expires_us);
  wire_put_u64(q->out, W_LIMIT_TIMEOUT, quota_timeout_max(q->warden, str_of(t->id)));
  reply_send(q);
}

void handle_team_list(struct request *q)
{
  const struct row_team *const *list;
  size_t n = catalog_teams(warden_catalog(q->warden), &list);
  for (size_t i = 0; i < n; i++) {
    if (catalog_system_team(list[i]))
      continue;
    reply_begin(q, WIRE_ITEM, 0);
    put_team(q->out, list[i]);
    wire_put_u64(q->out, W_LIMIT_TIMEOUT, list[i]->timeout_max_s);
    wire_put_u64(q->out, W_COUNT, quota_running(q->warden, str_of(list[i]->id)));
    reply_send(q);
  }
  reply_ok(q);
}

static void keys_changed(struct warden *w)
{
  cleanup_buf struct buf p = BUF_INIT(256);
  wire_begin(&p, WIRE_KEYS_CHANGED, 0, 0);
  reply_broadcast(w, buf_str(&p));
}

/* What is not given keeps its value. */
void handle_team_put(struct request *q)
{
  struct err err = ERR_NONE;
  const struct row_team *have = catalog_team(warden_catalog(q->warden), q->team);
  struct row_team t = have ? *have : (struct row_team){0};
  const struct {
    enum wire_tag tag;
    uint32_t *at;
  } limits[] = {{W_LIMIT_BOXES, &t.boxes_max},
                {W_LIMIT_RATE, &t.creates_per_s},
                {W_LIMIT_TIMEOUT, &t.timeout_max_s},
                {W_LIMIT_CPUS, &t.cpus_max},
                {W_LIMIT_MEMORY_MB, &t.memory_max_mb},
                {W_LIMIT_DISK_MB, &t.disk_max_mb},
                {W_LIMIT_TOTAL_MB, &t.memory_total_mb},
                {W_LIMIT_STORAGE_MB, &t.storage_max_mb},
                {W_LIMIT_PAUSED, &t.paused_max},
                {W_LIMIT_SNAPSHOTS, &t.snapshots_max},
                {W_ISOLATION, &t.isolation}};
  for (size_t i = 0; i < ARRAY_LEN(limits); i++)
    *limits[i].at = (uint32_t)MIN(wire_u64(q->packet, limits[i].tag, *limits[i].at), (uint64_t)INT32_MAX);
  struct str name = wire_get(q->packet, W_NAME);
  if (t.isolation > ISOLATION_MICROVM) {
    reply_error(q, -EINVAL, "no such isolation");
    return;
  }
  if ((name.n && str_copyz(name, t.name, sizeof(t.name))) || str_copyz(q->team, t.id, sizeof(t.id))) {
    reply_error(q, -EINVAL, "a team's name has 1 to 127 bytes");
    return;
  }
  if (catalog_team_put(warden_catalog(q->warden), &t, &err)) {
    reply_err(q, &err);
    return;
  }
  keys_changed(q->warden);
  reply_begin(q, WIRE_REPLY, 0);
  put_team(q->out, &t);
  wire_put_u64(q->out, W_LIMIT_TIMEOUT, t.timeout_max_s);
  reply_send(q);
}

static void put_key(struct buf *b, const struct row_key *k)
{
  wire_putz(b, W_ID, k->id);
  wire_putz(b, W_NAME, k->name);
  wire_putz(b, W_MASK, k->mask);
  wire_put_u64(b, W_CREATED, (uint64_t)k->created_us);
  wire_put_u64(b, W_LAST, (uint64_t)k->used_us);
  if (k->expires_us)
    wire_put_u64(b, W_END, (uint64_t)k->expires_us);
}

static bool is_access_token(const struct row_key *k)
{
  return str_starts(str_of(k->mask), STR(ACCESS_TOKEN_PREFIX));
}

/* Keys and access tokens are in one table; who asks means one kind of them, root both. */
static bool meant(const struct request *q, const struct row_key *k)
{
  return q->proven == BY_ROOT || is_access_token(k) == (wire_u64(q->packet, W_MODE, 0) == 1);
}

/* Answers itself when the key is not there or of the other kind. */
static bool want_meant(struct request *q)
{
  const struct row_key *const *list;
  size_t n = catalog_keys(warden_catalog(q->warden), &list);
  struct str id = wire_get(q->packet, W_ID);
  for (size_t i = 0; i < n; i++)
    if (str_is(id, list[i]->id) && str_is(q->team, list[i]->team) && meant(q, list[i]))
      return true;
  struct err err = ERR_NONE;
  err_set(&err, -ENOENT, "%s '" STR_FMT "' not found", wire_u64(q->packet, W_MODE, 0) ? "access token" : "API key",
          STR_ARG(str_sub(id, 0, 100)));
  reply_err(q, &err);
  return false;
}

void handle_key_list(struct request *q)
{
  const struct row_key *const *list;
  size_t n = catalog_keys(warden_catalog(q->warden), &list);
  for (size_t i = 0; i < n; i++) {
    if (!str_is(q->team, list[i]->team) || !meant(q, list[i]))
      continue;
    reply_begin(q, WIRE_ITEM, 0);
    put_key(q->out, list[i]);
    reply_send(q);
  }
  reply_ok(q);
}

static int add_for_token(struct request *q, const struct row_key **k, struct err *err)
{
  struct catalog *c = warden_catalog(q->warden);
  const struct row_key *token = catalog_key_by_hash(c, wire_get(q->packet, W_PROOF));
  if (!token || !is_access_token(token) || !str_is(q->team, token->team))
    return err_set(err, -EACCES, "such a key is made for an access token only");
  return catalog_token_key_add(c, token, warden_config(q->warden)->token_keys_max, wire_get(q->packet, W_KEYHASH),
                               wire_get(q->packet, W_MASK), k, err);
}

static int add_key(struct request *q, const struct row_key **k, struct err *err)
{
  struct catalog *c = warden_catalog(q->warden);
  size_t have = catalog_team_keys(c, q->team), most = warden_config(q->warden)->team_keys_max;
  if (q->proven != BY_ROOT && have >= most)
    return err_set(err, -E2BIG,
                   "this team has %zu API keys and access tokens, as many as it may (%zu): delete some first", have,
                   most);
  return catalog_key_add(c, q->team, wire_get(q->packet, W_NAME), wire_get(q->packet, W_KEYHASH),
                         wire_get(q->packet, W_MASK), k, err);
}

void handle_key_create(struct request *q)
{
  struct err err = ERR_NONE;
  const struct row_key *k = NULL;
  bool for_token = wire_u64(q->packet, W_MODE, 0) == 2;
  int r = for_token ? add_for_token(q, &k, &err) : add_key(q, &k, &err);
  if (r || !k) {
    reply_err(q, &err);
    return;
  }
  if (for_token)
    keys_changed(q->warden); /* another one may be gone */
  reply_begin(q, WIRE_REPLY, 0);
  put_key(q->out, k);
  reply_send(q);
}

void handle_key_rename(struct request *q)
{
  struct err err = ERR_NONE;
  if (!want_meant(q))
    return;
  if (catalog_key_rename(warden_catalog(q->warden), q->team, wire_get(q->packet, W_ID), wire_get(q->packet, W_NAME),
                         &err))
    reply_err(q, &err);
  else
    reply_ok(q);
}

void handle_key_delete(struct request *q)
{
  struct err err = ERR_NONE;
  if (!want_meant(q))
    return;
  if (catalog_key_delete(warden_catalog(q->warden), q->team, wire_get(q->packet, W_ID), &err)) {
    reply_err(q, &err);
    return;
  }
  keys_changed(q->warden);
  reply_ok(q);
}

/* ---- templates ---- */

static size_t builds_of(struct catalog *c, const struct template *t)
{
  struct build *const *list;
  size_t n = catalog_builds(c, &list), count = 0;
  for (size_t i = 0; i < n; i++)
    count += list[i]->of == t && list[i]->row.kind != BUILD_FORK;
  return count;
}

/* What stands for a template without a build of its default tag: its newest one, finished or not. */
static struct build *newest_build(struct catalog *c, const struct template *t)
{
  struct build *const *list, *newest = NULL;
  size_t n = catalog_builds(c, &list);
  for (size_t i = 0; i < n; i++)
    if (list[i]->of == t && (!newest || list[i]->row.created_us > newest->row.created_us))
      newest = list[i];
  return newest;
}

static void put_job(struct buf *p, const struct job *j)
{
  wire_putz(p, W_BUILD, j->row.id);
  wire_put_u64(p, W_CPUS, j->row.cpus);
  wire_put_u64(p, W_MEMORY_MB, j->row.memory_mb);
  wire_put_u64(p, W_STATE, j->row.state);
}

void put_template(struct buf *p, struct template *t, struct build *b, struct warden *wd)
{
  struct catalog *c = warden_catalog(wd);
  const struct row_team *owner = catalog_team(c, str_of(t->row.team));
  wire_putz(p, W_TEMPLATE, t->row.id);
  wire_putz(p, W_ALIAS, template_name(t));
  wire_putz(p, W_TEAM, t->row.team);
  wire_putz(p, W_SLUG, owner ? owner->slug : "");
  wire_put_u64(p, W_PUBLIC, t->row.public);
  wire_put_u64(p, W_CREATED, (uint64_t)t->row.created_us);
  wire_put_u64(p, W_LAST, (uint64_t)t->row.updated_us);
  wire_put_u64(p, W_STARTED, (uint64_t)t->row.spawned_us);
  wire_put_u64(p, W_SPAWNS, t->row.spawns);
  wire_put_u64(p, W_BUILDS, builds_of(c, t));
  b = b ? b : newest_build(c, t);
  struct job *j = b ? NULL : builder_newest(wd, t);
  if (j)
    put_job(p, j);
  if (!b)
    return;
  wire_put_u64(p, W_STATE, JOB_READY);
  wire_putz(p, W_BUILD, b->row.id);
  wire_put_u64(p, W_CPUS, b->row.cpus);
  wire_put_u64(p, W_MEMORY_MB, b->row.memory_mb);
  wire_put_u64(p, W_DISK_MB, b->row.disk_mb);
  wire_put_u64(p, W_ISOLATION, b->row.isolation);
}

/* W_PUBLIC: the server's own templates. Else the team's; root, who names no team, sees all. */
static bool listed(struct request *q, const struct template *t)
{
  if (!wire_u64(q->packet, W_PUBLIC, 0))
    return !q->team.n || str_is(q->team, t->row.team);
  const struct row_team *owner = catalog_team(warden_catalog(q->warden), str_of(t->row.team));
  return owner && catalog_system_team(owner);
}

void handle_template_list(struct request *q)
{
  struct catalog *c = warden_catalog(q->warden);
  struct template *const *list;
  size_t n = catalog_templates(c, &list);
  for (size_t i = 0; i < n; i++) {
    if (!listed(q, list[i]))
      continue;
    struct build *b = catalog_default(list[i]);
    if (b && b->row.kind == BUILD_SNAPSHOT) /* in the list of snapshots */
      continue;
    reply_begin(q, WIRE_ITEM, 0);
    put_template(q->out, list[i], catalog_default(list[i]), q->warden);
    reply_send(q);
  }
  reply_ok(q);
}

void handle_template_find(struct request *q)
{
  struct err err = ERR_NONE;
  struct template *t;
  struct build *b;
  struct str ref = wire_get(q->packet, W_REF);
  int r = catalog_find(warden_catalog(q->warden), q->team, ref, &t, &b, &err);
  if (r == -ESTALE && str_find(ref, ':') < 0) { /* no tag was asked for, so none need be there */
    r = catalog_template(warden_catalog(q->warden), q->team, ref, &t, NULL, &err);
    b = NULL;
  }
  if (r) {
    reply_err(q, &err);
    return;
  }
  reply_begin(q, WIRE_REPLY, 0);
  put_template(q->out, t, b, q->warden);
  reply_send(q);
}

struct template *request_template(struct request *q, bool *by_id)
{
  struct err err = ERR_NONE;
  struct template *t;
  struct str ref = wire_get(q->packet, W_REF);
  if (!catalog_template(warden_catalog(q->warden), q->team, ref, &t, by_id, &err))
    return t;
  if (err.code == -ENOENT && catalog_foreign(warden_catalog(q->warden), q->team, ref))
    err_set(&err, -EPERM, "the template belongs to another team");
  reply_err(q, &err);
  return NULL;
}

static void answer_template(struct request *q, struct template *t)
{
  reply_begin(q, WIRE_REPLY, 0);
  put_template(q->out, t, catalog_default(t), q->warden);
  reply_send(q);
}

void handle_template_tags(struct request *q)
{
  struct template *t = request_template(q, NULL);
  struct str name;
  void *value;
  if (!t)
    return;
  for (size_t i = 0; map_next(&t->tags, &i, &name, &value);) {
    const struct tag *tag = value;
    reply_begin(q, WIRE_ITEM, 0);
    wire_put(q->out, W_TAG, name);
    wire_putz(q->out, W_BUILD, tag->build->row.id);
    wire_put_u64(q->out, W_CREATED, (uint64_t)tag->assigned_us);
    reply_send(q);
  }
  answer_template(q, t);
}

static void tell_event(const struct tag_event *e, void *arg)
{
  struct request *q = arg;
  struct build *b = catalog_build(warden_catalog(q->warden), e->build);
  if (!b)
    return;
  struct job *j = builder_job(q->warden, e->build);
  reply_begin(q, WIRE_ITEM, 0);
  wire_put(q->out, W_ID, e->id);
  wire_put(q->out, W_TAG, e->tag);
  wire_put(q->out, W_BUILD, e->build);
  wire_put_u64(q->out, W_CREATED, (uint64_t)e->when_us);
  wire_put_u64(q->out, W_STARTED, (uint64_t)(j ? j->row.created_us : b->row.created_us));
  wire_put_u64(q->out, W_END, (uint64_t)(j && j->row.finished_us ? j->row.finished_us : b->row.created_us));
  reply_send(q);
}

void handle_tag_history(struct request *q)
{
  struct err err = ERR_NONE;
  struct template *t;
  struct str ref = wire_get(q->packet, W_REF);
  int r = catalog_template(warden_catalog(q->warden), q->team, ref, &t, NULL, &err);
  if (r == -EPERM || (!r && !str_is(q->team, t->row.team)))
    err_set(&err, -ENOENT, "template '" STR_FMT "' not found", STR_ARG(str_sub(ref, 0, 200)));
  if (err.code) {
    reply_err(q, &err);
    return;
  }
  catalog_tag_history(warden_catalog(q->warden), t, tell_event, q);
  reply_ok(q);
}

void handle_template_builds(struct request *q)
{
  struct template *t = request_template(q, NULL);
  if (!t)
    return;
  struct build *const *list;
  size_t n = catalog_builds(warden_catalog(q->warden), &list);
  for (size_t i = 0; i < n; i++) {
    if (list[i]->of != t || list[i]->row.kind == BUILD_FORK)
      continue;
    reply_begin(q, WIRE_ITEM, 0);
    wire_putz(q->out, W_BUILD, list[i]->row.id);
    wire_put_u64(q->out, W_CREATED, (uint64_t)list[i]->row.created_us);
    wire_put_u64(q->out, W_CPUS, list[i]->row.cpus);
    wire_put_u64(q->out, W_MEMORY_MB, list[i]->row.memory_mb);
    wire_put_u64(q->out, W_DISK_MB, list[i]->row.disk_mb);
    wire_put_u64(q->out, W_ISOLATION, list[i]->row.isolation);
    wire_put_u64(q->out, W_STATE, JOB_READY);
    struct job *j = builder_job(q->warden, str_of(list[i]->row.id));
    if (j) {
      wire_put_u64(q->out, W_STARTED, (uint64_t)j->row.created_us);
      wire_put_u64(q->out, W_END, (uint64_t)j->row.finished_us);
    }
    reply_send(q);
  }
  struct job *const *jobs;
  n = builder_jobs(q->warden, &jobs);
  for (size_t i = 0; i < n; i++) {
    if (strcmp(jobs[i]->row.template_id, t->row.id) || jobs[i]->row.state == JOB_READY)
      continue;
    reply_begin(q, WIRE_ITEM, 0);
    put_job(q->out, jobs[i]);
    wire_put_u64(q->out, W_CREATED, (uint64_t)jobs[i]->row.created_us);
    wire_put_u64(q->out, W_END, (uint64_t)jobs[i]->row.finished_us);
    reply_send(q);
  }
  answer_template(q, t);
}

void handle_template_change(struct request *q)
{
  struct err err = ERR_NONE;
  struct template *t = request_template(q, NULL);
  if (!t)
    return;
  if (catalog_publish(warden_catalog(q->warden), q->team, t, wire_u64(q->packet, W_PUBLIC, t->row.public) != 0, &err))
    reply_err(q, &err);
  else
    answer_template(q, t);
}

static bool in_use(struct warden *w, const struct template *t)
{
  size_t at = 0;
  for (const struct box *b; (b = box_next(w, &at));)
    if (b->template == t)
      return true;
  return false;
}

void handle_template_delete(struct request *q)
{
  struct err err = ERR_NONE;
  struct template *t = request_template(q, NULL);
  if (!t)
    return;
  if (!str_is(q->team, t->row.team))
    reply_error(q, -EPERM, "the template belongs to another team and can't be deleted by yours");
  else if (in_use(q->warden, t))
    reply_error(q, -EINVAL, "the template can't be deleted: running or paused sandboxes are based on it");
  else if (snapshots_delete(q->warden, q->team, t, &err))
    reply_err(q, &err);
  else {
    builder_template_gone(q->warden, t->row.id); /* only deleted, not freed */
    warm_pool_maintain(q->warden);
    reply_ok(q);
  }
}

void handle_tag_put(struct request *q)
{
  struct err err = ERR_NONE;
  struct build *b;
  if (catalog_tag(warden_catalog(q->warden), q->team, wire_get(q->packet, W_REF), wire_get(q->packet, W_TAG), &b,
                  &err)) {
    reply_err(q, &err);
    return;
  }
  reply_begin(q, WIRE_REPLY, 0);
  wire_putz(q->out, W_BUILD, b->row.id);
  reply_send(q);
}

void handle_tag_delete(struct request *q)
{
  struct err err = ERR_NONE;
  if (catalog_untag(warden_catalog(q->warden), q->team, wire_get(q->packet, W_REF), wire_get(q->packet, W_TAG), &err))
    reply_err(q, &err);
  else
    reply_ok(q);
}
