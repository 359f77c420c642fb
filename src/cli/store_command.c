/* SPDX-License-Identifier: Apache-2.0 */
/* store_command.c - `cloche store`: the program cloche-store beside this one, which alone is linked with libpq. */
#include "cli/cli.h"
#include "cli/store_program.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

int store_main(int argc, char **argv)
{
  char path[PATH_MAX + 64];
  struct err err = ERR_NONE;
  if (!store_program(path, sizeof(path), &err)) {
    execv(path, argv);
    err_errno(&err, "%s", path);
  }
  fprintf(stderr, "cloche: %s\n", err.msg);
  return 1;
}
