/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_store.c - see checkpoint_store.h. */
#include "warden/core/checkpoint_store.h"

#include "jail/checkpoint/zygote_heap.h"
#include "warden/core/box_state.h"
#include "warden/core/warden_state.h"
#include "warden/core/worker_pool.h"
#include <dirent.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <stdio.h>
#include <sys/ioctl.h>

#define HEAPS_US       3600000000ll
#define ENTER_WAIT_US  10000000 /* ENTER_SECONDS of zygote.py, and as long again for the fork to take over */
#define ENTER_RETRY_NS 20000000

struct checkpoint_store {
  char heaps[DATA_DIR_SIZE]; /* kept memory of zygotes */
  int64_t heaps_us;          /* when it is swept next */
};

static struct checkpoint_store *store_of(struct warden *w)
{
  if (!w->checkpoint_store) {
    w->checkpoint_store = xcalloc(1, sizeof(*w->checkpoint_store));
    snprintf(w->checkpoint_store->heaps, sizeof(w->checkpoint_store->heaps), "%s/heaps", w->config->data);
  }
  return w->checkpoint_store;
}

bool checkpoints_enabled(const struct warden *w)
{
  return w->checkpoints_on;
}

const char *checkpoints_disabled_why(const struct warden *w)
{
  return w->checkpoints_why;
}

const struct jail_criu *checkpoint_criu(const struct warden *w)
{
  return &w->criu;
}

const char *checkpoint_heaps(struct warden *w)
{
  return store_of(w)->heaps;
}

void checkpoint_path(const struct warden *w, const char *name, char out[DATA_PATH_SIZE])
{
  snprintf(out, DATA_PATH_SIZE, "%s/checkpoints/%s", w->config->data, name);
}

int checkpoint_dump(const struct jail_criu *criu, const struct jail_spec *spec, const struct jail *j, const char *path,
                    struct err *err)
{
  int64_t until = clock_mono_us() + ENTER_WAIT_US;
  int r;
  while ((r = jail_dump(criu, spec, j, path, err)) == -EISCONN && clock_mono_us() < until &&
         !(criu->stop && atomic_load(criu->stop))) {
    log_debug("box %s: dumped again, a kernel may be entering it: %s", spec->id, err->msg);
    *err = ERR_NONE;
    nanosleep(&(struct timespec){.tv_nsec = ENTER_RETRY_NS}, NULL);
  }
  return r == -EISCONN ? err->code = -ENOTSUP : r;
}

void checkpoint_name(const struct box *b, char out[CHECKPOINT_NAME_SIZE])
{
  char tail[12];
  random_id(tail, 8);
  snprintf(out, CHECKPOINT_NAME_SIZE, "%.48s-%s", b->name, tail);
}

/* An ext4 without a journal looks, for each new file, at every file that was deleted nearby in the last minutes: 8 to
 * 11 ms per checkpoint where boxes come and go. With this mark each directory below begins somewhere else on the disk.
 */
static void spread_out(const char *dir)
{
  int flags = 0;
  cleanup_fd int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0 || ioctl(fd, FS_IOC_GETFLAGS, &flags) || flags & FS_TOPDIR_FL)
    return;
  flags |= FS_TOPDIR_FL;
  ioctl(fd, FS_IOC_SETFLAGS, &flags); /* other filesystems have no such mark and no such need */
}

/* ---- can this host? ---- */

void checkpoints_limit(struct warden *w)
{
  heaps_limit((uint64_t)w->config->heaps_mb << 20, (uint64_t)w->config->team_heaps_mb << 20,
              (uint64_t)w->config->disk_reserve_mb << 20);
  w->criu.seconds = w->config->checkpoint_s;
  w->criu.reserve = (uint64_t)w->config->disk_reserve_mb << 20;
}

