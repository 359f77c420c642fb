/* SPDX-License-Identifier: Apache-2.0 */
/* disk_guard.c - see disk_guard.h. Images are measured on a worker, what follows from it is the loop's. */
#include "warden/box/disk_guard.h"

#include "warden/box/box.h"
#include "warden/box/pause.h"
#include "warden/core/box_state.h"
#include "warden/core/storage_quota.h"
#include "warden/core/volume_mounts.h"
#include "warden/core/warden_state.h"
#include "warden/core/worker_pool.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#define LOOK_MS 1000
#define NEAR_MS 100

struct disk_guard {
  uv_timer_t timer;
  uint64_t free, mark; /* bytes, at the last look */
  enum disk_step step;
  int64_t ended_us; /* when a box was ended last */
  bool fast, reading;
  bool told; /* that it is below the mark, and builds were ended */
};

struct readings {
  uv_work_t work;
  struct warden *warden;
  char data[DATA_DIR_SIZE], volumes[DATA_PATH_SIZE];
  size_t n;
  struct reading {
    char id[BOX_ID_SIZE], dir[DATA_DIR_SIZE], team[UUID_SIZE];
    char *mounts; /* lines of its row, or NULL; owned */
    uint64_t used;
  } of[];
};

static unsigned long long mib(uint64_t bytes)
{
  return (unsigned long long)(bytes >> 20);
}

/* ---- which boxes stop ---- */

static void freeze_writers(struct warden *w, struct disk_guard *g, const struct disk_user *users,
                           struct box *const *boxes, size_t n)
{
  const char *team = disk_guard_writer(users, n);
  for (size_t i = 0; team && i < n; i++) {
    if (!disk_guard_writes(&users[i]) || strcmp(users[i].team, team) != 0)
      continue;
    log_with(LOG_WARN, (const char *[]){"box", boxes[i]->row.id, "team", team, NULL},
             "%llu MiB of the disk left, less than disk_stop_mb: a sandbox that has written %llu MiB since then is "
             "frozen",
             mib(g->free), mib(users[i].grew));
    box_stop_writing(boxes[i]);
  }
}

static void end_largest(struct disk_guard *g, const struct disk_user *users, struct box *const *boxes, size_t n)
{
  size_t at = disk_guard_largest(users, n);
  char cause[256];
  if (at == n || (g->ended_us && clock_mono_us() - g->ended_us < DISK_SETTLE_US))
    return;
  g->ended_us = clock_mono_us();
  log_with(LOG_WARN, (const char *[]){"box", boxes[at]->row.id, "team", users[at].team, NULL},
           "%llu MiB of the disk left, less than a quarter of disk_stop_mb: a sandbox that takes %llu MiB is ended",
           mib(g->free), mib(users[at].used));
  snprintf(cause, sizeof(cause),
           "out of disk: the machine's disk was almost full, and of the team that used the most this sandbox used the "
           "most (%llu MiB)",
           mib(users[at].used));
  box_end(boxes[at], cause);
}

/* What a box has grown counts from the last moment at which there was enough. */
static void decide(struct warden *w, struct disk_guard *g, const struct readings *r)
{
  VEC(struct disk_user) users = {0};
  VEC(struct box *) boxes = {0};
  for (size_t i = 0; i < r->n; i++) {
    const struct reading *of = &r->of[i];
    struct box *b = map_get(&w->boxes, str_of(of->id));
    if (!b || !of->used)
      continue;
    if (g->step < DISK_FREEZE || !b->disk_seen)
      b->disk_seen = of->used;
    uint64_t grew = of->used - MIN(of->used, b->disk_seen);
    bool runs = b->row.state == BOX_RUNNING && !b->transition;
    vec_push(&users, ((struct disk_user){of->team, of->used, grew, runs, b->ending != NULL}));
    vec_push(&boxes, b);
  }
  if (g->step >= DISK_FREEZE)
    freeze_writers(w, g, users.p, boxes.p, users.n);
  if (g->step == DISK_END && !disk_guard_writer(users.p, users.n))
    end_largest(g, users.p, boxes.p, users.n);
  vec_free(&users);
  vec_free(&boxes);
}

/* ---- what boxes take ---- */

