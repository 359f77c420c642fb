/* SPDX-License-Identifier: Apache-2.0 */
/* completion.h - completions for shells and manual pages, written from the tables that also make --help. */
#ifndef CLOCHE_CLI_COMPLETION_H
#define CLOCHE_CLI_COMPLETION_H

#include "cli/cli.h"
#include "cli/remote/spec.h"

struct command_tables {
  const struct command *local;
  size_t local_count;
  const struct command_spec *const *remote;
  size_t remote_count;
};

/* `cloche completion bash|zsh|fish` prints, `cloche man DIR` writes cloche.1 and a page per command of the remote
 * table. */
int completion_run(const struct command_tables *t, int argc, char **argv);
int manual_run(const struct command_tables *t, int argc, char **argv);

#endif
