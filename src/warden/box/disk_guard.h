/* SPDX-License-Identifier: Apache-2.0 */
/* disk_guard.h - what happens when sandboxes that run fill the disk of the data directory, before it is full.
 *
 * Disks of boxes and images of volumes are sparse files: a host's disk that is full breaks the filesystems in them, of
 * all teams. Watermarks (storage_quota.h) hold back what is new; what runs goes on writing. So below disk_stop_mb
 * builds at work are ended, and boxes that write are frozen: those whose disk and volumes have grown by
 * DISK_GROWTH_LEAST since there was more, all of one team at once, the team that takes the most first. They lose
 * nothing, and are resumed once there is room. Boxes that do not write go on. Below a quarter of it, where that did not
 * help, the largest box of the team that takes the most is ended, one every DISK_SETTLE_US, and its end says so.
 *
 * Not seen: boxes without a disk of a fixed size, and volumes on another filesystem. */
#ifndef CLOCHE_WARDEN_DISK_GUARD_H
#define CLOCHE_WARDEN_DISK_GUARD_H

#include "base/base.h"

#define DISK_GROWTH_LEAST ((uint64_t)1 << 20)
#define DISK_SETTLE_US    5000000 /* what was ended needs a moment until its blocks are free */

struct warden;

void disk_guard_start(struct warden *w); /* looks once a second, ten times a second when the disk gets short */

/* ---- pure ---- */

enum disk_step {
  DISK_ENOUGH,
  DISK_NEAR,   /* less than four times the mark: boxes are measured */
  DISK_FREEZE, /* below the mark */
  DISK_END,    /* below a quarter of it */
};
enum disk_step disk_guard_step(uint64_t free, uint64_t mark);

struct disk_user {
  const char *team;
  uint64_t used, grew; /* bytes */
  bool runs;           /* it can be frozen */
  bool leaving;        /* its end is decided: it counts, and can't go again */
};
bool disk_guard_writes(const struct disk_user *u); /* it runs and grew */
/* The team that takes the most of those that have a box which writes; NULL: there is none. Boxes of one team stand
 * together. */
const char *disk_guard_writer(const struct disk_user *users, size_t n);
/* The place of the one that is ended; n when none can. */
size_t disk_guard_largest(const struct disk_user *users, size_t n);

#endif
