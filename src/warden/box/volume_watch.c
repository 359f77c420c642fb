/* SPDX-License-Identifier: Apache-2.0 */
/* volume_watch.c - see volume_watch.h. The worker has copies of all it needs; a box that ended meanwhile is no longer
 * found by its process. */
#include "warden/box/volume_watch.h"

#include "jail/fs/volume_backing.h"
#include "warden/core/box_state.h"
#include "warden/core/volume_mounts.h"
#include "warden/core/warden_state.h"
#include "warden/core/worker_pool.h"
#include "warden/db/volume_store.h"
#include <inttypes.h>

struct watched_mount {
  char volume[UUID_SIZE];
  struct proc_id init;
};

struct volume_watch {
  uv_work_t work;
  struct warden *warden;
  struct volume_place place;
  struct volume_limits limits;
  uint64_t entries;
  VEC(struct row_volume) volumes;
  VEC(struct watched_mount) mounts;
};

static int keep_ready(const struct row_volume *r, void *arg)
{
  struct volume_watch *s = arg;
  if (r->state == VOLUME_READY)
    vec_push(&s->volumes, *r);
  return 0;
}

static void keep_mounts(struct volume_watch *s, const struct box *b)
{
  struct str rest = str_of(b->row.mounts ? b->row.mounts : ""), line, id, more;
  while (rest.n && b->jail.pidfd >= 0) {
    struct watched_mount m = {.init = b->jail.init};
    str_cut(rest, '\n', &line, &rest);
    str_cut(line, '\t', &id, &more);
    if (!str_copyz(id, m.volume, sizeof(m.volume)))
      vec_push(&s->mounts, m);
  }
}

/* All boxes each time, not only where it changed: one may have been busy, or have come since. */
static void apply(const struct volume_watch *s, const struct row_volume *v, bool full)
{
  for (size_t i = 0; i < s->mounts.n; i++) {
    const struct watched_mount *m = &s->mounts.p[i];
    struct err err = ERR_NONE;
    if (strcmp(m->volume, v->id) != 0)
      continue;
    int r = jail_volume_readonly(&s->place, v->id, m->init, full, &err);
    if (r == -EBUSY)
      log_info("%s; tried again later", err.msg);
    else if (r < 0 && r != -ESRCH && r != -ENOENT)
      log_warn("%s", err.msg);
  }
}

static void measure(const struct volume_watch *s, const struct row_volume *v)
{
  struct err err = ERR_NONE;
  struct volume_usage u;
  bool was = volume_backing_full(&s->place, v->id);
  int r = volume_backing_usage(&s->place, v->id, s->entries, &u, &err);
  if (!r && u.bytes_max) /* a quota holds it */
    return;
  bool full = !r && (!u.whole || u.bytes > s->limits.bytes || u.inodes > s->limits.inodes);
  if (!r && full != was)
    r = volume_backing_set_full(&s->place, v->id, full, &err);
  if (r)
    log_warn("volume %s not measured: %s", v->id, err.msg);
  else if (full != was)
    log_info("volume %s of team %s is %s: %" PRIu64 " bytes, %" PRIu64 " files%s", v->id, v->team,
             full ? "over its limit and read-only" : "under its limit again", u.bytes, u.inodes,
             u.whole ? "" : " and more");
  if (!r)
    apply(s, v, full);
}

static void watch_work(uv_work_t *work)
{
  struct volume_watch *s = work->data;
  for (size_t i = 0; i < s->volumes.n; i++)
    measure(s, &s->volumes.p[i]);
}

static void watch_done(uv_work_t *work, int status)
{
  struct volume_watch *s = work->data;
  s->warden->volume_watch = NULL;
  s->warden->volumes_measured_us = clock_mono_us();
  vec_free(&s->volumes);
  vec_free(&s->mounts);
  free(s);
}

void volume_watch_tick(struct warden *w)
{
  const struct warden_config *c = w->config;
  if (!c->volumes_directory || w->volume_watch || w->stopping ||
      clock_mono_us() < w->volumes_measured_us + (int64_t)c->volume_scan_s * 1000000)
    return;
  struct volume_watch *s = xcalloc(1, sizeof(*s));
  s->warden = w;
  s->work.data = s;
  s->place = volume_mounts_place(w);
  s->limits = (struct volume_limits){(uint64_t)c->volume_mb << 20, c->volume_inodes};
  s->entries = c->volume_scan_entries;
  store_volumes(w->store, NULL, keep_ready, s);
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);)
    keep_mounts(s, value);
  w->volume_watch = s;
  worker_pool_queue_volume(w, "", &s->work, watch_work, watch_done);
}
