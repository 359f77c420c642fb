/* SPDX-License-Identifier: Apache-2.0 */
/* builder.c - see builder.h. */
#include "warden/build/builder.h"
#include "warden/build/source_left.h"

#include "warden/core/node.h"
#include "warden/core/quota.h"
#include "warden/core/volume_mounts.h"
#include "warden/core/reclaim.h"
#include "warden/build/build_layer.h"
#include "warden/build/build_run.h"
#include "warden/build/build_main.h"
#include "warden/core/context.h"
#include "warden/build/build_state.h"
#include "warden/core/checkpoint_store.h"
#include "warden/db/ref.h"
#include "warden/warm/warm_pool.h"
#include "warden/core/id_slots.h"
#include "warden/build/source.h"
#include "warden/core/storage_quota.h"
#include "warden/core/telemetry.h"
#include "wire/sizes.h"
#include "wire/isolation.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/eventfd.h>

#define DISK_DEFAULT_MB 10240
#define REQUESTED_MAX   256 /* builds of one team that were requested and not started */
#define FAILED_MAX      512 /* failed ones that are remembered */
#define PUT_OFF         "interrupted: the server is being restarted; the build begins again when it is back"

struct builder {
  struct map by_id;
  VEC(struct job *) jobs;  /* oldest first */
  struct fair_queue queue; /* of threads */
  bool stopping;
};

/* ---- jobs ---- */

struct job *builder_job(struct warden *w, struct str id)
{
  return map_get(&warden_builder(w)->by_id, id);
}

size_t builder_jobs(struct warden *w, struct job *const **out)
{
  *out = warden_builder(w)->jobs.p;
  return warden_builder(w)->jobs.n;
}

struct job *builder_newest(struct warden *w, const struct template *t)
{
  for (size_t i = warden_builder(w)->jobs.n; i-- > 0;)
    if (!strcmp(warden_builder(w)->jobs.p[i]->row.template_id, t->row.id))
      return warden_builder(w)->jobs.p[i];
  return NULL;
}

static void job_save(struct warden *w, struct job *j)
{
  struct err err = ERR_NONE;
  if (store_job_put(warden_store(w), &j->row, &err))
    log_error("build %s: %s", j->row.id, err.msg);
}

static void job_failed(struct warden *w, struct job *j, const char *step, const char *reason)
{
  j->row.state = JOB_ERROR;
  j->row.finished_us = clock_wall_us();
  free(j->row.reason);
  j->row.reason = xstrdup(reason);
  snprintf(j->row.step, sizeof(j->row.step), "%s", step);
  job_save(w, j);
  log_with(LOG_INFO, (const char *[]){"build", j->row.id, "template", j->row.template_id, NULL}, "failed: %s", reason);
}

static void job_add(struct builder *b, struct job *j)
{
  size_t at = b->jobs.n;
  vec_push(&b->jobs, j);
  for (; at > 0 && b->jobs.p[at - 1]->row.created_us > j->row.created_us; at--)
    b->jobs.p[at] = b->jobs.p[at - 1];
  b->jobs.p[at] = j;
  map_put(&b->by_id, str_of(j->row.id), j);
}

static void job_drop(struct builder *b, struct job *j)
{
  map_del(&b->by_id, str_of(j->row.id));
  for (size_t i = b->jobs.n; i-- > 0;)
    if (b->jobs.p[i] == j)
      vec_remove(&b->jobs, i);
  row_job_free(&j->row);
  free(j);
}

static void log_path(struct warden *w, const char *id, char out[DATA_PATH_SIZE])
{
  snprintf(out, DATA_PATH_SIZE, "%s/builds/%s.log", warden_config(w)->data, id);
}

static void job_expire(struct warden *w, struct job *j, int64_t now);

/* ---- asking for one ---- */

static bool shares_tag(struct str a, struct str b)
{
  struct str one, other, rest;
  while (a.n) {
    str_cut(a, ',', &one, &a);
    for (rest = b; rest.n;) {
      str_cut(rest, ',', &other, &rest);
      if (str_eq(one, other))
        return true;
    }
  }
  return false;
}

