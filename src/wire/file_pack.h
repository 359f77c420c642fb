/* SPDX-License-Identifier: Apache-2.0 */
/* file_pack.h - files in one piece of memory: the supervisor packs the web console from its directory, the gates, which
 * reach no files, map it. A file's gzip form lies beside it where the build made one. Neither side copies bodies.
 *
 * The pack is text first: "<entries>\n", then a line per file, "NAME TAB TYPE TAB ETAG TAB OFFSET TAB BYTES TAB
 * GZIP_OFFSET TAB GZIP_BYTES\n" (the last two 0: none), then the bodies; offsets count from the end of the lines. */
#ifndef CLOCHE_WIRE_FILE_PACK_H
#define CLOCHE_WIRE_FILE_PACK_H

#include "base/base.h"

#define FILE_PACK_FILES_MAX 512
#define FILE_PACK_MAX       ((size_t)32 << 20) /* bytes of all */
#define FILE_PACK_ETAG_SIZE 35                 /* a quoted half of a SHA-256 */

struct packed_file {
  struct str name, type, etag, body, gzip; /* gzip.p NULL: none */
};

struct file_pack {
  struct packed_file files[FILE_PACK_FILES_MAX];
  size_t n;
};

/* All files below `dir` but those that begin with a dot; `.gz` files belong to their neighbours. */
int file_pack_read_dir(const char *dir, struct buf *out, struct err *err);
/* Slices of `bytes`. -EPROTO: malformed. */
int file_pack_open(struct str bytes, struct file_pack *out);
const struct packed_file *file_pack_find(const struct file_pack *p, struct str name);
const char *file_pack_type(struct str name); /* by its ending; "application/octet-stream" for others */

#endif
