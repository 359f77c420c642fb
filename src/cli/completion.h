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

/* NULL: that table has no such command. */
const struct command *local_of(const struct command_tables *t, const char *name);
const struct command_spec *spec_of(const struct command_tables *t, const char *name);
/* What a command of the local table prints for --help. */
int local_help(const struct command *command, struct buf *out);
/* `cloche completion bash|zsh|fish` prints, `cloche man DIR` writes cloche.1 and a page per command. */
int completion_run(const struct command_tables *t, int argc, char **argv);
int manual_run(const struct command_tables *t, int argc, char **argv);

#endif
