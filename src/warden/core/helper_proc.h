/* SPDX-License-Identifier: Apache-2.0 */
/* helper_proc.h - runs an outside program that fetches things: as a user without rights, its output read line by line,
 * with an end that comes in time. */
#ifndef CLOCHE_WARDEN_CORE_HELPER_PROC_H
#define CLOCHE_WARDEN_CORE_HELPER_PROC_H

#include "base/base.h"
#include <stdatomic.h>

struct helper_proc {
  const char *const *argv; /* argv[0] is searched for in the usual places */
  uint32_t uid;            /* alone in namespaces of processes, mounts and IPC; 0: stays root, sees everything */
  int work;                /* directory it sees as /tmp and may write to, or -1 */
  int source;              /* directory or file it sees read-only as source_at, or -1 */
  const char *source_at;   /* a directory of the machine, or a file in work */
  uint64_t file_max;       /* bytes of one file it writes; 0 = no limit */
  unsigned seconds;
  struct str input;   /* its standard input; empty: none */
  struct buf *answer; /* takes what it prints, to the letter; NULL: lines are said */
  const atomic_bool *cancelled;
  int (*look)(const void *of, struct err *err); /* once a second: negative ends it, and is its result; may be NULL */
  const void *of;
  void (*say)(void *arg, enum log_level level, const char *line);
  void *arg;
};

/* 0 when it ended well. Its last line of complaint is in err. */
int helper_proc_run(const struct helper_proc *c, struct err *err);

#endif
