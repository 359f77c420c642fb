/* SPDX-License-Identifier: Apache-2.0 */
/* profile.h - servers and keys that `cloche login` keeps in a file that only its owner may read:
 *
 *     [default]
 *     url = http://127.0.0.1:3000
 *     key = e2b_...
 *
 * A file that others may read, or that somebody else owns, is refused: its keys are no secrets. */
#ifndef CLOCHE_CLI_PROFILE_H
#define CLOCHE_CLI_PROFILE_H

#include "base/base.h"

struct profile {
  char *url, *key; /* owned */
};

/* $XDG_CONFIG_HOME/cloche/profiles or ~/.config/cloche/profiles; NULL without a home. Owned by the caller. */
char *profile_path(void);
/* Up to 64 letters, digits, '.', '_' and '-'. */
bool profile_name_ok(const char *name);
/* -ENOENT: no file or no such profile, -EPERM: the file's mode or owner, -EINVAL: a line makes no sense. */
int profile_load(const char *path, const char *name, struct profile *out, struct err *err);
/* Adds or replaces one profile and keeps the others. Makes directories (0700) and the file (0600). */
int profile_store(const char *path, const char *name, const char *url, const char *key, struct err *err);
void profile_free(struct profile *p);

#endif
