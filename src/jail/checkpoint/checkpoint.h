/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint.h - a box on disk: its memory, processes, sockets and terminals as a checkpoint, and back.
 *
 * criu does the work as a child of the caller, one at a time per call, bounded in time. A checkpoint is a directory:
 * criu's files and a manifest that names every file with size and checksum, what the box was, and the files outside its
 * root that its memory is mapped from (kernels forked from a zygote). A directory without a whole manifest is no
 * checkpoint. The box's own files are not in it: they are in its upper directory, which the caller keeps or copies
 * while the box is frozen.
 *
 * Not held by a checkpoint: connections to the outside (closed at restore), unix sockets connected to processes outside
 * (a dump is refused while one is open), page cache. All calls block: worker threads only. Restored boxes are children
 * of the calling process. */
#ifndef CLOCHE_JAIL_CHECKPOINT_CHECKPOINT_H
#define CLOCHE_JAIL_CHECKPOINT_CHECKPOINT_H

#include "jail/jail.h"

#include <stdatomic.h>

#define JAIL_CRIU_DEFAULT     "/var/cache/cloche/criu/criu"
#define JAIL_CRIU_SECONDS     120
#define JAIL_CHECKPOINT_EXTRA ((uint64_t)256 << 20) /* beside twice its box's memory and what that has on its disk */

struct jail_criu {
  const char *program; /* criu 4.2 or newer */
  unsigned seconds;    /* for one dump or restore; 0 = JAIL_CRIU_SECONDS */
  const char *heaps;   /* directory for zygotes' memory, which checkpoints share (zygote_heap.h); NULL: a copy goes into
                          each checkpoint */
  bool with_disk;      /* of a dump: what the box wrote is on stable storage, too, when it returns */
  const atomic_bool
      *stop;      /* set by whoever kills the box meanwhile: criu may wait for it in vain and is ended, too; or NULL */
  bool transient; /* a checkpoint for this run of the daemon only: neither written out nor summed up, nor are sums
                     looked for */
  uint64_t reserve; /* bytes of the disk that a dump leaves free, a twentieth of it at most */
  bool held; /* of a restore: the box is left frozen, not one of its instructions has run; jail_freeze lets it go */
};

/* Where a criu is from, by the file `provenance` that scripts/criu writes beside it. */
enum jail_criu_origin {
  JAIL_CRIU_FOREIGN, /* not built by scripts/criu: without our patches */
  JAIL_CRIU_UNTRIED, /* of a version that is not listed in criu/tried, but passed its tests here */
  JAIL_CRIU_TRIED,
};
enum jail_criu_origin jail_criu_origin(const char *program);

/* Proves that this host can do it, by a real dump and a real restore of a tiny box below `dir`. `lower` is a layer with
 * a static program `argv` that sleeps without descriptors. Negative, and why not. Once at daemon start. */
int jail_criu_prove(const struct jail_criu *criu, const char *instance, const char *dir, const char *lower,
                    const char *const *argv, struct err *why);

/* Writes the box to the new directory `checkpoint`. The box is frozen first and is left FROZEN on success, so that the
 * caller can keep files and database and then jail_kill it (pause) or thaw it with jail_freeze (snapshot, fork). On
 * failure it is thawed and goes on, the directory is gone, and err says in plain words which process can't be held and
 * why
 * (-ENOTSUP; -EISCONN: a unix socket to the outside, which may end by itself), or what else went wrong (-ENOSPC,
 * -EFBIG, -ETIMEDOUT, ...). A checkpoint has a bound: twice the box's memory, what it has on its disk, and
 * JAIL_CHECKPOINT_EXTRA; past it the dump fails (-EFBIG). Memory that processes share after a fork is written once for
 * each of them, so that without it a box could fill the host's disk. Of spec: instance, id, dir, lowers. Everything is
 * on stable storage when it returns 0, unless criu->transient. */
int jail_dump(const struct jail_criu *criu, const struct jail_spec *spec, const struct jail *j, const char *checkpoint,
              struct err *err);

/* What a dump that was killed in the middle left: ends a criu that is still at it and puts the box's processes back to
 * where they were. jail_dump does it for its own; this is for those of a daemon that died, whose checkpoint has no
 * manifest. `id` NULL: the box is gone, too. Leaves the box thawed. */
void jail_rescue(const char *checkpoint, const char *instance, const char *id);

/* Checks the checkpoint, builds the jail as jail_spawn does (same spec, same promises) and fills it with the
 * checkpoint's processes. Any id, dir, id_base, hostname, net and limits may differ from those at the dump; lowers must
 * give the files the box had: pause = same dir and lowers; fork = a new dir whose lowers begin with a frozen copy of
 * the source's upper. argv, env, console and boot_fd are not used. What a crashed restore left in the box's groups is
 * killed first. On failure nothing is left but spec->dir, which is the caller's. -EBADMSG: the checkpoint is damaged,
 * err names the file. */
int jail_restore(const struct jail_criu *criu, const struct jail_spec *spec, const char *checkpoint, struct jail *out,
                 struct err *err);

/* Takes away the names that a dump gave to open files which had lost theirs (link_remap.h). Of the box that was dumped,
 * once its files are copied or nothing comes of the dump; or, `again`, of one that was restored from the checkpoint and
 * stands still, once it can't be restored once more. */
void jail_link_remaps_remove(const char *checkpoint, const struct jail *j, bool again);

/* Every file present with its size and checksum: 0, or -EBADMSG with the file named, -ENOENT where there is no
 * checkpoint.
 */
int jail_checkpoint_check(const char *checkpoint, struct err *err);
uint64_t jail_checkpoint_bytes(const char *checkpoint); /* on disk */
/* What a dump of a box with so much memory (0 = no limit) and so many bytes on its disk may come to, and no more. */
uint64_t jail_checkpoint_most(uint64_t memory, uint64_t disk);
/* Makes a checkpoint smaller by zstd at this level; a restore undoes it. Nothing else may touch the checkpoint
 * meanwhile. Given up soon after *stop is set (-ECANCELED), and the checkpoint is then as it was. */
int jail_checkpoint_compress(const char *checkpoint, int level, const atomic_bool *stop, struct err *err);
/* Removes it so that no moment leaves half a checkpoint that looks whole. Idempotent. */
int jail_checkpoint_remove(const char *checkpoint, struct err *err);

/* Removes kept memory of zygotes that no checkpoint below `checkpoints` names, and that is an hour old. */
void jail_heaps_sweep(const char *heaps, const char *checkpoints);

#endif
