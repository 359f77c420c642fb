/* SPDX-License-Identifier: Apache-2.0 */
/* file_sink.h - one uploaded file, written in place.
 *
 * The order of calls is visible to watchers and therefore fixed: parents, chown of an existing file, open with
 * truncation, fchown of a new one, content (small content in a single write), metadata. No temporary file, no rename.
 * Runs on a worker thread or, for small uploads, on the loop. */
#ifndef CLOCHE_AGENT_ENVD_FILE_SINK_H
#define CLOCHE_AGENT_ENVD_FILE_SINK_H

#include "agent/user.h"
#include "rpc/schema.h"

#define SINK_BUFFER ((size_t)256 << 10)

struct sink {
  const struct user *user;
  const struct rpc_list *metadata;
  int64_t announced; /* Content-Length of the request, -1 = unknown */
  int fd;
  struct buf pending;
  int status; /* HTTP status of the failure, 0 = none */
  char message[1024];
};

/* All return 0, or negative with status and message set. */
int sink_open(struct sink *s, const char *path);
int sink_write(struct sink *s, struct str bytes);
int sink_pipe(struct sink *s, int pipe, size_t n); /* n bytes that the pipe holds */
int sink_close(struct sink *s);                    /* what is pending, then metadata */
void sink_abort(struct sink *s);                   /* closes; what was written stays */
int sink_fail(struct sink *s, int status, const char *fmt, ...) PRINTF_LIKE(3, 4);

#endif
