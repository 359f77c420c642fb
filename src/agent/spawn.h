/* SPDX-License-Identifier: Apache-2.0 */
/* spawn.h - one child process, made without copying the agent.
 *
 * clone(CLONE_VM | CLONE_VFORK) on a stack of its own: the child runs a handful of raw system calls and execs while the
 * agent waits, so no page table is copied and no allocator lock can be held. It starts with an empty signal mask,
 * default dispositions, only the descriptors named here, nice 0, best-effort io and the agent's first RLIMIT_NOFILE.
 * A program that can't be found or run is no error: the child says so on its fd 2 and ends with 127 or 126,
 * as under a shell. */
#ifndef CLOCHE_AGENT_SPAWN_H
#define CLOCHE_AGENT_SPAWN_H

#include "agent/user.h"

struct spawn {
  const char *cmd;   /* looked up in envp's PATH when it has no slash */
  char *const *argv; /* argv[0] included */
  char *const *envp;
  const char *cwd;         /* entered after the identity change; NULL = stay */
  const struct user *user; /* NULL = stay what the agent is (root of the box) */
  int fds[4];              /* become 0, 1, 2, 3; -1 = /dev/null for 0 to 2, closed for 3 */
  bool session;            /* setsid */
  bool ctty;               /* fd 0 becomes the controlling terminal (needs session) */
};

enum spawn_stage { SPAWN_OK, SPAWN_CLONE, SPAWN_SETUP, SPAWN_IDENTITY, SPAWN_CWD };

void spawn_prepare(void); /* once at start: remembers the limits that children get */
/* The pid, or a negative errno with *stage telling where it failed (the child is then gone already). The caller keeps
 * its descriptors. Must be called on the loop's thread; reap_watch() the pid before returning to the loop. */
pid_t spawn_run(const struct spawn *s, enum spawn_stage *stage);

#endif
