/* SPDX-License-Identifier: Apache-2.0 */
/* interp.h - the code-interpreter API of a box: runs cells in long-lived language kernels for HTTP clients.
 *
 * Start reading here. The files behind it, in the order a request walks through them: interp.c (routes and answers),
 * interp_request.c (bodies and their 422 answers), interp_execute.c (one streamed execution), interp_context.c
 * (queues, start and death of kernels), kernel.h (the interface of a kernel), kernel_native.c and jupyter.c (its two
 * drivers), kernel_output.c (kernel events become lines for the client).
 *
 * Everything runs on the agent's one loop. Kernels are started when first needed.
 *
 * The folder promises: cells of one context run one after the other, in the order they came; a client that leaves
 * interrupts its cell, one that is cut off does not; the death of a kernel fails the running cell with the cause and
 * starts a new kernel; what a kernel sends is bounded, parsed strictly and never ends the agent. */
#ifndef CLOCHE_AGENT_INTERPRETER_INTERP_H
#define CLOCHE_AGENT_INTERPRETER_INTERP_H

#include "base/base.h"
#include <sys/types.h>
#include <uv.h>

#define KERNEL_LANGUAGE_SIZE 128 /* the name of a language, and NUL */

struct agent;

#define INTERP_PORT 49999 /* CLOCHE_INTERP_PORT in the agent's environment names another one */

/* Opens the listener. 0, or a negative errno when the port is not available. Once per process. */
int interp_start(uv_loop_t *loop, struct agent *agent);

/* Starts a language's default kernel, where this box has it, without waiting. */
void interp_warm(const char *language);

/* The box has got its name: idle kernels get its variables before their first cell. */
void interp_named(void);

/* Gives a program that is already loaded to a language: fds are its protocol socket and the read ends of its stdout
 * and stderr pipes (owned from here on). One that came from outside (nursery true; the pipes are then -1) becomes the
 * first kernel of that language that is asked for, a kernel the default context's. Call before the first request. */
int interp_adopt(const char *language, const int fds[3], pid_t pid, bool nursery);

/* Ends every kernel and closes the listener; open executions are cut. */
void interp_stop(void);

#endif
