/* SPDX-License-Identifier: Apache-2.0 */
/* volume_mounts.h - which volumes a box has, and where.
 *
 * In a row they are lines "id TAB name TAB path": the name is what clients said, the id is what is mounted. A gate
 * sends "name TAB path". Names are looked up in the team of the box only. A volume is in use by a box from its create
 * to its end, also while it is paused; a snapshot keeps the lines but not the volume: it can be deleted, and then no
 * box can be made of the snapshot. */
#ifndef CLOCHE_WARDEN_CORE_VOLUME_MOUNTS_H
#define CLOCHE_WARDEN_CORE_VOLUME_MOUNTS_H

#include "jail/jail.h"
#include "warden/core/box_state.h"

#define VOLUME_MOUNTS_BYTES (JAIL_VOLUMES_MAX * 1024) /* of all lines of a box */

/* What a create asks for, after what the copy has that it is made of (`inherited`, or NULL). -EINVAL: err lists all
 * that is wrong. */
int volume_mounts_resolve(struct warden *w, const struct box_params *o, const char *inherited, struct buf *out,
                          struct err *err);

/* Fills spec->volumes; all is in the arena. NULL or "": none. */
void volume_mounts_spec(const struct warden *w, const char *lines, struct arena *a, struct jail_spec *spec);
struct volume_place volume_mounts_place(const struct warden *w);

void volume_mounts_put(struct buf *packet, const char *lines); /* W_MOUNTS, where there are some */

/* A build has the volumes of these lines until it says otherwise. */
void volume_mounts_hold(struct warden *w, const char *lines);
void volume_mounts_release(struct warden *w, const char *lines);

/* Boxes of the volume's team that have it: starting, running or paused; and builds. `id` gets the id of one. */
struct row_volume;
size_t volume_mounts_users(struct warden *w, const struct row_volume *volume, char id[BOX_ID_SIZE]);
bool volume_mounts_have(const char *lines, const char *volume); /* by id; NULL has none */

#endif
