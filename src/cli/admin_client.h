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
/* Whether a server may run here: its socket is there. */
bool admin_server_there(void);
int admin_reopen(struct line *l, struct err *err); /* the same server, after admin_close */
/* Sends the packet in b; `item` (may be NULL) gets each row. The reply's packet is left in b. Its status is returned.
 */
int admin_call(struct line *l, struct buf *b, void (*item)(struct str packet, void *arg), void *arg, struct err *err);
/* The same for answers that come with a descriptor: it is left in *fd, -1 when there is none. */
int admin_fetch(struct line *l, struct buf *b, int *fd, struct err *err);
void admin_close(struct line *l);

/* Takes `--json` off the arguments. */
bool admin_take_json(int *argc, char **argv);
/* Rows as a JSON array, for programs. */
struct json_field {
  const char *name;
  enum wire_tag tag;
  enum { FIELD_TEXT, FIELD_NUMBER, FIELD_TIME, FIELD_FLAG, FIELD_STATE } kind; /* STATE: of a box */
};
struct json_rows {
  const struct json_field *fields;
  size_t count;
  struct buf out;
  struct jw w;
};
void json_rows_begin(struct json_rows *r, const struct json_field *fields, size_t count);
void json_rows_item(struct str packet, void *rows); /* for admin_call */
/* Prints them where `status` is 0, and frees them; returns it. */
int json_rows_end(struct json_rows *r, int status);
/* All of it: sends the packet in b and prints the rows that come back. */
int admin_print_json(struct line *l, struct buf *b, const struct json_field *fields, size_t count, struct err *err);

#endif
