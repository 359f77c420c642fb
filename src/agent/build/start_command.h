/* SPDX-License-Identifier: Apache-2.0 */
/* start_command.h - a template's start command: begun at the launch of a box whose template holds no checkpoint of it
 * running.
 *
 * It runs as the template's user in its working directory, without the variables of one sandbox, as it would in a
 * checkpoint. An inherited one runs in the context of the template it was given in. The box counts as ready when the
 * ready command succeeds, or when START_WAIT_MS have passed: a slow server is better than no box. What it prints is in
 * the box's log. */
#ifndef CLOCHE_AGENT_BUILD_START_COMMAND_H
#define CLOCHE_AGENT_BUILD_START_COMMAND_H

#include "agent/agent.h"

#define START_WAIT_MS 10000
#define START_ASK_MS  100

void start_command_set(struct str command, struct str ready); /* from the template; empty = none */
/* {"env":{},"user":"","workdir":""} of an inherited command; NULL or not an object: the template's own. */
void start_command_context(const struct json *context);
void start_command_begin(struct agent *a); /* once; later calls do nothing */
void start_command_wait(struct agent *a,
                        void (*then)(void)); /* `then` comes at once when there is nothing to wait for */

#endif
