/* SPDX-License-Identifier: Apache-2.0 */
/* source_left.c - see source_left.h. */
#include "warden/build/source_left.h"

#include "warden/core/id_slots.h"
#include "warden/core/reclaim.h"

void source_reclaim(struct warden *w, const char *team, const struct source_left *left, unsigned slot)
{
  if (!left->n)
    slot_mark(w, slot, false);
  /* Of two with the same ids none gives them back: the next warden does, when it has swept both. */
  for (size_t i = 0; i < left->n; i++)
    reclaim_jail(w, team, JAIL_NONE, left->all[i].name, left->all[i].dir, left->n == 1 ? slot : SLOT_NONE);
}