void checkpoints_open(struct warden *w)
{
  static const char *const argv[] = {"/usr/lib/cloche/agent", "--rest", NULL};
  char dir[DATA_PATH_SIZE], lower[DATA_PATH_SIZE];
  struct err why = ERR_NONE;
  heaps_load(checkpoint_heaps(w));
  w->criu = (struct jail_criu){.program = w->config->criu, .heaps = checkpoint_heaps(w)};
  checkpoints_limit(w);
  if (!strcmp(w->config->checkpoint, "frozen")) {
    snprintf(w->checkpoints_why, sizeof(w->checkpoints_why), "disabled by the setting 'checkpoint'");
    return;
  }
  checkpoint_path(w, "", dir);
  path_mkdirs(dir, 0700);
  spread_out(dir);
  jail_heaps_sweep(checkpoint_heaps(w), dir);
  snprintf(dir, sizeof(dir), "%s/boxes", w->config->data);
  snprintf(lower, sizeof(lower), "%s/runtime/%s", w->config->data, w->runtime);
  w->checkpoints_on = !jail_criu_prove(&w->criu, w->instance, dir, lower, argv, &why);
  snprintf(w->checkpoints_why, sizeof(w->checkpoints_why), "%s", why.msg);
  if (!w->checkpoints_on)
    log_warn("paused boxes stay in memory (tier frozen), forks and snapshots keep files only: %s", why.msg);
  else if (jail_criu_origin(w->criu.program) == JAIL_CRIU_UNTRIED)
    log_warn("criu at %s is an untried version (criu/tried); its checkpoints passed the tests on this machine",
             w->criu.program);
  else if (jail_criu_origin(w->criu.program) == JAIL_CRIU_FOREIGN)
    log_warn("criu at %s was not built by scripts/criu and lacks its patches (criu/README.md)", w->criu.program);
}

/* ---- zygotes' memory ---- */

static void heaps_work(uv_work_t *work)
{
  struct warden *w = work->data;
  char dir[DATA_PATH_SIZE];
  checkpoint_path(w, "", dir);
  jail_heaps_sweep(checkpoint_heaps(w), dir);
}

static void heaps_done(uv_work_t *work, int status)
{
  free(work);
}

/* Each zygote leaves one, and a template's own code decides how often a zygote ends. */
void checkpoints_clear_heaps(struct warden *w)
{
  int64_t now = clock_mono_us();
  store_of(w)->heaps_us = store_of(w)->heaps_us ? store_of(w)->heaps_us : now + HEAPS_US;
  if (now < store_of(w)->heaps_us || !w->checkpoints_on)
    return;
  store_of(w)->heaps_us = now + HEAPS_US;
  uv_work_t *work = xcalloc(1, sizeof(*work));
  work->data = w;
  worker_pool_queue(w, WORKERS_CLEARING, work, heaps_work, heaps_done);
}

/* ---- removal ---- */

struct drop {
  uv_work_t work;
  struct warden *warden;
  bool checkpoint;
  char path[DATA_PATH_SIZE];
};

static void drop_work(uv_work_t *work)
{
  struct drop *d = work->data;
  struct err err = ERR_NONE;
  int r = d->checkpoint ? jail_checkpoint_remove(d->path, &err) : path_remove_tree(AT_FDCWD, d->path);
  if (r && r != -ENOENT)
    log_warn("%s is not removed: %s", d->path, d->checkpoint ? err.msg : strerrordesc_np(-r));
}

static void drop_done(uv_work_t *work, int status)
{
  struct drop *d = work->data;
  d->warden->removals--;
  free(d);
}

static struct drop *drop_new(struct warden *w, bool checkpoint)
{
  struct drop *d = xcalloc(1, sizeof(*d));
  d->warden = w;
  d->checkpoint = checkpoint;
  d->work.data = d;
  w->removals++;
  return d;
}

/* Builds of one recipe share a checkpoint. */
static bool checkpoint_needed(struct warden *w, const char *name)
{
  struct build *const *list;
  size_t n = catalog_builds(w->catalog, &list);
  for (size_t i = 0; i < n; i++)
    if (!strcmp(list[i]->row.checkpoint, name))
      return true;
  return w->hooks->checkpoint_borrowed(w, name);
}

