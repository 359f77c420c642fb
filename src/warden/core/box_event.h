/* SPDX-License-Identifier: Apache-2.0 */
/* box_event.h - changes of a box's row together with the event that tells of them (db/event.h), in one transaction.
 * Where a change is nobody's business, store_box_put alone writes the row. */
#ifndef CLOCHE_WARDEN_CORE_BOX_EVENT_H
#define CLOCHE_WARDEN_CORE_BOX_EVENT_H

#include "warden/db/event.h"

struct warden;

int box_put_created(struct warden *w, const struct row_box *row, struct err *err);
int box_put_resumed(struct warden *w, const struct row_box *row, struct err *err); /* also the first run of a fork */
int box_put_paused(struct warden *w, const struct row_box *row, struct err *err);  /* its end is the pause */
int box_put_network(struct warden *w, const struct row_box *row, struct err *err); /* its lists are new */
int box_put_end_time(struct warden *w, const struct row_box *row, int64_t end_us, struct err *err);
/* The row goes, its end and its event stay. Its run was over at its end time at the latest: of a paused box that is the
 * pause, of one that was lost while no server ran nobody knows better. */
int box_put_ended(struct warden *w, const struct row_box *row, const char *cause, struct err *err);
/* Alone, inside the transaction (store_begin) that keeps the copy. */
int box_tell_checkpointed(struct warden *w, const struct row_box *row, struct err *err);

#endif
