/* SPDX-License-Identifier: Apache-2.0 */
/* store.c - the tables of store.h, on either engine. */
#include "warden/db/store_sql.h"

int store_build_delete(struct store *s, const char *id, struct err *err)
{
  int r = sql_change(s, err, "DELETE FROM tag WHERE build=?", "t", id);
  r = r ? r : sql_change(s, err, "DELETE FROM tag_event WHERE build=?", "t", id);
  return r ? r : sql_change(s, err, "DELETE FROM build WHERE id=?", "t", id);
}

int store_build_drop_checkpoint(struct store *s, const char *id, struct err *err)
{
  return sql_change(s, err, "UPDATE build SET image='', image_bytes=0 WHERE id=?", "t", id);
}

int store_meta_get(struct store *s, const char *name, struct buf *out)
{
  struct sql_rows *st = sql_query(s, "SELECT value FROM meta WHERE name=?", "t", name);
  int r = sql_next(st) ? buf_adds(out, sql_str(st, 0)) : -ENOENT;
  sql_done(st);
  return r;
}

int store_meta_put(struct store *s, const char *name, struct str value, struct err *err)
{
  return sql_change(s, err,
                    "INSERT INTO meta(name,value) VALUES(?,?) ON CONFLICT(name) DO UPDATE SET value=excluded.value",
                    "tb", name, value);
}

int store_team_put(struct store *s, const struct row_team *r, struct err *err)
{
  return sql_change(
      s, err,
      "INSERT INTO team(id, name, slug, boxes_max, creates_per_s, timeout_max_s, cpus_max, memory_max_mb, disk_max_mb, "
      "storage_max_mb,"
      " paused_max, snapshots_max, memory_total_mb, isolation) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?) "
      "ON CONFLICT(id) DO UPDATE SET name=excluded.name, "
      "slug=excluded.slug,"
      " boxes_max=excluded.boxes_max, creates_per_s=excluded.creates_per_s, timeout_max_s=excluded.timeout_max_s,"
      " cpus_max=excluded.cpus_max, memory_max_mb=excluded.memory_max_mb, disk_max_mb=excluded.disk_max_mb,"
      " storage_max_mb=excluded.storage_max_mb, paused_max=excluded.paused_max, snapshots_max=excluded.snapshots_max,"
      " memory_total_mb=excluded.memory_total_mb, isolation=excluded.isolation",
      "tttiiiiiiiiiii", r->id, r->name, r->slug, (int64_t)r->boxes_max, (int64_t)r->creates_per_s,
      (int64_t)r->timeout_max_s, (int64_t)r->cpus_max, (int64_t)r->memory_max_mb, (int64_t)r->disk_max_mb,
      (int64_t)r->storage_max_mb, (int64_t)r->paused_max, (int64_t)r->snapshots_max, (int64_t)r->memory_total_mb,
      (int64_t)r->isolation);
}

int store_key_put(struct store *s, const struct row_key *r, struct err *err)
{
  return sql_change(s, err,
                    "INSERT INTO api_key(id,team,name,mask,hash,created,used,token,expires) VALUES(?,?,?,?,?,?,?,?,?) "
                    "ON CONFLICT(id) DO UPDATE SET name=excluded.name, "
                    "used=excluded.used",
                    "ttttbiiti", r->id, r->team, r->name, r->mask, str_make(r->hash, SHA256_LEN), r->created_us,
                    r->used_us, r->token, r->expires_us);
}

int store_key_delete(struct store *s, const char *id, struct err *err)
{
  return sql_change(s, err, "DELETE FROM api_key WHERE id=?1 OR (token=?1 AND token<>'')", "t", id);
}

int store_template_put(struct store *s, const struct row_template *r, struct err *err)
{
  return sql_change(s, err,
                    "INSERT INTO template(id,team,name,public,created,updated,spawned,spawns) VALUES(?,?,?,?,?,?,?,?) "
                    "ON CONFLICT(id) DO UPDATE SET name=excluded.name, "
                    "public=excluded.public,"
                    " updated=excluded.updated, spawned=excluded.spawned, spawns=excluded.spawns",
                    "tttiiiii", r->id, r->team, r->name, (int64_t)r->public, r->created_us, r->updated_us,
                    r->spawned_us, (int64_t)r->spawns);
}

