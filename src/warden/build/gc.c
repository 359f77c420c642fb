/* SPDX-License-Identifier: Apache-2.0 */
/* gc.c - see gc.h. */
#include "warden/build/gc.h"

#include "warden/build/builder.h"
#include "warden/build/layer_lease.h"
#include "warden/core/context.h"
#include "warden/core/worker_pool.h"
#include "warden/core/storage_quota.h"
#include "warden/db/layer_owner.h"
#include "wire/sizes.h"
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>

#define GONE  ".gone-"
#define NEW   ".new-" /* layers being made; one that is a day old was left by a crash */
#define DAY   86400
#define HOUR  3600 /* a fetch under way touches its blobs more often */
#define LEAST 600  /* seconds; what is younger may be in the hands of someone who has not named it yet */

struct pass {
  struct warden *warden;
  const struct gc_params *params;
  struct map needed; /* keys of layers */
  int64_t now;
  int64_t leased_since_s; /* layers leased since then may be a build's under way */
  size_t count;
};

/* ---- what is needed ---- */

static void need_layers(struct pass *p, const char *layers)
{
  cleanup_free char *home = xasprintf("%s/layers/", warden_config(p->warden)->data);
  struct str rest = str_of(layers), line, key, tail;
  while (rest.n) {
    str_cut(rest, '\n', &line, &rest);
    if (!str_starts(line, str_of(home)))
      continue; /* of the store of ready-made templates, which is not ours to clear */
    str_cut(str_skip(line, strlen(home)), '/', &key, &tail);
    map_put(&p->needed, key, p);
  }
}

static void need_more(const char *layers, void *arg)
{
  need_layers(arg, layers);
}

/* Builds of the catalogue, and what builds under way began with. */
static void need_builds(struct pass *p)
{
  p->leased_since_s = builder_needs(p->warden, need_more, p);
  struct build *const *list;
  size_t n = catalog_builds(warden_catalog(p->warden), &list);
  for (size_t i = 0; i < n; i++)
    need_layers(p, list[i]->row.layers);
}

/* ---- removal ---- */

struct removal {
  uv_work_t work;
  char path[DATA_PATH_SIZE];
};

static void removal_work(uv_work_t *work)
{
  struct removal *r = work->data;
  path_remove_tree(AT_FDCWD, r->path);
}

static void removal_done(uv_work_t *work, int status)
{
  free(work->data);
}

static void remove_later(struct pass *p, const char *path)
{
  struct removal *r = xcalloc(1, sizeof(*r));
  r->work.data = r;
  snprintf(r->path, sizeof(r->path), "%s", path);
  worker_pool_queue(p->warden, WORKERS_CLEARING, &r->work, removal_work, removal_done);
}

static bool unused_for(const struct pass *p, int dir, const char *name, int64_t seconds)
{
  struct stat st;
  return !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && p->now - st.st_mtime >= seconds;
}

/* `since`: what was leased from then on stays after all. */
static void evict_before(struct pass *p, const char *top, const char *name, int64_t since)
{
  char path[DATA_PATH_SIZE], gone[DATA_PATH_SIZE], mark[24];
  snprintf(path, sizeof(path), "%s/%s", top, name);
  p->count++;
  if (p->params->report)
    p->params->report(path, p->params->arg);
  if (p->params->only_say)
    return;
  random_id(mark, 16);
  snprintf(gone, sizeof(gone), "%s/" GONE "%s", top, mark);
  if (layer_remove_unleased(path, gone, since))
    remove_later(p, gone);
  else
    log_info("%s is not removed: it is in use again", path);
}

static void evict(struct pass *p, const char *top, const char *name)
{
  evict_before(p, top, name, INT64_MAX);
}

/* ---- the places ---- */

/* Calls fn for every name in <data>/<where>; what an earlier pass left half removed goes at once. */
static void each(struct pass *p, const char *where,
                 void (*fn)(struct pass *, int dir, const char *top, const char *name))
{
  char top[DATA_PATH_SIZE], path[DATA_PATH_SIZE];
  snprintf(top, sizeof(top), "%s/%s", warden_config(p->warden)->data, where);
  DIR *d = opendir(top);
  if (!d)
    return;
  for (struct dirent *e; (e = readdir(d));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
      continue;
    bool gone = str_starts(str_of(e->d_name), STR(GONE));
    snprintf(path, sizeof(path), "%s/%s", top, e->d_name);
    if (!gone)
      fn(p, dirfd(d), top, e->d_name);
    else if (!p->params->only_say && unused_for(p, dirfd(d), e->d_name, DAY))
      remove_later(p, path);
  }
  closedir(d);
}

static bool is_meant(const struct pass *p, int dir, const char *name)
{
  char team[UUID_SIZE];
  uint64_t bytes;
  if (!p->params->team.n)
    return true;
  layer_owner_read(dir, name, team, &bytes);
  return str_is(p->params->team, team);
}

static void look_at_layer(struct pass *p, int dir, const char *top, const char *name)
{
  if (str_starts(str_of(name), STR(NEW))) {
    if (unused_for(p, dir, name, DAY))
      evict(p, top, name);
    return;
  }
  int64_t unused = MAX(p->params->unused_s, (int64_t)LEAST);
  struct stat st;
  if (!map_get(&p->needed, str_of(name)) && unused_for(p, dir, name, unused) &&
      !fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) && st.st_mtime < p->leased_since_s && is_meant(p, dir, name))
    evict_before(p, top, name, MIN(p->leased_since_s, p->now - unused + 1));
}

static void look_at_file(struct pass *p, int dir, const char *top, const char *name)
{
  if (unused_for(p, dir, name, MAX(p->params->unused_s, (int64_t)LEAST)))
    evict(p, top, name);
}

static void look_at_team_files(struct pass *p, int dir, const char *top, const char *name)
{
  char where[200];
  if ((size_t)snprintf(where, sizeof(where), "files/%s", name) < sizeof(where))
    each(p, where, look_at_file);
}

/* A team's blobs are touched by every fetch that brings one; no layer needs them. */
static void look_at_images(struct pass *p, int dir, const char *top, const char *name)
{
  char where[200], blobs[260];
  if ((size_t)snprintf(where, sizeof(where), "cache/images/%s", name) >= sizeof(where))
    return;
  snprintf(blobs, sizeof(blobs), "%s/blobs/sha256", name);
  if (unused_for(p, dir, blobs, MAX(p->params->unused_s, (int64_t)HOUR)))
    each(p, where, look_at_file);
}

size_t gc_run(struct warden *w, const struct gc_params *o)
{
  struct pass p = {.warden = w, .params = o, .now = clock_wall_us() / 1000000};
  need_builds(&p);
  each(&p, "layers", look_at_layer);
  if (!o->team.n) {
    each(&p, "files", look_at_team_files);
    each(&p, "cache/images", look_at_images);
  }
  map_free(&p.needed);
  storage_forget(w);
  return p.count;
}
