/* SPDX-License-Identifier: Apache-2.0 */
/* capacity.h - about how many boxes a machine has room for, and what bounds it.
 *
 * "Idle" boxes have a Python that waits for its first cell; "running" ones use all the memory that a box of a default
 * template may use. The numbers of one box are measured ones (docs/performance.md). Pure: takes what the machine has.
 */
#ifndef CLOCHE_DOCTOR_CAPACITY_H
#define CLOCHE_DOCTOR_CAPACITY_H

#include "base/base.h"

#define CAPACITY_BOUNDS 7

struct capacity_input {
  uint64_t memory;         /* bytes at hand for boxes, without swap */
  uint64_t disk, inodes;   /* free, above the reserve; inodes UINT64_MAX: the filesystem has no such number */
  uint64_t processes;      /* of the host, beside those that are there */
  uint64_t open_files;     /* of the server's processes, each */
  uint64_t ids;            /* ranges of ids from id_base on */
  uint64_t boxes_max;      /* the setting */
  uint64_t running_memory; /* of a box that uses all it may */
};

struct capacity_bound {
  const char *resource, *remedy;
  uint64_t available, idle_each, running_each; /* in `unit` */
  const char *unit;
  uint64_t idle, running; /* boxes */
};

struct capacity {
  uint64_t idle, running;
  const char *idle_bound, *running_bound; /* the resource that ends first */
  struct capacity_bound bounds[CAPACITY_BOUNDS];
  size_t n;
};

void capacity_of(const struct capacity_input *in, struct capacity *out);

#endif
