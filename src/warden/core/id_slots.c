/* SPDX-License-Identifier: Apache-2.0 */
/* id_slots.c - see id_slots.h. */
#include "warden/core/id_slots.h"

#include "warden/core/warden_state.h"

struct held_slot {
  unsigned slot, holds;
  bool given_back;
};

struct id_slots {
  uint64_t used[ID_SLOTS / 64]; /* bitmap */
  VEC(struct held_slot) held;   /* few at a time */
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

static struct held_slot *find_held(struct warden *w, unsigned slot)
{
  used_of(w);
  for (size_t i = 0; i < w->slots->held.n; i++)
    if (w->slots->held.p[i].slot == slot)
      return &w->slots->held.p[i];
  return NULL;
}

void slot_hold(struct warden *w, unsigned slot)
{
  struct held_slot *h = find_held(w, slot);
  if (h)
    h->holds++;
  else
    vec_push(&w->slots->held, ((struct held_slot){slot, 1, false}));
}

void slot_let_go(struct warden *w, unsigned slot)
{
  struct held_slot *h = find_held(w, slot);
  if (!h || --h->holds)
    return;
  bool given_back = h->given_back;
  *h = w->slots->held.p[--w->slots->held.n];
  if (given_back)
    slot_mark(w, slot, false);
}

void slot_mark(struct warden *w, unsigned slot, bool taken)
{
  struct held_slot *h = find_held(w, slot);
  if (slot >= ID_SLOTS)
    return;
  if (h && !taken) {
    h->given_back = true;
    return;
  }
  uint64_t bit = 1ull << (slot % 64);
  uint64_t *word = &used_of(w)[slot / 64];
  *word = taken ? *word | bit : *word & ~bit;
}
