/* SPDX-License-Identifier: Apache-2.0 */
/* upload_write.h - the body of an upload goes to its file on threads (disk_work.h), in few large pieces: what comes
 * while one piece is being written makes up the next. When that one is full (UPLOAD_PIECE) the client's body is not
 * read until the first is written, so an upload holds two pieces at most. Of large bodies that come as they are
 * (HTTP/1.1 without TLS, of known length) the thread takes the bytes from the socket itself, and they stay in the
 * kernel: from the socket to the thread's pipe to the file, as long as they come fast, and a slice of time at most. */
#ifndef CLOCHE_UPLOAD_WRITE_H
#define CLOCHE_UPLOAD_WRITE_H

#include "gate/api/disk_work.h"

#define UPLOAD_PIECE ((size_t)1 << 20)

struct upload_write;
/* Once: 0 after upload_write_end, when all is in the file; or a negative errno as soon as something can't be written.
 * From the loop, never from inside a call of these. */
typedef void (*upload_written_fn)(void *arg, int code);

/* Takes fd. The bytes count as held by x, whose body is paused and resumed here. */
struct upload_write *upload_write_new(struct gate *g, struct http_x *x, enum disk disk, const char *team, int fd,
                                      upload_written_fn written, void *arg);
void upload_write_add(struct upload_write *w, struct str data);                  /* copied */
enum http_lend upload_write_lend(struct upload_write *w, int fd, uint64_t most); /* of http_x_ops */
bool upload_write_end(struct upload_write *w); /* no more comes; true: all is written, and `written` does not come */
/* Nobody waits for it any more: `written` does not come. The file is closed, when it is not in use, on a thread. */
void upload_write_leave(struct upload_write *w);

#endif
