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

#endif
