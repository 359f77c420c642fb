/* SPDX-License-Identifier: Apache-2.0 */
/* role_exec.h - in a child of the supervisor: it becomes a role, with its control socket on CONTROL_FD, its settings on
 * CONTROL_SETTINGS_FD and no other descriptor but the standard three. Neither returns. */
#ifndef CLOCHE_CLI_ROLE_EXEC_H
#define CLOCHE_CLI_ROLE_EXEC_H

#include "cli/config.h"

void exec_role(const struct config *c, int argc, char **args, const char *name, int control);
void exec_store(const struct config *c, int control); /* the store process, a program of its own */

#endif
