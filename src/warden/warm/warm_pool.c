/* SPDX-License-Identifier: Apache-2.0 */
/* warm_pool.c - see warm_pool.h. How many boxes are kept, and when they are made and dropped, is decided in
 * warm_policy.c; here they are made, watched and handed out. */
#include "warden/warm/warm_pool.h"

#include "warden/core/host_memory.h"
#include "warden/core/checkpoint_queue.h"
#include "warden/db/catalog.h"
#include "warden/warm/launch.h"
#include "warden/core/warden_state.h"
#include "warden/warm/ns_pool.h"
#include "warden/warm/warm_policy.h"
#include "wire/box_socket.h"
#include "warden/core/reclaim.h"
#include "warden/core/id_slots.h"
#include "warden/warm/warm_box.h"
#include "warden/warm/zygote.h"
#include <stdio.h>

#define POOL_MEMORY_FLOOR 10                    /* percent of the host's memory that must stay available */
#define POOL_MEMORY_US    200000                /* for so long the answer is remembered */
#define PYTHON_BYTES      ((uint64_t)128 << 20) /* of a box that loads a Python of its own, before it was measured */

struct warm_pool {
  struct warden *warden;
  struct build *build;
  struct warm_box *ready;
  size_t n, coming;
  size_t missed;    /* creates under way that found nothing here */
  size_t more;      /* kept ready beside the usual number */
  int64_t burst_us; /* since when half of those go with each calm period */
  int64_t used_us;
  struct spare_clock spare;
  uint64_t box_bytes; /* memory that one of its boxes was last seen to hold, where each loads a Python of its own */
  bool unasked;       /* nobody has asked for a box of it yet: its zygote is loaded, no more */
  bool useless;       /* not needed for now */
};

struct warm_pools {
  struct map by_build;     /* build id -> struct warm_pool */
  struct warm_pool *spare; /* the one with spare boxes */
  int64_t asked_us;        /* when a box was last requested */
  uv_timer_t idler;
};

static struct warm_pools *pools_of(struct warden *w)
{
  if (!w->warm_pools) {
    w->warm_pools = xcalloc(1, sizeof(*w->warm_pools));
    uv_timer_init(w->loop, &w->warm_pools->idler);
    w->warm_pools->idler.data = w;
  }
  return w->warm_pools;
}

static void fill(struct warm_pool *s);

static uint64_t available_kb; /* when the memory was last looked at */

static bool memory_is_short_now(void)
{
  uint64_t total, available;
  if (host_memory(&total, &available))
    return false;
  available_kb = available >> 10;
  return available / 100 < total / 10000 * POOL_MEMORY_FLOOR;
}

/* Linux computes the answer at each reading, and there are a hundred launches a second. */
static bool memory_is_short(void)
{
  static int64_t asked_us;
  static bool is_short;
  int64_t now = clock_mono_us();
  if (!asked_us || now - asked_us > POOL_MEMORY_US) {
    is_short = memory_is_short_now();
    asked_us = now;
  }
  return is_short;
}

/* Half of the time since the last call, or since the one before when that was just now. */
static bool processors_idle(void)
{
  static uint64_t idle_then, all_then;
  static bool is_idle;
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  uint64_t idle = 0, all = 0, value;
  if (file_read("/proc/stat", &b))
    return true;
  struct str line, left, word;
  str_cut(buf_str(&b), '\n', &line, &left);
  str_cut(line, ' ', &word, &line);
  for (size_t i = 0; (line = str_trim(line)).n; i++) {
    str_cut(line, ' ', &word, &line);
    if (str_u64(word, &value))
      break;
    all += value;
    idle += i == 3 || i == 4 ? value : 0; /* idle, and waiting for a disk */
  }
  if (all - all_then < 4)
    return is_idle;
  is_idle = (idle - idle_then) * 2 >= all - all_then;
  idle_then = idle;
  all_then = all;
  return is_idle;
}

static struct warm_pool *warm_pool_of(struct warden *w, struct build *b)
{
  struct warm_pool *s = map_get(&pools_of(w)->by_build, str_of(b->row.id));
  if (!s) {
    s = xcalloc(1, sizeof(*s));
    s->warden = w;
    s->build = b;
    map_put(&pools_of(w)->by_build, str_of(b->row.id), s);
  }
  return s;
}

static void watch_closed(uv_handle_t *h)
{
  free(h);
}

static void unwatch(struct warm_box *p)
{
  if (p->watch) {
    uv_poll_stop(p->watch);
    uv_close((uv_handle_t *)steal(&p->watch), watch_closed);
  }
}

