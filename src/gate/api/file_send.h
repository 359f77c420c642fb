/* SPDX-License-Identifier: Apache-2.0 */
/* file_send.h - an answer whose body is a file that the gate was handed. Threads read it (disk_work.h), a piece ahead
 * of what the client takes. A file that became shorter meanwhile cuts the connection: the client was told its length.
 */
#ifndef CLOCHE_GATE_FILE_SEND_H
#define CLOCHE_GATE_FILE_SEND_H

#include "gate/api/api.h"

/* Takes fd and the rest of the exchange, r->drop included. sent: called when it is over; may be NULL. */
void file_send(struct req *r, const char *team, int fd, uint64_t size, const char *content_type,
               void (*sent)(const char *team));

#endif
