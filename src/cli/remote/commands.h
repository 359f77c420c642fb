/* SPDX-License-Identifier: Apache-2.0 */
/* commands.h - the commands of this folder, for the table in main.c. */
#ifndef CLOCHE_CLI_REMOTE_COMMANDS_H
#define CLOCHE_CLI_REMOTE_COMMANDS_H

#include "cli/remote/spec.h"

extern const struct command_spec run_spec, exec_spec, shell_spec, copy_spec, list_spec, cat_spec, edit_spec, login_spec;
extern const struct command_spec new_spec, ps_spec, kill_spec, pause_spec, resume_spec, fork_spec, snapshot_spec;
extern const struct command_spec logs_spec, events_spec, top_spec, port_spec, open_spec;
extern const struct command_spec template_spec, volume_spec, secret_spec, key_spec, team_spec, node_spec;

int remote_main(const struct command_spec *spec, int argc, char **argv);

#endif
