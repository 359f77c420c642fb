/* SPDX-License-Identifier: Apache-2.0 */
/* kernel.h - a kernel: one process that runs the cells of one context.
 *
 * The context that started it hears of it through a listener: ready once, then for every run its lines and
 * `done`, and `death` as the very last call when the process is lost. A driver never calls back from inside
 * kernel_new(). Between two runs a kernel takes variables and a working directory. All calls are cheap and none waits.
 */
#ifndef CLOCHE_AGENT_INTERPRETER_KERNEL_H
#define CLOCHE_AGENT_INTERPRETER_KERNEL_H

#include "agent/env.h"
#include "agent/interpreter/kernel_output.h"
#include "agent/interpreter/kernel_spec.h"
#include <uv.h>

struct agent;
struct kernel;

/* Where kernels live: one per process. */
struct kernel_host {
  uv_loop_t *loop;
  const struct agent *agent; /* gives the variables of new processes; NULL = none */
  uint64_t output_max;       /* most bytes one run may produce; 0 = none */
  size_t message_max;        /* longest message of a kernel; 0 = OUTPUT_MESSAGE_MAX */
};

struct kernel_listener {
  void (*ready)(void *arg);
  void (*moved)(void *arg, bool ok, const char *reason); /* the answer to kernel_cd */
  void (*line)(void *arg, struct str line);              /* one event of the current run, LF included */
  void (*done)(void *arg);                               /* the current run is over, all its lines were delivered */
  void (*death)(void *arg, const char *cause);           /* called once; call kernel_end() in it or soon after */
};

struct kernel_driver {
  int (*run)(struct kernel *k, struct str code, const struct json *env);
  int (*set_env)(struct kernel *k, const struct env *env, bool renew);
  int (*cd)(struct kernel *k, const char *path);
  void (*interrupt)(struct kernel *k);
  void (*renew)(struct kernel *k); /* NULL: can't */
  void (*pause)(struct kernel *k);
  void (*resume)(struct kernel *k);
  void (*end)(struct kernel *k);
};

/* What every driver's kernel begins with. */
struct kernel {
  const struct kernel_driver *driver;
  const struct kernel_listener *listener;
  void *arg;
  const struct kernel_spec *spec;
  const struct kernel_host *host;
  struct output output;
  uint64_t run_id;
  bool running;
  bool heard; /* the current run has shown a sign of life */
  bool ended; /* kernel_end() was called: no callback comes any more */
  bool paused;
  unsigned env_generation; /* of the variables it was given; the context's to use */
  unsigned renewals;       /* of the agent, that its random numbers come from */
  const char *home;        /* where it starts: the cwd of a kernel that was never moved */
};

#define KERNEL_HOME        "/home/user"
#define KERNEL_START_MS    60000 /* a kernel that is not ready by then is given up */
#define KERNEL_COALESCE_MS 1

/* Starts a kernel by its spec's driver. NULL with *err when no process could be made. */
struct kernel *kernel_new(const struct kernel_host *host, const struct kernel_spec *spec,
                          const struct kernel_listener *listener, void *arg, struct err *err);

/* Only while no run is on. `env` are string members for this run only; both are copied. */
int kernel_run(struct kernel *k, struct str code, const struct json *env);
int kernel_set_env(struct kernel *k, const struct env *env, bool renew); /* renew: random numbers too */
int kernel_cd(struct kernel *k, const char *path);                       /* answered by `moved` */
void kernel_interrupt(struct kernel *k);
void kernel_renew(struct kernel *k); /* in the middle of a run: new random numbers, where the kernel can */
void kernel_pause(struct kernel *k); /* reads nothing more from it until resumed; calls may nest in callbacks */
void kernel_resume(struct kernel *k);
void kernel_end(struct kernel *k); /* kills the process and forgets it */
void kernel_spares_end(void);      /* ends spare kernels */

/* For drivers: the common beginning, and telling the listener. */
void kernel_init(struct kernel *k, const struct kernel_host *host, const struct kernel_spec *spec,
                 const struct kernel_listener *listener, void *arg);
void kernel_begin(struct kernel *k);                     /* a run starts */
void kernel_done(struct kernel *k);                      /* it is over */
void kernel_died(struct kernel *k, const char *cause);   /* calls death once */
void kernel_explain(int status, char *out, size_t size); /* a wait status as text */
/* The variables that a kernel process starts with. */
void kernel_base_env(const struct kernel_host *host, const struct kernel_spec *spec, char *const *more,
                     struct env *env);
/* Starts the spec's program as root of the box in a session of its own, fds on 1, 2, 3; extra is a last argument or
 * NULL, more are NAME=value strings or NULL. The pid, or negative with *err. */
pid_t kernel_spawn(const struct kernel_host *host, const struct kernel_spec *spec, char *const *argv, const char *extra,
                   const int fds[3], char *const *more, struct err *err);

/* The drivers. */
struct kernel *kernel_native_new(const struct kernel_host *host, const struct kernel_spec *spec,
                                 const struct kernel_listener *listener, void *arg, struct err *err);
/* A program that runs already: protocol socket and read ends of its pipes, owned. */
struct kernel *kernel_native_adopt(const struct kernel_host *host, const struct kernel_spec *spec,
                                   const struct kernel_listener *listener, void *arg, const int fds[3], pid_t pid);
/* Gives a kernel that has run nothing yet another listener, who hears `ready` from the loop. */
void kernel_native_hand_over(struct kernel *k, const struct kernel_listener *listener, void *arg);
struct kernel *jupyter_new(const struct kernel_host *host, const struct kernel_spec *spec,
                           const struct kernel_listener *listener, void *arg, struct err *err);

#endif
