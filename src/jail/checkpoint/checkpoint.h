/* checkpoint.h - a box on disk: its memory, processes, sockets and terminals as an image, and back.
 *
 * criu does the work as a child of the caller, one at a time per call, bounded in time. An image is a directory: criu's
 * files and a manifest that names every file with size and checksum, what the box was, and the files outside its root
 * that its memory is mapped from (kernels born from a zygote). A directory without a whole manifest is no image. The
 * box's own files are not in it: they are in its upper directory, which the caller keeps or copies while the box is frozen.
 *
 * Not held by an image: connections to the outside (closed at restore), unix sockets connected to processes outside (a
 * dump is refused while one is open), page cache. All calls block: worker threads only. Restored boxes are children of
 * the calling process. */
#ifndef CLOCHE_CHECKPOINT_H
#define CLOCHE_CHECKPOINT_H

#include "jail/jail.h"

#include <stdatomic.h>

#define JAIL_CRIU_DEFAULT "/var/cache/cloche/criu/criu"
#define JAIL_CRIU_SECONDS 120

struct jail_criu {
  const char *program;     /* criu 4.2 or newer */
  unsigned seconds;        /* for one dump or restore; 0 = JAIL_CRIU_SECONDS */
  const char *heaps;       /* directory for zygotes' memory, which images share (heap.h); NULL: a copy goes into each image */
  bool with_disk;          /* of a dump: what the box wrote is on stable storage, too, when it returns */
  const atomic_bool *stop; /* set by whoever kills the box meanwhile: criu may wait for it in vain and is ended, too; or NULL */
  bool fleeting;           /* an image for this run of the daemon only: neither written out nor summed up, nor are sums looked for */
  bool held;               /* of a restore: the box is left frozen, not one of its instructions has run; jail_freeze lets it go */
};

/* Proves that this host can do it, by a real dump and a real restore of a tiny box below `dir`. `lower` is a layer with a
 * static program `argv` that sleeps without descriptors. Negative, and why not. Once at daemon start. */
int jail_criu_prove(const struct jail_criu *criu, const char *instance, const char *dir, const char *lower, const char *const *argv, struct err *why);

/* Writes the box to the new directory `image`. The box is frozen first and is left FROZEN on success, so that the caller
 * can keep files and database and then jail_kill it (pause) or thaw it with jail_freeze (snapshot, fork). On failure it is
 * thawed and goes on, the directory is gone, and err says in plain words which process can't be held and why
 * (-ENOTSUP), or what else went wrong (-ENOSPC, -ETIMEDOUT, ...). Of spec: instance, id, dir, lowers. Everything is
 * on stable storage when it returns 0, unless criu->fleeting. */
int jail_dump(const struct jail_criu *criu, const struct jail_spec *spec, const struct jail *j, const char *image, struct err *err);

/* What a dump that was killed in the middle left: ends a criu that is still at it and puts the box's processes back to where
 * they were. jail_dump does it for its own; this is for those of a daemon that died, whose image has no manifest. `id` NULL:
 * the box is gone, too. Leaves the box thawed. */
void jail_rescue(const char *image, const char *instance, const char *id);

/* Checks the image, builds walls as jail_spawn does (same spec, same promises) and fills them with the image's processes.
 * Any id, dir, id_base, hostname, net and limits may differ from those at the dump; lowers must give the files the box had:
 * pause = same dir and lowers; fork = a new dir whose lowers begin with a frozen copy of the source's upper. argv, env,
 * console and boot_fd are not used. What a crashed restore left in the box's groups is killed first. On failure nothing
 * is left but spec->dir, which is the caller's. -EBADMSG: the image is damaged, err names the file. */
int jail_restore(const struct jail_criu *criu, const struct jail_spec *spec, const char *image, struct jail *out, struct err *err);

/* Takes away the names that a dump gave to open files which had lost theirs (links.h). Of the box that was dumped, once its files are
 * copied or nothing comes of the dump; or, `again`, of one that was restored from the image and stands still, once it can't be restored once
 * more. */
void jail_links_sweep(const char *image, const struct jail *j, bool again);

/* Every file present with its size and checksum: 0, or -EBADMSG with the file named, -ENOENT where there is no image. */
int jail_image_check(const char *image, struct err *err);
uint64_t jail_image_bytes(const char *image); /* on disk */
/* Makes an image smaller by zstd at this level; a restore undoes it. Nothing else may touch the image meanwhile. Given up
 * soon after *stop is set (-ECANCELED), and the image is then as it was. */
int jail_image_pack(const char *image, int level, const atomic_bool *stop, struct err *err);
/* Removes it so that no moment leaves half an image that looks whole. Idempotent. */
int jail_image_remove(const char *image, struct err *err);

/* Removes kept memory of zygotes that no image below `images` names, and that is an hour old. */
void jail_heaps_sweep(const char *heaps, const char *images);

#endif
