/* SPDX-License-Identifier: Apache-2.0 */
/* event_keep.c - see event_keep.h. */
#include "warden/core/event_keep.h"

#include "warden/core/warden_state.h"
#include "warden/core/worker_pool.h"
#include "warden/db/event.h"
#include <poll.h>

#define SLICE    250      /* rows; the store is locked for a few milliseconds */
#define PAUSE_MS 5        /* between slices, for whoever waits to write */
#define TURN_US  10000000 /* of one call; the next one comes after 30 s */
#define DAY_US   86400000000LL

struct event_keep {
  uv_work_t work;
  struct warden *warden;
  struct event_bounds bounds;
};

static void trim(uv_work_t *work)
{
  struct event_keep *k = work->data;
  struct store *writer;
  struct err err = ERR_NONE;
  int64_t until_us = clock_mono_us() + TURN_US;
  if (store_open_writer(k->warden->store, &writer, &err)) {
    log_warn("old events stay: %s", err.msg);
    return;
  }
  while (events_trim(writer, &k->bounds, SLICE) > 0 && clock_mono_us() < until_us)
    poll(NULL, 0, PAUSE_MS);
  store_close(writer);
}

static void trimmed(uv_work_t *work, int status)
{
  free(work->data);
}

void events_keep(struct warden *w)
{
  struct event_keep *k = xcalloc(1, sizeof(*k));
  k->work.data = k;
  k->warden = w;
  k->bounds = (struct event_bounds){.before_us = clock_wall_us() - (int64_t)w->config->events_days * DAY_US,
                                    .team = w->config->events_team_max,
                                    .total = w->config->events_max};
  worker_pool_queue(w, "", &k->work, trim, trimmed);
}
