/* SPDX-License-Identifier: Apache-2.0 */
/* tar_read.h - a tar archive read piece by piece: ustar, pax and GNU long names, nothing else.
 *
 * Pure: bytes in, calls out, no file is touched. Every number is range-checked, every name bounded and free of NUL
 * bytes; what the reader does not know (sparse files, other vendors' types) is refused by name rather than guessed at.
 */
#ifndef CLOCHE_UNPACK_TAR_READ_H
#define CLOCHE_UNPACK_TAR_READ_H

#include "base/base.h"

#define TAR_NAME_MAX 4096              /* bytes of a path or a link's target */
#define TAR_META_MAX ((size_t)1 << 20) /* bytes of one extended header */

enum tar_kind { TAR_FILE = 1, TAR_DIR, TAR_SYMLINK, TAR_HARDLINK, TAR_FIFO, TAR_DEVICE };

struct tar_entry {
  enum tar_kind kind;
  struct str name, link; /* as written; may hold "..", slashes in front, anything but NUL */
  uint64_t size;         /* of a file's content */
  unsigned mode;         /* permission bits only, 07777 */
  uint64_t uid, gid;
  int64_t mtime;      /* seconds */
  struct str *xattrs; /* name, value, name, value ... */
  size_t nxattrs;     /* pairs */
};

struct tar_ops {
  int (*entry)(void *arg, const struct tar_entry *e); /* negative answers end the reading and are handed on */
  int (*data)(void *arg, struct str piece);           /* of the file last reported */
  int (*end)(void *arg);                              /* after the last byte of every file */
};

struct tar;

struct tar *tar_new(const struct tar_ops *ops, void *arg);
void tar_free(struct tar *t);
int tar_feed(struct tar *t, struct str in, struct err *err);
/* The archive must be over: the closing blocks were seen, or it ended between two entries. */
int tar_finish(struct tar *t, struct err *err);

#endif
