/* SPDX-License-Identifier: Apache-2.0 */
/* id_slots.h - ranges of host ids: one per box or zygote, taken and given back. */
#ifndef CLOCHE_WARDEN_ID_SLOTS_H
#define CLOCHE_WARDEN_ID_SLOTS_H

#include "base/base.h"
#include <limits.h>

struct warden;

#define ID_SLOTS  32768 /* ranges of 65,536 ids each above the setting id_base */

#define SLOT_NONE UINT_MAX /* of what has none; marking it does nothing */

int slot_take(struct warden *w, unsigned *slot); /* -EAGAIN when all are in use */
void slot_mark(struct warden *w, unsigned slot, bool taken);
/* Something on a worker still writes for who has the slot: given back meanwhile, it is nobody's until the last hold
 * ends. */
void slot_hold(struct warden *w, unsigned slot);
void slot_let_go(struct warden *w, unsigned slot);

#endif
