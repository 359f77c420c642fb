/* SPDX-License-Identifier: Apache-2.0 */
/* pause.h - requests to pause, resume and connect to a box. What may be asked when is decided in pause_rules.h, the way
 * from state to state is transition.h. A kill waits for nothing. */
#ifndef CLOCHE_PAUSE_H
#define CLOCHE_PAUSE_H

#include "warden/box/box.h"

/* Both answer the request now or later. */
void box_pause(struct box *b, const struct pending_op *pending_op);
void box_connect(struct box *b, const struct pending_op *pending_op);
/* The box reached its timeout: it is paused or ends, as it was created to. */
void box_expire(struct box *b);
/* The machine needs its memory: a box is paused as its timeout would, now or when it was copied; one that can't be
 * ends. */
void box_relieve(struct box *b);
/* The host's disk is almost full, and a box that runs writes: it stops where it is, in memory. */
void box_stop_writing(struct box *b);
/* After a restart of the daemon: freezes or thaws the box as its row says. */
void box_sync_freezer(struct box *b);

#endif
