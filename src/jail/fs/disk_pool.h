/* SPDX-License-Identifier: Apache-2.0 */
/* disk_pool.h - disks of boxes, made ahead and used again.
 *
 * Attaching a loop device and mounting a fresh image take milliseconds, nearly all of it waiting in the kernel. Whoever
 * asks once for a disk of some size gets the next ones of that size ready made: a thread keeps some of them mounted,
 * their images below <boxes>/.ready. A process that dies leaves only image files, which the next one removes.
 *
 * A disk that was handed out stays known here by its box's directory, and when that box is removed, the thread wipes it
 * (disk_wipe.h) and puts it back. Whoever looks at a box's disk for any other end - to keep it, copy it, open it again
 * - makes it that box's alone (disk_pool_forget). A disk this process did not hand out is never taken. */
#ifndef CLOCHE_JAIL_FS_DISK_POOL_H
#define CLOCHE_JAIL_FS_DISK_POOL_H

#include "jail/fs/disk_wipe.h"
#include "jail/jail_defs.h"

#define DISK_POOL_READY_MAX 64
#define DISK_POOL_KINDS     8 /* sizes kept ready at a time */

/* Set before the first box; without it the defaults of the table of settings hold. */
struct disk_pool_rules {
  unsigned ready;               /* disks made ahead of each size */
  unsigned kept;                /* at most so many, with those of boxes that ended; 0 = none is used again */
  struct disk_wipe_limits wipe; /* of those */
};
void disk_pool_set(const struct disk_pool_rules *rules);

/* A ready disk, its image at dir/disk.img, lent to the box of that directory. The detached mount, or -ENOENT when there
 * is none right now. */
int disk_pool_take(const char *boxes, const struct jail_limits *limits, const char *dir);
/* The same for a disk that the caller has just made there. */
void disk_pool_lend(const struct jail_limits *limits, const char *dir, int tree);
void disk_pool_forget(const char *dir);
/* The box of that directory is over, none of its processes is left: its disk goes back, and its image is no longer in
 * dir. Where it can't, nothing has happened. */
void disk_pool_return(const char *dir);
void disk_pool_close(void); /* ends the thread, gives every disk back; the next disk_pool_take starts anew */

struct disk_pool_count {
  size_t ready, lent, reused;
};
struct disk_pool_count disk_pool_count(void); /* for tests and statistics */

#endif
