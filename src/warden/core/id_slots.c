/* SPDX-License-Identifier: Apache-2.0 */
/* id_slots.c - see id_slots.h. */
#include "warden/core/id_slots.h"

#include "warden/core/warden_state.h"

struct id_slots {
  uint64_t used[ID_SLOTS / 64]; /* bitmap */
};

static uint64_t *used_of(struct warden *w)
{
  w->slots = w->slots ? w->slots : xcalloc(1, sizeof(*w->slots));
  return w->slots->used;
}

int slot_take(struct warden *w, unsigned *slot)
{
  uint64_t *used = used_of(w);
  for (size_t i = 0; i < ID_SLOTS / 64; i++) {
    if (used[i] == UINT64_MAX)
      continue;
    unsigned bit = (unsigned)__builtin_ctzll(~used[i]);
    used[i] |= 1ull << bit;
    *slot = (unsigned)i * 64 + bit;
    return 0;
  }
  return -EAGAIN;
}

void slot_mark(struct warden *w, unsigned slot, bool taken)
{
  if (slot >= ID_SLOTS)
    return;
  uint64_t bit = 1ull << (slot % 64);
  uint64_t *word = &used_of(w)[slot / 64];
  *word = taken ? *word | bit : *word & ~bit;
}
