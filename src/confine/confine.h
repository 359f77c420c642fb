/* SPDX-License-Identifier: Apache-2.0 */
/* confine.h - how a process that speaks with strangers gives up its rights.
 *
 * A role (gate, sender, ...) says in one struct what it keeps: files of its root, kinds of sockets, system calls beyond
 * those that every event loop makes, limits. Then, in this order:
 *
 *   confine_no_rings() io_uring is not there, as on a kernel without it; before the role makes its event loop
 *   confine_rights()   an own mount namespace with a root that holds the named files and nothing else; limits; another
 *                      user; no capabilities, and no way to gain any
 *   (the role starts all threads that there will be, which have the above from their beginning, and waits until each
 *   runs: the C library's first calls in a thread are not on the list, and it aborts without them)
 *   confine_filter()   the list of system calls, for all threads at once; no new thread or process can start after it
 *
 * All promise everything or an error, after which the process must end. */
#ifndef CLOCHE_CONFINE_H
#define CLOCHE_CONFINE_H

#include "base/err.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file of the root. The host's of that path is copied, because a bind mount would show the old file for ever once
 * somebody replaces it; one that is missing or longer than 256 KiB is left out. */
struct confine_file {
  const char *path; /* absolute, at most one directory deep: "/etc/hosts" */
  const char *text; /* what it holds instead of the host's; or NULL */
};

/* A kind of socket that may be created; a role without a list may create none. */
struct confine_socket {
  int family;
  int type;     /* SOCK_STREAM, ...; 0: any */
  int protocol; /* -1: any */
};

/* A call that is refused with another error than EPERM, where a library goes on only so. */
struct confine_refusal {
  int call; /* SCMP_SYS(...) */
  int error;
};

struct confine_role {
  const char *name; /* in messages and as the source of its root's mount */
  const int *calls; /* SCMP_SYS(...), beyond those of every role */
  size_t ncalls;
  const struct confine_refusal *refusals;
  size_t nrefusals;
  const struct confine_socket *sockets;
  size_t nsockets;
  const struct confine_file *files;
  size_t nfiles;
  const char *folder; /* a directory of the host that its root has, too, read-only, at `folder_at`; NULL: none */
  const char *folder_at;
  uint64_t fds_max;    /* open descriptors; 0: as it was */
  uint64_t memory_max; /* bytes of address space; 0: as it was */
  bool own_ids;        /* it is root of a user namespace of its own already, and stays that */
  bool writes_files;   /* false: RLIMIT_FSIZE 0, no regular file grows by its hand, unless its log is one */
};

/* libuv from 1.45 on makes a ring with each loop and uses it for ever. Calls through a ring pass every filter by, so
 * none can be allowed, and a loop that already has one dies of the refusal; one that can't have any does without. */
int confine_no_rings(struct err *err);
/* Becomes `uid` (its own group, no others). uid 0 leaves root and identity alone (a test without root); a build under
 * sanitizers then leaves all of it out, because looking for leaks needs tracing and /proc. */
int confine_rights(const struct confine_role *role, unsigned uid, struct err *err);
int confine_filter(const struct confine_role *role, unsigned uid, struct err *err);

#endif
