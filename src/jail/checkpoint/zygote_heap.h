/* SPDX-License-Identifier: Apache-2.0 */
/* zygote_heap.h - the loaded memory of zygotes, shared by the boxes that were forked from them, and kept for boxes on
 * disk.
 *
 * A zygote lays its memory into a file (kernels/python/heap_file.c) that its forks map: what they did not change is not
 * in their boxes' checkpoints but in that file. The daemon makes the file, on a tmpfs of its own, hands it to the
 * zygote while that loads, and makes the filesystem read-only before the first fork. From then on the file is known by
 * its identity: device, inode and file handle, read from a descriptor the daemon opened. No name and no content that a
 * box chooses makes a mapping of it a heap.
 *
 * The first dump of a box that has a heap mapped keeps a copy below `heaps`, under a name of the daemon's choice,
 * random but for its owner; checkpoints name it. A kept heap never changes. Beside it: NAME.sum, its checksum, and
 * NAME.ids, the identities it had since the host was booted, by which a new daemon knows what older boxes have mapped.
 * For the warden and the checkpoint code. */
#ifndef CLOCHE_JAIL_CHECKPOINT_ZYGOTE_HEAP_H
#define CLOCHE_JAIL_CHECKPOINT_ZYGOTE_HEAP_H

#include "base/base.h"

#define HEAP_NAME 33 /* 32 hex digits */

struct zygote_heap_file {
  int mount, to, from; /* a filesystem of its own; the file open for writing, and for reading only */
  char name[HEAP_NAME];
};
#define HEAP_FILE_NONE ((struct zygote_heap_file){-1, -1, -1, ""})

/* owner: whose template it loads, "" = the operator's. Its name begins with a hash of that. */
int zygote_heap_make(struct zygote_heap_file *out, const char *owner, struct err *err);
void zygote_heap_close(struct zygote_heap_file *h);
/* From here on nobody can change it. -EBUSY: somebody still has it open for writing. */
int zygote_heap_seal(const char *heaps, struct zygote_heap_file *h, struct err *err);

/* At daemon start: what boxes of an earlier daemon have mapped, and what is kept. */
void heaps_load(const char *heaps);

bool zygote_heap_name_valid(const char *name);
/* Whether the file behind `fd` is a sealed or kept heap, and which. */
bool zygote_heap_find(int fd, char name[HEAP_NAME]);
/* A quick look before that: false where it can't be one. */
bool zygote_heap_listed(uint64_t device, uint64_t inode);

/* What kept heaps may take of the disk, all of them and those of one owner, 0 = no limit, and what is left free of it
 * in any case. Before the first is kept. */
void heaps_limit(uint64_t bytes, uint64_t owner_bytes, uint64_t reserve);

/* Makes sure that the heap behind `fd`, which zygote_heap_find knows, is kept in the directory `heaps`, whole and on
 * stable storage. -ENOSPC: over the limit. */
int zygote_heap_keep(const char *heaps, const char *name, int fd, struct err *err);

/* A descriptor of a kept one, seen with the ids of `userns`. -EBADMSG: missing or damaged. Checked once by each
 * process. */
int zygote_heap_open(const char *heaps, const char *name, int userns, struct err *err);

#endif
