/* SPDX-License-Identifier: Apache-2.0 */
/* manifest.h - what a checkpoint holds, so that a damaged one is refused before anything is built from it.
 *
 * The file `manifest` is written last and names every other file with size and checksum; its own checksum is its last
 * line. Everything it names is on stable storage before it appears. */
#ifndef CLOCHE_JAIL_CHECKPOINT_MANIFEST_H
#define CLOCHE_JAIL_CHECKPOINT_MANIFEST_H

#include "base/base.h"

/* A mount of a host file inside the box (a device, a cover). */
struct manifest_mount {
  const char *point, *source;
};

/* A file outside the box's root that memory of the box is mapped from, as criu knows it and as it is found again. */
struct manifest_file {
  const char *key;  /* file[mount:inode] at the dump */
  const char *path; /* in the template; "" for a heap */
  const char *heap; /* name of a zygote's memory (zygote_heap.h), or "" */
  uint64_t inode, size;
  uint32_t mark; /* checksum of its beginning, where a program's build id is */
};

#define MANIFEST_NAME   "manifest"
#define MANIFEST_MEMORY "pages-" /* how names of files that hold memory begin */

struct manifest_entry {
  const char *name;
  uint64_t size;
  uint32_t sum;
  uint64_t packed; /* bytes of its packed form, which is there instead (compress.h); 0: none */
};

struct manifest {
  struct arena arena; /* of all strings */
  VEC(struct manifest_mount) mounts;
  VEC(struct manifest_file) files;
  VEC(struct manifest_entry) entries;
  VEC(uint32_t) addresses; /* its own, that sockets were bound to; host byte order */
};
#define MANIFEST_INIT ((struct manifest){.arena = ARENA_INIT((size_t)64 << 20)})
void manifest_free(struct manifest *m);
#define cleanup_manifest __attribute__((cleanup(manifest_free)))

/* Fills m->entries from what is in the directory, makes all of it stable, then writes the manifest. `transient`:
 * without checksums and stability, so that no later check accepts it. */
int manifest_seal(int dir, struct manifest *m, bool transient, struct err *err);
/* Writes it alone; a former one is replaced as a whole. */
int manifest_write(int dir, const struct manifest *m, bool transient, struct err *err);
/* -ENOENT: not a checkpoint; -EBADMSG: damaged. */
int manifest_read(int dir, struct manifest *m, struct err *err);
/* The two parts of a check, after manifest_read: files that steer a restore and the sizes of all, and the sums of
 * memory, which is only copied. What is packed is left to compressed_check. */
int manifest_check(int dir, const struct manifest *m, bool memory, struct err *err);

#endif
