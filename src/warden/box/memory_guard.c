/* SPDX-License-Identifier: Apache-2.0 */
/* memory_guard.c - see memory_guard.h. Control groups are read on a worker, what follows from it is the loop's. */
#include "warden/box/memory_guard.h"

#include "warden/box/box.h"
#include "warden/core/box_state.h"
#include "warden/core/host_memory.h"
#include "warden/core/warden_state.h"
#include "warden/core/worker_pool.h"
#include <stdio.h>
#include <stdlib.h>

#define LOOK_MS 1000

struct team_memory {
  char team[UUID_SIZE];
  uint64_t used;
};

struct memory_guard {
  uv_timer_t timer;
  uint64_t available; /* bytes, at the last look */
  unsigned looks;     /* below memory_kill_mb in a row */
  int64_t acted_us;
  char waited_for[BOX_ID_SIZE]; /* the box whose pause is to free memory; empty: none */
  bool told;                    /* that there is less than memory_low_mb */
  bool reading;
  VEC(struct team_memory) teams; /* at the last reading; none while there is enough */
  uint64_t all;                  /* of them */
};

struct readings {
  uv_work_t work;
  struct warden *warden;
  size_t n;
  struct reading {
    char id[BOX_ID_SIZE], name[HOST_NAME_SIZE], dir[DATA_DIR_SIZE], team[UUID_SIZE];
    uint64_t used;
    bool found;
  } of[];
};

static unsigned long long mib(uint64_t bytes)
{
  return (unsigned long long)(bytes >> 20);
}

static bool in_memory(const struct box *b)
{
  return !b->on_disk || b->transition;
}

/* ---- which box goes ---- */

static void end_for_memory(struct box *b, uint64_t used, const char *why)
{
  char cause[256];
  snprintf(cause, sizeof(cause),
           "out of memory: the machine had too little left, and of the team that used the most this sandbox %s "
           "(%llu MiB)",
           why, mib(used));
  box_end(b, cause);
}

static void let_go(struct box *b, bool keeps, uint64_t used, struct memory_guard *g)
{
  log_with(LOG_WARN, (const char *[]){"box", b->row.id, "team", b->row.team, NULL},
           "%llu MiB of memory left, less than memory_kill_mb: a sandbox that uses %llu MiB is %s", mib(g->available),
           mib(used), keeps ? "paused" : "ended");
  g->acted_us = clock_mono_us();
  if (!keeps) {
    end_for_memory(b, used, "used the most");
    return;
  }
  memcpy(g->waited_for, b->row.id, sizeof(g->waited_for));
  b->warden->hooks->box_chosen(b);
}

static void relieve(struct warden *w, struct memory_guard *g, const struct readings *r)
{
  VEC(struct memory_user) users = {0};
  VEC(struct box *) boxes = {0};
  for (size_t i = 0; i < r->n; i++) {
    struct box *b = map_get(&w->boxes, str_of(r->of[i].id));
    if (!r->of[i].found || !b || !in_memory(b))
      continue;
    bool keeps = memory_guard_keeps(b->row.state, b->row.flags, w->checkpoints_on);
    vec_push(&users, ((struct memory_user){r->of[i].team, r->of[i].used, keeps, b->ending != NULL}));
    vec_push(&boxes, b);
  }
  size_t at = memory_guard_choose(users.p, users.n);
  if (at < boxes.n)
    let_go(boxes.p[at], users.p[at].keeps, users.p[at].used, g);
  vec_free(&users);
  vec_free(&boxes);
}

static uint64_t used_by(const struct readings *r, const char *id)
{
  for (size_t i = 0; i < r->n; i++)
    if (!strcmp(r->of[i].id, id))
      return r->of[i].used;
  return 0;
}

static void decide(struct warden *w, struct memory_guard *g, const struct readings *r)
{
  int64_t now = clock_mono_us();
  struct box *b = g->waited_for[0] ? map_get(&w->boxes, str_of(g->waited_for)) : NULL;
  bool resident = b && in_memory(b);
  if (g->waited_for[0] && !resident) {
    g->waited_for[0] = 0;
    g->acted_us = now; /* its memory is being freed */
  }
  switch (memory_guard_relief(g->waited_for[0], resident, g->acted_us ? now - g->acted_us : INT64_MAX)) {
  case RELIEF_WAIT:
    break;
  case RELIEF_END:
    g->waited_for[0] = 0;
    g->acted_us = now;
    end_for_memory(b, used_by(r, b->row.id), "was to be paused, which freed nothing in time");
    break;
  case RELIEF_CHOOSE:
    relieve(w, g, r);
  }
}

