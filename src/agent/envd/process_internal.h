/* SPDX-License-Identifier: Apache-2.0 */
/* process_internal.h - the body of a process, for process.c and process_input.c only, which
 * include process.h themselves. */
#ifndef CLOCHE_AGENT_ENVD_PROCESS_INTERNAL_H
#define CLOCHE_AGENT_ENVD_PROCESS_INTERNAL_H

#include "agent/envd/messages.h"
#include "rpc/rpc_call.h"

struct channel {
  struct process *process;
  uv_poll_t poll;
  int fd;         /* -1 = closed */
  int wanted;     /* events polled for */
  uint32_t which; /* DATA_STDOUT, DATA_STDERR, DATA_PTY; 0 for stdin */
};

struct listener {
  struct listener *next;
  struct process *process;
  struct rpc_call *call; /* held */
  bool starter;          /* its deadline is the process's deadline */
};

struct input_chunk {
  struct input_chunk *next;
  struct rpc_call *call; /* held; answered when the last byte is written */
  bool more;
  size_t n, off;
  char bytes[];
};

struct process {
  pid_t pid;
  unsigned refs; /* one for living, one per open handle */
  struct arena arena;
  struct msg_config config; /* as sent */
  struct str tag;
  bool has_tag, pty, reaped, killed, ended, timed;
  bool stdin_closing; /* CloseStdin came while input was queued */
  int status;
  struct channel in, out, err; /* a terminal uses `out` alone, both ways */
  struct listener *listeners;
  struct input_chunk *queue, **queue_end;
  uv_timer_t deadline;
};

void process_poll(struct process *p); /* polls for what is wanted now */
void channel_close(struct channel *ch);

void input_flush(struct process *p);
void input_fail(struct process *p, const char *why); /* every waiting writer gets `internal` */

#endif