static void supersede(struct warden *w, const struct template *t, struct str tags)
{
  for (size_t i = 0; i < warden_builder(w)->jobs.n; i++) {
    struct job *j = warden_builder(w)->jobs.p[i];
    if (j->row.state == JOB_WAITING && !strcmp(j->row.template_id, t->row.id) && shares_tag(str_of(j->row.tags), tags))
      job_failed(w, j, "", "superseded: a newer build of this template was requested before this one was started");
  }
}

static size_t jobs_in(struct warden *w, struct str team, enum job_state state)
{
  size_t n = 0;
  for (size_t i = 0; i < warden_builder(w)->jobs.n; i++)
    n += warden_builder(w)->jobs.p[i]->row.state == (unsigned)state &&
         str_is(team, warden_builder(w)->jobs.p[i]->row.team);
  return n;
}

static bool at_work(struct warden *w, const char *template_id)
{
  for (size_t i = 0; i < warden_builder(w)->jobs.n; i++)
    if (warden_builder(w)->jobs.p[i]->row.state == JOB_BUILDING &&
        !strcmp(warden_builder(w)->jobs.p[i]->row.template_id, template_id))
      return true;
  return false;
}

static int too_many_builds(struct warden *w, struct err *err)
{
  return err_set(err, -EAGAIN, "you have reached the maximum number of concurrent template builds (%u)",
                 warden_config(w)->team_builds_max);
}

/* Everything below costs the loop that all teams share: lists of jobs and templates are looked through. */
static int may_request(struct warden *w, struct str team, struct str alias, struct err *err)
{
  struct template *const *list;
  size_t n = catalog_templates(warden_catalog(w), &list), own = 0;
  bool known = false;
  for (size_t i = 0; i < n; i++) {
    bool ours = str_is(team, list[i]->row.team);
    own += ours;
    known |= ours && str_is(alias, list[i]->row.name);
  }
  if (jobs_in(w, team, JOB_BUILDING) >= warden_config(w)->team_builds_max)
    return too_many_builds(w, err);
  if (jobs_in(w, team, JOB_WAITING) >= REQUESTED_MAX)
    return err_set(err, -EAGAIN,
                   "your team has requested %d builds that it did not start; start some, or wait until they expire",
                   REQUESTED_MAX);
  if (!known && own >= warden_config(w)->team_templates_max)
    return err_set(err, -EAGAIN,
                   "your team has %zu templates and snapshots and may have %u; delete some first (team_templates_max)",
                   own, warden_config(w)->team_templates_max);
  return 0;
}

static void job_forget(struct warden *w, struct job *j);

/* Of builds that failed the newest are remembered. */
static void forget_failed(struct warden *w, struct str team)
{
  size_t n = jobs_in(w, team, JOB_ERROR);
  for (size_t i = 0; n > FAILED_MAX && i < warden_builder(w)->jobs.n;) {
    struct job *j = warden_builder(w)->jobs.p[i];
    if (j->row.state != JOB_ERROR || j->run || !str_is(team, j->row.team)) {
      i++;
      continue;
    }
    job_forget(w, j);
    n--;
  }
}

static int sizes_fit(struct warden *w, const struct build_request *q, struct err *err)
{
  if (q->cpus < 1 || q->cpus > 32 || (q->cpus > 1 && q->cpus % 2))
    return err_set(err, -EINVAL, "cpuCount %u: it must be 1 or an even number up to 32", q->cpus);
  if (q->memory_mb < 128 || q->memory_mb % 2)
    return err_set(err, -EINVAL, "memoryMB %u: it must be an even number of at least 128", q->memory_mb);
  if (q->isolation > ISOLATION_MICROVM)
    return err_set(err, -EINVAL, "no such isolation");
  return quota_fits(w, q->team, (struct box_size){q->cpus, q->memory_mb, 0}, err);
}

/* The name's own tag and the others; "default" when there are none. */
static int tags_of(const struct build_request *q, const struct ref *name, struct buf *out, struct err *err)
{
  bool named = str_find(q->ref, ':') >= 0;
  int r = named || !q->tags.n ? catalog_tags_read(out, name->tag, err) : 0;
  return r || !q->tags.n ? r : catalog_tags_read(out, q->tags, err);
}

