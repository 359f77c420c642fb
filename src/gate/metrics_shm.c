/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_shm.c - see metrics_shm.h. */
#include "gate/metrics_shm.h"

/* Two gates that meet the same team for the first time at once may give it two numbers: tellers add up what has the
 * same id. */
size_t metrics_team(struct metrics_team *teams, size_t most, const char *id, bool claim)
{
  most = MIN(most, (size_t)METRICS_TEAMS);
  for (size_t i = 0; teams && i < most; i++) {
    uint32_t state = atomic_load_explicit(&teams[i].state, memory_order_acquire), expected = TEAM_FREE;
    if (state == TEAM_SET && !strncmp(teams[i].id, id, sizeof(teams[i].id)))
      return i;
    if (state != TEAM_FREE)
      continue;
    if (!claim)
      break;
    if (!atomic_compare_exchange_strong(&teams[i].state, &expected, TEAM_CLAIMED))
      continue;
    str_copyz(str_of(id), teams[i].id, sizeof(teams[i].id));
    atomic_store_explicit(&teams[i].state, TEAM_SET, memory_order_release);
    return i;
  }
  return METRICS_OTHER;
}

static void count_team(struct metrics_team_counts *t, const struct metrics_answer *a)
{
  bool good = a->status < 400;
  t->requests++;
  t->cells += a->cell && good;
  t->creates += a->class == CLASS_CREATE && good;
  t->creates_failed += a->class == CLASS_CREATE && !good;
  t->client_errors += a->status >= 400 && a->status < 500;
  t->server_errors += a->status >= 500;
}

void metrics_count(struct metrics_slot *f, const struct metrics_answer *a, size_t team)
{
  struct histogram *h = &f->latency[a->class];
  uint64_t us = a->took_us > 0 ? (uint64_t)a->took_us : 0;
  size_t i = 0;
  while (i < METRICS_BUCKETS && us > metric_ends_us[i])
    i++;
  h->buckets[i]++;
  h->sum_us += us;
  h->count++;
  if (a->status >= 100 && a->status < 600)
    f->requests[a->class][a->status / 100 - 1]++;
  if (a->trace)
    exemplar_put(&f->exemplars[a->class][i], a->trace, us);
  if (team <= METRICS_TEAMS)
    count_team(&f->teams[team], a);
}