void warm_box_drop(struct warm_box *p)
{
  if (!p)
    return;
  unwatch(p);
  if (p->boot >= 0)
    box_socket_close(p->boot);
  reclaim_jail(p->warm_pool->warden, "", p->jail, p->name, p->dir, p->slot);
  free(p);
}

static void unlink_warm_box(struct warm_box *p)
{
  for (struct warm_box **at = &p->warm_pool->ready; *at; at = &(*at)->next)
    if (*at == p) {
      *at = p->next;
      p->warm_pool->n--;
      return;
    }
}

/* The agent of a warm box sends nothing: whatever is readable, its boot socket or its pidfd, is its end. */
static void warm_box_exited(uv_poll_t *poll, int status, int events)
{
  struct warm_box *p = poll->data;
  struct warm_pool *s = p->warm_pool;
  unlink_warm_box(p);
  log_warn("a warm box of %s exited", s->build->of->row.name);
  warm_box_drop(p);
  fill(s);
}

static void warm_box_ready(struct launch *h)
{
  struct warm_pool *s = h->warm_pool;
  struct warden *w = s->warden;
  s->coming--;
  w->launches--;
  if (h->result || w->stopping) {
    if (h->result)
      log_warn("no warm box created for %s: %s", s->build->of->row.name, h->err.msg);
    reclaim_jail(w, "", h->jail, h->name, h->dir, h->slot);
    return; /* the next use tries again */
  }
  struct warm_box *p = xcalloc(1, sizeof(*p));
  p->jail = h->jail;
  p->slot = h->slot;
  p->boot = steal_fd(&h->boot_fd);
  p->warm_pool = s;
  memcpy(p->name, h->name, sizeof(p->name));
  memcpy(p->dir, h->dir, sizeof(p->dir));
  p->watch = xcalloc(1, sizeof(*p->watch));
  uv_poll_init(w->loop, p->watch, p->boot >= 0 ? p->boot : p->jail.pidfd);
  p->watch->data = p;
  uv_poll_start(p->watch, UV_READABLE | (p->boot >= 0 ? UV_DISCONNECT : 0), warm_box_exited);
  /* The oldest is taken first: its Python has had the most time to settle. */
  struct warm_box **at = &s->ready;
  while (*at)
    at = &(*at)->next;
  *at = p;
  s->n++;
  fill(s);
}

static struct warm_build facts_of(struct warden *w, struct build *b)
{
  bool restored = b->row.checkpoint[0] && w->checkpoints_on;
  return (struct warm_build){.retired = b->retired,
                             .checkpoint = restored,
                             .alone = !restored && zygote_missing(w, b),
                             .plain = b->row.kind == BUILD_PLAIN};
}

static bool is_restored(const struct warm_pool *s)
{
  return facts_of(s->warden, s->build).checkpoint;
}

static bool loads_python(const struct warm_pool *s)
{
  return facts_of(s->warden, s->build).alone;
}

static bool holds_memory(const struct warm_pool *s)
{
  return is_restored(s) || loads_python(s);
}

/* Memory that has volumes mounted is restored with them when it is asked for: a box in advance would keep a volume from
 * being deleted that no sandbox mounts. */
static size_t usual(struct warden *w, struct build *b)
{
  if (facts_of(w, b).checkpoint && b->row.mounts && b->row.mounts[0])
    return 0;
  return warm_usual(facts_of(w, b), w->config->pool, w->config->ready_pool);
}

/* Where nobody has asked yet, one: the first to ask finds its Python loaded. */
static size_t wanted(const struct warm_pool *s)
{
  size_t n = warm_wanted(usual(s->warden, s->build), s->more);
  return s->unasked ? MIN(n, (size_t)1) : n;
}

static size_t expected(const struct warm_pool *s)
{
  const struct warden *w = s->warden;
  struct warm_spare spare = {.favoured = w->warm_pools->spare == s,
                             .idle_us = clock_mono_us() - s->used_us,
                             .available_kb = available_kb,
                             .percent = w->config->pool_spare,
                             .most = w->config->pool_crowd};
  return warm_expected(wanted(s), s->more, spare);
}

static struct warm_counts counts(const struct warm_pool *s)
{
  return (struct warm_counts){.ready = s->n, .coming = s->coming, .missed = s->missed};
}

static uint64_t bytes_of_one(const struct warm_pool *s)
{
  return is_restored(s) ? s->build->row.checkpoint_size : MAX(s->box_bytes, PYTHON_BYTES);
}

