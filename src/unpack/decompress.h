/* SPDX-License-Identifier: Apache-2.0 */
/* decompress.h - undoes compression, whichever its first bytes say: gzip, zstd or none. */
#ifndef CLOCHE_UNPACK_DECOMPRESS_H
#define CLOCHE_UNPACK_DECOMPRESS_H

#include "base/base.h"

struct stream;

struct stream *stream_new(int (*out)(void *arg, struct str piece), void *arg);
void stream_free(struct stream *s);
int stream_feed(struct stream *s, struct str in, struct err *err);
int stream_finish(struct stream *s, struct err *err); /* -EBADMSG when it ends in the middle */

#endif
