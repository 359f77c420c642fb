/* SPDX-License-Identifier: Apache-2.0 */
/* disk.h - the writable part of a box as a mount of its own, with a size that holds.
 *
 * A box with a disk limit writes into a sparse ext4 image (dir/disk.img) on a loop device; one without writes straight
 * into dir. Either way the caller gets a detached mount that has upper/ and work/ in it. The loop device has no owner
 * but that mount: it goes away with the box, also when the daemon is dead by then. */
#ifndef CLOCHE_JAIL_FS_DISK_H
#define CLOCHE_JAIL_FS_DISK_H

#include "jail/jail.h"

/* Makes dir (0700) and what belongs in it, unless it is there, and opens it. A detached mount or negative. */
int disk_open(const char *dir, const struct jail_limits *limits, struct err *err);

/* The upper directory of a box that stands still, to read from; also while its overlay is mounted. */
int disk_upper(const char *dir, struct err *err);

/* Writes what a box that stands still has written to stable storage. Of one whose walls are gone: jail_sync. */
int disk_settle(const char *dir, struct err *err);

/* Makes the seed image for these limits below `boxes`/.seeds, so that the next disk_open there only copies it. */
int disk_seed(const char *boxes, const struct jail_limits *limits, struct err *err);

/* Makes and mounts a new image from the seed: the slow part of disk_open, which disk_pool.c does ahead. */
int disk_make(const char *boxes, const char *image, const struct jail_limits *limits, struct err *err);

/* upper/ and work/ of a disk, unless they are there. */
int disk_make_dirs(int tree, struct err *err);

#endif
