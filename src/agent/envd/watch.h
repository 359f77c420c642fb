/* SPDX-License-Identifier: Apache-2.0 */
/* watch.h - changes below a directory, from inotify to the contract's five kinds of events.
 *
 * One inotify instance per watch. Recursive ones keep a watch on every directory of the tree: new ones are added as
 * they appear (what is already inside is reported as created), renamed ones keep theirs under the new name. Events of
 * the watched directory itself have the name ".". */
#ifndef CLOCHE_AGENT_ENVD_WATCH_H
#define CLOCHE_AGENT_ENVD_WATCH_H

#include "base/base.h"

struct watch;

/* type is one of CHANGE_*; name is relative to the watched directory and borrowed. */
typedef void (*watch_fn)(uint32_t type, struct str name, void *arg);

/* 0 or -errno: -ENOENT, -ENOTDIR, -EXDEV (a network file system and not `network`), -EMFILE, -ENOSPC. */
int watch_open(const char *path, bool recursive, bool network, struct watch **out);
void watch_close(struct watch *w);
int watch_fd(const struct watch *w); /* readable when there is something; non-blocking */
const char *watch_path(const struct watch *w);
/* Hands out everything that has happened. 0, or -EOVERFLOW when the kernel had to drop events. */
int watch_read(struct watch *w, watch_fn fn, void *arg);

#endif
