/* SPDX-License-Identifier: Apache-2.0 */
/* reclaim.c - see reclaim.h. */
#include "warden/core/reclaim.h"

#include "warden/core/egress.h"
#include "warden/core/id_slots.h"
#include "warden/core/worker_pool.h"
#include "warden/core/warden_state.h"
#include "wire/sizes.h"
#include <stdio.h>

#define FIRST_MS     50      /* of a worker's time, for the last process to be gone */
#define SOON_MS      20      /* from then on a timer waits, first so long, */
#define SOON_MAX_MS  500     /* at last so long, */
#define SOON_US      5000000 /* and so long in all before it counts as one that can't be removed */
#define RETRY_MS     1000
#define RETRY_MAX_MS 60000

struct removal {
  uv_work_t work;
  uv_timer_t timer; /* to the next try */
  struct warden *warden;
  struct jail jail;
  char team[UUID_SIZE], name[HOST_NAME_SIZE], dir[DATA_DIR_SIZE];
  unsigned slot, tries;
  unsigned looks; /* after its last processes */
  bool dies;      /* killed, and not yet gone: how long that takes is up to what its processes were doing */
  int64_t begun_us;
  int result;
  struct err err;
};

static void removal_work(uv_work_t *work)
{
  struct removal *r = work->data;
  r->err = ERR_NONE;
  jail_kill(r->warden->instance, r->name, &r->jail, NULL); /* what is over is not there to be killed */
  r->result = jail_remove_within(r->warden->instance, r->name, r->dir, r->looks ? 0 : FIRST_MS, &r->err);
  r->dies = r->result == -EAGAIN && clock_mono_us() - r->begun_us < SOON_US;
  if (r->dies)
    return;
  jail_close(&r->jail);
  egress_forget(r->warden, r->slot);
}

static void timer_closed(uv_handle_t *h)
{
  free(h->data);
}

static void removal_begin(struct removal *r);
static void removal_done(uv_work_t *work, int status);

static void try_again(uv_timer_t *timer)
{
  removal_begin(timer->data);
}

/* Processes or mounts of it may be there: nobody else gets these ids. The next warden sweeps what this one leaves. */
static void keep_back(struct removal *r)
{
  unsigned wait_ms = MIN((unsigned)RETRY_MS << MIN(r->tries, 6u), (unsigned)RETRY_MAX_MS);
  if (!r->tries++) {
    r->warden->kept_back++;
    log_warn("box %s: not reclaimed, its id range %u stays in use until it is: %s", r->name, r->slot, r->err.msg);
  }
  uv_timer_start(&r->timer, try_again, wait_ms, 0);
}

static void look_again(uv_timer_t *timer)
{
  struct removal *r = timer->data;
  worker_pool_queue(r->warden, r->team, &r->work, removal_work, removal_done);
}

static void removal_done(uv_work_t *work, int status)
{
  struct removal *r = work->data;
  if (r->dies) { /* under way all the while, without a worker */
    uv_timer_start(&r->timer, look_again, MIN((unsigned)SOON_MS << MIN(r->looks++, 10u), (unsigned)SOON_MAX_MS), 0);
    return;
  }
  r->warden->removals--;
  if (r->result && !r->warden->stopping) {
    keep_back(r);
    return;
  }
  if (!r->result) {
    slot_mark(r->warden, r->slot, false);
    if (r->tries)
      log_info("box %s: reclaimed at try %u", r->name, r->tries + 1);
  } else {
    log_warn("box %s: not reclaimed: %s", r->name, r->err.msg);
  }
  r->warden->kept_back -= r->tries > 0;
  uv_close((uv_handle_t *)&r->timer, timer_closed);
}

static void removal_begin(struct removal *r)
{
  r->warden->removals++;
  r->begun_us = clock_mono_us();
  r->looks = 0;
  worker_pool_queue(r->warden, r->team, &r->work, removal_work, removal_done);
}

void reclaim_jail(struct warden *w, const char *team, struct jail jail, const char *name, const char *dir,
                  unsigned slot)
{
  struct removal *r = xcalloc(1, sizeof(*r));
  r->warden = w;
  r->jail = jail;
  r->slot = slot;
  snprintf(r->team, sizeof(r->team), "%s", team);
  snprintf(r->name, sizeof(r->name), "%s", name);
  snprintf(r->dir, sizeof(r->dir), "%s", dir);
  r->work.data = r->timer.data = r;
  uv_timer_init(w->loop, &r->timer);
  uv_unref((uv_handle_t *)&r->timer);
  removal_begin(r);
}
