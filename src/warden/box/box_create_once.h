/* SPDX-License-Identifier: Apache-2.0 */
/* box_create_once.h - creates with an idempotency key: box_create_once itself is declared in box_create.h, this is how
 * a launch ends for its key. */
#ifndef CLOCHE_WARDEN_BOX_CREATE_ONCE_H
#define CLOCHE_WARDEN_BOX_CREATE_ONCE_H

#include "warden/core/box_state.h"

/* The launch of a box whose create has a key failed: its answer is kept, or the key is free again. */
void box_create_once_failed(const struct box *b, int status, const struct err *err);

void box_create_once_forget(struct warden *w); /* keys whose time is over */

#endif
