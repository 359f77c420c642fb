/* SPDX-License-Identifier: Apache-2.0 */
/* warm_pool.c - see warm_pool.h. At most two launches for the pool at a time, and none while a crowd of creates that
 * found it empty is being born: they do not wait behind it.
 *
 * How many are kept ready follows what was asked: creates that find nothing are counted while they are under way, and
 * as many as were under way at once are kept ready beside the usual number from then on, so that a crowd that comes
 * again finds its boxes. With every calm minute half of them go.
 *
 * The build asked for last has spare ones beside, as far as a small part of the memory at hand goes, so that a first
 * crowd finds its boxes too. They are made while nobody asks for anything and the processors rest. */
#include "warden/warm/warm_pool.h"

#include "warden/launch.h"
#include "warden/warm/ns_pool.h"
#include "wire/box_socket.h"
#include "warden/reclaim.h"
#include "warden/id_slots.h"
#include "warden/warm/zygote.h"
#include <stdio.h>

#define POOL_BIRTHS       2
#define POOL_MEMORY_FLOOR 10 /* percent of the host's memory that must stay available */
#define POOL_MEMORY_US    200000
#define SPARE_KB          3072     /* of a warm box */
#define SPARE_CALM_US     400000   /* nobody has asked for a box for so long */
#define SPARE_LOOK_US     150000   /* between two looks at the processors */
#define SPARE_SPREE_US    2000000  /* made so long at full speed once these rest: their own work would hide it */
#define SPARE_BUSY_US     3000000  /* between two of them while the processors have other work */
#define SPARE_DROPS       8        /* that go at a time */
#define FAVOUR_US         60000000 /* another build takes the spare boxes' place when theirs was not asked for so long */

struct warm_pool {
  struct warden *warden;
  struct build *build;
  struct warm_box *ready;
  size_t n, coming;
  size_t missed; /* creates under way that found nothing here */
  size_t more;   /* kept ready beside the usual number */
  int64_t crowd_us;
  int64_t used_us;
  int64_t spared_us; /* when the last spare one was begun */
  int64_t look_us;   /* when the processors are looked at again for them */
  int64_t spree_us;  /* until when they need not be */
  bool bare;         /* nobody has asked for a box of it yet: its Python is loaded, no more */
  bool rests;        /* nobody needs it for now */
};

static void fill(struct warm_pool *s);

static uint64_t memory_kb; /* at hand, when it was last looked at */

static bool memory_is_short_now(void)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  uint64_t total = 0, available = 0;
  if (file_read("/proc/meminfo", &b))
    return false;
  struct str rest = buf_str(&b), line, name, value;
  while (rest.n) {
    str_cut(rest, '\n', &line, &rest);
    str_cut(line, ':', &name, &value);
    value = str_trim(value);
    str_cut(value, ' ', &value, &line);
    if (str_is(name, "MemTotal"))
      str_u64(value, &total);
    else if (str_is(name, "MemAvailable"))
      str_u64(value, &available);
  }
  memory_kb = available;
  return available * 100 < total * POOL_MEMORY_FLOOR;
}

/* The kernel adds the answer up anew at each reading; launches come a hundred a second. */
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

/* Since the last look, or since the one before when that was just now. */
static bool processors_rest(void)
{
  static uint64_t idle_then, all_then;
  static bool rest;
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
    return rest;
  rest = (idle - idle_then) * 2 >= all - all_then;
  idle_then = idle;
  all_then = all;
  return rest;
}

