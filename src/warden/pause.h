/* SPDX-License-Identifier: Apache-2.0 */
/* pause.h - what may be asked of a box asleep or awake. The ways between are transition.h's. What is asked while a box
 * changes its state waits and is answered by the state that follows. A kill waits for nothing. */
#ifndef CLOCHE_PAUSE_H
#define CLOCHE_PAUSE_H

#include "warden/box.h"

#define WAKE_LEAST_S 300u /* a box woken by traffic lives at least this long */

/* Both answer the wish now or later. */
void box_pause(struct box *b, const struct pending_op *pending_op);
void box_connect(struct box *b, const struct pending_op *pending_op);
/* Its time is up: sleeps or ends, as it was made to. */
void box_expire(struct box *b);
/* After a restart of the daemon the freezer is brought to what the store says. */
void box_sync_freezer(struct box *b);

#endif
