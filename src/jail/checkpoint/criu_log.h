/* SPDX-License-Identifier: Apache-2.0 */
/* criu_log.h - why a dump or a restore failed, in plain words, from criu's log. */
#ifndef CLOCHE_JAIL_CHECKPOINT_CRIU_LOG_H
#define CLOCHE_JAIL_CHECKPOINT_CRIU_LOG_H

#include "base/base.h"

/* A process of the box, as it was when it was frozen. */
struct frozen_process {
  pid_t pid;    /* on the host */
  pid_t inside; /* in the box */
  bool dead;    /* a zombie: it has no memory */
  char name[32];
};
typedef VEC(struct frozen_process) frozen_processes;

/* Reads the log in `dir` and fills err; the log's last lines go to the daemon's own. `code` is what is returned where
 * the log tells nothing better: -ENOTSUP for something that can't be held, -ENOSPC for a full disk. */
int criu_log_explain(int dir, const frozen_processes *processes, int code, const char *what, struct err *err);

/* True where the log has a complaint that makes an apparent success worthless. */
bool criu_log_doubtful(int dir, struct err *err);

#endif
