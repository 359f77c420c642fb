/* SPDX-License-Identifier: Apache-2.0 */
/* backup.h - what `cloche backup` and `cloche restore` share: the form of a backup, and copying trees.
 *
 * A backup is a directory with the parts of a data directory that must survive, under the same names, and
 * `manifest.json`, which is written last: without it a backup is not whole. */
#ifndef CLOCHE_CLI_BACKUP_H
#define CLOCHE_CLI_BACKUP_H

#include "base/base.h"

#define BACKUP_FORMAT   1
#define BACKUP_MANIFEST "manifest.json"
#define BACKUP_STORE    "cloche.db"
#define BACKUP_KEY      "secrets.key"

/* The directories that a backup may have. */
extern const char *const backup_parts[];
extern const size_t backup_parts_n;

/* As `cp -a`: owners, modes, times, links, holes, extended attributes; blocks are shared where the filesystem can
 * (reflinks). `to` must not be there. -ENOENT: there is no `from`. */
int tree_copy(const char *from, const char *to, struct err *err);
int tree_sync(const char *path, struct err *err); /* all of it is on the disk */

#endif