/* Before the row itself: what a crash leaves of it names nobody. */
static int put_mounts(struct store *s, const char *owner, const char *lines, struct err *err)
{
  return lines && *lines
             ? sql_change(
                   s, err,
                   "INSERT INTO mounts(owner,lines) VALUES(?,?) ON CONFLICT(owner) DO UPDATE SET lines=excluded.lines",
                   "tt", owner, lines)
             : 0;
}

int store_build_put(struct store *s, const struct row_build *r, struct err *err)
{
  int failed = put_mounts(s, r->id, r->mounts, err);
  if (failed)
    return failed;
  return sql_change(s, err,
                    "INSERT INTO build(id, template, layers, config, cpus, memory_mb, disk_mb, created, kind, source, "
                    "image, image_bytes, runtime, secret,"
                    " layer_bytes, base, isolation) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?)",
                    "ttttiiiiittittiti", r->id, r->template_id, r->layers, r->config, (int64_t)r->cpus,
                    (int64_t)r->memory_mb, (int64_t)r->disk_mb, r->created_us, (int64_t)r->kind, r->source,
                    r->checkpoint, (int64_t)r->checkpoint_size, r->runtime, r->secret, (int64_t)r->layer_bytes, r->base,
                    (int64_t)r->isolation);
}

int store_tag_put(struct store *s, const char *template_id, const char *tag, const char *build, int64_t when,
                  struct err *err)
{
  return sql_change(s, err,
                    "INSERT INTO tag(template,tag,build,assigned) VALUES(?,?,?,?) ON CONFLICT(template,tag) DO UPDATE "
                    "SET build=excluded.build, "
                    "assigned=excluded.assigned",
                    "ttti", template_id, tag, build, when);
}

int store_tag_delete(struct store *s, const char *template_id, const char *tag, struct err *err)
{
  int r = sql_change(s, err, "DELETE FROM tag WHERE template=? AND tag=?", "tt", template_id, tag);
  return r ? r : sql_change(s, err, "DELETE FROM tag_event WHERE template=? AND tag=?", "tt", template_id, tag);
}

int store_template_delete(struct store *s, const char *id, struct err *err)
{
  int r = store_begin(s, err);
  if (r)
    return r;
  r = sql_change(s, err, "DELETE FROM tag WHERE template=?", "t", id);
  r = r ? r : sql_change(s, err, "DELETE FROM tag_event WHERE template=?", "t", id);
  r = r ? r : sql_change(s, err, "DELETE FROM build WHERE template=?", "t", id);
  r = r ? r : sql_change(s, err, "DELETE FROM job WHERE template=?", "t", id);
  r = r ? r : sql_change(s, err, "DELETE FROM template WHERE id=?", "t", id);
  return store_end(s, r, err);
}

