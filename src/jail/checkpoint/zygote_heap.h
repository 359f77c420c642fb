/* heap.h - the loaded memory of zygotes, kept for boxes on disk.
 *
 * A zygote lays its memory into a file of its own (kernels/python/lay.c) that its forks map: what they did not change is not
 * in their boxes' images but in that file. The first dump of such a box keeps a copy below `heaps`, under the name the
 * zygote chose at random; images name it. A kept heap never changes. */
#ifndef CLOCHE_HEAP_H
#define CLOCHE_HEAP_H

#include "base/base.h"

/* The name of a heap in the path of a mapped file, or NULL. */
const char *heap_name(const char *path);

/* Makes sure that the heap behind `fd` is kept in the directory `heaps`, whole and on stable storage. */
int heap_keep(const char *heaps, const char *name, int fd, struct err *err);

/* A descriptor of a kept one, seen with the ids of `userns`. -ENOENT: there is none; -EBADMSG: damaged. Checked once by each
 * process. */
int heap_open(const char *heaps, const char *name, int userns, struct err *err);

#endif
