/* SPDX-License-Identifier: Apache-2.0 */
/* volume_mount.h - volumes come into a box: at its launch, into a warm one, and into one that is restored.
 *
 * The way to a mount point is the box's to arrange. It is walked by a process that has the box's own rights, no
 * descriptor but the mount and no pid in the box, and that crosses no mount: /proc, /sys, /dev, the runtime files and
 * other volumes can't be covered, whatever links the box made. */
#ifndef CLOCHE_JAIL_VOLUME_MOUNT_H
#define CLOCHE_JAIL_VOLUME_MOUNT_H

#include "jail/jail.h"

/* Mounts all of spec->volumes, and makes missing mount points in the box's own layer, into the box behind pidfd, which
 * may be frozen. */
int volume_mounts_attach(const struct jail_spec *spec, int pidfd, struct err *err);
/* One detached mount. */
int volume_mount_attach(int pidfd, int tree, const char *path, struct err *err);

/* Makes a living box's mounts of the volume read-only, or writable again. 1: something was changed. -EBUSY: it has a
 * file open for writing there; ask again later. */
int volume_mount_set_readonly(const struct volume_place *p, const char *id, struct proc_id init, bool readonly,
                              struct err *err);

/* The volume of a line of the box's mountinfo, or NULL. */
const struct jail_volume *volume_mount_of(const struct jail_spec *spec, struct str device, struct str root);

#endif
