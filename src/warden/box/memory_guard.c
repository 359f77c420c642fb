/* SPDX-License-Identifier: Apache-2.0 */
/* memory_guard.c - see memory_guard.h. */
#include "warden/box/memory_guard.h"

#include "warden/box/box.h"
#include "warden/box/pause.h"
#include "warden/core/box_state.h"
#include "warden/core/host_memory.h"
#include "warden/core/warden_state.h"
#include <stdio.h>

#define LOOK_MS   1000
#define SETTLE_US 5000000 /* what went needs a moment until its memory is free */

struct memory_guard {
  uv_timer_t timer;
  uint64_t available; /* bytes, at the last look */
  unsigned looks;     /* below memory_kill_mb in a row */
  int64_t acted_us;
};

static uint64_t used_by(const struct box *b)
{
  const struct wire_sample *last = b->usage.n ? &b->usage.samples[b->usage.n - 1] : NULL;
  return last ? last->mem_used - MIN(last->mem_cache, last->mem_used) : 0;
}

static void let_go(struct box *b, bool keeps, uint64_t used, const struct memory_guard *g)
{
  unsigned limit = b->warden->config->memory_kill_mb;
  char cause[256];
  snprintf(cause, sizeof(cause),
           "out of memory: the machine had %llu MiB left, less than %u; of the team that used the most this sandbox "
           "used the most (%llu MiB)",
           (unsigned long long)(g->available >> 20), limit, (unsigned long long)(used >> 20));
  log_with(LOG_WARN, (const char *[]){"box", b->row.id, "team", b->row.team, NULL},
           "%llu MiB of memory left, less than memory_kill_mb: %s", (unsigned long long)(g->available >> 20),
           keeps ? "a sandbox is paused" : "a sandbox is ended");
  if (keeps)
    box_relieve(b);
  else
    box_end(b, cause);
}

static void relieve(struct warden *w, struct memory_guard *g)
{
  VEC(struct memory_user) users = {0};
  VEC(struct box *) boxes = {0};
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
    struct box *b = value;
    if (b->row.state != BOX_RUNNING)
      continue;
    bool keeps = (b->row.flags & BOX_AUTO_PAUSE) && w->checkpoints_on;
    vec_push(&users, ((struct memory_user){b->row.team, used_by(b), keeps}));
    vec_push(&boxes, b);
  }
  size_t at = memory_guard_choose(users.p, users.n);
  if (at < boxes.n) {
    let_go(boxes.p[at], users.p[at].keeps, users.p[at].used, g);
    g->acted_us = clock_mono_us();
  }
  vec_free(&users);
  vec_free(&boxes);
}

static void look(uv_timer_t *t)
{
  struct warden *w = t->data;
  struct memory_guard *g = w->memory_guard;
  uint64_t total;
  unsigned limit = w->config->memory_kill_mb;
  if (host_memory(&total, &g->available) || !limit || g->available >= (uint64_t)limit << 20) {
    g->looks = 0;
    return;
  }
  if (++g->looks >= 2 && (!g->acted_us || clock_mono_us() - g->acted_us > SETTLE_US))
    relieve(w, g);
}

int memory_guard_admit(const struct warden *w, struct err *err)
{
  const struct memory_guard *g = w->memory_guard;
  unsigned limit = w->config->memory_low_mb;
  if (!g || !limit || !g->available || g->available >= (uint64_t)limit << 20)
    return 0;
  return err_set(err, -ENOBUFS,
                 "this server is short of memory: %llu MiB are left, and new sandboxes need %u "
                 "(memory_low_mb); try again later",
                 (unsigned long long)(g->available >> 20), limit);
}

void memory_guard_start(struct warden *w)
{
  w->memory_guard = xcalloc(1, sizeof(*w->memory_guard));
  uv_timer_init(w->loop, &w->memory_guard->timer);
  w->memory_guard->timer.data = w;
  uv_timer_start(&w->memory_guard->timer, look, 0, LOOK_MS);
}
