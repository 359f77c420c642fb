/* blame.h - why a dump or a restore failed, in plain words, from criu's log. */
#ifndef CLOCHE_BLAME_H
#define CLOCHE_BLAME_H

#include "base/base.h"

/* A process of the box, as it was when it was frozen. */
struct blame_process {
  pid_t pid;    /* on the host */
  pid_t inside; /* in the box */
  bool dead;    /* a zombie: it has no memory */
  char name[32];
};
typedef VEC(struct blame_process) blame_processes;

/* Reads the log in `dir` and fills err; the log's last lines go to the daemon's own. `code` is what is returned where the
 * log tells nothing better: -ENOTSUP for something that can't be held, -ENOSPC for a full disk. */
int blame(int dir, const blame_processes *processes, int code, const char *what, struct err *err);

/* True where the log has a complaint that makes an apparent success worthless. */
bool blame_doubtful(int dir, struct err *err);

#endif