static int put_box(struct store *s, const struct row_box *r, struct err *err)
{
  int failed = put_mounts(s, r->id, r->mounts, err);
  if (failed)
    return failed;
  return sql_change(
      s, err,
      "INSERT INTO "
      "box(id,team,template,alias,build,runtime,secret,config,init,flags,cpus,memory_mb,disk_mb,slot,state,run,started,"
      "end_at,pid,pid_start,timeout_s,walls,tier,image,image_bytes,allow,deny,execution,base) "
      "VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET "
      "team=excluded.team, template=excluded.template, alias=excluded.alias, build=excluded.build, "
      "runtime=excluded.runtime, secret=excluded.secret, config=excluded.config, init=excluded.init, "
      "flags=excluded.flags, cpus=excluded.cpus, memory_mb=excluded.memory_mb, disk_mb=excluded.disk_mb, "
      "slot=excluded.slot, state=excluded.state, run=excluded.run, started=excluded.started, end_at=excluded.end_at, "
      "pid=excluded.pid, pid_start=excluded.pid_start, timeout_s=excluded.timeout_s, walls=excluded.walls, "
      "tier=excluded.tier, image=excluded.image, image_bytes=excluded.image_bytes, allow=excluded.allow, "
      "deny=excluded.deny, execution=excluded.execution, base=excluded.base",
      "tttttttttiiiiiiiiiiiitititttt", r->id, r->team, r->template_id, r->alias, r->build, r->runtime, r->secret,
      r->config, r->init, (int64_t)r->flags, (int64_t)r->cpus, (int64_t)r->memory_mb, (int64_t)r->disk_mb,
      (int64_t)r->slot, (int64_t)r->state, (int64_t)r->run, r->started_us, r->end_us, (int64_t)r->init_proc.pid,
      (int64_t)r->init_proc.start, (int64_t)r->timeout_s, r->host_name, (int64_t)r->tier, r->checkpoint,
      (int64_t)r->checkpoint_size, r->allow ? r->allow : "", r->deny ? r->deny : "", r->execution, r->base);
}

int store_box_put(struct store *s, const struct row_box *r, struct err *err)
{
  if (!r->tokens || !r->tokens[0])
    return put_box(s, r, err);
  int e = store_begin(s, err);
  if (e)
    return e;
  e = put_box(s, r, err);
  e = e ? e
        : sql_change(
              s, err,
              "INSERT INTO box_tokens(box,tokens) VALUES(?,?) ON CONFLICT(box) DO UPDATE SET tokens=excluded.tokens",
              "tt", r->id, r->tokens);
  return store_end(s, e, err);
}

int store_box_end_time(struct store *s, const char *id, int64_t end_us, struct err *err)
{
  return sql_change(s, err, "UPDATE box SET end_at=? WHERE id=?", "it", end_us, id);
}

int store_box_ended(struct store *s, const char *id, const char *team, int64_t when_us, const char *cause,
                    struct err *err)
{
  int r = store_begin(s, err);
  if (r)
    return r;
  r = sql_change(s, err, "DELETE FROM box WHERE id=?", "t", id);
  r = r ? r
        : sql_change(s, err,
                     "INSERT INTO ended(id,team,at,cause) VALUES(?,?,?,?) ON CONFLICT(id) DO UPDATE SET "
                     "team=excluded.team, at=excluded.at, cause=excluded.cause",
                     "ttiz", id, team, when_us, cause);
  return store_end(s, r, err);
}

int store_cause(struct store *s, struct str id, struct str team, char *cause, size_t size, int64_t *when_us)
{
  struct sql_rows *st = sql_query(s, "SELECT cause, at FROM ended WHERE id=? AND (?2='' OR team=?2)", "ss", id, team);
  int r = sql_next(st) ? 0 : -ENOENT;
  if (!r) {
    sql_z(st, 0, cause, size);
    *when_us = sql_int(st, 1);
  }
  sql_done(st);
  return r;
}

int store_forget_ended(struct store *s, int64_t before_us)
{
  int r = sql_change(s, NULL, "DELETE FROM ended_log WHERE at<?", "i", before_us);
  return r ? r : sql_change(s, NULL, "DELETE FROM ended WHERE at<?", "i", before_us);
}

int store_log_put(struct store *s, const char *id, const char *team, int64_t when_us, struct str lines, struct err *err)
{
  return sql_change(s, err,
                    "INSERT INTO ended_log(id,team,at,lines) VALUES(?,?,?,?) ON CONFLICT(id) DO UPDATE SET "
                    "team=excluded.team, at=excluded.at, lines=excluded.lines",
                    "ttib", id, team, when_us, lines);
}

int store_log_get(struct store *s, struct str id, struct str team, struct buf *out)
{
  struct sql_rows *st = sql_query(s, "SELECT lines FROM ended_log WHERE id=? AND (?2='' OR team=?2)", "ss", id, team);
  int r = sql_next(st) ? buf_adds(out, sql_str(st, 0)) : -ENOENT;
  sql_done(st);
  return r;
}

