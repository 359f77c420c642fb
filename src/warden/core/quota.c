/* SPDX-License-Identifier: Apache-2.0 */
/* quota.c - see quota.h. Rates are buckets: that of creates holds two seconds' worth. */
#include "warden/core/quota.h"

#include "warden/core/box_state.h"
#include "warden/core/warden_state.h"

#include <limits.h>
#include <sys/sysinfo.h>

#define CPUS_LEAST    2 /* templates that say nothing have so much: a small machine takes it, too */
#define MEMORY_LEAST  1024

#define CHANGES_PER_S 5 /* of a team's network lists: each is a call to nft on the loop that everyone waits for */
#define CHANGES_MOST  20
#define ENDS_PER_S    20 /* of a team's end times that are told as events; each is a transaction on the same loop */
#define ENDS_MOST     200

struct creates {
  double tokens;
  int64_t at_us; /* of the last look; 0 = never */
};

struct quota {
  size_t running;
  uint64_t memory_mb; /* of those, and of frozen ones */
  struct creates creates, changes, ends;
  struct quota_meter meter;
  bool metered; /* the last interval had something */
};

struct quotas {
  struct map teams; /* -> struct quota */
};

static struct map *quotas_of(struct warden *w)
{
  w->quotas = w->quotas ? w->quotas : xcalloc(1, sizeof(*w->quotas));
  return &w->quotas->teams;
}

static struct quota *quota_of(struct warden *w, struct str team)
{
  struct quota *a = map_get(quotas_of(w), team);
  if (!a) {
    a = xcalloc(1, sizeof(*a));
    map_put(quotas_of(w), team, a);
  }
  return a;
}

static unsigned limit(const struct row_team *t, uint32_t of_team, unsigned of_server)
{
  return t && of_team ? of_team : of_server;
}

unsigned quota_timeout_max(struct warden *w, struct str team)
{
  const struct row_team *t = catalog_team(w->catalog, team);
  return limit(t, t ? t->timeout_max_s : 0, w->config->timeout_max_s);
}

unsigned quota_boxes_max(struct warden *w, struct str team)
{
  const struct row_team *t = catalog_team(w->catalog, team);
  return limit(t, t ? t->boxes_max : 0, w->config->team_boxes_max);
}

size_t quota_running(struct warden *w, struct str team)
{
  struct quota *a = map_get(quotas_of(w), team);
  return a ? a->running : 0;
}

static uint64_t memory_of(const struct box *b, unsigned use)
{
  return use != QUOTA_NONE ? b->row.memory_mb : 0;
}

void quota_count(struct box *b, enum quota_use use)
{
  if (b->counted == use)
    return;
  struct quota *a = quota_of(b->warden, str_of(b->row.team));
  a->running += (size_t)(use == QUOTA_RUNNING) - (size_t)(b->counted == QUOTA_RUNNING);
  a->meter.peak = MAX(a->meter.peak, a->running);
  a->memory_mb += memory_of(b, use) - memory_of(b, b->counted);
  b->counted = use;
}

enum quota_use quota_paused(enum box_tier tier)
{
  return tier == TIER_FROZEN ? QUOTA_MEMORY : QUOTA_NONE;
}

unsigned quota_missing(const struct box *b)
{
  return b->counted == QUOTA_NONE ? b->row.memory_mb : 0;
}

void quota_started(struct box *b)
{
  quota_of(b->warden, str_of(b->row.team))->meter.starts++;
}

struct quota_meter quota_meter(struct warden *w, struct str team)
{
  struct quota *a = map_get(quotas_of(w), team);
  return a ? a->meter : (struct quota_meter){0};
}

void quota_meters_take(struct warden *w, void (*fn)(struct str team, const struct quota_meter *m, void *arg), void *arg)
{
  struct str team;
  void *value;
  for (size_t i = 0; map_next(quotas_of(w), &i, &team, &value);) {
    struct quota *a = value;
    bool some = a->meter.peak || a->meter.starts;
    if (some || a->metered)
      fn(team, &a->meter, arg);
    a->metered = some;
    a->meter = (struct quota_meter){.peak = a->running};
  }
}

/* Takes a token, or says how long until there is one. */
static int take_token(struct creates *a, unsigned per_second, double full, unsigned *retry_s)
{
  int64_t now = clock_mono_us();
  a->tokens = a->at_us ? MIN(full, a->tokens + (double)(now - a->at_us) * per_second / 1e6) : full;
  a->at_us = now;
  if (a->tokens >= 1) {
    a->tokens -= 1;
    return 0;
  }
  *retry_s = 1 + (unsigned)((1 - a->tokens) / per_second);
  return -EDQUOT;
}