/* The template of a rebuild, which is the team's own and keeps its name. */
static int rebuilt(struct warden *w, const struct build_request *q, struct template **t, struct err *err)
{
  int r = str_find(q->ref, ':') < 0
              ? catalog_template(warden_catalog(w), q->team, q->ref, t, NULL, err)
              : err_set(err, -EINVAL, "'" STR_FMT "': a rebuild is of the tag default and names none", STR_ARG(q->ref));
  if (!r && !str_is(q->team, (*t)->row.team))
    r = err_set(err, -EPERM, "template '" STR_FMT "' belongs to another team", STR_ARG(q->ref));
  if (!r && q->alias.n && !str_is(q->alias, (*t)->row.name))
    r = err_set(err, -EINVAL, "'alias' " STR_FMT " is not the name of this template (%s), which a rebuild keeps",
                STR_ARG(str_sub(q->alias, 0, 200)), (*t)->row.name);
  return r;
}

static int keep_job(struct warden *w, const struct job *j, struct str recipe, struct err *err)
{
  int r = store_begin(warden_store(w), err);
  if (r)
    return r;
  r = store_job_put(warden_store(w), &j->row, err);
  if (!r && recipe.n)
    r = store_job_recipe_put(warden_store(w), j->row.id, recipe, err);
  return store_end(warden_store(w), r, err);
}

int builder_request(struct warden *w, const struct build_request *q, struct job **out, struct template **t,
                    struct err *err)
{
  cleanup_buf struct buf lowered = BUF_INIT(1024), tags = BUF_INIT(8192);
  struct ref name;
  struct job *have = builder_job(w, q->build);
  const struct row_team *team = catalog_team(warden_catalog(w), q->team);
  struct str ref = q->ref;
  int r = team ? 0 : err_set(err, -EINVAL, "no such team");
  if (!r && q->rebuild && !(r = rebuilt(w, q, t, err)))
    ref = str_of((*t)->row.name);
  r = r ? r : ref_read(ref, &lowered, &name, err);
  if (!r && name.space.n && !str_is(name.space, team->slug))
    r = err_set(err, -EINVAL, "the namespace '" STR_FMT "' is not your team's ('%s')", STR_ARG(name.space), team->slug);
  if (!r && ((have && !str_is(q->team, have->row.team)) || !id_valid(q->template_id)))
    r = err_set(err, -EINVAL, "invalid build or template ID");
  r = r ? r : tags_of(q, &name, &tags, err);
  r = r ? r : sizes_fit(w, q, err);
  r = r ? r : storage_room(w, ROOM_FOR_BUILD, err);
  r = r || have ? r : storage_admit(w, q->team, STORAGE_BYTES, err);
  r = r || have ? r : may_request(w, q->team, name.alias, err);
  r = r ? r : catalog_template_make(warden_catalog(w), q->team, name.alias, q->template_id, t, err);
  if (r || have)
    return *out = have, r;
  struct job *j = xcalloc(1, sizeof(*j));
  j->row =
      (struct row_job){.state = JOB_WAITING, .cpus = q->cpus, .memory_mb = q->memory_mb, .created_us = clock_wall_us()};
  j->row.free_disk_mb = q->free_disk_mb;
  j->row.isolation = q->isolation;
  j->row.tags = xstrndup(tags.p, tags.n);
  memcpy(j->row.template_id, (*t)->row.id, sizeof(j->row.template_id));
  if (!uuid_valid(q->build) || str_copyz(q->build, j->row.id, sizeof(j->row.id)) ||
      str_copyz(q->team, j->row.team, sizeof(j->row.team)))
    r = err_set(err, -EINVAL, "invalid build ID");
  r = r ? r : keep_job(w, j, q->recipe, err);
  if (r) {
    row_job_free(&j->row);
    free(j);
    return r;
  }
  supersede(w, *t, str_of(j->row.tags));
  forget_failed(w, q->team);
  job_add(warden_builder(w), j);
  *out = j;
  return 0;
}

/* ---- the end of one ---- */

static void pump(struct warden *w);

static void run_closed(uv_handle_t *h)
{
  build_run_free((struct build_run *)((char *)h - offsetof(struct build_run, done)));
}

