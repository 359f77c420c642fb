/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - a request and the ways to answer it at once; for the handlers (handlers.h) only. */
#ifndef CLOCHE_WARDEN_RPC_REQUEST_H
#define CLOCHE_WARDEN_RPC_REQUEST_H

#include "warden/core/reply.h"

enum peer_kind { PEER_GATE, PEER_ROOT };

#define ROOT_WHO_SIZE 64

/* The other end of a connection. */
struct listing;
struct peer {
  struct warden *warden;
  struct ipc *ipc;
  enum peer_kind kind;
  char who[ROOT_WHO_SIZE];  /* of a root peer: its user and process, see root_audit.h */
  struct listing *listings; /* long replies under way; see list_handlers.c */
};

struct request {
  struct warden *warden;
  struct peer *peer;
  struct ipc *ipc;
  struct str packet;
  uint64_t id;
  struct str team;       /* proven by a gate, or named by root */
  enum authority proven; /* what the sender has shown */
  struct buf *out;       /* the reply being built */
  int lost;              /* a part of a long reply found no room: the last packet says so */
};

void reply_begin(struct request *q, enum wire_type type, int status);
void reply_send(struct request *q); /* an item that finds no room turns the reply into an error */
void reply_error(struct request *q, int status, const char *message);
void reply_err(struct request *q, const struct err *err);
void reply_ok(struct request *q);
void reply_send_fd(struct request *q, int fd); /* a descriptor goes along, -1 = none; it stays the caller's */

struct origin request_origin(const struct request *q); /* to answer later */
/* The box that W_ID names; NULL: the refusal is sent, for a box that has ended with the cause. */
struct box *request_box(struct request *q);

#endif
