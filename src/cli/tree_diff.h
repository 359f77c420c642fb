/* SPDX-License-Identifier: Apache-2.0 */
/* tree_diff.h - what a second tree of files has that a first one has not, and the other way round: packages and files.
 *
 * Both trees are walked side by side. A file counts as the same when kind, mode, owner, size and time agree, or when
 * only the time differs and the contents agree. Names were chosen by strangers. */
#ifndef CLOCHE_CLI_TREE_DIFF_H
#define CLOCHE_CLI_TREE_DIFF_H

#include "base/base.h"

struct tree_diff;

struct tree_diff_ops {
  void (*package)(struct tree_diff *d, const char *name, const char *from, const char *to); /* "" = not there */
  /* mark: + added, - removed, ~ changed; why: how it was changed. Sizes are those of files, -1 = it is none. */
  void (*file)(struct tree_diff *d, char mark, const char *path, const char *why, int64_t from, int64_t to);
};

struct tree_diff {
  const struct tree_diff_ops *ops;
  void *arg;
  size_t names_max; /* 0 = no limit: names looked at */
  int64_t end_us;   /* 0 = no limit: of the monotonic clock */
  size_t names;     /* looked at */
  bool cut;         /* a limit was reached or a directory could not be read: what is told is not all */
  size_t added, removed, changed;
  uint64_t bytes_from, bytes_to; /* of all files */
};

void tree_diff_packages(struct tree_diff *d, int from, int to); /* directory descriptors */
void tree_diff_files(struct tree_diff *d, int from, int to);

#endif