void checkpoint_drop(struct warden *w, const char *name)
{
  if (!name[0] || checkpoint_needed(w, name))
    return;
  struct drop *d = drop_new(w, true);
  checkpoint_path(w, name, d->path);
  worker_pool_queue(w, WORKERS_CLEARING, &d->work, drop_work, drop_done);
}

static bool names_layer(const struct build *b, struct str path)
{
  struct str rest = str_of(b->row.layers), line;
  while (rest.n) {
    str_cut(rest, '\n', &line, &rest);
    if (str_eq(line, path))
      return true;
  }
  return false;
}

static bool layer_needed(struct warden *w, const char *path)
{
  struct build *const *list;
  size_t n = catalog_builds(w->catalog, &list);
  for (size_t i = 0; i < n; i++)
    if (names_layer(list[i], str_of(path)))
      return true;
  return w->hooks->checkpoint_borrowed(w, path);
}

void layer_drop(struct warden *w, const char *path)
{
  if (!path[0] || layer_needed(w, path))
    return;
  struct drop *d = drop_new(w, false);
  snprintf(d->path, sizeof(d->path), "%s", path);
  worker_pool_queue(w, WORKERS_CLEARING, &d->work, drop_work, drop_done);
}

/* ---- after a crash ---- */

static bool owned(struct warden *w, const char *name)
{
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);)
    if (!strcmp(((struct box *)value)->row.checkpoint, name))
      return true;
  return checkpoint_needed(w, name);
}

/* A checkpoint is named after the name that its box has on the host. */
static struct box *box_of_checkpoint(struct warden *w, struct str checkpoint)
{
  void *value;
  struct str name = str_sub(checkpoint, 0, (size_t)MAX(str_rfind(checkpoint, '-'), (ptrdiff_t)0));
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);)
    if (str_is(name, ((struct box *)value)->name))
      return value;
  return NULL;
}

/* A dump of this box was cut short, or a criu without a master is still at it. A new run tells gates to connect anew.
 */
static void end_interrupted(struct warden *w, struct str name, const char *path)
{
  struct box *b = box_of_checkpoint(w, name);
  bool stands = b && !b->on_disk;
  jail_rescue(path, w->instance, stands ? b->name : NULL);
  if (!stands)
    return;
  if (b->row.state == BOX_PAUSED)
    jail_freeze(w->instance, b->name, true, NULL);
  b->row.run++;
  store_box_put(w->store, &b->row, NULL);
}

void checkpoints_sweep(struct warden *w)
{
  char dir[DATA_PATH_SIZE], path[DATA_PATH_SIZE];
  checkpoint_path(w, "", dir);
  DIR *d = opendir(dir);
  if (!d)
    return;
  for (struct dirent *e; (e = readdir(d));) {
    if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..") || owned(w, e->d_name))
      continue;
    struct err err = ERR_NONE;
    checkpoint_path(w, e->d_name, path);
    end_interrupted(w, str_of(e->d_name), path);
    if (jail_checkpoint_remove(path, &err))
      log_warn("left over %s not removed: %s", path, err.msg);
  }
  closedir(d);
}

/* Copies of boxes are named by a build's id. Those of templates' steps have other names and are kept for the next
 * build. */
void layers_sweep(struct warden *w)
{
  char path[DATA_PATH_SIZE];
  snprintf(path, sizeof(path), "%s/layers", w->config->data);
  DIR *d = opendir(path);
  if (!d)
    return;
  for (struct dirent *e; (e = readdir(d));) {
    struct str name = str_of(e->d_name);
    bool half = str_search(name, STR(".new-")) >= 0;
    snprintf(path, sizeof(path), "%s/layers/%.200s", w->config->data, e->d_name);
    if (half || (uuid_valid(name) && !layer_needed(w, path)))
      path_remove_tree(dirfd(d), e->d_name);
  }
  closedir(d);
}
