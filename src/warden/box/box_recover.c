/* SPDX-License-Identifier: Apache-2.0 */
/* box_recover.c - see box_recover.h. */
#include "warden/box/box_recover.h"

#include "jail/fs/id_shift.h"
#include "warden/box/box.h"
#include "warden/core/box_event.h"
#include "warden/core/id_slots.h"
#include "warden/box/pause.h"
#include "warden/egress/keep.h"
#include "warden/egress/policies.h"
#include "warden/core/warden_state.h"
#include "warden/warm/nursery_request.h"
#include "warden/warm/zygote.h"
#include <dirent.h>
#include <limits.h>
#include <stdio.h>

#define CAUSE_LOST     "lost: its node was restarted or crashed: it was not running when the daemon came back"
#define CAUSE_NO_BUILD "lost: its template was deleted: its files were not there when the daemon came back"

struct lost {
  struct row_box row; /* with its config only */
  const char *cause;
};

struct recovery {
  struct warden *warden;
  VEC(struct lost) lost;
};

/* The control group of its first process says which jail a box lives in. */
static void host_name_of(struct warden *w, const struct row_box *row, char name[HOST_NAME_SIZE])
{
  char path[64], mark[64];
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  snprintf(path, sizeof(path), "/proc/%d/cgroup", row->init_proc.pid);
  snprintf(mark, sizeof(mark), "/cloche-%s/", w->instance);
  snprintf(name, HOST_NAME_SIZE, "%s",
           row->host_name[0] ? row->host_name : row->id); /* boxes of older versions have none */
  if (file_read(path, &b))
    return;
  ptrdiff_t at = str_search(buf_str(&b), str_of(mark));
  if (at < 0)
    return;
  struct str rest = str_skip(buf_str(&b), (size_t)at + strlen(mark)), line, part;
  str_cut(rest, '\n', &line, &rest);
  str_cut(line, '/', &part, &line);
  if (part.n)
    str_copyz(part, name, HOST_NAME_SIZE);
}

static int recover_one(const struct row_box *row, void *arg)
{
  struct recovery *rec = arg;
  struct warden *w = rec->warden;
  char name[HOST_NAME_SIZE];
  struct err err = ERR_NONE;
  bool on_disk = row->state == BOX_PAUSED && row->tier != TIER_FROZEN;
  if (on_disk)
    snprintf(name, sizeof(name), "%s", row->host_name[0] ? row->host_name : row->id);
  else
    host_name_of(w, row, name);
  struct box *b = box_new(w, name);
  b->build = catalog_build(w->catalog, str_of(row->build));
  b->template = b->build ? b->build->of : NULL;
  if (!b->build || (!on_disk && jail_adopt(w->instance, name, row->init_proc, &b->jail, &err))) {
    struct lost lost = {*row, b->build ? CAUSE_LOST : CAUSE_NO_BUILD};
    lost.row.config = xstrdup(row->config);
    lost.row.init = lost.row.allow = lost.row.deny = lost.row.mounts = lost.row.tokens = NULL;
    vec_push(&rec->lost, lost);
    free(b);
    return 0;
  }
  b->row = *row;
  b->row.config = xstrdup(row->config);
  b->row.init = xstrdup(row->init);
  b->row.allow = xstrdup(row->allow);
  b->row.deny = xstrdup(row->deny);
  b->row.mounts = xstrdup(row->mounts);
  b->row.tokens = xstrdup(row->tokens);
  slot_mark(w, row->slot, true);
  if (!on_disk && jail_owner(&b->jail) != w->config->id_base + row->slot * JAIL_IDS)
    zygote_reclaim(w, b->build, jail_owner(&b->jail));
  box_add(b);
  memcpy(b->row.host_name, b->name, sizeof(b->row.host_name));
  box_set_on_disk(b, on_disk);
  if (!on_disk) {
    box_watch(b);
    nursery_listen(b);
  }
  box_sync_freezer(b);
  if (egress_recall(b, &err)) /* its traffic stays turned to the gateway, which resets it, and so when it is resumed */
    log_with(LOG_ERROR, (const char *[]){"box", b->row.id, NULL}, "no egress: %s", err.msg);
  if (b->row.state == BOX_RUNNING)
    policy_want(b);
  if (b->row.state == BOX_RUNNING)
    box_set_timer(b);
  return 0;
}

static bool known(const char *name, void *arg)
{
  struct warden *w = arg;
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);)
    if (!strcmp(((struct box *)value)->name, name))
      return true;
  return false;
}

/* Of a box that is paused on disk no process may be left: one that a crash left there was about to go, or had not
 * begun. */
static bool has_jail(const char *name, void *arg)
{
  struct warden *w = arg;
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);)
    if (!strcmp(((struct box *)value)->name, name))
      return !((struct box *)value)->on_disk;
  return false;
}

static void clear_unowned(struct warden *w)
{
  char path[PATH_MAX];
  snprintf(path, sizeof(path), "%s/boxes", w->config->data);
  DIR *d = opendir(path);
  if (!d)
    return;
  for (struct dirent *e; (e = readdir(d));) {
    if (e->d_name[0] == '.' || known(e->d_name, w))
      continue;
    char dir[5000];
    struct err err = ERR_NONE;
    snprintf(dir, sizeof(dir), "%s/%s", path, e->d_name);
    if (jail_remove(w->instance, e->d_name, dir, &err))
      log_warn("left over %s not cleared: %s", dir, err.msg);
  }
  closedir(d);
}

int box_recover(struct warden *w, struct err *err)
{
  struct recovery rec = {.warden = w};
  store_boxes(w->store, recover_one, &rec);
  for (size_t i = 0; i < rec.lost.n; i++) {
    struct err why = ERR_NONE;
    if (box_put_ended(w, &rec.lost.p[i].row, rec.lost.p[i].cause, &why))
      log_error("box %s: %s", rec.lost.p[i].row.id, why.msg);
    row_box_free(&rec.lost.p[i].row);
  }
  if (w->boxes.n || rec.lost.n)
    log_info("%zu boxes recovered, %zu lost", w->boxes.n, rec.lost.n);
  vec_free(&rec.lost);
  int r = jail_sweep(w->instance, has_jail, w, err);
  char shifted[PATH_MAX];
  snprintf(shifted, sizeof(shifted), "%s/shifted", w->config->data);
  id_shift_sweep(shifted);
  clear_unowned(w);
  return r;
}