int store_log_trim(struct store *s, uint64_t bytes)
{
  return sql_change(
      s, NULL,
      "DELETE FROM ended_log WHERE id IN (SELECT id FROM (SELECT id, SUM(length(lines)) OVER (ORDER BY at "
      "DESC, id) AS total"
      " FROM ended_log) AS sums WHERE total>?)",
      "i", (int64_t)bytes);
}

int store_teams(struct store *s, int (*fn)(const struct row_team *, void *), void *arg)
{
  struct sql_rows *st = sql_query(
      s,
      "SELECT "
      "id,name,slug,boxes_max,creates_per_s,timeout_max_s,cpus_max,memory_max_mb,disk_max_mb,storage_max_mb,paused_max,"
      "snapshots_max,memory_total_mb,isolation FROM team ORDER BY rowid",
      "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_team t = {0};
    sql_z(st, 0, t.id, sizeof(t.id));
    sql_z(st, 1, t.name, sizeof(t.name));
    sql_z(st, 2, t.slug, sizeof(t.slug));
    uint32_t *const limits[] = {&t.boxes_max,     &t.creates_per_s,   &t.timeout_max_s,  &t.cpus_max,
                                &t.memory_max_mb, &t.disk_max_mb,     &t.storage_max_mb, &t.paused_max,
                                &t.snapshots_max, &t.memory_total_mb, &t.isolation};
    for (int i = 0; i < (int)ARRAY_LEN(limits); i++)
      *limits[i] = (uint32_t)sql_int(st, 3 + i);
    if ((r = fn(&t, arg)))
      break;
  }
  sql_done(st);
  return r;
}

int store_keys(struct store *s, int (*fn)(const struct row_key *, void *), void *arg)
{
  struct sql_rows *st =
      sql_query(s, "SELECT id,team,name,mask,hash,created,used,token,expires FROM api_key ORDER BY created", "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_key k = {0};
    sql_z(st, 0, k.id, sizeof(k.id));
    sql_z(st, 1, k.team, sizeof(k.team));
    sql_z(st, 2, k.name, sizeof(k.name));
    sql_z(st, 3, k.mask, sizeof(k.mask));
    struct str h = sql_str(st, 4);
    memcpy(k.hash, h.p, MIN(h.n, sizeof(k.hash)));
    k.created_us = sql_int(st, 5);
    k.used_us = sql_int(st, 6);
    sql_z(st, 7, k.token, sizeof(k.token));
    k.expires_us = sql_int(st, 8);
    if ((r = fn(&k, arg)))
      break;
  }
  sql_done(st);
  return r;
}

int store_templates(struct store *s, int (*fn)(const struct row_template *, void *), void *arg)
{
  struct sql_rows *st =
      sql_query(s, "SELECT id,team,name,public,created,updated,spawned,spawns FROM template ORDER BY rowid", "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_template t = {0};
    sql_z(st, 0, t.id, sizeof(t.id));
    sql_z(st, 1, t.team, sizeof(t.team));
    sql_z(st, 2, t.name, sizeof(t.name));
    t.public = sql_int(st, 3) != 0;
    t.created_us = sql_int(st, 4);
    t.updated_us = sql_int(st, 5);
    t.spawned_us = sql_int(st, 6);
    t.spawns = (uint64_t)sql_int(st, 7);
    if ((r = fn(&t, arg)))
      break;
  }
  sql_done(st);
  return r;
}

