/* SPDX-License-Identifier: Apache-2.0 */
/* volumes.h - the life of a volume: created, found, deleted.
 *
 * Start here in this folder. A volume is a row (db/volume_store.h) and a directory tree that boxes write to. It
 * promises that the tree is there while the row says ready, that a crash in between is finished at the next start, and
 * that the warden itself never walks the tree. */
#ifndef CLOCHE_WARDEN_VOLUME_VOLUMES_H
#define CLOCHE_WARDEN_VOLUME_VOLUMES_H

#include "jail/fs/volume_backing.h"
#include "warden/core/reply.h"
#include "warden/db/volume_store.h"

void volumes_open(struct warden *w); /* finishes what an earlier warden began */

/* The team's own, ready; -ENOENT. */
int volumes_find(struct warden *w, struct str team, struct str id, struct row_volume *out);
/* Both answer the request themselves, later. A create that was asked before is answered again. */
void volumes_create(struct warden *w, struct origin origin, struct row_volume *row);
void volumes_remove(struct warden *w, struct origin origin, struct row_volume *row);
/* A descriptor of the root of its tree, for root. Answers, later. */
void volumes_hand_out(struct warden *w, struct origin origin, const struct row_volume *row);
void volumes_measure(struct warden *w, struct origin origin, const struct row_volume *row); /* answers, later */
/* Fields of an answer; the token only where it is asked for. */
void volumes_put(struct buf *b, const struct warden *w, const struct row_volume *r, bool token);

#endif
