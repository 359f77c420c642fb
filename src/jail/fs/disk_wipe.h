/* SPDX-License-Identifier: Apache-2.0 */
/* disk_wipe.h - the disk of a box that ended, made as good as new for another one.
 *
 * Everything a box could write to lies below upper/ and work/ of its disk. Both directories are deleted and made anew,
 * so that no attribute, flag or list of theirs stays either, and then the filesystem's own count must be that of a disk
 * nothing was ever written to, to the block and to the inode: a file that something still holds is still counted. What
 * is not quite so is never used again. */
#ifndef CLOCHE_JAIL_FS_DISK_WIPE_H
#define CLOCHE_JAIL_FS_DISK_WIPE_H

#include "base/base.h"

#define WIPE_DEPTH 48 /* directories in directories */

/* What a filesystem counts. */
struct disk_usage {
  uint64_t blocks, block_bytes, free, files, free_files;
};
int disk_usage_read(int tree, struct disk_usage *out); /* 0 or -errno */

/* What a wipe is worth: with more on the disk a new one is cheaper. */
struct disk_wipe_limits {
  unsigned files;
  uint64_t bytes;
};
bool disk_wipe_worth(int tree, const struct disk_usage *fresh, const struct disk_wipe_limits *limits);

/* 0: as new. -EAGAIN: empty, but something deleted is still held; ask again. Else it can't be used. */
int disk_wipe_disk(int tree, const struct disk_usage *fresh, const struct disk_wipe_limits *limits);

#endif
