/* SPDX-License-Identifier: Apache-2.0 */
/* audit_rate.c - see audit_rate.h. */
#include "gate/audit_rate.h"

#define TEAMS_MAX 10000 /* as many as a gate remembers keys of; beyond that all begin anew */

static void forget_all(struct audit_rates *a)
{
  void *value;
  for (size_t i = 0; map_next(&a->teams, &i, NULL, &value);)
    free(value);
  map_free(&a->teams);
}

static struct audit_rate *rate_of(struct audit_rates *a, struct str team)
{
  struct audit_rate *r = team.n ? map_get(&a->teams, team) : &a->nobody;
  if (r)
    return r;
  if (a->teams.n >= TEAMS_MAX)
    forget_all(a);
  r = xcalloc(1, sizeof(*r));
  map_put(&a->teams, team, r);
  return r;
}

bool audit_rates_take(struct audit_rates *a, struct str team, uint64_t now_ms, unsigned a_second)
{
  struct audit_rate *r = rate_of(a, team);
  bool room = bucket_take(&r->bucket, now_ms, a_second, a_second * AUDIT_BURST_S);
  r->left_out += !room;
  return room;
}

static bool told(struct audit_rate *r, struct str team, void (*fn)(struct str team, uint64_t n, void *arg), void *arg)
{
  uint64_t n = r->left_out;
  r->left_out = 0;
  if (n)
    fn(team, n, arg);
  return n;
}

void audit_rates_tell(struct audit_rates *a, uint64_t now_ms, void (*fn)(struct str team, uint64_t n, void *arg),
                      void *arg)
{
  struct map kept = {0};
  struct str team;
  void *value;
  told(&a->nobody, STR_NONE, fn, arg);
  for (size_t i = 0; map_next(&a->teams, &i, &team, &value);) {
    struct audit_rate *r = value;
    if (told(r, team, fn, arg) || now_ms - r->bucket.at < (uint64_t)AUDIT_BURST_S * 1000)
      map_put(&kept, team, r);
    else
      free(r);
  }
  map_free(&a->teams);
  a->teams = kept;
}
