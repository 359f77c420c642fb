/* SPDX-License-Identifier: Apache-2.0 */
/* memory_guard.h - what happens when the machine runs out of memory, before the kernel decides it.
 *
 * A team that fills the machine pays for it with its own boxes. Everything that is in memory counts for its team: boxes
 * that run, that are frozen, and that are on their way to or from the disk, as their control groups say at that moment.
 *
 * Below memory_low_mb of available memory a team that uses its share (what boxes use, divided by the teams that have
 * some) gets no further box and wakes none; below memory_kill_mb no team does. Below memory_kill_mb boxes go, one at a
 * time, until there is more again, of the team whose boxes use the most together: a box that loses nothing, because it
 * is paused at its timeout anyway, and otherwise the one that uses the most, which is told so in the cause of its end.
 * A pause that frees no memory - it fails, or is not over in time - ends its box; no other team's goes instead. */
#ifndef CLOCHE_WARDEN_MEMORY_GUARD_H
#define CLOCHE_WARDEN_MEMORY_GUARD_H

#include "wire/wire.h"

#define MEMORY_SETTLE_US 5000000  /* what went needs a moment until its memory is free */
#define MEMORY_RELIEF_US 30000000 /* a pause that frees memory may take so long */

struct warden;

void memory_guard_start(struct warden *w); /* looks once a second from now on */
/* -ENOBUFS: there is too little memory for another box of this team, new or resumed. */
int memory_guard_admit(const struct warden *w, struct str team, struct err *err);
bool memory_guard_short(const struct warden *w); /* below memory_kill_mb at the last look */

/* ---- pure ---- */

struct memory_user {
  const char *team;
  uint64_t used;
  bool keeps;   /* it is paused, not ended */
  bool leaving; /* its end is decided: it counts, and can't go again */
};
/* The place of the one that goes; n when none can. Those of one team stand together. */
size_t memory_guard_choose(const struct memory_user *users, size_t n);
/* A pause of such a box leaves nothing in memory, and nothing is lost by it. flags: BOX_* */
bool memory_guard_keeps(enum box_state state, unsigned flags, bool checkpoints_on);

enum relief_verdict { RELIEF_WAIT, RELIEF_END /* the box that is waited for */, RELIEF_CHOOSE };
/* since_us: the last box was chosen. waited_for: it was to be paused; resident: it is in memory yet. */
enum relief_verdict memory_guard_relief(bool waited_for, bool resident, int64_t since_us);

struct memory_left {
  uint64_t available;       /* bytes */
  unsigned low_mb, kill_mb; /* the settings */
};
/* own, all: bytes that boxes of the team and of all `teams` use. Without memory_kill_mb nobody gets a box below half of
 * memory_low_mb. */
bool memory_guard_refuses(const struct memory_left *left, uint64_t own, uint64_t all, size_t teams);

#endif
