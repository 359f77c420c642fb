/* SPDX-License-Identifier: Apache-2.0 */
/* compressed_file.h - bytes written to a file compressed: zstd on all cores, or gzip for those who can't read that.
 */
#ifndef CLOCHE_CLI_COMPRESSED_FILE_H
#define CLOCHE_CLI_COMPRESSED_FILE_H

#include "base/base.h"

struct pack;

/* fd is taken over. NULL when there is no memory for it. */
struct pack *pack_new(int fd, bool gzip);
int pack_put(struct pack *p, struct str in); /* 0 or -EIO */
/* What is left goes out and the file is closed; 0 or -EIO. NULL is fine. */
int pack_finish(struct pack *p);

#endif
