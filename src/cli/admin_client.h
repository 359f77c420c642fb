/* SPDX-License-Identifier: Apache-2.0 */
/* admin_client.h - a connection to the running warden for commands of the host's root user: the same packets gates
 * send, over the socket <data>/warden.sock. */
#ifndef CLOCHE_CLI_ADMIN_CLIENT_H
#define CLOCHE_CLI_ADMIN_CLIENT_H

#include "wire/sizes.h"
#include "wire/wire.h"

struct line {
  int fd;
  char data[DATA_DIR_SIZE];
};

/* Takes `--data DIR` off the arguments (default /var/lib/cloche or CLOCHE_DATA) and connects. */
int admin_open(struct line *l, int *argc, char **argv, struct err *err);
/* Takes `--team ID` off the arguments. */
void admin_take_team(int *argc, char **argv, char team[UUID_SIZE]);
int admin_reopen(struct line *l, struct err *err); /* the same server, after admin_close */
/* Sends the packet in b; `item` (may be NULL) gets each row. The reply's packet is left in b. Its status is returned.
 */
int admin_call(struct line *l, struct buf *b, void (*item)(struct str packet, void *arg), void *arg, struct err *err);
/* The same for answers that come with a descriptor: it is left in *fd, -1 when there is none. */
int admin_fetch(struct line *l, struct buf *b, int *fd, struct err *err);
void admin_close(struct line *l);

#endif
