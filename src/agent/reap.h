/* SPDX-License-Identifier: Apache-2.0 */
/* reap.h - the child-reaping registry of pid 1.
 *
 * Every child, adopted orphans included, is waited for as soon as SIGCHLD arrives. Who started a child watches its pid
 * in the same callback that spawned it, so no exit can be missed; the function is called once, from the loop. */
#ifndef CLOCHE_AGENT_REAP_H
#define CLOCHE_AGENT_REAP_H

#include <sys/types.h>

typedef void (*reap_fn)(pid_t pid, int status, void *arg); /* status as from waitpid */

void reap_watch(pid_t pid, reap_fn fn, void *arg);
void reap_forget(pid_t pid); /* the function is not called any more; the child is still reaped */
void reap_now(void);         /* collects what has ended already; called at SIGCHLD and before a new spawn */

#endif