static struct warm_pool *warm_pool_of(struct warden *w, struct build *b)
{
  struct warm_pool *s = map_get(&w->warm_pools, str_of(b->row.id));
  if (!s) {
    s = xcalloc(1, sizeof(*s));
    s->warden = w;
    s->build = b;
    map_put(&w->warm_pools, str_of(b->row.id), s);
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

/* A parked agent says nothing: whatever is heard, on its line or from its first process, is its end. */
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

/* Its boxes begin with a checkpoint. */
static bool holds_memory(const struct warden *w, const struct build *b)
{
  return b->row.checkpoint[0] && w->checkpoints_on;
}

/* Boxes of a build that are kept ready. What was copied of a single box is seldom asked for twice. */
static size_t usual(const struct warden *w, const struct build *b)
{
  if (b->retired || (holds_memory(w, b) && b->row.kind != BUILD_PLAIN))
    return 0;
  return holds_memory(w, b) ? w->config->ready_pool : w->config->pool;
}

static size_t wanted(const struct warm_pool *s)
{
  size_t n = usual(s->warden, s->build);
  return n ? n + s->more : 0;
}

/* Those with its spare ones. */
static size_t expected(const struct warm_pool *s)
{
  const struct warden *w = s->warden;
  size_t n = wanted(s);
  if (!n || w->spare_pool != s || clock_mono_us() - s->used_us > POOL_COLD_US)
    return n;
  size_t most = MIN((size_t)w->config->pool_crowd, (size_t)(memory_kb / 100 * w->config->pool_spare / SPARE_KB));
  return n + (most > s->more ? most - s->more : 0);
}

static uint64_t memory_held(struct warden *w)
{
  uint64_t bytes = 0;
  void *value;
  for (size_t i = 0; map_next(&w->warm_pools, &i, NULL, &value);) {
    const struct warm_pool *s = value;
    if (holds_memory(w, s->build))
      bytes += (s->n + s->coming) * s->build->row.checkpoint_size;
  }
  return bytes;
}

/* Restores take turns with those somebody waits for: none is made while another waits for its turn. */
static bool may_restore(const struct warm_pool *s)
{
  struct warden *w = s->warden;
  uint64_t most = (uint64_t)w->config->ready_pool_mb << 20;
  return !w->checkpoints.waiting && !s->coming && memory_held(w) + s->build->row.checkpoint_size <= most;
}

static void make_one(struct warm_pool *s, unsigned slot)
{
  struct warden *w = s->warden;
  s->coming++;
  w->launches++;
  (holds_memory(w, s->build) ? launch_restore_warm : launch_warm)(w, s->build, s, slot, warm_box_ready);
}

static void on_idle_timer(uv_timer_t *t)
{
  struct warden *w = t->data;
  if (!w->stopping)
    warm_pool_maintain(w);
}

/* The shelves are looked after again then, if not before. */
static void fill_when_idle(struct warden *w, int64_t wait_us)
{
  uint64_t ms = (uint64_t)wait_us / 1000 + 1;
  if (!uv_is_active((uv_handle_t *)&w->idler) || uv_timer_get_due_in(&w->idler) > ms)
    uv_timer_start(&w->idler, on_idle_timer, ms, 0);
}

/* How many spare ones may be under way. */
static size_t spare_pace(struct warm_pool *s, int64_t now)
{
  struct warden *w = s->warden;
  if (now < w->asked_us + SPARE_CALM_US) {
    s->spree_us = 0;
    fill_when_idle(w, w->asked_us + SPARE_CALM_US - now);
    return 0;
  }
  if (now < s->spree_us && w->launches == s->coming && !w->removals && !w->checkpoints.waiting)
    return POOL_BIRTHS;
  if (now >= s->look_us) {
    s->look_us = now + SPARE_LOOK_US;
    if (processors_rest() && !w->launches && !w->removals && !w->checkpoints.waiting)
      s->spree_us = now + SPARE_SPREE_US;
  }
  fill_when_idle(w, SPARE_LOOK_US);
  return now < s->spree_us ? POOL_BIRTHS : !w->launches && now - s->spared_us > SPARE_BUSY_US ? 1 : 0;
}

static void fill_spare(struct warm_pool *s)
{
  struct warden *w = s->warden;
  int64_t now = clock_mono_us();
  if (s->n + s->coming < wanted(s) || s->n + s->coming >= expected(s))
    return;
  for (size_t pace = spare_pace(s, now); s->coming < pace && s->n + s->coming < expected(s);) {
    unsigned slot;
    if (memory_is_short() || slot_take(w, &slot))
      return;
    s->spared_us = now;
    make_one(s, slot);
  }
}

static void fill(struct warm_pool *s)
{
  struct warden *w = s->warden;
  bool restored = holds_memory(w, s->build);
  if (w->stopping || !wanted(s) || s->missed > POOL_BIRTHS)
    return;
  struct zygote *z = restored || !w->config->zygotes ? NULL : zygote_of(w, s->build);
  if (s->bare || (z && !zygote_ready(z) && zygote_hopeful(z))) /* worth waiting for: a cold Python per box is not */
    return;
  while (s->n + s->coming < wanted(s) && s->coming < POOL_BIRTHS && (!restored || may_restore(s))) {
    unsigned slot;
    if (memory_is_short() || slot_take(w, &slot))
      return;
    make_one(s, slot);
  }
  fill_spare(s);
}

/* The spare boxes are those of one build, and do not change with every question where several are asked for by turns.
 */
static void make_spare_pool(struct warm_pool *s)
{
  struct warden *w = s->warden;
  struct warm_pool *old = w->spare_pool;
  w->asked_us = s->used_us;
  if (!holds_memory(w, s->build) && (!old || old->build->retired || s->used_us - old->used_us > FAVOUR_US))
    w->spare_pool = s;
}

struct warm_box *warm_pool_take(struct warden *w, struct build *b)
{
  if (!usual(w, b))
    return NULL;
  struct warm_pool *s = warm_pool_of(w, b);
  s->used_us = clock_mono_us();
  s->bare = false;
  make_spare_pool(s);
  struct warm_box *p = s->ready;
  if (p) {
    s->ready = p->next;
    s->n--;
    unwatch(p);
  } else {
    s->missed++;
    if (s->missed >= s->more && !holds_memory(w, b)) {
      s->more = MIN(s->missed, (size_t)w->config->pool_crowd);
      s->crowd_us = s->used_us;
    }
  }
  w->refill = true; /* after the answer is out */
  return p;
}

void warm_pool_miss_served(struct warden *w, struct build *b)
{
  struct warm_pool *s = map_get(&w->warm_pools, str_of(b->row.id));
  if (!s || !s->missed)
    return;
  s->missed--;
  w->refill = true;
}

static void drop_first(struct warm_pool *s)
{
  struct warm_box *p = s->ready;
  s->ready = p->next;
  s->n--;
  warm_box_drop(p);
}

/* Memory at hand moves by the boxes themselves: one or two more than hoped for are not worth their end. */
static void calm_down(struct warm_pool *s)
{
  struct warden *w = s->warden;
  int64_t now = clock_mono_us(), calm_us = (int64_t)w->config->pool_calm_s * 1000000;
  if (s->more && now - s->crowd_us >= calm_us) {
    s->more /= 2;
    s->crowd_us = now;
  }
  if (s->more)
    fill_when_idle(w, s->crowd_us + calm_us - now);
  size_t most = expected(s) > wanted(s) ? expected(s) + 2 : expected(s);
  for (unsigned i = 0; i < SPARE_DROPS && s->n > most; i++)
    drop_first(s);
  if (s->n > most)
    fill_when_idle(w, SPARE_LOOK_US);
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
  if (!usual(w, b) || map_get(&w->warm_pools, str_of(b->row.id)))
    return;
  struct warm_pool *s = warm_pool_of(w, b);
  s->used_us = clock_mono_us();
  s->bare = true;
  fill(s);
}

static void empty(struct warm_pool *s)
{
  while (s->ready)
    drop_first(s);
}

/* Nobody used it for a while, or its template is gone, or too many others with Pythons of their own were used since. */
static bool useless(struct warm_pool *s)
{
  struct warden *w = s->warden;
  bool stale = catalog_default(s->build->of) != s->build;
  bool cold = clock_mono_us() - s->used_us > (stale ? POOL_STALE_US : POOL_COLD_US);
  bool common = !stale && s->build->of->row.public;
  zygote_used(s->build, s->used_us);
  return s->build->retired || (!common && (cold || zygotes_newer(w, s->build) >= w->config->zygotes_max));
}

void warm_pool_maintain(struct warden *w)
{
  void *value;
  bool is_short = memory_is_short();
  for (size_t i = 0; map_next(&w->warm_pools, &i, NULL, &value);) {
    struct warm_pool *s = value;
    s->rests = useless(s);
    if (s->rests)
      zygote_spare(s->build, true);
  }
  for (size_t i = 0; map_next(&w->warm_pools, &i, NULL, &value);) {
    struct warm_pool *s = value;
    if (!s->rests)
      zygote_spare(s->build, false);
    calm_down(s);
    if (is_short || s->rests)
      empty(s);
    else
      fill(s);
  }
  zygotes_rest_spare(w);
  ns_pool_maintain(w, is_short);
}

void warm_pool_drain(struct warden *w)
{
  void *value;
  for (size_t i = 0; map_next(&w->warm_pools, &i, NULL, &value);)
    empty(value);
}

bool warm_pool_low(struct warden *w)
{
  void *value;
  for (size_t i = 0; map_next(&w->warm_pools, &i, NULL, &value);) {
    struct warm_pool *s = value;
    if (!s->bare && !holds_memory(w, s->build) && 2 * (s->n + s->coming) < wanted(s) &&
        clock_mono_us() - s->used_us < POOL_COLD_US)
      return true;
  }
  return false;
}

size_t warm_pool_count(struct warden *w)
{
  size_t n = 0;
  void *value;
  for (size_t i = 0; map_next(&w->warm_pools, &i, NULL, &value);)
    n += ((struct warm_pool *)value)->n;
  return n;
}

bool warm_pool_stands_on(struct warden *w, const struct zygote *z)
{
  void *value;
  for (size_t i = 0; map_next(&w->warm_pools, &i, NULL, &value);) {
    const struct warm_pool *s = value;
    if (s->build->zygote == z && (s->n || s->coming))
      return true;
  }
  return false;
}