int store_builds(struct store *s, int (*fn)(const struct row_build *, void *), void *arg)
{
  struct sql_rows *st =
      sql_query(s,
                "SELECT "
                "id,template,layers,config,cpus,memory_mb,disk_mb,created,kind,source,image,image_bytes,"
                "runtime,secret,layer_bytes,base,(SELECT lines FROM mounts WHERE owner=build.id),isolation FROM build "
                "ORDER BY rowid",
                "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_build b = {.layers = sql_dup(st, 2), .config = sql_dup(st, 3), .mounts = sql_dup(st, 16)};
    sql_z(st, 0, b.id, sizeof(b.id));
    sql_z(st, 1, b.template_id, sizeof(b.template_id));
    b.cpus = (unsigned)sql_int(st, 4);
    b.memory_mb = (unsigned)sql_int(st, 5);
    b.disk_mb = (unsigned)sql_int(st, 6);
    b.created_us = sql_int(st, 7);
    b.kind = (enum build_kind)sql_int(st, 8);
    sql_z(st, 9, b.source, sizeof(b.source));
    sql_z(st, 10, b.checkpoint, sizeof(b.checkpoint));
    b.checkpoint_size = (uint64_t)sql_int(st, 11);
    sql_z(st, 12, b.runtime, sizeof(b.runtime));
    sql_z(st, 13, b.secret, sizeof(b.secret));
    b.layer_bytes = (uint64_t)sql_int(st, 14);
    sql_z(st, 15, b.base, sizeof(b.base));
    b.isolation = (unsigned)sql_int(st, 17);
    r = fn(&b, arg);
    row_build_free(&b);
    if (r)
      break;
  }
  sql_done(st);
  return r;
}

int store_job_put(struct store *s, const struct row_job *r, struct err *err)
{
  return sql_change(
      s, err,
      "INSERT INTO job(id,template,team,tags,reason,step,state,cpus,memory_mb,created,started,finished,free_disk_mb,"
      "isolation) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?) ON CONFLICT(id) DO UPDATE SET template=excluded.template, "
      "team=excluded.team, "
      "tags=excluded.tags, reason=excluded.reason, step=excluded.step, state=excluded.state, cpus=excluded.cpus, "
      "memory_mb=excluded.memory_mb, created=excluded.created, started=excluded.started, finished=excluded.finished, "
      "free_disk_mb=excluded.free_disk_mb, isolation=excluded.isolation",
      "ttttztiiiiiiii", r->id, r->template_id, r->team, r->tags, r->reason ? r->reason : "", r->step, (int64_t)r->state,
      (int64_t)r->cpus, (int64_t)r->memory_mb, r->created_us, r->started_us, r->finished_us, (int64_t)r->free_disk_mb,
      (int64_t)r->isolation);
}

int store_job_recipe_put(struct store *s, const char *id, struct str recipe, struct err *err)
{
  return sql_change(
      s, err, "INSERT INTO job_recipe(job,recipe) VALUES(?,?) ON CONFLICT(job) DO UPDATE SET recipe=excluded.recipe",
      "tb", id, recipe);
}

int store_job_recipe(struct store *s, const char *id, struct buf *out)
{
  struct sql_rows *st = sql_query(s, "SELECT recipe FROM job_recipe WHERE job=?", "t", id);
  int r = sql_next(st) ? buf_adds(out, sql_str(st, 0)) : -ENOENT;
  sql_done(st);
  return r;
}

int store_job_delete(struct store *s, const char *id, struct err *err)
{
  return sql_change(s, err, "DELETE FROM job WHERE id=?", "t", id);
}

int store_jobs(struct store *s, int (*fn)(const struct row_job *, void *), void *arg)
{
  struct sql_rows *st =
      sql_query(s,
                "SELECT id,template,team,tags,reason,step,state,cpus,memory_mb,created,started,finished,free_disk_mb,"
                "isolation FROM job ORDER BY id",
                "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_job j = {.tags = sql_dup(st, 3), .reason = sql_dup(st, 4)};
    sql_z(st, 0, j.id, sizeof(j.id));
    sql_z(st, 1, j.template_id, sizeof(j.template_id));
    sql_z(st, 2, j.team, sizeof(j.team));
    sql_z(st, 5, j.step, sizeof(j.step));
    unsigned *const ints[] = {&j.state, &j.cpus, &j.memory_mb};
    for (int i = 0; i < (int)ARRAY_LEN(ints); i++)
      *ints[i] = (unsigned)sql_int(st, 6 + i);
    int64_t *const times[] = {&j.created_us, &j.started_us, &j.finished_us};
    for (int i = 0; i < (int)ARRAY_LEN(times); i++)
      *times[i] = sql_int(st, 9 + i);
    j.free_disk_mb = (unsigned)sql_int(st, 12);
    j.isolation = (unsigned)sql_int(st, 13);
    r = fn(&j, arg);
    row_job_free(&j);
    if (r)
      break;
  }
  sql_done(st);
  return r;
}

