/* SPDX-License-Identifier: Apache-2.0 */
/* packages.h - what is installed in a tree: Debian's packages, Python's, and Node's global ones. */
#ifndef CLOCHE_PACKAGES_H
#define CLOCHE_PACKAGES_H

#include "base/base.h"

struct package {
  char *name; /* "dpkg curl" */
  char *version;
};
struct packages {
  VEC(struct package) v; /* sorted by name */
};

/* Whatever lies in the tree was written by strangers: sizes are bounded, what can't be read is left out. */
void packages_read(int root, struct packages *out);
void packages_free(struct packages *p);

#endif
