/* SPDX-License-Identifier: Apache-2.0 */
/* kernel_nursery.h - processes that have everything loaded and fork kernels on demand, one per language.
 *
 * A nursery is called or started at the first fork that asks for it and kept; one that dies is followed by another at
 * the next. Whoever wants a child embeds a nursery_child and hears exactly one of: forked with a pid, or forked with -1
 * (then it starts a process of its own). After a launch it may hear of the child's exit once. */
#ifndef CLOCHE_AGENT_INTERPRETER_KERNEL_NURSERY_H
#define CLOCHE_AGENT_INTERPRETER_KERNEL_NURSERY_H

#include "agent/interpreter/kernel.h"

struct nursery;

struct nursery_child {
  void (*forked)(struct nursery_child *c, pid_t pid); /* -1: it is not available from a nursery */
  void (*exited)(struct nursery_child *c, int status);
  int fds[3]; /* protocol socket, stdout, stderr of the child; the caller's, open until it is launched */
  /* the nursery's own: */
  struct nursery *nursery;
  struct nursery_child *next;
  uint64_t id;
  pid_t pid;
  bool asked, orphan;
};

/* 0, or negative when no nursery can be had now; `forked` is not called then. */
int nursery_fork(const struct kernel_host *host, const struct kernel_spec *spec, struct nursery_child *c);
void nursery_forget(struct nursery_child *c); /* hears nothing any more; a child still on its way is ended */

/* The socket (owned) of a process on its way from outside, which will be the first child that is asked for. */
int nursery_adopt(const struct kernel_host *host, const struct kernel_spec *spec, int fd);
void nursery_end_all(void);

#endif
