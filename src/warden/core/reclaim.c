/* SPDX-License-Identifier: Apache-2.0 */
/* reclaim.c - see reclaim.h. */
#include "warden/core/reclaim.h"

#include "warden/core/egress.h"
#include "warden/core/id_slots.h"
#include "warden/core/worker_pool.h"
#include "warden/core/warden_state.h"
#include "wire/sizes.h"
#include <stdio.h>

struct removal {
  uv_work_t work;
  struct warden *warden;
  struct jail jail;
  char name[HOST_NAME_SIZE], dir[DATA_DIR_SIZE];
  unsigned slot;
};

static void removal_work(uv_work_t *work)
{
  struct removal *r = work->data;
  struct err err = ERR_NONE;
  if (r->jail.pidfd >= 0)
    jail_kill(r->warden->instance, r->name, &r->jail, &err);
  if (jail_remove(r->warden->instance, r->name, r->dir, &err))
    log_warn("box %s: not reclaimed yet: %s", r->name, err.msg);
  jail_close(&r->jail);
  egress_forget(r->warden, r->slot);
}

static void removal_done(uv_work_t *work, int status)
{
  struct removal *r = work->data;
  slot_mark(r->warden, r->slot, false);
  r->warden->removals--;
  free(r);
}

void reclaim_jail(struct warden *w, const char *team, struct jail jail, const char *name, const char *dir,
                  unsigned slot)
{
  struct removal *r = xcalloc(1, sizeof(*r));
  r->warden = w;
  r->jail = jail;
  r->slot = slot;
  snprintf(r->name, sizeof(r->name), "%s", name);
  snprintf(r->dir, sizeof(r->dir), "%s", dir);
  r->work.data = r;
  w->removals++;
  worker_pool_queue(w, team, &r->work, removal_work, removal_done);
}