int quota_pace(struct warden *w, struct str team, unsigned *retry_s, struct err *err)
{
  const struct row_team *t = catalog_team(w->catalog, team);
  unsigned rate = limit(t, t ? t->creates_per_s : 0, w->config->team_creates_per_s);
  if (rate && take_token(&quota_of(w, team)->creates, rate, 2.0 * rate, retry_s))
    return err_set(err, -EDQUOT, "your team may create %u sandboxes per second; try again in %u s", rate, *retry_s);
  return 0;
}

int quota_admit(struct warden *w, struct str team, unsigned memory_mb, bool create, unsigned *retry_s, struct err *err)
{
  const struct row_team *t = catalog_team(w->catalog, team);
  struct quota *a = quota_of(w, team);
  unsigned boxes = quota_boxes_max(w, team);
  if (boxes && a->running >= boxes)
    return err_set(
        err, -EAGAIN,
        "you have reached the maximum number of concurrent sandboxes (%u) of your team; kill or pause some first",
        boxes);
  unsigned total = limit(t, t ? t->memory_total_mb : 0, w->config->team_memory_mb);
  if (total && a->memory_mb + memory_mb > total)
    return err_set(
        err, -EAGAIN,
        "the sandboxes of your team that run or are frozen in memory have %llu MiB; %u more would exceed the %u MiB it "
        "may use",
        (unsigned long long)a->memory_mb, memory_mb, total);
  return create ? quota_pace(w, team, retry_s, err) : 0;
}

int quota_change(struct warden *w, struct str team, struct err *err)
{
  unsigned retry_s;
  if (take_token(&quota_of(w, team)->changes, CHANGES_PER_S, CHANGES_MOST, &retry_s))
    return err_set(err, -EDQUOT,
                   "your team may change the network of its sandboxes %d times per second; try again in %u s",
                   CHANGES_PER_S, retry_s);
  return 0;
}

bool quota_tells_end(struct warden *w, struct str team)
{
  unsigned retry_s;
  return !take_token(&quota_of(w, team)->ends, ENDS_PER_S, ENDS_MOST, &retry_s);
}

/* What the settings say; where they say nothing, what the machine has. */
static struct box_size largest(const struct warden *w)
{
  static struct box_size machine;
  struct sysinfo info;
  if (!machine.cpus && !sysinfo(&info))
    machine =
        (struct box_size){.cpus = MAX((unsigned)get_nprocs(), CPUS_LEAST),
                          .memory_mb = MAX((unsigned)((uint64_t)info.totalram * info.mem_unit >> 20), MEMORY_LEAST)};
  const struct warden_config *c = w->config;
  return (struct box_size){.cpus = c->box_cpus_max ? c->box_cpus_max : machine.cpus,
                           .memory_mb = c->box_memory_max_mb ? c->box_memory_max_mb : machine.memory_mb,
                           .disk_mb = c->box_disk_max_mb};
}

unsigned quota_disk_max(struct warden *w, struct str team)
{
  const struct row_team *t = catalog_team(w->catalog, team);
  unsigned server = largest(w).disk_mb, own = t ? t->disk_max_mb : 0;
  return MIN(server ? server : UINT_MAX, own ? own : UINT_MAX);
}

int quota_fits(struct warden *w, struct str team, struct box_size size, struct err *err)
{
  const struct row_team *t = catalog_team(w->catalog, team);
  struct box_size most = largest(w);
  const struct {
    const char *what;
    unsigned has, server, team;
  } sizes[] = {{"cpuCount", size.cpus, most.cpus, t ? t->cpus_max : 0},
               {"memoryMB", size.memory_mb, most.memory_mb, t ? t->memory_max_mb : 0},
               {"diskMB", size.disk_mb, most.disk_mb, t ? t->disk_max_mb : 0}};
  for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
    if (sizes[i].team && sizes[i].has > sizes[i].team)
      return err_set(err, -EINVAL, "%s %u: a sandbox of your team may have %u at most", sizes[i].what, sizes[i].has,
                     sizes[i].team);
    if (sizes[i].server && sizes[i].has > sizes[i].server)
      return err_set(err, -EINVAL, "%s %u: a sandbox on this server may have %u at most", sizes[i].what, sizes[i].has,
                     sizes[i].server);
  }
  return 0;
}

void quotas_free(struct warden *w)
{
  void *a;
  for (size_t i = 0; map_next(quotas_of(w), &i, NULL, &a);)
    free(a);
  map_free(quotas_of(w));
  free(steal(&w->quotas));
}
