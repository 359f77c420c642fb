/* SPDX-License-Identifier: Apache-2.0 */
/* upload_write.h - pieces of uploads go to the disk on threads (disk_work.h). One piece of an upload is under way at a
 * time: who uploads reads no further meanwhile, so that no more than that piece waits. */
#ifndef CLOCHE_UPLOAD_WRITE_H
#define CLOCHE_UPLOAD_WRITE_H

#include "gate/gate_state.h"

struct upload_write;
typedef void (*upload_written_fn)(void *arg, int code); /* 0 or a negative errno */

/* Writes a copy of `data`; fd stays the caller's. `written` comes from the loop, never from inside this call. */
struct upload_write *upload_write(struct gate *g, const char *team, int fd, struct str data, upload_written_fn written,
                                  void *arg);
/* Nobody waits for it any more: `written` does not come, and fd, which is taken over, is closed when it is not in use.
 */
void upload_write_leave(struct upload_write *w, int fd);

#endif
