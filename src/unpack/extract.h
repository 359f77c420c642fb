/* place.h - puts the entries of archives below one directory and nowhere else.
 *
 * The directory is treated as the root of every path: links inside it are followed as a process living there would see
 * them, ".." in an entry's name is refused. Devices are left out and counted. Layers of an image are placed one after the
 * other; their whiteouts remove what earlier layers brought, never what the same layer brings. */
#ifndef CLOCHE_PLACE_H
#define CLOCHE_PLACE_H

#include "unpack/tar_read.h"

struct place_limits {
  uint64_t bytes, entries; /* over all archives */
};

struct place;

/* root is borrowed. */
struct place *place_new(int root, const struct place_limits *limits, struct err *err);
void place_free(struct place *p);
extern const struct tar_ops place_ops;             /* arg: the struct place; a negative answer has its words in place_new's err */
void place_layer(struct place *p, bool whiteouts); /* another archive begins */
void place_guard(struct place *p);                 /* the directory is a box's root: what is mounted there, and the runtime, is left alone */
int place_settle(struct place *p);                 /* the last touch: times of directories */
void place_used(struct place *p, uint64_t bytes);  /* of the limit, by others */
uint64_t place_bytes(const struct place *p);
uint64_t place_left_out(const struct place *p); /* devices */

#endif
