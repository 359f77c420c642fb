/* SPDX-License-Identifier: Apache-2.0 */
/* jail_child.h - what happens between the launch of a box's first process and its exec.
 *
 * The child of a many-threaded parent: only calls that are safe after fork. It talks to its parent over one
 * SOCK_SEQPACKET socket. The parent sends CHILD_MAPPED once the id maps are written, with the descriptors of the
 * groups to join, then, perhaps much later, a struct child_params with the descriptors of the root mount, of the boot
 * socket, of a cache, of the mounts of the runtime, the boot id and the files of limit_view.h, and of what it sees of
 * its control groups; the child sends a struct child_failure and dies, or execs, which closes the socket. */
#ifndef CLOCHE_JAIL_JAIL_CHILD_H
#define CLOCHE_JAIL_JAIL_CHILD_H

#include "jail/cgroup.h"
#include <linux/filter.h>

#define CHILD_MAPPED     'm'
#define CHILD_ROOT       'r'

#define CHILD_PARAMS_MAX 12288 /* bytes of an order */
/* Descriptors that come with it: root, boot, cache, runtime, boot id, view, clock, groups, given. */
#define CHILD_FDS        (7 + CGROUP_SHOWN_MAX + CHILD_GIVEN)
#define CHILD_GIVEN      22  /* descriptors for the program, from 4 on */
#define CHILD_TEXTS      160 /* arguments, and variables */

struct child_plan {
  int sock;
  const char *hostname;
  const struct sock_fprog *filter;
  uint64_t shm;    /* bytes of /dev/shm */
  bool vm;         /* the program is QEMU's keeper: no loopback, no /proc, /sys or /dev, no right at all */
  uint32_t run_as; /* 0: root of a user namespace of its own; else a host id without rights (a zygote) */
};

/* Behind it, each with its NUL: the console's path (if there is one), the arguments, the variables. */
struct child_params {
  char what;                                                   /* CHILD_ROOT */
  uint8_t boot, cache, runtime, boot_id, view, clock, console; /* given or not */
  uint8_t groups;                                              /* a bit for each of cgroup_shown that is given */
  uint8_t unified;                                             /* the one group goes to /sys/fs/cgroup itself */
  uint8_t given;                                               /* descriptors for the program */
  uint16_t args, envs;
  uint32_t open_files;
  uint64_t file_bytes; /* no file may grow past it; 0: any size. For QEMU, whose disk is a file of the host */
};

struct child_failure {
  int code; /* errno */
  char what[124];
};

/* Of the user namespace the caller is in, by /proc/sys: what a box may watch. The file that refuses, or NULL. */
const char *child_limit_watching(void);
/* Of the network namespace the caller is in: every group of the box may ping. The file that refuses, or NULL. */
const char *child_allow_ping(void);
uint64_t child_capabilities(void); /* what root of a box keeps, as a mask */
/* The box's first process before all others in it when both want a processor; what it starts is ordinary again. From
 * outside, because only the host's root may. Off for a checkpoint, whose restore runs without that right. */
int child_set_priority(pid_t pid, bool favoured);
_Noreturn void child_run(const struct child_plan *plan);

#endif