static int keep_build(struct warden *w, struct job *j, struct build_run *run, const char *id, struct str tags,
                      struct err *err)
{
  cleanup_buf struct buf config = BUF_INIT(4 << 20);
  cleanup_buf struct buf layers = BUF_INIT(2 << 20);
  build_state_config(&run->state, true, &config);
  if (run->checkpoint[0])
    buf_addf(&layers, "%s\n", run->checkpoint_layer);
  buf_adds(&layers, buf_str(&run->state.layers));
  struct row_build row = {.layers = (char *)buf_z(&layers),
                          .config = (char *)buf_z(&config),
                          .cpus = run->cpus,
                          .memory_mb = run->memory_mb,
                          .disk_mb = run->disk_mb,
                          .isolation = j->row.isolation,
                          .created_us = clock_wall_us()};
  snprintf(row.id, sizeof(row.id), "%s", id);
  memcpy(row.template_id, j->row.template_id, sizeof(row.template_id));
  memcpy(row.checkpoint, run->checkpoint, sizeof(row.checkpoint));
  memcpy(row.secret, run->secret, sizeof(row.secret));
  memcpy(row.runtime, run->checkpoint[0] ? warden_runtime(w) : "", run->checkpoint[0] ? sizeof(row.runtime) : 1);
  row.checkpoint_size = run->checkpoint_size;
  row.layer_bytes = run->checkpoint_layer_bytes;
  struct template *t;
  int r = catalog_template(warden_catalog(w), str_of(j->row.team), str_of(j->row.template_id), &t, NULL, err);
  return r ? r : catalog_build_add(warden_catalog(w), t, &row, tags, err);
}

/* What a failed build left is a build of its own that nothing but its tag points to. */
static void keep_failed_build(struct warden *w, struct job *j, struct build_run *run)
{
  char id[UUID_TEXT];
  struct err err = ERR_NONE;
  uuid4(id);
  build_state_text(&run->state.start, STR_NONE);
  build_state_text(&run->state.ready, STR_NONE);
  if (keep_build(w, j, run, id, STR("failed"), &err))
    log_warn("build %s: result of the failed build not saved: %s", j->row.id, err.msg);
}

/* The build's thread waits until it is answered. */
static void answer(struct build_run *run)
{
  if (!run->request)
    return;
  steal (&run->request)(run, run->request_arg);
  uv_sem_post(&run->answered);
}

/* Of all that was at work for it; the request that asked for it was answered long ago. */
static void trace_run(struct warden *w, const struct build_run *run, int result)
{
  int64_t now = clock_mono_us(), steps = run->stepped_us ? run->stepped_us : now;
  struct span s = {.name = STR("build-run"),
                   .team = str_of(run->team),
                   .build = str_of(run->id),
                   .status = result ? 500 : 200,
                   .from_us = run->begun_us,
                   .to_us = now};
  span_phase_add(&s, "base", run->begun_us, run->based_us ? run->based_us : now);
  span_phase_add(&s, "steps", run->based_us, steps);
  span_phase_add(&s, "finalize", run->stepped_us, now);
  telemetry_span(w, &s);
}

static void run_over(uv_async_t *async)
{
  struct job *j = async->data;
  struct build_run *run = j->run;
  struct warden *w = run->warden;
  answer(run);
  if (!atomic_load(&run->over))
    return;
  struct err err = run->err;
  uv_thread_join(&run->thread);
  if (run->left_name[0])
    reclaim_jail(w, run->team, JAIL_NONE, run->left_name, run->left_dir,
                 run->given || run->left.n ? SLOT_NONE : run->slot);
  if (run->left.n)
    source_reclaim(w, run->team, &run->left, run->given || run->left_name[0] ? SLOT_NONE : run->slot);
  else if (!run->left_name[0] && !run->given)
    slot_mark(w, run->slot, false);
  fair_queue_done(&warden_builder(w)->queue, &j->item);
  storage_layers_changed(w);
  j->run = NULL;
  memcpy(j->kept_box, run->kept_box, sizeof(j->kept_box));
  bool forgotten = !j->row.template_id[0];
  int r = run->result;
  if (!r && !forgotten)
    r = keep_build(w, j, run, j->row.id, str_of(j->row.tags), &err);
  if (run->checkpoint[0] && (r || forgotten)) {
    checkpoint_drop(w, run->checkpoint);
    layer_drop(w, run->checkpoint_layer);
  }
  bool steps_done = run->recipe.keep && !strcmp(run->step, "finalize");
  if (r && !forgotten && !j->put_off && (run->kept || steps_done))
    keep_failed_build(w, j, run);
  if (forgotten) {
    job_drop(warden_builder(w), j);
  } else if (r && j->put_off) {
    log_with(LOG_INFO, (const char *[]){"build", j->row.id, "template", j->row.template_id, NULL}, PUT_OFF);
  } else if (r) {
    job_failed(w, j, run->step, err.msg);
  } else {
    j->row.state = JOB_READY;
    j->row.finished_us = clock_wall_us();
    job_save(w, j);
    warm_pool_load(w, catalog_build(warden_catalog(w), str_of(j->row.id)));
    log_with(LOG_INFO, (const char *[]){"build", j->row.id, "template", j->row.template_id, NULL}, "built");
  }
  trace_run(w, run, r);
  uv_close((uv_handle_t *)async, run_closed);
  pump(w);
}

