/* SPDX-License-Identifier: Apache-2.0 */
/* store_command.c - `cloche store`: the program cloche-store beside this one, which alone is linked with libpq. */
#include "cli/cli.h"

#include <limits.h>
#include <stdio.h>
#include <unistd.h>

/* Installed: <prefix>/lib/cloche; in a build tree: where it was built. */
static const char *const places[] = {"../lib/cloche/cloche-store", "../store/cloche-store"};

int store_main(int argc, char **argv)
{
  char self[PATH_MAX], path[PATH_MAX + 64];
  ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
  self[MAX(n, (ssize_t)0)] = 0;
  char *slash = strrchr(self, '/');
  if (slash)
    *slash = 0;
  for (size_t i = 0; i < ARRAY_LEN(places); i++) {
    snprintf(path, sizeof(path), "%s/%s", self, places[i]);
    if (!access(path, X_OK))
      execv(path, argv);
  }
  fprintf(stderr, "cloche: the program cloche-store is not beside %s/cloche; install the package cloche-store\n", self);
  return 1;
}
