/* SPDX-License-Identifier: Apache-2.0 */
/* floor_namespaces.h - control groups and a veth pair for a bare box, straight from the kernel: what box_floor adds to
 * a clone to come near to a real box. Nothing of src/jail is used. Whatever fails ends the program with the reason. */
#ifndef CLOCHE_FLOOR_NAMESPACES_H
#define CLOCHE_FLOOR_NAMESPACES_H

#include "base/base.h"

#include <sys/types.h>

#define FLOOR_GROUPS 3 /* cpu, memory, pids */

/* What one box is put into; the descriptors are of the files that a process names itself in. */
struct groups {
  int tasks[FLOOR_GROUPS];
  unsigned n; /* one in a unified hierarchy */
};

void must(bool good, const char *what);

/* Finds the hierarchies and makes a directory of this program's own in them, which is removed at its end. */
void groups_begin(void);
void groups_make(struct groups *g, unsigned number); /* directories and limits */
void groups_enter(struct groups *g);                 /* by the process itself: no wait for others */
void groups_close(struct groups *g);

/* A pair, one end here and one in the network namespace of `pid`, ours up. It goes when that namespace goes. */
void veth_make(pid_t pid, unsigned number);

#endif
