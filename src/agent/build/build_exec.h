/* SPDX-License-Identifier: Apache-2.0 */
/* build_exec.h - commands the warden has run while a template is built, and the template's start command later on.
 *
 * Their output goes to the warden event by event (wire/exec_packet.h) while it listens, and always to the log ring. A
 * command is over when it was reaped and its pipes are at their end; what it left running in the background is not
 * waited for longer than a moment.
 *
 * Start here in this folder: build_exec.c runs commands; applets.c and copy_step.c are the tools that the agent's
 * program brings along (COPY, WORKDIR, ENV), so that an image needs none; start_command.c starts the template's start
 * command and waits for its readiness; package_cache.c keeps downloads between builds. The folder promises that the
 * warden gets every byte of output in order and exactly one end event per command, and that nothing of a build's tools
 * stays in the template. */
#ifndef CLOCHE_AGENT_BUILD_BUILD_EXEC_H
#define CLOCHE_AGENT_BUILD_BUILD_EXEC_H

#include "agent/agent.h"

struct exec_plan {
  uint32_t number;
  struct str user; /* empty: the agent's own identity */
  struct str cwd;  /* empty: the default of that user */
  char *const *argv;
  const struct env *env;               /* in place of the template's variables; NULL: those */
  int input;                           /* borrowed; -1 = none */
  void (*over)(int status, void *arg); /* may be NULL */
  void *arg;
};

/* Begins it. Negative with the reason, and `over` is never called. */
int exec_run(struct agent *a, const struct exec_plan *plan, struct err *err);
/* Takes the boot socket and obeys what comes through it. */
void exec_serve(struct agent *a, int fd);

#endif