static uint64_t memory_held(struct warden *w)
{
  uint64_t bytes = 0;
  void *value;
  for (size_t i = 0; map_next(&pools_of(w)->by_build, &i, NULL, &value);) {
    const struct warm_pool *s = value;
    if ((s->n || s->coming) && holds_memory(s))
      bytes += (s->n + s->coming) * bytes_of_one(s);
  }
  return bytes;
}

static uint64_t memory_most(const struct warden *w)
{
  return (uint64_t)w->config->ready_pool_mb << 20;
}

static void drop_first(struct warm_pool *s)
{
  struct warm_box *p = s->ready;
  s->ready = p->next;
  s->n--;
  warm_box_drop(p);
}

struct holders {
  VEC(struct warm_holder) all;
  VEC(struct warm_pool *) pools;
};

/* A number for the team: that of its first pool here. */
static size_t team_number(const struct holders *h, const char *team)
{
  size_t i = 0;
  while (i < h->pools.n && strcmp(h->pools.p[i]->build->of->row.team, team) != 0)
    i++;
  return i;
}

static void find_holders(struct warden *w, struct holders *h)
{
  void *value;
  for (size_t i = 0; map_next(&pools_of(w)->by_build, &i, NULL, &value);) {
    struct warm_pool *s = value;
    if ((!s->n && !s->coming) || !holds_memory(s))
      continue;
    struct warm_holder one = {.team = team_number(h, s->build->of->row.team),
                              .used_us = s->used_us,
                              .ready = s->n,
                              .coming = s->coming,
                              .one = bytes_of_one(s)};
    vec_push(&h->all, one);
    vec_push(&h->pools, s);
  }
}

/* Ends ready boxes until `lacking` bytes are free, for a pool or (NULL) because all together hold too much; for a pool
 * none unless that is enough. */
static void make_room(struct warden *w, const struct warm_pool *s, uint64_t lacking)
{
  struct holders h = {0};
  find_holders(w, &h);
  struct warm_asker a = {.team = WARM_NOBODY, .most = memory_most(w), .lacking = lacking};
  if (s) {
    a.team = team_number(&h, s->build->of->row.team);
    a.used_us = s->used_us;
    a.one = bytes_of_one(s);
  }
  if (warm_make_room(h.all.p, h.all.n, &a) || !s)
    for (size_t i = 0; i < h.all.n; i++)
      for (size_t k = 0; k < h.all.p[i].give; k++)
        drop_first(h.pools.p[i]);
  vec_free(&h.all);
  vec_free(&h.pools);
}

static void evict_for(const struct warm_pool *s)
{
  uint64_t need = memory_held(s->warden) + bytes_of_one(s), most = memory_most(s->warden);
  if (need > most)
    make_room(s->warden, s, need - most);
}

/* What boxes hold is measured after they were made. */
static void evict_surplus(struct warden *w)
{
  uint64_t held = memory_held(w), most = memory_most(w);
  if (held > most)
    make_room(w, NULL, held - most);
}

static bool may_hold(const struct warm_pool *s)
{
  struct warden *w = s->warden;
  size_t waiting = is_restored(s) ? checkpoint_queue_waits(w) : 0;
  if (!warm_may_restore(s->coming, waiting, 0, bytes_of_one(s), memory_most(w)) || memory_is_short())
    return false;
  evict_for(s);
  return warm_may_restore(s->coming, waiting, memory_held(w), bytes_of_one(s), memory_most(w));
}

/* What a template's Python loads is the template's own business, up to the limit of its boxes. */
static void measure(struct warm_pool *s)
{
  struct jail_stats stats;
  const struct warm_box *p = s->ready; /* the oldest */
  if (p && loads_python(s) && !jail_stat(s->warden->instance, p->name, p->dir, &stats, NULL))
    s->box_bytes = stats.memory_used; /* the cache is not in it */
}

static void make_one(struct warm_pool *s, unsigned slot)
{
  struct warden *w = s->warden;
  s->coming++;
  w->launches++;
  (is_restored(s) ? launch_restore_warm : launch_warm)(w, s->build, s, slot, warm_box_ready);
}

static void on_idle_timer(uv_timer_t *t)
{
  struct warden *w = t->data;
  if (!w->stopping)
    warm_pool_maintain(w);
}

/* The pools are maintained again then, if not before. */
static void maintain_in(struct warden *w, int64_t wait_us)
{
  uint64_t ms = (uint64_t)wait_us / 1000 + 1;
  if (!uv_is_active((uv_handle_t *)&pools_of(w)->idler) || uv_timer_get_due_in(&pools_of(w)->idler) > ms)
    uv_timer_start(&pools_of(w)->idler, on_idle_timer, ms, 0);
}