/* ---- the beginning of one ---- */

static void base_of(struct warden *w, struct build_run *run, struct str ref)
{
  struct template *t;
  struct build *b;
  if (catalog_find(warden_catalog(w), str_of(run->team), ref, &t, &b, &run->base_err))
    return;
  struct str layers = str_of(b->row.layers), running;
  if (b->row.checkpoint[0] &&
      b->row.kind == BUILD_PLAIN) /* what its start command wrote is not for another one to find */
    str_cut(layers, '\n', &running, &layers);
  run->base_layers = xstrndup(layers.p, layers.n);
  run->base_config = xstrdup(b->row.config);
  run->base_name = xstrdup(t->row.name);
  run->disk_mb = b->row.disk_mb;
}

static struct build_run *run_new(struct warden *w, struct job *j, struct str recipe, struct err *err)
{
  struct build_run *run = xcalloc(1, sizeof(*run));
  run->warden = w;
  run->log.fd = run->wake = -1;
  uv_sem_init(&run->answered, 0);
  run->arena = ARENA_INIT(64 << 20);
  char *copy = xmalloc(recipe.n + 1);
  memcpy(copy, recipe.n ? recipe.p : "", recipe.n);
  run->packed = str_make(copy, recipe.n);
  run->cpus = j->row.cpus;
  run->memory_mb = j->row.memory_mb;
  run->disk_mb = DISK_DEFAULT_MB;
  memcpy(run->id, j->row.id, sizeof(run->id));
  memcpy(run->team, j->row.team, sizeof(run->team));
  memcpy(run->template_id, j->row.template_id, sizeof(run->template_id));
  char path[DATA_PATH_SIZE];
  log_path(w, run->id, path);
  cleanup_buf struct buf lowered = BUF_INIT(1024);
  struct ref name;
  int r = recipe_read(&run->arena, run->packed, &run->recipe, err);
  if (!r && run->recipe.template_ref.n)
    r = ref_read(run->recipe.template_ref, &lowered, &name, err);
  cleanup_buf struct buf mounts = BUF_INIT(VOLUME_MOUNTS_BYTES);
  struct box_params wanted = {.team = str_of(run->team), .mounts = run->recipe.mounts};
  r = r ? r : volume_mounts_resolve(w, &wanted, NULL, &mounts, err);
  if (!r && mounts.n) {
    run->mounts = xstrndup(mounts.p, mounts.n);
    volume_mounts_hold(w, run->mounts);
  }
  r = r ? r : buildlog_open(&run->log, path, (uint64_t)warden_config(w)->build_log_mb << 20, err);
  if (!r && (run->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
    r = err_errno(err, "eventfd");
  if (r) {
    build_run_free(run);
    return NULL;
  }
  struct str alias =
      run->recipe.image.n ? source_alias(&warden_config(w)->source, run->recipe.image) : run->recipe.template_ref;
  if (alias.n)
    base_of(w, run, alias);
  run->disk_mb = build_disk_mb(run->disk_mb, j->row.free_disk_mb, quota_disk_max(w, str_of(j->row.team)));
  return run;
}

static int run_start(struct warden *w, struct job *j, struct err *err)
{
  struct build_run *run = j->run;
  int r = slot_take(w, &run->slot);
  if (r)
    return err_set(err, r, "no free id range for a build");
  uv_async_init(warden_loop(w), &run->done, run_over);
  run->done.data = j;
  if (!uv_thread_create(&run->thread, build_run_main, run))
    return 0;
  slot_mark(w, run->slot, false);
  uv_close((uv_handle_t *)&run->done, run_closed);
  j->run = NULL;
  return err_set(err, -EAGAIN, "no thread for a build could be made");
}

static void pump(struct warden *w)
{
  struct fair_queue *queue = &warden_builder(w)->queue;
  queue->places = warden_config(w)->builds_max;
  queue->share = queue->places > 1 ? queue->places - 1 : 1; /* a build may take an hour */
  for (struct job *j; (j = (struct job *)fair_queue_next(queue));) {
    struct err err = ERR_NONE;
    if (!run_start(w, j, &err))
      continue;
    fair_queue_done(queue, &j->item);
    if (j->run)
      build_run_free(steal(&j->run));
    job_failed(w, j, "", err.msg);
  }
}

static void stop_job(struct warden *w, struct job *j, const char *why)
{
  if (fair_queue_cancel(&warden_builder(w)->queue, &j->item)) {
    build_run_free(steal(&j->run));
    if (!j->put_off)
      job_failed(w, j, "", why);
  } else if (j->run) {
    build_run_cancel(j->run, why);
  }
}

int builder_find(struct warden *w, struct str team, struct str ref, struct str build, struct job **out, struct err *err)
{
  struct job *j = builder_job(w, build);
  struct template *t;
  if (j && !str_is(team, j->row.team))
    return err_set(err, -EPERM, "build '" STR_FMT "' belongs to another team", STR_ARG(build));
  if (!j || catalog_template(warden_catalog(w), team, ref, &t, NULL, err) || strcmp(j->row.template_id, t->row.id))
    return err_set(err, -ENOENT, "build '" STR_FMT "' of template '" STR_FMT "' not found",
                   STR_ARG(str_sub(build, 0, 100)), STR_ARG(str_sub(ref, 0, 200)));
  job_expire(w, j, clock_wall_us());
  *out = j;
  return 0;
}

int builder_start(struct warden *w, struct str team, struct str ref, struct str build, struct str recipe,
                  struct err *err)
{
  struct job *j;
  int r = builder_find(w, team, ref, build, &j, err);
  if (r)
    return r;
  if (j->row.state != JOB_WAITING)
    return err_set(err, -EINVAL, "the build is not waiting to be started%s%s", j->row.reason ? ": it " : "",
                   j->row.reason ? j->row.reason : "");
  if (warden_builder(w)->stopping)
    return err_set(err, -ESHUTDOWN, "the server is stopping");
  if ((r = node_admit(w, err)))
    return r;
  if (jobs_in(w, team, JOB_BUILDING) >= warden_config(w)->team_builds_max &&
      !at_work(w, j->row.template_id)) /* of its own it takes the place */
    return too_many_builds(w, err);
  if ((r = quota_fits(w, team, (struct box_size){j->row.cpus, j->row.memory_mb, 0}, err)) ||
      (r = storage_admit(w, team, STORAGE_BYTES, err)))
    return r;
  cleanup_buf struct buf kept = BUF_INIT(RECIPE_MAX);
  if (!recipe.n && store_job_recipe(warden_store(w), j->row.id, &kept))
    return err_set(
        err, -EINVAL,
        "the build was requested without a Dockerfile; start it with POST /v2/templates/{id}/builds/{build}");
  j->run = run_new(w, j, recipe.n ? recipe : buf_str(&kept), err);
  if (!j->run)
    return err->code ? err->code : -EIO;
  for (size_t i = 0; i < warden_builder(w)->jobs.n; i++)
    if (warden_builder(w)->jobs.p[i] != j && !strcmp(warden_builder(w)->jobs.p[i]->row.template_id, j->row.template_id))
      stop_job(w, warden_builder(w)->jobs.p[i], "cancelled: a newer build of this template was started");
  j->row.state = JOB_BUILDING;
  j->row.started_us = clock_wall_us();
  job_save(w, j);
  fair_queue_push(&warden_builder(w)->queue, team, &j->item);
  pump(w);
  if (j->run && !j->item.runs)
    build_say(j->run, LOG_INFO, "Waiting for a build slot: builds_max is %u, one slot less for one team",
              warden_config(w)->builds_max);
  return 0;
}

/* ---- cancelling ---- */

size_t builder_cancel(struct warden *w, struct str team, struct str build, const char *why)
{
  size_t n = 0;
  for (size_t i = 0; i < warden_builder(w)->jobs.n; i++) {
    struct job *j = warden_builder(w)->jobs.p[i];
    if (!str_is(team, j->row.team) || (build.n && !str_is(build, j->row.id)) || j->row.state > JOB_BUILDING)
      continue;
    n++;
    if (j->row.state == JOB_WAITING)
      job_failed(w, j, "", why);
    else
      stop_job(w, j, why);
  }
  return n;
}

void builder_template_gone(struct warden *w, const char *template_id)
{
  char path[DATA_PATH_SIZE];
  for (size_t i = warden_builder(w)->jobs.n; i-- > 0;) {
    struct job *j = warden_builder(w)->jobs.p[i];
    if (strcmp(j->row.template_id, template_id))
      continue;
    log_path(w, j->row.id, path);
    unlink(path);
    if (fair_queue_cancel(&warden_builder(w)->queue, &j->item))
      build_run_free(steal(&j->run));
    j->row.template_id[0] = 0;
    if (j->run)
      build_run_cancel(j->run, "cancelled: the template was deleted");
    else
      job_drop(warden_builder(w), j);
  }
}

/* The recipe is kept, and the job waits as one that was never started, but for its time. One with credentials of a
 * registry can't go on: those are never written down. */
static bool put_off(struct warden *w, struct job *j)
{
  struct err err = ERR_NONE;
  if (!j->run || j->row.state != JOB_BUILDING || j->run->recipe.registry.n || atomic_load(&j->run->cancelled))
    return false;
  j->row.state = JOB_WAITING;
  if (store_job_recipe_put(warden_store(w), j->row.id, j->run->packed, &err)) {
    log_error("build %s: %s", j->row.id, err.msg);
    j->row.state = JOB_BUILDING;
    return false;
  }
  job_save(w, j);
  return true;
}

void builder_stop(struct warden *w, bool go_on_later)
{
  warden_builder(w)->stopping = true;
  for (size_t i = 0; i < warden_builder(w)->jobs.n; i++) {
    struct job *j = warden_builder(w)->jobs.p[i];
    j->put_off = go_on_later && put_off(w, j);
    stop_job(w, j, j->put_off ? PUT_OFF : "interrupted: the server was stopped during the build");
  }
}

void builder_go_on(struct warden *w)
{
  for (size_t i = 0; i < warden_builder(w)->jobs.n; i++) {
    struct job *j = warden_builder(w)->jobs.p[i];
    struct err err = ERR_NONE;
    if (j->row.state != JOB_WAITING || !j->row.started_us)
      continue;
    log_with(LOG_INFO, (const char *[]){"build", j->row.id, "template", j->row.template_id, NULL},
             "starting it again after the restart");
    if (builder_start(w, str_of(j->row.team), str_of(j->row.template_id), str_of(j->row.id), STR_NONE, &err))
      job_failed(w, j, "", err.msg);
    else if (j->run)
      build_say(j->run, LOG_INFO, "The server is back; steps that were finished come from the cache");
  }
}

bool builder_busy(const struct warden *w)
{
  return warden_builder(w) && warden_builder(w)->queue.running > 0;
}

/* ---- looking ---- */

int builder_log(struct warden *w, const struct job *j, struct err *err)
{
  char path[DATA_PATH_SIZE];
  log_path(w, j->row.id, path);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  return fd < 0 ? err_errno(err, "%s", path) : fd;
}

int64_t builder_needs(struct warden *w, void (*need)(const char *layers, void *arg), void *arg)
{
  int64_t since = INT64_MAX;
  for (size_t i = 0; warden_builder(w) && i < warden_builder(w)->jobs.n; i++) {
    const struct job *j = warden_builder(w)->jobs.p[i];
    if (!j->run)
      continue;
    since = MIN(since, j->row.started_us / 1000000);
    if (j->run->base_layers)
      need(j->run->base_layers, arg);
    if (j->run->borrowed)
      need(j->run->checkpoint_layer, arg);
  }
  return since;
}

bool builder_borrows(struct warden *w, const char *what)
{
  for (size_t i = 0; warden_builder(w) && i < warden_builder(w)->jobs.n; i++) {
    const struct build_run *run = warden_builder(w)->jobs.p[i]->run;
    if (run && run->borrowed && (!strcmp(run->checkpoint, what) || !strcmp(run->checkpoint_layer, what)))
      return true;
  }
  return false;
}

bool builder_enters(struct warden *w, const struct zygote *z)
{
  for (size_t i = 0; warden_builder(w) && i < warden_builder(w)->jobs.n; i++)
    if (warden_builder(w)->jobs.p[i]->run && warden_builder(w)->jobs.p[i]->run->zygote == z)
      return true;
  return false;
}

/* ---- time ---- */

static void job_expire(struct warden *w, struct job *j, int64_t now)
{
  char why[160];
  if (j->row.state != JOB_WAITING || j->row.started_us || /* it was, by a server that was stopped */
      now - j->row.created_us < (int64_t)warden_config(w)->build_wait_s * 1000000)
    return;
  snprintf(why, sizeof(why), "expired: it was not started within %u s (setting build_wait_seconds); request it again",
           warden_config(w)->build_wait_s);
  job_failed(w, j, "", why);
}

static void job_forget(struct warden *w, struct job *j)
{
  char path[DATA_PATH_SIZE];
  struct err err = ERR_NONE;
  log_path(w, j->row.id, path);
  unlink(path);
  if (store_job_delete(warden_store(w), j->row.id, &err))
    log_warn("build %s: %s", j->row.id, err.msg);
  job_drop(warden_builder(w), j);
}

void builder_expire(struct warden *w)
{
  int64_t now = clock_wall_us();
  for (size_t i = warden_builder(w)->jobs.n; i-- > 0;) {
    struct job *j = warden_builder(w)->jobs.p[i];
    job_expire(w, j, now);
    if (j->row.state == JOB_ERROR && !j->run &&
        now - j->row.finished_us > (int64_t)warden_config(w)->build_keep_s * 1000000)
      job_forget(w, j);
  }
}

/* ---- beginnings and end ---- */

static int load_job(const struct row_job *row, void *arg)
{
  struct warden *w = arg;
  struct job *j = xcalloc(1, sizeof(*j));
  j->row = *row;
  j->row.tags = xstrdup(row->tags);
  j->row.reason = row->reason && row->reason[0] ? xstrdup(row->reason) : NULL;
  job_add(warden_builder(w), j);
  return 0;
}

int builder_open(struct warden *w, struct err *err)
{
  static const char *const dirs[] = {"layers", "builds", "files"};
  char path[DATA_PATH_SIZE];
  warden_set_builder(w, xcalloc(1, sizeof(struct builder)));
  for (size_t i = 0; i < ARRAY_LEN(dirs); i++) {
    snprintf(path, sizeof(path), "%s/%s", warden_config(w)->data, dirs[i]);
    int r = path_mkdirs(path, 0700);
    if (r)
      return err_set(err, r, "%s: %s", path, strerrordesc_np(-r));
  }
  build_layer_sweep(warden_config(w)->data);
  store_jobs(warden_store(w), load_job, w);
  for (size_t i = 0; i < warden_builder(w)->jobs.n; i++)
    if (warden_builder(w)->jobs.p[i]->row.state == JOB_BUILDING)
      job_failed(w, warden_builder(w)->jobs.p[i], "", "interrupted: the server ended during the build; start it again");
  builder_expire(w);
  return 0;
}

void builder_close(struct warden *w)
{
  if (!warden_builder(w))
    return;
  for (size_t i = 0; i < warden_builder(w)->jobs.n; i++) {
    row_job_free(&warden_builder(w)->jobs.p[i]->row);
    free(warden_builder(w)->jobs.p[i]);
  }
  vec_free(&warden_builder(w)->jobs);
  map_free(&warden_builder(w)->by_id);
  free(warden_builder(w));
  warden_set_builder(w, NULL);
}
