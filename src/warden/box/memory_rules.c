/* SPDX-License-Identifier: Apache-2.0 */
/* memory_rules.c - who is refused and which box goes when memory runs out; see memory_guard.h. */
#include "warden/box/memory_guard.h"

#define KEPT_PART 8 /* of the largest box of its team: one that holds less is not worth waiting for */

static size_t team_end(const struct memory_user *users, size_t n, size_t from)
{
  size_t i = from;
  while (i < n && !strcmp(users[i].team, users[from].team))
    i++;
  return i;
}

static size_t largest(const struct memory_user *users, size_t from, size_t end, bool kept)
{
  size_t best = end;
  for (size_t i = from; i < end; i++)
    if (!users[i].leaving && (!kept || users[i].keeps) && (best == end || users[i].used > users[best].used))
      best = i;
  return best;
}

static size_t choose_in(const struct memory_user *users, size_t from, size_t end)
{
  size_t kept = largest(users, from, end, true), any = largest(users, from, end, false);
  return kept < end && users[kept].used >= users[any].used / KEPT_PART ? kept : any;
}

size_t memory_guard_choose(const struct memory_user *users, size_t n)
{
  size_t chosen = n;
  uint64_t most = 0;
  for (size_t i = 0, end; i < n; i = end) {
    end = team_end(users, n, i);
    uint64_t sum = 0;
    for (size_t j = i; j < end; j++)
      sum += users[j].used;
    size_t at = choose_in(users, i, end);
    if (at < end && (chosen == n || sum > most))
      chosen = at, most = sum;
  }
  return chosen;
}

bool memory_guard_keeps(enum box_state state, unsigned flags, bool checkpoints_on)
{
  bool leaves_memory = !(flags & BOX_MICROVM) && (checkpoints_on || (flags & BOX_AUTO_COLD));
  bool may_pause = state == BOX_RUNNING || state == BOX_COPYING;
  return state == BOX_PAUSING || (may_pause && (flags & BOX_AUTO_PAUSE) && leaves_memory);
}

enum relief_verdict memory_guard_relief(bool waited_for, bool resident, int64_t since_us)
{
  if (waited_for && resident)
    return since_us < MEMORY_RELIEF_US ? RELIEF_WAIT : RELIEF_END;
  return since_us < MEMORY_SETTLE_US ? RELIEF_WAIT : RELIEF_CHOOSE;
}

bool memory_guard_refuses(const struct memory_left *left, uint64_t own, uint64_t all, size_t teams)
{
  uint64_t low = (uint64_t)left->low_mb << 20, kill = (uint64_t)left->kill_mb << 20;
  if (left->available >= low)
    return false;
  return left->available < (kill ? kill : low / 2) || (own && own >= all / teams);
}
