/* SPDX-License-Identifier: Apache-2.0 */
/* limit_view.h - files that tell a box's own memory, processors and load where the kernel's would tell the host's.
 *
 * A box has a small tmpfs without a path on the host, whose files are bound over /proc/meminfo, stat, loadavg, cpuinfo
 * and swaps and over the lists of processors in /sys. They belong to the host's root, who has no id in the box, and
 * have no permission to write: nobody in the box can change them. Nothing is served: what the box reads are pages,
 * there also when no daemon runs. view_server.h keeps the first three of them up to date. A checkpoint knows the mounts
 * as external ones (CRIU_LIMIT_VIEW); sizes don't change, because criu compares those of open files.
 *
 * The write functions are pure: numbers in, text out. */
#ifndef CLOCHE_JAIL_LIMIT_VIEW_H
#define CLOCHE_JAIL_LIMIT_VIEW_H

#include "jail/cgroup.h"

#define LIMIT_VIEW_SOURCE "cloche-view" /* what the box sees as the source of the mounts */

enum view_file { VIEW_MEMINFO, VIEW_STAT, VIEW_LOADAVG, VIEW_CPUINFO, VIEW_SWAPS, VIEW_CPUS, VIEW_FILES };
#define VIEW_LIVE   (VIEW_LOADAVG + 1) /* these change */
#define VIEW_POINTS 8
extern const char *const view_names[VIEW_FILES];
extern const char *const view_points[VIEW_POINTS]; /* where they are seen */
extern const enum view_file view_at[VIEW_POINTS];  /* which is seen there */

#define VIEW_LOAD_ONE 2048 /* a load of 1.00 */

struct view_numbers {
  struct cgroup_usage usage; /* .limit is the whole memory */
  unsigned cpus;
  uint64_t uptime_usec, boot_time; /* seconds since the epoch */
  uint64_t load[3];                /* in units of VIEW_LOAD_ONE */
};

struct limit_view {
  int tree;            /* the detached tmpfs */
  int live[VIEW_LIVE]; /* its files, open for writing */
};
#define LIMIT_VIEW_NONE ((struct limit_view){.tree = -1, .live = {-1, -1, -1}})

/* For a box whose control groups are there. */
int limit_view_make(const char *instance, const char *id, struct limit_view *out, struct err *err);
void limit_view_close(struct limit_view *v);
#define cleanup_view __attribute__((cleanup(limit_view_close)))

/* Fills in what the control groups and the clocks say; `memory`: also what takes longer. offset_usec: from the host's
 * uptime to the box's. 0 or -errno. */
int view_measure(const char *instance, const char *id, bool memory, int64_t offset_usec, struct view_numbers *out);
unsigned view_count_cpus(const char *list); /* of "0-3,8" */

void view_write_meminfo(const struct view_numbers *v, struct buf *out);
void view_write_stat(const struct view_numbers *v, struct buf *out);
void view_write_loadavg(const struct view_numbers *v, struct buf *out);
void view_write_cpuinfo(struct str host, unsigned cpus, struct buf *out); /* the first so many of the host's */

#endif