int store_tags(struct store *s, int (*fn)(const char *, const char *, const char *, int64_t, void *), void *arg)
{
  struct sql_rows *st = sql_query(s, "SELECT template,tag,build,assigned FROM tag ORDER BY template,tag", "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    r = fn(sql_text(st, 0), sql_text(st, 1), sql_text(st, 2), sql_int(st, 3), arg);
    if (r)
      break;
  }
  sql_done(st);
  return r;
}

int store_boxes(struct store *s, int (*fn)(const struct row_box *, void *), void *arg)
{
  struct sql_rows *st = sql_query(
      s,
      "SELECT "
      "id,team,template,alias,build,runtime,secret,config,init,flags,cpus,memory_mb,disk_mb,slot,state,run,started,"
      "end_at,pid,pid_start,timeout_s,walls,tier,image,image_bytes,allow,deny,execution,base,"
      "(SELECT lines FROM mounts WHERE owner=box.id),(SELECT tokens FROM box_tokens WHERE box=id) FROM box ORDER BY id",
      "");
  int r = 0;
  SQL_EACH_ROW(st)
  {
    struct row_box b = {.config = sql_dup(st, 7),
                        .init = sql_dup(st, 8),
                        .allow = sql_dup(st, 25),
                        .deny = sql_dup(st, 26),
                        .mounts = sql_dup(st, 29),
                        .tokens = sql_dup(st, 30)};
    sql_z(st, 0, b.id, sizeof(b.id));
    sql_z(st, 1, b.team, sizeof(b.team));
    sql_z(st, 2, b.template_id, sizeof(b.template_id));
    sql_z(st, 3, b.alias, sizeof(b.alias));
    sql_z(st, 4, b.build, sizeof(b.build));
    sql_z(st, 5, b.runtime, sizeof(b.runtime));
    sql_z(st, 6, b.secret, sizeof(b.secret));
    unsigned *const ints[] = {&b.flags, &b.cpus, &b.memory_mb, &b.disk_mb, &b.slot, &b.state};
    for (int i = 0; i < (int)ARRAY_LEN(ints); i++)
      *ints[i] = (unsigned)sql_int(st, 9 + i);
    b.run = (uint64_t)sql_int(st, 15);
    b.started_us = sql_int(st, 16);
    b.end_us = sql_int(st, 17);
    b.init_proc = (struct proc_id){(pid_t)sql_int(st, 18), (uint64_t)sql_int(st, 19)};
    b.timeout_s = (unsigned)sql_int(st, 20);
    sql_z(st, 21, b.host_name, sizeof(b.host_name));
    b.tier = (unsigned)sql_int(st, 22);
    sql_z(st, 23, b.checkpoint, sizeof(b.checkpoint));
    b.checkpoint_size = (uint64_t)sql_int(st, 24);
    sql_z(st, 27, b.execution, sizeof(b.execution));
    sql_z(st, 28, b.base, sizeof(b.base));
    r = fn(&b, arg);
    row_box_free(&b);
    if (r)
      break;
  }
  sql_done(st);
  return r;
}

void row_job_free(struct row_job *r)
{
  free(r->tags);
  free(r->reason);
  r->tags = r->reason = NULL;
}

void row_build_free(struct row_build *r)
{
  free(r->layers);
  free(r->config);
  free(r->mounts);
  r->layers = r->config = r->mounts = NULL;
}

void row_box_free(struct row_box *r)
{
  free(r->config);
  free(r->init);
  free(r->allow);
  free(r->deny);
  free(r->mounts);
  free(r->tokens);
  r->config = r->init = r->allow = r->deny = r->mounts = r->tokens = NULL;
}
