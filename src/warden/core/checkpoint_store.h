/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_store.h - memory on disk, under <data>/checkpoints: where a checkpoint is, when it is removed, and whether
 * this host can make any. A checkpoint belongs to the row of a box or of a build that names it; what no row names is
 * swept at start. Names of boxes' checkpoints are the name that the box has on the host, a dash and a random word:
 * never its id. */
#ifndef CLOCHE_WARDEN_CHECKPOINT_STORE_H
#define CLOCHE_WARDEN_CHECKPOINT_STORE_H

#include "base/base.h"
#include "jail/checkpoint/checkpoint.h"
#include "wire/sizes.h"

struct warden;

/* At start. Sets w->checkpoints_on when a real dump and restore worked; else says why not, once, and paused boxes
 * stay frozen in memory. */
void checkpoints_open(struct warden *w);
void checkpoints_limit(struct warden *w); /* takes the limits from the config, again after they changed */
/* After boxes and builds are known. */
void checkpoints_sweep(struct warden *w);
void layers_sweep(struct warden *w); /* copies of boxes that no build names, and half ones */
struct box;
void checkpoint_name(const struct box *b, char out[CHECKPOINT_NAME_SIZE]); /* for a new one */
void checkpoint_path(const struct warden *w, const char *name, char out[DATA_PATH_SIZE]);
/* jail_dump, on a worker. A fork of the zygote that enters the box as a kernel speaks with the agent through a socket
 * of the host until it has taken over, and no box can be dumped with that: then it is tried again for a few seconds. */
int checkpoint_dump(const struct jail_criu *criu, const struct jail_spec *spec, const struct jail *j, const char *path,
                    struct err *err);
void checkpoint_drop(struct warden *w,
                     const char *name); /* on a worker, unless a build still names it; "" = nothing to do */
void layer_drop(struct warden *w, const char *path); /* the same for a layer directory that no build names any more */

bool checkpoints_enabled(const struct warden *w);
const char *checkpoints_disabled_why(const struct warden *w);
const struct jail_criu *checkpoint_criu(const struct warden *w);
const char *checkpoint_heaps(struct warden *w); /* directory of the memory that zygotes share with their forks */
void checkpoints_clear_heaps(struct warden *w); /* once an hour: memory of zygotes that no checkpoint needs any more */

#endif
