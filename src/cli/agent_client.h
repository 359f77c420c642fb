/* SPDX-License-Identifier: Apache-2.0 */
/* agent_client.h - requests to the agent of a box, for commands of the host's root user: the warden hands out a
 * connection into the box and the box's token, and the envd API is spoken over it. What comes back was written inside
 * the box: its lengths are bounded and nothing of it is believed. */
#ifndef CLOCHE_CLI_AGENT_CLIENT_H
#define CLOCHE_CLI_AGENT_CLIENT_H

#include "cli/admin_client.h"
#include "net/h1reader.h"

#define AGENT_CLIENT_PORT  49983
#define AGENT_CLIENT_TOKEN 128

struct agent_client {
  struct line *line;
  char id[BOX_ID_SIZE], token[AGENT_CLIENT_TOKEN];
  struct buf auth; /* header lines of every request */
};

/* The token that the agent of a box requires; the box need not be there yet. */
int agent_client_token(struct line *l, const char *id, char token[AGENT_CLIENT_TOKEN], struct err *err);
/* `user` may be NULL: the template's own. */
int agent_client_open(struct agent_client *in, struct line *l, const char *id, const char *user, struct err *err);
void agent_client_close(struct agent_client *in);

/* One request and its response, read as it comes. */
struct exchange {
  int fd; /* -1: not connected */
  struct h1_reader response;
  struct buf raw; /* what was not looked at yet */
  struct buf body;
};

void exchange_init(struct exchange *x);
/* Sends a request; an open connection is reused. `stream` chooses the content type and puts the frame's
 * head. */
int exchange_request(struct agent_client *in, struct exchange *x, const char *path, struct str json, bool stream,
                     struct err *err);
int exchange_read(struct exchange *x,
                  struct err *err); /* one read, when there is something; -ECONNRESET at an early end */
/* The next whole message of a stream's body: 1 when *json holds one (until the next call), 0 when more must come. */
int exchange_frame(struct exchange *x, struct buf *json, bool *end);
void exchange_close(struct exchange *x);

#endif
