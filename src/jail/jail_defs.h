/* SPDX-License-Identifier: Apache-2.0 */
/* jail_defs.h - limits, statistics and paths of a box that the parts of this folder share. Others include jail.h. */
#ifndef CLOCHE_JAIL_JAIL_DEFS_H
#define CLOCHE_JAIL_JAIL_DEFS_H

#include "base/base.h"

#define JAIL_NAME_MAX          64 /* characters of an instance's name, and of a box's id on the host */
#define JAIL_IDS               65536u

/* What a box may have of things the kernel counts by user: boxes of one zygote share a user outside, so each has a
 * limit of its own inside. */
#define JAIL_INOTIFY_INSTANCES 128
#define JAIL_INOTIFY_WATCHES   16384
/* The same as resource limits of its processes, for each user inside. The owner outside has none (jail_instance_open):
 * there the kernel adds up all boxes. Where the daemon has no right to lift that one, a user inside gets a share of it.
 * kernels/python/enter_box.c has these numbers, too. */
#define JAIL_QUEUE_BYTES       819200
#define JAIL_SIGNALS_PENDING   16384
#define JAIL_LOCKED_BYTES      (8u << 20)
#define JAIL_LIMIT_SHARE       8

/* Where a box has a directory that outlives it (spec.cache). In /dev, so that no layer remembers the place. */
#define JAIL_CACHE             "/dev/cloche"

/* Where a box has the agent and the kernels (spec.runtime): a read-only mount, so that neither the box's own files nor
 * a template's decide which program is its first process. */
#define JAIL_RUNTIME           "/usr/lib/cloche"

#define JAIL_VOLUMES_MAX       64

/* Where the files of volumes are (fs/volume_backing.h). */
struct volume_place {
  const char *dir; /* made (0700) where it is missing */
  bool directory;  /* else images */
  bool unmapped;   /* a filesystem whose ids can't be mapped is mounted as it is */
};

struct jail_limits {
  unsigned cpus;       /* whole cores' worth of time; 0 = no limit */
  uint64_t memory;     /* bytes; 0 = no limit */
  uint64_t disk;       /* bytes of the writable layer; 0 = no limit */
  uint64_t inodes;     /* 0 = no limit */
  bool disk_once;      /* of a size that nobody asks for again: no such disk is made ahead */
  unsigned pids;       /* 0 = no limit */
  unsigned open_files; /* RLIMIT_NOFILE hard limit; 0 = inherited */
};

struct jail_stats { /* memory_used is without memory_cache, which the kernel takes back when it needs to */
  uint64_t cpu_usec, memory_used, memory_cache, memory_limit, disk_used, disk_limit, oom_kills, pids;
};

#endif
