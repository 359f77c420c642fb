/* SPDX-License-Identifier: Apache-2.0 */
/* layer_commit.h - what a box wrote, kept as a layer for other boxes.
 *
 * A layer is a directory tree in overlayfs's own format: whiteouts are character devices 0:0, opaque directories and
 * renamed ones carry trusted.overlay marks, ids are those the box sees. */
#ifndef CLOCHE_JAIL_FS_LAYER_COMMIT_H
#define CLOCHE_JAIL_FS_LAYER_COMMIT_H

#include "base/base.h"

/* Copies the upper directory of the box in `dir`, which must stand still (frozen or dead), into the new directory
 * `layer`. Ids of the range that starts at id_base become what the box sees. Kept: modes, times, holes, hard links,
 * whiteouts, user.* attributes, file capabilities, access lists. Devices are left out. The layer appears under its name
 * only when it is whole and on the disk; -EEXIST when that name is taken. */
int jail_commit(const char *dir, uint32_t id_base, const char *layer, struct err *err);
/* Of one directory in it, which becomes the layer's root. */
int jail_commit_dir(const char *dir, const char *name, uint32_t id_base, const char *layer, struct err *err);
/* The same, but whole is enough: it is on the disk only after jail_layer_settle. */
int jail_commit_quick(const char *dir, uint32_t id_base, const char *layer, struct err *err);
/* What a layer takes of the disk. An entry counts as this many bytes at least: an empty file takes an inode. */
#define JAIL_ENTRY_BYTES 4096
uint64_t jail_layer_bytes(const char *layer);
/* Writes out a layer and all others of its filesystem. */
int jail_layer_settle(const char *layer, struct err *err);

/* Copies a layer the same way into the new directory `copy`, with the ids that a range starting at id_base has on the
 * host: for layers whose filesystem can't map ids. File capabilities are made the range's own. */
int jail_shift(const char *layer, uint32_t id_base, const char *copy, struct err *err);

#endif
