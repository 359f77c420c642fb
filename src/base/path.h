/* SPDX-License-Identifier: Apache-2.0 */
/* path.h - names that can't escape. Lexical work for what the contract wants spelled out; openat2 for what must hold.
 */
#ifndef CLOCHE_PATH_H
#define CLOCHE_PATH_H

#include "base/buf.h"
#include "base/str.h"

/* Lexically cleaned: one slash, no `.`, `..` resolved (never above the root of an absolute path). */
int path_clean(struct str path, struct buf *out);
int path_join(struct str dir, struct str name, struct buf *out); /* dir + "/" + name, then cleaned */
struct str path_base(struct str path);                           /* last component; "/" for the root */
struct str path_dir(struct str path);                            /* what is before it; "/" or "." */

/* Opens `path` as if `rootfd` were "/": symlinks and `..` stay inside (RESOLVE_IN_ROOT). fd or -errno. */
int path_open_in(int rootfd, const char *path, int flags, unsigned mode);
/* The same, but any attempt to leave fails with -EXDEV (RESOLVE_BENEATH), and no magic links. */
int path_open_beneath(int rootfd, const char *path, int flags, unsigned mode);
int path_mkdirs(const char *path, unsigned mode);  /* like mkdir -p; 0 or -errno */
int path_remove_tree(int dirfd, const char *name); /* any depth; links not followed, other mounts not entered */
/* The same up to a time (clock_mono_us): -EAGAIN when it has come before the tree was gone. Each call removes
 * something, so that who calls again comes to an end. */
int path_remove_tree_until(int dirfd, const char *name, int64_t until_us);

#endif
