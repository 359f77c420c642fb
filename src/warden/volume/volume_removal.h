/* SPDX-License-Identifier: Apache-2.0 */
/* volume_removal.h - the files of deleted volumes, and what an earlier warden has left, are removed in the background.
 *
 * A tree may be as large as its team liked. So removals go in slices of time: after each the next one waits for its
 * turn again, teams by turns, and a small tree of one team is gone while ten large ones of another are still going. */
#ifndef CLOCHE_WARDEN_VOLUME_REMOVAL_H
#define CLOCHE_WARDEN_VOLUME_REMOVAL_H

#include "warden/core/context.h"
#include "warden/db/volume_store.h"

void volume_removal_start(struct warden *w, const struct row_volume *row); /* its row goes with its last file */
void volume_removal_sweep(struct warden *w);

#endif
