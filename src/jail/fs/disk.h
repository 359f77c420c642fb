/* SPDX-License-Identifier: Apache-2.0 */
/* disk.h - the writable part of a box as a mount of its own, with a size that holds.
 *
 * A box with a disk limit writes into a sparse ext4 image (dir/disk.img) on a loop device; one without writes straight
 * into dir. Either way the caller gets a detached mount that has upper/ and work/ in it. The loop device has no owner
 * but that mount: it goes away with the box, also when the daemon is dead by then. */
#ifndef CLOCHE_JAIL_FS_DISK_H
#define CLOCHE_JAIL_FS_DISK_H

#include "jail/jail_defs.h"

/* Makes dir (0700) and what belongs in it, unless it is there, and opens it. A detached mount or negative. */
int disk_open(const char *dir, const struct jail_limits *limits, struct err *err);

/* The upper directory of a box that stands still, to read from; also while its overlay is mounted. */
int disk_upper(const char *dir, struct err *err);

/* Writes what a box that stands still has written to stable storage. Of one that is taken down: disk_sync. */
int disk_settle(const char *dir, struct err *err);
int disk_sync(const char *dir, struct err *err);

#endif
