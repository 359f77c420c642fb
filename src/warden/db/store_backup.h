/* SPDX-License-Identifier: Apache-2.0 */
/* store_backup.h - a copy of the store for `cloche backup`, and what it names on the disk. Works on files by their
 * paths: the store that is copied may be in use, by SQLite's own means; the copy is nobody else's. */
#ifndef CLOCHE_WARDEN_DB_STORE_BACKUP_H
#define CLOCHE_WARDEN_DB_STORE_BACKUP_H

#include "base/base.h"
#include "wire/sizes.h"

/* The whole store as of one moment, however long it takes; -ENOENT: there is none. */
int store_copy(const char *from, const char *to, struct err *err);

/* What a row needs of the data directory. */
struct store_need {
  enum { NEED_BUILD, NEED_BOX, NEED_VOLUME } kind;
  char id[UUID_SIZE + 24], team[UUID_SIZE];
  char checkpoint[CHECKPOINT_NAME_SIZE], runtime[LAYER_ID_SIZE], host_name[HOST_NAME_SIZE];
  uint64_t run;
  struct str layers; /* of a build: paths, one per line; borrowed for the call */
};
/* Boxes that are paused on disk, builds, volumes that are ready. A non-zero return of fn stops and is returned. */
int store_needs(const char *path, int (*fn)(const struct store_need *need, void *arg), void *arg, struct err *err);

/* What no other machine could take over leaves the copy: the name of this instance, and boxes that are not paused on
 * disk, which are recorded as ended. */
int store_copy_settle(const char *path, struct err *err);
int store_copy_drop_box(const char *path, const char *id, const char *cause, struct err *err);
/* The data directory is another one now. */
int store_copy_move(const char *path, const char *from, const char *to, struct err *err);
/* 0, or -ENOTSUP with the reason where a newer version wrote it, or -EINVAL where it is no store. */
int store_copy_check(const char *path, struct err *err);

#endif
