/* SPDX-License-Identifier: Apache-2.0 */
/* disk_rules.c - which boxes are frozen and which one goes when the disk ends; see disk_guard.h. */
#include "warden/box/disk_guard.h"

enum disk_step disk_guard_step(uint64_t free, uint64_t mark)
{
  if (free < mark / 4)
    return DISK_END;
  if (free < mark)
    return DISK_FREEZE;
  return free / 4 < mark ? DISK_NEAR : DISK_ENOUGH;
}

bool disk_guard_writes(const struct disk_user *u)
{
  return u->runs && !u->leaving && u->grew >= DISK_GROWTH_LEAST;
}

struct team_sum {
  uint64_t used;
  size_t end, largest; /* of what can still go; end: none */
  bool writes;
};

static struct team_sum sum_of(const struct disk_user *users, size_t n, size_t from)
{
  struct team_sum s = {.end = from};
  while (s.end < n && !strcmp(users[s.end].team, users[from].team))
    s.end++;
  s.largest = s.end;
  for (size_t i = from; i < s.end; i++) {
    s.used += users[i].used;
    s.writes |= disk_guard_writes(&users[i]);
    if (!users[i].leaving && (s.largest == s.end || users[i].used > users[s.largest].used))
      s.largest = i;
  }
  return s;
}

const char *disk_guard_writer(const struct disk_user *users, size_t n)
{
  const char *team = NULL;
  uint64_t most = 0;
  struct team_sum s;
  for (size_t i = 0; i < n; i = s.end) {
    s = sum_of(users, n, i);
    if (s.writes && (!team || s.used > most))
      team = users[i].team, most = s.used;
  }
  return team;
}

size_t disk_guard_largest(const struct disk_user *users, size_t n)
{
  size_t chosen = n;
  uint64_t most = 0;
  struct team_sum s;
  for (size_t i = 0; i < n; i = s.end) {
    s = sum_of(users, n, i);
    if (s.largest < s.end && users[s.largest].used && (chosen == n || s.used > most))
      chosen = s.largest, most = s.used;
  }
  return chosen;
}