static uint64_t blocks_of(const char *path, dev_t disk)
{
  struct stat st;
  return stat(path, &st) || st.st_dev != disk ? 0 : (uint64_t)st.st_blocks * 512;
}

static uint64_t volumes_of(const struct readings *r, const struct reading *of, dev_t disk)
{
  char path[DATA_PATH_SIZE + UUID_SIZE + 16];
  struct str rest = str_of(of->mounts ? of->mounts : ""), line, id, more;
  uint64_t bytes = 0;
  while (rest.n) {
    str_cut(rest, '\n', &line, &rest);
    str_cut(line, '\t', &id, &more);
    snprintf(path, sizeof(path), "%s/" STR_FMT "/volume.img", r->volumes, STR_ARG(id));
    bytes += blocks_of(path, disk);
  }
  return bytes;
}

static int by_team(const void *a, const void *b)
{
  return strcmp(((const struct reading *)a)->team, ((const struct reading *)b)->team);
}

static void measure(uv_work_t *work)
{
  struct readings *r = work->data;
  struct stat data;
  char path[DATA_PATH_SIZE];
  if (stat(r->data, &data))
    return;
  for (size_t i = 0; i < r->n; i++) {
    snprintf(path, sizeof(path), "%s/disk.img", r->of[i].dir);
    r->of[i].used = blocks_of(path, data.st_dev) + volumes_of(r, &r->of[i], data.st_dev);
  }
  qsort(r->of, r->n, sizeof(r->of[0]), by_team);
}

static void measured(uv_work_t *work, int status)
{
  struct readings *r = work->data;
  struct disk_guard *g = r->warden->disk_guard;
  g->reading = false;
  decide(r->warden, g, r);
  for (size_t i = 0; i < r->n; i++)
    free(r->of[i].mounts);
  free(r);
}

static void measure_all(struct warden *w, struct disk_guard *g)
{
  struct readings *r = xcalloc(1, sizeof(*r) + w->boxes.n * sizeof(r->of[0]));
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
    const struct box *b = value;
    if (b->on_disk)
      continue;
    struct reading *of = &r->of[r->n++];
    memcpy(of->id, b->row.id, sizeof(of->id));
    memcpy(of->dir, b->dir, sizeof(of->dir));
    memcpy(of->team, b->row.team, sizeof(of->team));
    of->mounts = b->row.mounts ? xstrdup(b->row.mounts) : NULL;
  }
  struct volume_place place = volume_mounts_place(w);
  snprintf(r->data, sizeof(r->data), "%s", w->config->data);
  snprintf(r->volumes, sizeof(r->volumes), "%s", place.directory ? "/nonexistent" : place.dir);
  r->warden = w;
  r->work.data = r;
  g->reading = true;
  worker_pool_queue(w, "", &r->work, measure, measured);
}

/* ---- looking ---- */

static void tell(struct warden *w, struct disk_guard *g)
{
  if (g->told == (g->step >= DISK_FREEZE))
    return;
  g->told = !g->told;
  if (!g->told)
    return;
  log_warn(
      "%llu MiB of the disk left, less than disk_stop_mb (%llu): builds are ended, sandboxes that write are frozen",
      mib(g->free), mib(g->mark));
  w->hooks->disk_short(w);
}

static void look(uv_timer_t *t)
{
  struct warden *w = t->data;
  struct disk_guard *g = w->disk_guard;
  bool known = !storage_left(w, &g->free, &g->mark);
  g->step = known ? disk_guard_step(g->free, g->mark) : DISK_ENOUGH;
  bool fast = g->step != DISK_ENOUGH;
  if (fast != g->fast)
    uv_timer_set_repeat(&g->timer, fast ? NEAR_MS : LOOK_MS);
  g->fast = fast;
  tell(w, g);
  if (fast && !g->reading)
    measure_all(w, g);
}

void disk_guard_start(struct warden *w)
{
  w->disk_guard = xcalloc(1, sizeof(*w->disk_guard));
  uv_timer_init(w->loop, &w->disk_guard->timer);
  w->disk_guard->timer.data = w;
  uv_timer_start(&w->disk_guard->timer, look, 0, LOOK_MS);
}