static size_t pace(struct warm_pool *s, int64_t now)
{
  struct warden *w = s->warden;
  struct spare_load load = {.asked_us = pools_of(w)->asked_us,
                            .launches = w->launches,
                            .removals = w->removals,
                            .restores = checkpoint_queue_waits(w)};
  int64_t again_us;
  size_t n = spare_pace(&s->spare, load, s->coming, now, processors_idle, &again_us);
  if (again_us)
    maintain_in(w, again_us - now);
  return n;
}

static void fill_spare(struct warm_pool *s)
{
  struct warden *w = s->warden;
  int64_t now = clock_mono_us();
  if (s->n + s->coming < wanted(s) || s->n + s->coming >= expected(s))
    return;
  for (size_t most = pace(s, now); s->coming < most && s->n + s->coming < expected(s);) {
    unsigned slot;
    if (memory_is_short() || slot_take(w, &slot))
      return;
    s->spare.begun_us = now;
    make_one(s, slot);
  }
}

static void fill(struct warm_pool *s)
{
  struct warden *w = s->warden;
  bool alone = loads_python(s), holds = holds_memory(s);
  if (w->stopping || w->draining || !wanted(s) || s->missed > POOL_LAUNCHES)
    return;
  struct zygote *z = holds || !w->config->zygotes ? NULL : zygote_of(w, s->build);
  if ((s->unasked && !alone) ||
      (z && !zygote_ready(z) && zygote_hopeful(z))) /* worth waiting for: a cold Python per box is not */
    return;
  while (warm_launches(counts(s), wanted(s)) && (!holds || may_hold(s))) {
    unsigned slot;
    if (memory_is_short() || slot_take(w, &slot))
      return;
    make_one(s, slot);
  }
  fill_spare(s);
}

static void make_spare_pool(struct warm_pool *s)
{
  struct warden *w = s->warden;
  const struct warm_pool *old = pools_of(w)->spare;
  struct warm_build to = facts_of(w, s->build), from = old ? facts_of(w, old->build) : to;
  pools_of(w)->asked_us = s->used_us;
  if (spare_moves(to, old ? &from : NULL, old ? s->used_us - old->used_us : 0))
    pools_of(w)->spare = s;
}

struct warm_box *warm_pool_take(struct warden *w, struct build *b)
{
  if (!usual(w, b))
    return NULL;
  struct warm_pool *s = warm_pool_of(w, b);
  s->used_us = clock_mono_us();
  s->unasked = false;
  make_spare_pool(s);
  struct warm_box *p = s->ready;
  if (p) {
    s->ready = p->next;
    s->n--;
    unwatch(p);
  } else {
    s->missed++;
    if (!holds_memory(s) && warm_burst(s->missed, w->config->pool_crowd, &s->more))
      s->burst_us = s->used_us;
  }
  w->refill = true; /* after the answer is out */
  return p;
}

void warm_pool_miss_served(struct warden *w, struct build *b)
{
  struct warm_pool *s = map_get(&pools_of(w)->by_build, str_of(b->row.id));
  if (!s || !s->missed)
    return;
  s->missed--;
  w->refill = true;
}

static void calm_down(struct warm_pool *s)
{
  struct warden *w = s->warden;
  int64_t now = clock_mono_us(), calm_us = (int64_t)w->config->pool_calm_s * 1000000;
  size_t left = warm_calmed(s->more, now - s->burst_us, calm_us);
  if (left < s->more) {
    s->more = left;
    s->burst_us = now;
  }
  if (s->more)
    maintain_in(w, s->burst_us + calm_us - now);
  size_t surplus = warm_surplus(s->n, wanted(s), expected(s));
  for (size_t i = 0; i < MIN(surplus, (size_t)SPARE_DROPS); i++)
    drop_first(s);
  if (surplus > SPARE_DROPS)
    maintain_in(w, SPARE_LOOK_US);
}

void warm_pool_warm_up(struct warden *w, struct build *b)
{
  if (!usual(w, b))
    return;
  warm_pool_of(w, b)->used_us = clock_mono_us();
  fill(warm_pool_of(w, b));
}

void warm_pool_load(struct warden *w, struct build *b)
{
  if (!usual(w, b) || map_get(&pools_of(w)->by_build, str_of(b->row.id)))
    return;
  struct warm_pool *s = warm_pool_of(w, b);
  s->used_us = clock_mono_us();
  s->unasked = true;
  fill(s);
}

