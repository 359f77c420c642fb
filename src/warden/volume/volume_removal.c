/* SPDX-License-Identifier: Apache-2.0 */
/* volume_removal.c - see volume_removal.h. */
#include "warden/volume/volume_removal.h"

#include "jail/fs/volume_backing.h"
#include "warden/core/volume_mounts.h"
#include "warden/core/worker_pool.h"
#include "warden/volume/volume_content.h"

#define SLICE_US      200000
#define BUSY_FIRST_MS 200  /* files of a deleted volume that are still in use: the next try; each later one */
#define BUSY_MOST_MS  5000 /* after twice the time, up to this */

struct removal {
  uv_work_t work;
  uv_timer_t timer; /* before the next try */
  unsigned busy_ms; /* the last time between two */
  struct warden *warden;
  struct row_volume row; /* without an id: a sweep */
  struct volume_place place;
  bool moved; /* it has no name any more */
  int result;
  struct err err;
};

/* ---- on a thread ---- */

static void slice(uv_work_t *work)
{
  struct removal *r = work->data;
  int64_t until = clock_mono_us() + SLICE_US;
  r->err = ERR_NONE;
  if (!r->row.id[0]) {
    r->result = volume_backing_sweep(&r->place, until);
    return;
  }
  r->result = r->moved ? 0 : volume_backing_remove(&r->place, r->row.id, &r->err);
  r->moved = !r->result;
  if (r->moved)
    r->result = volume_backing_clear(&r->place, r->row.id, until, &r->err);
}

/* ---- on the loop ---- */

static void slice_done(uv_work_t *work, int status);

static void closed(uv_handle_t *h)
{
  free(h->data);
}

static void wait_for_turn(struct removal *r)
{
  worker_pool_queue_volume(r->warden, r->row.team, &r->work, slice, slice_done);
}

static void try_again(uv_timer_t *t)
{
  struct removal *r = t->data;
  volume_content_forget(r->warden, r->row.id); /* what was being opened when it was deleted */
  wait_for_turn(r);
}

static void removed(struct removal *r)
{
  struct err err = ERR_NONE;
  if (r->row.id[0])
    volume_content_forget(r->warden, r->row.id);
  if (r->result && r->result != -ENOENT)
    log_error("%s; it is tried again at the next start", r->err.msg);
  else if (r->row.id[0] && store_volume_delete(warden_store(r->warden), r->row.id, &err))
    log_error("volume %s: %s", r->row.id, err.msg);
  uv_close((uv_handle_t *)&r->timer, closed);
}

static void slice_done(uv_work_t *work, int status)
{
  struct removal *r = work->data;
  if (r->result == -EAGAIN) {
    wait_for_turn(r);
  } else if (r->result == -EBUSY) {
    r->busy_ms = r->busy_ms ? MIN(r->busy_ms * 2, (unsigned)BUSY_MOST_MS) : BUSY_FIRST_MS;
    uv_timer_start(&r->timer, try_again, r->busy_ms, 0);
  } else {
    removed(r);
  }
}

static void start(struct warden *w, const struct row_volume *row)
{
  struct removal *r = xcalloc(1, sizeof(*r));
  *r = (struct removal){.warden = w, .row = *row};
  r->place = volume_mounts_place(w);
  r->work.data = r->timer.data = r;
  uv_timer_init(warden_loop(w), &r->timer);
  wait_for_turn(r);
}

void volume_removal_start(struct warden *w, const struct row_volume *row)
{
  start(w, row);
}

void volume_removal_sweep(struct warden *w)
{
  static const struct row_volume none;
  start(w, &none);
}