/* ---- what boxes use ---- */

static int by_team(const void *a, const void *b)
{
  return strcmp(((const struct reading *)a)->team, ((const struct reading *)b)->team);
}

static void read_groups(uv_work_t *work)
{
  struct readings *r = work->data;
  for (size_t i = 0; i < r->n; i++) {
    struct jail_stats stats;
    r->of[i].found = !jail_stat(r->warden->instance, r->of[i].name, r->of[i].dir, &stats, NULL);
    r->of[i].used = r->of[i].found ? stats.memory_used : 0;
  }
  qsort(r->of, r->n, sizeof(r->of[0]), by_team);
}

static void sum_teams(struct memory_guard *g, const struct readings *r)
{
  g->teams.n = 0;
  g->all = 0;
  for (size_t i = 0; i < r->n; i++) {
    const struct reading *of = &r->of[i];
    if (!of->found)
      continue;
    if (!g->teams.n || strcmp(g->teams.p[g->teams.n - 1].team, of->team) != 0) {
      vec_push(&g->teams, (struct team_memory){0});
      memcpy(g->teams.p[g->teams.n - 1].team, of->team, sizeof(of->team));
    }
    g->teams.p[g->teams.n - 1].used += of->used;
    g->all += of->used;
  }
}

static void groups_read(uv_work_t *work, int status)
{
  struct readings *r = work->data;
  struct memory_guard *g = r->warden->memory_guard;
  g->reading = false;
  sum_teams(g, r);
  if (g->looks >= 2)
    decide(r->warden, g, r);
  free(r);
}

static void read_all(struct warden *w, struct memory_guard *g)
{
  struct readings *r = xcalloc(1, sizeof(*r) + w->boxes.n * sizeof(r->of[0]));
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
    const struct box *b = value;
    if (!in_memory(b))
      continue;
    struct reading *of = &r->of[r->n++];
    memcpy(of->id, b->row.id, sizeof(of->id));
    memcpy(of->name, b->name, sizeof(of->name));
    memcpy(of->dir, b->dir, sizeof(of->dir));
    memcpy(of->team, b->row.team, sizeof(of->team));
  }
  r->warden = w;
  r->work.data = r;
  g->reading = true;
  worker_pool_queue(w, "", &r->work, read_groups, groups_read);
}

/* ---- looking ---- */

static void enough(struct memory_guard *g)
{
  g->told = false;
  g->teams.n = 0;
  g->all = 0;
}

static void look(uv_timer_t *t)
{
  struct warden *w = t->data;
  struct memory_guard *g = w->memory_guard;
  uint64_t total, low = (uint64_t)w->config->memory_low_mb << 20, kill = (uint64_t)w->config->memory_kill_mb << 20;
  bool known = !host_memory(&total, &g->available);
  g->looks = known && g->available < kill ? g->looks + 1 : 0;
  if (!g->looks)
    g->waited_for[0] = 0;
  if (!known || g->available >= MAX(low, kill)) {
    enough(g);
    return;
  }
  if (!g->told && g->available < low)
    log_warn("%llu MiB of memory left, less than memory_low_mb (%u): sandboxes of teams that use much are refused",
             mib(g->available), w->config->memory_low_mb);
  g->told = true;
  if (!g->reading)
    read_all(w, g);
}

bool memory_guard_short(const struct warden *w)
{
  return w->memory_guard && w->memory_guard->looks;
}

int memory_guard_admit(const struct warden *w, struct str team, struct err *err)
{
  const struct memory_guard *g = w->memory_guard;
  if (!g || !g->available)
    return 0;
  uint64_t own = 0;
  for (size_t i = 0; i < g->teams.n; i++)
    if (str_is(team, g->teams.p[i].team))
      own = g->teams.p[i].used;
  struct memory_left left = {g->available, w->config->memory_low_mb, w->config->memory_kill_mb};
  if (!memory_guard_refuses(&left, own, g->all, g->teams.n))
    return 0;
  return err_set(err, -ENOBUFS,
                 "this server is short of memory (setting memory_low_mb): end or pause sandboxes that your team does "
                 "not need, or try again later");
}

void memory_guard_start(struct warden *w)
{
  w->memory_guard = xcalloc(1, sizeof(*w->memory_guard));
  uv_timer_init(w->loop, &w->memory_guard->timer);
  w->memory_guard->timer.data = w;
  uv_timer_start(&w->memory_guard->timer, look, 0, LOOK_MS);
}
