/* SPDX-License-Identifier: Apache-2.0 */
/* extract.h - puts the entries of archives below one directory and nowhere else.
 *
 * The directory is treated as the root of every path: links inside it are followed as a process living there would see
 * them, ".." in an entry's name is refused. Devices are left out and counted. Layers of an image are placed one after
 * the other; their whiteouts remove what earlier layers brought, never what the same layer brings. */
#ifndef CLOCHE_UNPACK_EXTRACT_H
#define CLOCHE_UNPACK_EXTRACT_H

#include "unpack/tar_read.h"

struct extract_limits {
  uint64_t bytes, entries; /* over all archives */
};

struct extract;

/* root is borrowed. */
struct extract *extract_new(int root, const struct extract_limits *limits, struct err *err);
void extract_free(struct extract *p);
extern const struct tar_ops
    extract_ops; /* arg: the struct extract; a negative result has its message in extract_new's err */
void extract_layer(struct extract *p, bool whiteouts); /* another archive begins */
/* No entry comes into the place where boxes have the runtime; nor, where the directory is a box's own root, into what
 * else is mounted there. */
void extract_guard(struct extract *p, bool box_root);
int extract_finish(struct extract *p);                /* the last touch: times of directories */
void extract_used(struct extract *p, uint64_t bytes); /* of the limit, by others */
uint64_t extract_bytes(const struct extract *p);
uint64_t extract_left_out(const struct extract *p); /* devices */

#endif
