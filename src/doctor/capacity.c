/* SPDX-License-Identifier: Apache-2.0 */
/* capacity.c - see capacity.h. */
#include "doctor/capacity.h"

/* One box with its Python loaded, measured: the host's memory by `make bench` (3.2 MB), processes (agent, kernel and
 * their threads), and its directory with an empty disk image. */
#define IDLE_MEMORY    (4u << 20)
#define IDLE_PROCESSES 12
#define IDLE_DISK      (1u << 20)
#define IDLE_INODES    32
#define BOX_FILES      16 /* that the warden or a gate holds for one */
/* A busy one: a few programs of its own, and the files that they write. */
#define BUSY_PROCESSES 64
#define BUSY_DISK      (1024u << 20)
#define BUSY_INODES    16384

static void add(struct capacity *c, const char *resource, uint64_t available, uint64_t idle_each, uint64_t running_each,
                const char *unit, const char *remedy)
{
  struct capacity_bound b = {.resource = resource,
                             .remedy = remedy,
                             .available = available,
                             .idle_each = idle_each,
                             .running_each = running_each,
                             .unit = unit,
                             .idle = available / idle_each,
                             .running = available / running_each};
  if (c->n == 0 || b.idle < c->idle) {
    c->idle = b.idle;
    c->idle_bound = resource;
  }
  if (c->n == 0 || b.running < c->running) {
    c->running = b.running;
    c->running_bound = resource;
  }
  c->bounds[c->n++] = b;
}

void capacity_of(const struct capacity_input *in, struct capacity *out)
{
  *out = (struct capacity){0};
  add(out, "memory", in->memory >> 20, IDLE_MEMORY >> 20, MAX(in->running_memory >> 20, 1u), "MiB",
      "more memory, or smaller boxes (memoryMB of templates)");
  add(out, "disk", in->disk >> 20, IDLE_DISK >> 20, BUSY_DISK >> 20, "MiB",
      "a larger disk for the data directory, or less of it kept free (disk_creates_mb)");
  if (in->inodes != UINT64_MAX)
    add(out, "inodes", in->inodes, IDLE_INODES, BUSY_INODES, "inodes",
        "a filesystem with more inodes (mkfs.ext4 -N, or xfs, or btrfs)");
  add(out, "processes", in->processes, IDLE_PROCESSES, BUSY_PROCESSES, "processes",
      "sysctl kernel.pid_max and kernel.threads-max (a server raises them to host_processes)");
  add(out, "open_files", in->open_files, BOX_FILES, BOX_FILES, "files",
      "LimitNOFILE=1048576 in the unit, or ulimit -Hn 1048576 before the start");
  add(out, "ids", in->ids, 1, 1, "ranges", "a lower id_base");
  add(out, "boxes_max", in->boxes_max, 1, 1, "boxes", "a higher boxes_max");
}
