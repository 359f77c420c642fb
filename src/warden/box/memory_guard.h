/* SPDX-License-Identifier: Apache-2.0 */
/* memory_guard.h - what happens when the machine runs out of memory, before the kernel decides it.
 *
 * Below memory_low_mb of available memory no box is created. Below memory_kill_mb boxes go, one at a time, until there
 * is more again: first those that are paused at their timeout anyway, the largest first, which lose nothing; then, of
 * the team whose boxes use the most together, the box that uses the most. It is told so in the cause of its end. So a
 * team that fills the machine pays for it with its own boxes. */
#ifndef CLOCHE_WARDEN_MEMORY_GUARD_H
#define CLOCHE_WARDEN_MEMORY_GUARD_H

#include "base/base.h"

struct warden;

void memory_guard_start(struct warden *w); /* looks once a second from now on */
/* -ENOBUFS: there is too little memory for another box. */
int memory_guard_admit(const struct warden *w, struct err *err);

/* Pure: the place of the one that goes; n when none can. */
struct memory_user {
  const char *team;
  uint64_t used;
  bool keeps; /* it is paused, not ended */
};
size_t memory_guard_choose(const struct memory_user *users, size_t n);

#endif
