/* SPDX-License-Identifier: Apache-2.0 */
/* warm_policy.c - see warm_policy.h. */
#include "warden/warm/warm_policy.h"

#include "base/base.h"

/* ---- how many ---- */

size_t warm_usual(struct warm_build b, unsigned pool, unsigned ready_pool)
{
  if (b.retired || (b.checkpoint && !b.plain))
    return 0;
  return b.checkpoint ? ready_pool : b.alone ? MIN(ready_pool, pool) : pool;
}

size_t warm_wanted(size_t usual, size_t more)
{
  return usual ? usual + more : 0;
}

size_t warm_expected(size_t wanted, size_t more, struct warm_spare spare)
{
  if (!wanted || !spare.favoured || spare.idle_us > POOL_COLD_US)
    return wanted;
  size_t most = MIN((size_t)spare.most, (size_t)(spare.available_kb / 100 * spare.percent / SPARE_KB));
  return wanted + (most > more ? most - more : 0);
}

bool warm_burst(size_t missed, unsigned most, size_t *more)
{
  if (missed < *more)
    return false;
  *more = MIN(missed, (size_t)most);
  return true;
}

size_t warm_calmed(size_t more, int64_t calm_us, int64_t period_us)
{
  return calm_us >= period_us ? more / 2 : more;
}

size_t warm_surplus(size_t ready, size_t wanted, size_t expected)
{
  size_t most = expected > wanted ? expected + SPARE_SLACK : expected;
  return ready > most ? ready - most : 0;
}

/* ---- when ---- */

bool warm_useless(struct warm_use use)
{
  bool cold = use.idle_us > (use.stale ? POOL_STALE_US : POOL_COLD_US);
  bool common = use.public && !use.stale;
  return use.retired || (!common && (cold || use.newer >= use.newer_most));
}

size_t warm_launches(struct warm_counts c, size_t wanted)
{
  if (c.missed > POOL_LAUNCHES || c.coming >= POOL_LAUNCHES || c.ready + c.coming >= wanted)
    return 0;
  return MIN(wanted - c.ready - c.coming, POOL_LAUNCHES - c.coming);
}

bool warm_may_restore(size_t coming, size_t waiting, uint64_t held, uint64_t one, uint64_t most)
{
  return !waiting && !coming && held + one <= most;
}

/* The least recently used pool that still has a ready box to give, of a team or of any. */
static struct warm_holder *oldest(struct warm_holder *v, size_t n, size_t team, int64_t used_us)
{
  struct warm_holder *found = NULL;
  for (size_t i = 0; i < n; i++)
    if (v[i].ready > v[i].give && v[i].one && (team == WARM_NOBODY || v[i].team == team) && v[i].used_us < used_us &&
        (!found || v[i].used_us < found->used_us))
      found = &v[i];
  return found;
}

static uint64_t held_by(const struct warm_holder *v, size_t n, size_t team)
{
  uint64_t bytes = 0;
  for (size_t i = 0; i < n; i++)
    bytes += v[i].team == team ? (v[i].ready - v[i].give + v[i].coming) * v[i].one : 0;
  return bytes;
}

/* Of each team that holds something or asks. */
static uint64_t share_of(const struct warm_holder *v, size_t n, const struct warm_asker *a)
{
  size_t teams = a->team != WARM_NOBODY;
  for (size_t i = 0; i < n; i++) {
    bool first = v[i].team != a->team;
    for (size_t k = 0; first && k < i; k++)
      first = v[k].team != v[i].team;
    teams += first;
  }
  return a->most / MAX(teams, (size_t)1);
}

/* The team that holds the most, of those over their share with a box to give. */
static size_t greediest(struct warm_holder *v, size_t n, size_t but, uint64_t share)
{
  size_t team = WARM_NOBODY;
  uint64_t most = share;
  for (size_t i = 0; i < n; i++) {
    uint64_t held = held_by(v, n, v[i].team);
    if (v[i].team == but || held <= most || !oldest(v, n, v[i].team, INT64_MAX))
      continue;
    most = held;
    team = v[i].team;
  }
  return team;
}

static struct warm_holder *next_to_give(struct warm_holder *v, size_t n, const struct warm_asker *a, uint64_t share)
{
  bool nobody = a->team == WARM_NOBODY;
  if (nobody || held_by(v, n, a->team) + a->one <= share) {
    size_t team = greediest(v, n, a->team, share);
    if (team != WARM_NOBODY)
      return oldest(v, n, team, INT64_MAX);
  }
  return oldest(v, n, a->team, nobody ? INT64_MAX : a->used_us);
}

bool warm_make_room(struct warm_holder *v, size_t n, const struct warm_asker *a)
{
  uint64_t lacking = a->lacking, share = share_of(v, n, a);
  for (size_t i = 0; i < n; i++)
    v[i].give = 0;
  for (struct warm_holder *h; lacking && (h = next_to_give(v, n, a, share)); h->give++)
    lacking -= MIN(lacking, h->one);
  return !lacking;
}

bool warm_low(struct warm_counts c, size_t wanted)
{
  return 2 * (c.ready + c.coming) < wanted;
}

/* ---- spare boxes ---- */

size_t spare_pace(struct spare_clock *c, struct spare_load load, size_t coming, int64_t now,
                  bool (*processors_idle)(void), int64_t *again_us)
{
  bool quiet = !load.removals && !load.restores;
  *again_us = 0;
  if (now < load.asked_us + SPARE_CALM_US) {
    c->spree_us = 0;
    *again_us = load.asked_us + SPARE_CALM_US;
    return 0;
  }
  if (now < c->spree_us && load.launches == coming && quiet)
    return POOL_LAUNCHES;
  if (now >= c->look_us) {
    c->look_us = now + SPARE_LOOK_US;
    if (processors_idle() && !load.launches && quiet)
      c->spree_us = now + SPARE_SPREE_US;
  }
  *again_us = now + SPARE_LOOK_US;
  if (now < c->spree_us)
    return POOL_LAUNCHES;
  return !load.launches && now - c->begun_us > SPARE_BUSY_US ? 1 : 0;
}

bool spare_moves(struct warm_build to, const struct warm_build *from, int64_t from_idle_us)
{
  return !to.checkpoint && !to.alone && (!from || from->retired || from_idle_us > SPARE_KEEP_US);
}
