/* SPDX-License-Identifier: Apache-2.0 */
/* layer_tree.h - the files of a build as a sandbox would see them: its layers, mounted as an overlay, read-only.
 */
#ifndef CLOCHE_CLI_LAYER_TREE_H
#define CLOCHE_CLI_LAYER_TREE_H

#include "base/base.h"
#include <sys/stat.h>

/* A directory descriptor; the mount is attached nowhere and ends with it. Needs root. layers: paths, top first, one per
 * line. */
int tree_open(const char *layers, struct err *err);

struct tree_name {
  char *name;
  struct stat st;
};
struct tree_list {
  VEC(struct tree_name) v;
};

/* What is in a directory, sorted by name. */
int tree_list(int dir, struct tree_list *out);
void tree_list_free(struct tree_list *l);
#define cleanup_list __attribute__((cleanup(tree_list_free)))

#endif
