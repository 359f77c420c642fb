/* SPDX-License-Identifier: Apache-2.0 */
/* boot_id.h - a box's own /proc/sys/kernel/random/boot_id, which would otherwise be the host's, the same in all boxes.
 *
 * Every launch draws a new one. A dump writes it to the box's directory on the host and a restore from a checkpoint
 * takes the one that is there, so that a box which was paused with its memory keeps it, and a copy of it, which has
 * another directory, gets one of its own before its first process runs. The box sees it as a read-only file on a small
 * tmpfs that has no path on the host; a checkpoint knows the mount as an external one (CRIU_BOOT_ID). */
#ifndef CLOCHE_JAIL_BOOT_ID_H
#define CLOCHE_JAIL_BOOT_ID_H

#include "base/base.h"

#define BOOT_ID_POINT  "/proc/sys/kernel/random/boot_id"
#define BOOT_ID_NAME   "boot_id"        /* of the file, in the box's directory and on the tmpfs */
#define BOOT_ID_SOURCE "cloche-boot-id" /* what the box sees as the source of the mount */

/* A detached mount with the file in it: with a new id for the box of that directory, or with the one it has, if any. */
int boot_id_renew(const char *dir, struct err *err);
int boot_id_keep(const char *dir, struct err *err);
/* Writes the id that the box of process `pid` sees to its directory, and that out to the host's disk. */
int boot_id_save(const char *dir, pid_t pid, struct err *err);
int boot_id_settle(const char *dir, struct err *err);

#endif
