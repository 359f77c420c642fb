/* SPDX-License-Identifier: Apache-2.0 */
/* ext_files.h - files that a box's memory is mapped from though they are not in its root.
 *
 * A kernel forked from a zygote has its program and libraries mapped from the zygote's mounts; a restored one from
 * mounts that only the mapping still holds. Both are views of the template's layers, so at a dump such files are named
 * by what criu knows them by, and at a restore they are opened anew from the layers. */
#ifndef CLOCHE_JAIL_CHECKPOINT_EXT_FILES_H
#define CLOCHE_JAIL_CHECKPOINT_EXT_FILES_H

#include "jail/checkpoint/criu.h"
#include "jail/fs/overlay.h"
#include "jail/checkpoint/manifest.h"

/* The mounts a box has, by number, and when looking at what its processes map is given up: they may map very much. */
struct box_mounts {
  VEC(uint64_t) ids;
  int (*going)(const void *arg, struct err *err); /* asked for each mapping; fails where it is to end */
  const void *arg;
};

/* Keeps the zygote's memory that a running process has mapped, which takes a while the first time: better before its
 * box is frozen. What goes wrong shows at ext_files_collect. */
void ext_files_prepare(pid_t pid, const char *heaps);

/* Adds to m->files what process `pid` has mapped from elsewhere, and its program. Zygotes' memory is kept in `heaps`.
 */
int ext_files_collect(pid_t pid, const struct box_mounts *own, const char *heaps, struct manifest *m, struct err *err);

/* Opens m->files from `heaps` and the layers of a box: job->handles and job->external. The descriptors are the
 * caller's to close. -ESTALE where a file is not what it was, with its path. */
int ext_files_open(const struct manifest *m, const struct overlay_layers *from, const char *heaps, struct criu_job *job,
                   struct err *err);

#endif
