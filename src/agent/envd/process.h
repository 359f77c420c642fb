/* SPDX-License-Identifier: Apache-2.0 */
/* process.h - a process the agent started: its pipes or terminal, who listens, how it ends.
 *
 * Output is read only while no listener is congested, so the slowest living one sets the pace and nothing is lost; with
 * no listener output is read and thrown away, so the process never blocks. `end` comes once both pipes are at their end
 * and the process is reaped; after a kill through the API the pipes are not waited for. */
#ifndef CLOCHE_AGENT_ENVD_PROCESS_H
#define CLOCHE_AGENT_ENVD_PROCESS_H

#include "agent/envd/messages.h"
#include "agent/spawn.h"
#include "rpc/rpc_call.h"

struct process;

struct process_plan {
  struct spawn spawn; /* fds are filled in here */
  const struct msg_config *config;
  struct str tag;
  bool has_tag, stdin_open, pty;
  bool private_env; /* its variables are kept nowhere but in the process itself */
  uint32_t cols, rows;
};

/* NULL with *stage and *code (negative errno) telling why. */
struct process *process_start(uv_loop_t *loop, struct process_plan *plan, enum spawn_stage *stage, int *code);

struct process *process_select(const struct msg_selector *s); /* live ones only; NULL when there is none */
pid_t process_pid(const struct process *p);

/* The call gets `start`, then everything from now on. `deadline_ms` > 0 (Start only): kills the process by then and
 * fails this caller with deadline_exceeded first, whether or not it is still there. */
void process_subscribe(struct process *p, struct rpc_call *c, uint64_t deadline_ms);
/* An end not older than 30 s: sends start, end, end of stream. False when nothing is kept under that name. */
bool process_replay(const struct msg_selector *s, struct rpc_call *c);

/* Each answers the call itself. `more` instead of an answer: the call is a client stream and gets rpc_more(). */
void process_input(struct process *p, const struct msg_input *in, struct rpc_call *c, bool more);
void process_close_stdin(struct process *p, struct rpc_call *c);
int process_resize(struct process *p, uint32_t cols, uint32_t rows); /* -ENOTTY when it has no terminal */
int process_signal(struct process *p, int sig);

/* All live ones, built in the arena. Values of request variables are left out unless `values`. */
void process_list(struct arena *a, struct msg_processes *out, bool values);

void process_stop_all(void); /* the agent leaves: listeners are cut */

#endif
