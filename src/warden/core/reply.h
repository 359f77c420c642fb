/* SPDX-License-Identifier: Apache-2.0 */
/* reply.h - answers to requests, given at once or later. The modules of a box's life answer through this one and know
 * nothing of the handlers (rpc/) that called them. */
#ifndef CLOCHE_WARDEN_REPLY_H
#define CLOCHE_WARDEN_REPLY_H

#include "wire/ipc.h"
#include "wire/wire.h"

struct warden;

/* What the sender of a request has proven; rpc/authority.h decides which of them a request needs. */
enum authority {
  BY_ANYONE = 1, /* no proof; the handler shows and does only what the edge needs */
  BY_KEY = 2,    /* W_PROOF is the hash of a key; the team is that key's */
  BY_ADMIN = 4,  /* W_ADMIN is the hash of the administrator's token; the team is the one W_TEAM names */
  BY_LINK = 8,   /* W_SIGNATURE of an upload link, under the server's secret; the team is the one it was made for */
  BY_ROOT = 16,  /* the host's root user, on the warden's own socket */
};

/* Where a request came from, so that it can be answered later; the connection may be gone by then. */
struct origin {
  struct ipc *ipc; /* NULL: no request, the warden itself started the operation */
  uint64_t serial; /* of the connection: its address may belong to another one by now */
  uint64_t id;
  bool resumed;          /* goes into the reply: this request resumed the box */
  bool again;            /* repeated: the first one was sent to a warden that has died since */
  enum authority proven; /* decides which fields of a box the reply shows */
  uint8_t client[16];    /* W_CLIENT; zeros = none */
};

/* The connections that can be answered on; whoever opens and closes them says so. */
void reply_link_add(struct warden *w, struct ipc *ipc);
void reply_link_remove(struct warden *w, struct ipc *ipc);

bool reply_possible(struct warden *w, struct origin origin);
/* Sends a whole packet; does nothing when the connection is gone. */
void reply_packet(struct warden *w, struct origin origin, const struct buf *b);
/* The last packet of a reply; err may be NULL when status is 0. */
void reply_end(struct warden *w, struct origin origin, int status, const struct err *err);
/* A packet on a connection that is open; a descriptor goes along, -1 = none; it stays the caller's. */
void reply_send_on(struct ipc *ipc, const struct buf *b, int fd);
/* Called with the last packet of each reply, before it is sent. */
void reply_on_end(void (*ended)(struct ipc *ipc, struct str packet));
/* To all gates and the root user's connections. */
void reply_broadcast(struct warden *w, struct str packet);

#endif
