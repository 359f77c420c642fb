/* SPDX-License-Identifier: Apache-2.0 */
/* memory_rules.c - which box goes when memory runs out; see memory_guard.h. */
#include "warden/box/memory_guard.h"

static uint64_t team_total(const struct memory_user *users, size_t n, const char *team)
{
  uint64_t sum = 0;
  for (size_t i = 0; i < n; i++)
    if (!strcmp(users[i].team, team))
      sum += users[i].used;
  return sum;
}

static size_t largest(const struct memory_user *users, size_t n, bool keeps, const char *team)
{
  size_t best = n;
  for (size_t i = 0; i < n; i++)
    if (users[i].keeps == keeps && (!team || !strcmp(users[i].team, team)) &&
        (best == n || users[i].used > users[best].used))
      best = i;
  return best;
}

size_t memory_guard_choose(const struct memory_user *users, size_t n)
{
  size_t kept = largest(users, n, true, NULL), worst = n;
  uint64_t most = 0;
  if (kept < n)
    return kept;
  for (size_t i = 0; i < n; i++) {
    uint64_t sum = team_total(users, n, users[i].team);
    if (worst == n || sum > most)
      worst = i, most = sum;
  }
  return worst < n ? largest(users, n, false, users[worst].team) : n;
}
