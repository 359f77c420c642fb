/* SPDX-License-Identifier: Apache-2.0 */
/* volume_backing.h - where the files of volumes are, and how boxes and the content API come to them.
 *
 * A volume is a directory tree that any number of boxes mount at once. Two backings, one for all volumes of a machine:
 *   image      <dir>/<id>/volume.img, a sparse ext4 filesystem with a journal: bytes and inodes are limited by its
 * size. Boxes write to the mounted filesystem, never to the image. It is mounted when it is first needed, all mounts of
 * it are one filesystem, and it is let go with the last of them: after a crash of the daemon the next one finds it
 * where boxes still have it mounted. directory  <dir>/<id>/volume-<id> on any filesystem, one that several machines
 * share included. Limits are project quotas where the filesystem has them switched on; elsewhere the tree is measured
 * now and then.
 *
 * On the disk user n of a box is user VOLUME_ID_BASE + n: no file belongs to a user of the host, and all boxes see the
 * same ids through mounts that map that range to their own. Every mount is nosuid and nodev. Trees are hostile: never
 * follow a name in one without openat2. All calls may block: worker threads only. */
#ifndef CLOCHE_JAIL_FS_VOLUME_BACKING_H
#define CLOCHE_JAIL_FS_VOLUME_BACKING_H

#include "jail/jail_defs.h"

#define VOLUME_ID_BASE 0xFFE00000u /* above all ranges of boxes */
#define VOLUME_IDS     65536u
#define VOLUME_PREFIX  "volume-" /* of the tree's own directory, where there is one */

struct volume_limits {
  uint64_t bytes, inodes; /* 0 = no limit; an image needs both */
};

struct volume_usage {
  uint64_t bytes, inodes;         /* in use */
  uint64_t bytes_max, inodes_max; /* 0 = none that the filesystem holds */
  bool whole;                     /* false: the tree has more entries than a scan looks at, the numbers are a minimum */
};

/* An empty tree, owned by VOLUME_ID_BASE, mode 0777 (every user of a box may write there), on stable storage when it
 * returns. -EEXIST: there is one. */
int volume_backing_create(const struct volume_place *p, const char *id, const struct volume_limits *limits,
                          struct err *err);

/* Gone by name at once; volume_backing_clear takes the files, up to a time (clock_mono_us): -EAGAIN when it has come
 * before all were gone. -EBUSY, at once: an image is mounted somewhere, or was a moment ago; try again later. -ENOENT:
 * there is none, and nothing left of it. */
int volume_backing_remove(const struct volume_place *p, const char *id, struct err *err);
int volume_backing_clear(const struct volume_place *p, const char *id, int64_t until_us, struct err *err);
/* What processes that died have left; -EAGAIN as above. */
int volume_backing_sweep(const struct volume_place *p, int64_t until_us);

/* A descriptor (O_RDONLY | O_DIRECTORY) of the tree's root on a mount that nobody else sees: ids are those on the disk.
 * -ENOENT: there is no such volume; -EUCLEAN: its image is damaged. */
int volume_backing_open(const struct volume_place *p, const char *id, struct err *err);

/* A detached mount of the tree for the box whose root is id_base on the host. -EOPNOTSUPP: the filesystem can't map
 * ids, err names the remedy; with p->unmapped it is mounted as it is, and no file belongs to a user of the box. */
int volume_backing_mount(const struct volume_place *p, const char *id, uint32_t id_base, struct err *err);

/* Limits of an existing volume from now on; only of a directory with project quotas, else nothing happens. */
int volume_backing_limit(const struct volume_place *p, const char *id, const struct volume_limits *limits,
                         struct err *err);

/* At most `entries` of a directory without quotas are looked at. */
int volume_backing_usage(const struct volume_place *p, const char *id, uint64_t entries, struct volume_usage *out,
                         struct err *err);

/* A directory without quotas that was measured over its limit: from now on boxes get it read-only. Kept on the disk,
 * for all machines that share it. */
int volume_backing_set_full(const struct volume_place *p, const char *id, bool full, struct err *err);
bool volume_backing_full(const struct volume_place *p, const char *id);

/* Whether `root` and `device`, of a line of a box's mountinfo, are those of the volume. */
bool volume_backing_is(const struct volume_place *p, const char *id, struct str device, struct str root);

#endif
