/* SPDX-License-Identifier: Apache-2.0 */
/* resolve.h - from what a caller wrote to a path of the box: one rule for RPC, /files, compose and working directories.
 *
 * Empty: the default working directory, else home. `~` and `~/x`: home. `~name`: refused. Absolute: as it is, to the
 * letter. Relative: joined to the user's home and cleaned. */
#ifndef CLOCHE_AGENT_ENVD_RESOLVE_H
#define CLOCHE_AGENT_ENVD_RESOLVE_H

#include "agent/user.h"

/* 0, or -EINVAL with the reason in err. The text is NUL-terminated (buf_z). */
int resolve_path(struct str path, const struct user *u, const char *workdir, struct buf *out, struct err *err);

/* Makes what is missing of `dir`, each new directory 0755 and owned by u; what exists is left alone. 0 or -errno. */
int resolve_mkdirs(const char *dir, const struct user *u);
/* The same for the directory that holds `path`. */
int resolve_parents(const char *path, const struct user *u);

#endif
