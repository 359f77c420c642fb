/* SPDX-License-Identifier: Apache-2.0 */
/* disk_image.h - a box's disk as a file: a sparse ext4 image on a loop device. disk.h is what others use; the pool of
 * disks (disk_pool.h) is between the two. All calls that return a tree give a detached mount, or negative. */
#ifndef CLOCHE_JAIL_FS_DISK_IMAGE_H
#define CLOCHE_JAIL_FS_DISK_IMAGE_H

#include "jail/jail_defs.h"

#define DISK_IMAGE_NAME "disk.img" /* in the directory of a box */

/* Makes the seed image for these limits below `boxes`/.seeds, so that the next disk_make there only copies it. */
int disk_seed(const char *boxes, const struct jail_limits *limits, struct err *err);

/* Makes and mounts a new image from the seed: the slow part of disk_open, which disk_pool.c does ahead. */
int disk_make(const char *boxes, const char *image, const struct jail_limits *limits, struct err *err);

/* A new image that is never mounted here: a guest's. */
int disk_image_make(const char *boxes, const char *image, const struct jail_limits *limits, struct err *err);

/* upper/ and work/ of a disk, unless they are there. */
int disk_make_dirs(int tree, struct err *err);

/* Mounts an image that a box had before, once its former loop device is gone. */
int disk_image_open(const char *image, struct err *err);

/* Mounts an image to read from, also while a box has it mounted. */
int disk_image_look(const char *image, struct err *err);

/* An image for what outlives crashes (volumes): with a journal and barriers, and as large as was asked for. Its root
 * belongs to `owner`. */
int disk_image_make_durable(const char *image, uint64_t bytes, uint64_t inodes, uint32_t owner, struct err *err);
/* Mounts one. While it is mounted elsewhere: the very same filesystem. -EUCLEAN: it is damaged. */
int disk_image_mount_durable(const char *image, struct err *err);
uint64_t disk_image_own_inodes(void);                                       /* of such a filesystem, beside its files */
int disk_image_device(const char *image, unsigned *major, unsigned *minor); /* it is on; -ENOENT: on none */

/* Waits (bounded) until no loop device has the image open. */
int disk_image_wait_free(const char *image, struct err *err);
bool disk_image_in_use(const char *image); /* by a loop device, now */

#endif
