/* SPDX-License-Identifier: Apache-2.0 */
/* tar_write.h - writes tar archives in the pax format. */
#ifndef CLOCHE_UNPACK_TAR_WRITE_H
#define CLOCHE_UNPACK_TAR_WRITE_H

#include "unpack/tar_read.h"

/* Adds an entry's headers to out; the content follows, then tar_write_pad. */
int tar_write_header(struct buf *out, const struct tar_entry *e);
void tar_write_pad(struct buf *out, uint64_t size);
void tar_write_end(struct buf *out);

#endif