static void empty(struct warm_pool *s)
{
  while (s->ready)
    drop_first(s);
}

static bool useless(struct warm_pool *s)
{
  struct warden *w = s->warden;
  zygote_used(s->build, s->used_us);
  return warm_useless((struct warm_use){.retired = s->build->retired,
                                        .public = s->build->of->row.public,
                                        .stale = catalog_default(s->build->of) != s->build,
                                        .idle_us = clock_mono_us() - s->used_us,
                                        .newer = zygotes_newer(w, s->build),
                                        .newer_most = w->config->zygotes_max});
}

static int latest_first(const void *a, const void *b)
{
  const struct warm_pool *x = *(struct warm_pool *const *)a, *y = *(struct warm_pool *const *)b;
  return (x->used_us < y->used_us) - (x->used_us > y->used_us);
}

/* In the order of their last use, so that the latest gets its boxes first. */
static void fill_all(struct warden *w)
{
  VEC(struct warm_pool *) pools = {0};
  void *value;
  for (size_t i = 0; map_next(&pools_of(w)->by_build, &i, NULL, &value);)
    if (!((struct warm_pool *)value)->useless)
      vec_push(&pools, value);
  if (pools.n)
    qsort(pools.p, pools.n, sizeof(*pools.p), latest_first);
  for (size_t i = 0; i < pools.n; i++)
    fill(pools.p[i]);
  vec_free(&pools);
}

static int longest_unused_first(const void *a, const void *b)
{
  return latest_first(b, a);
}

/* One that nobody waits for and that has nothing is made anew when its template is used. A quarter goes at once. */
static void forget_pools(struct warden *w)
{
  struct warm_pools *all = pools_of(w);
  size_t most = w->config->warm_pools_max, keep = most - most / 4;
  VEC(struct warm_pool *) idle = {0};
  void *value;
  if (!most || all->by_build.n <= most)
    return;
  for (size_t i = 0; map_next(&all->by_build, &i, NULL, &value);) {
    struct warm_pool *s = value;
    if (s->useless && !s->n && !s->coming && !s->missed && s != all->spare)
      vec_push(&idle, s);
  }
  if (idle.n)
    qsort(idle.p, idle.n, sizeof(*idle.p), longest_unused_first);
  for (size_t i = 0; i < idle.n && all->by_build.n > keep; i++) {
    map_del(&all->by_build, str_of(idle.p[i]->build->row.id));
    free(idle.p[i]);
  }
  vec_free(&idle);
}

void warm_pool_maintain(struct warden *w)
{
  void *value;
  bool is_short = memory_is_short();
  for (size_t i = 0; map_next(&pools_of(w)->by_build, &i, NULL, &value);) {
    struct warm_pool *s = value;
    s->useless = useless(s);
    if (s->useless)
      zygote_spare(s->build, true);
  }
  for (size_t i = 0; map_next(&pools_of(w)->by_build, &i, NULL, &value);) {
    struct warm_pool *s = value;
    if (!s->useless)
      zygote_spare(s->build, false);
    calm_down(s);
    measure(s);
    if (is_short || s->useless)
      empty(s);
  }
  evict_surplus(w);
  if (!is_short)
    fill_all(w);
  zygotes_rest_spare(w);
  forget_pools(w);
  ns_pool_maintain(w, is_short);
}

void warm_pool_drain(struct warden *w)
{
  void *value;
  for (size_t i = 0; map_next(&pools_of(w)->by_build, &i, NULL, &value);)
    empty(value);
}

bool warm_pool_low(struct warden *w)
{
  void *value;
  for (size_t i = 0; map_next(&pools_of(w)->by_build, &i, NULL, &value);) {
    struct warm_pool *s = value;
    if (!s->unasked && !holds_memory(s) && warm_low(counts(s), wanted(s)) &&
        clock_mono_us() - s->used_us < POOL_COLD_US)
      return true;
  }
  return false;
}

size_t warm_pool_count(struct warden *w)
{
  size_t n = 0;
  void *value;
  for (size_t i = 0; map_next(&pools_of(w)->by_build, &i, NULL, &value);)
    n += ((struct warm_pool *)value)->n;
  return n;
}

bool warm_pool_stands_on(struct warden *w, const struct zygote *z)
{
  void *value;
  for (size_t i = 0; map_next(&pools_of(w)->by_build, &i, NULL, &value);) {
    const struct warm_pool *s = value;
    if (s->build->zygote == z && (s->n || s->coming))
      return true;
  }
  return false;
}
