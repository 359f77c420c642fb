/* tarout.h - writes tar archives in the pax format. */
#ifndef CLOCHE_TAROUT_H
#define CLOCHE_TAROUT_H

#include "unpack/tar_read.h"

/* Adds an entry's headers to out; the content follows, then tarout_pad. */
int tarout_entry(struct buf *out, const struct tar_entry *e);
void tarout_pad(struct buf *out, uint64_t size);
void tarout_end(struct buf *out);

#endif
