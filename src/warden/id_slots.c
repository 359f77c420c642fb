/* SPDX-License-Identifier: Apache-2.0 */
/* id_slots.c - see id_slots.h. */
#include "warden/id_slots.h"

int slot_take(struct warden *w, unsigned *slot)
{
  for (size_t i = 0; i < w->nslots / 64; i++) {
    if (w->slots[i] == UINT64_MAX)
      continue;
    unsigned bit = (unsigned)__builtin_ctzll(~w->slots[i]);
    w->slots[i] |= 1ull << bit;
    *slot = (unsigned)i * 64 + bit;
    return 0;
  }
  return -EAGAIN;
}

void slot_mark(struct warden *w, unsigned slot, bool used)
{
  if (slot >= w->nslots)
    return;
  uint64_t bit = 1ull << (slot % 64);
  w->slots[slot / 64] = used ? w->slots[slot / 64] | bit : w->slots[slot / 64] & ~bit;
}
