/* SPDX-License-Identifier: Apache-2.0 */
/* interp_context.h - contexts: named kernels with a queue in front of them.
 *
 * One execution at a time, first come first served; different contexts know nothing of each other. A context
 * outlives its kernel: when the process dies its run fails, a new one is started, its directory and
 * variables are set again, and those who waited are served. Kernels are started when first wanted. */
#ifndef CLOCHE_AGENT_INTERPRETER_CONTEXT_H
#define CLOCHE_AGENT_INTERPRETER_CONTEXT_H

#include "agent/interpreter/kernel.h"

struct context;
struct contexts;
struct run;

struct run_ops {
  void (*line)(struct run *r, struct str line); /* one event, LF included */
  void (*end)(struct run *r);                   /* all output was delivered; the last call */
};

/* One execution, embedded in what asked for it. code and env must live until it ended or was abandoned. */
struct run {
  const struct run_ops *ops;
  struct str code;
  const struct json *env; /* object of strings, or NULL */
  char id[UUID_TEXT];     /* by which clients name it; empty: it can't be named */
  /* the context's own: */
  struct context *context; /* NULL once over */
  struct run *next;
  bool retried;
};

/* Someone who waits for a context to be ready. Embedded; called once: 0, or negative with the reason. */
struct context_wait {
  void (*ready)(struct context_wait *w, int code, const char *why);
  struct context *context; /* NULL when not waiting */
  struct context_wait *next;
};

#define CONTEXT_QUEUE_MAX 1000 /* CLOCHE_QUEUE_MAX in the environment names another number */
#define CONTEXT_NO_CWD    (-ENOTDIR)

struct contexts *contexts_new(const struct kernel_host *host, struct kernel_specs *specs, size_t queue_max);
void contexts_free(struct contexts *all);  /* ends every kernel */
void contexts_renew(struct contexts *all); /* the box became another one: busy kernels are notified at once, others
                                              before their next run */
void contexts_tell(struct contexts *all);  /* waiting kernels get the sandbox's variables before a cell asks for them */
struct context *contexts_find(struct contexts *all, struct str id);
struct context *contexts_default(struct contexts *all, const char *language); /* NULL when there is none (any more) */
struct context *contexts_next(struct contexts *all, const struct context *c); /* visible ones in order of creation */

/* A new context. Without a wait its kernel is started at first use and it is visible at once; with one it becomes
 * visible when it is ready, and is gone again when it can't be (perhaps before this returns). */
struct context *context_new(struct contexts *all, const struct kernel_spec *spec, const char *language, const char *cwd,
                            bool is_default, struct context_wait *w);
void context_delete(struct context *c);
void context_restart(struct context *c, struct context_wait *w);
/* Gives a running program to a context that has no kernel yet. */
int context_adopt(struct context *c, const int fds[3], pid_t pid);
/* Starts the kernel if need be; w (may be NULL) is called when it is ready, at once if it is. */
void context_warm(struct context *c, struct context_wait *w);
void context_wait_cancel(struct context_wait *w);

const char *context_id(const struct context *c);
const char *context_language(const struct context *c);
const char *context_cwd(const struct context *c);
bool context_visible(const struct context *c);
bool context_full(const struct context *c); /* its queue takes no more */

int context_submit(struct context *c, struct run *r); /* 0, or -EAGAIN when the queue is full */
/* Interrupts what runs, or only the run of that id (p is NULL: any), again every few seconds until it ends; a run of
 * that id that still waits ends with an error. False when there is nothing to interrupt. */
bool context_interrupt(struct context *c, struct str id);
bool contexts_interrupt(struct contexts *all, struct str id); /* the run of that id, whatever its context */
void run_abandon(struct run *r);                              /* its client left: never started, or interrupted */
void run_detach(struct run *r); /* its client was cut off: it runs all the same, its output is dropped */
void run_pause(struct run *r);  /* its client reads slowly: its kernel is held back */
void run_resume(struct run *r);

#endif
