/* SPDX-License-Identifier: Apache-2.0 */
/* cover.h - what of /proc and /sys a box sees. Both are allow lists: what a newer kernel brings is hidden until
 * somebody has looked at it and added it to a list here and to tests/escape/surface.txt.
 *
 * /sys is a small read-only tmpfs with the few directories of the box's own sysfs that programs read; the whole sysfs
 * lies below it, out of reach, because a checkpoint can only keep parts of a filesystem whose root is mounted as well.
 * In /proc everything that is neither about the box's own namespaces nor needed by ordinary programs is covered, unless
 * the kernel refuses it to a box's root.
 *
 * Called between clone and exec, in memory shared with the daemon: no allocation, no C library state. Functions that
 * mount return NULL, or what failed, with errno set. */
#ifndef CLOCHE_COVER_H
#define CLOCHE_COVER_H

#include "base/base.h"

#define COVER_NAMES 4096

struct cover {
  int sys;                 /* detached tmpfs that goes over sysfs */
  char names[COVER_NAMES]; /* of /proc, each with its NUL, a '/' before those of directories */
  size_t n;
};

/* Before the root is entered. `proc`: a detached proc mount; cover->sys is an empty writable tmpfs. */
const char *cover_prepare(struct cover *cover, int proc);
/* In the new root, with proc, sysfs and /dev/null at their places. */
const char *cover_apply(const struct cover *cover);

#endif
