/* SPDX-License-Identifier: Apache-2.0 */
/* request.h - a question and the ways to answer it; for the handlers' own files only. */
#ifndef CLOCHE_WARDEN_RPC_REQUEST_H
#define CLOCHE_WARDEN_RPC_REQUEST_H

#include "warden/rpc/authority.h"
#include "warden/rpc/reply.h"

/* Who is at the other end of a link. */
struct listing;
struct peer {
  struct warden *warden;
  struct ipc *ipc;
  enum peer_kind kind;
  struct listing *listings; /* long answers under way; see list_handlers.c */
};

struct request {
  struct warden *warden;
  struct peer *peer;
  struct ipc *ipc;
  struct str packet;
  uint64_t id;
  struct str team;       /* proved by a gate, or as root says */
  enum authority proven; /* what the asker has shown */
  struct buf *out;       /* the answer being built */
  int lost;              /* a part of a long answer found no room: the reply says so */
};

void reply_begin(struct request *q, enum wire_type type, int status);
void reply_send(struct request *q); /* an item that finds no room turns the reply into an error */
void reply_error(struct request *q, int status, const char *message);
void reply_err(struct request *q, const struct err *err);
void reply_ok(struct request *q);
void reply_send_fd(struct request *q, int fd); /* a descriptor goes along, -1 = none; it stays the caller's */
/* The template a question names, whatever its tag; answers the refusal itself. */
struct template *request_template(struct request *q, bool *by_id);
void reply_put_template(struct request *q, struct template *t);
void reply_put_build(struct request *q, struct template *t, struct build *b); /* the same with this build */

struct origin request_origin(const struct request *q);
/* The fields of a box as the asker may see it: with its tokens for its own team, or what routing needs for nobody in
 * particular. */
void desk_put_box(struct buf *out, enum authority proven, const struct box *b);
struct box *request_box(struct request *q); /* the one asked about; NULL: the refusal is answered */
bool reply_possible(struct warden *w, struct origin origin);
void reply_packet(struct warden *w, struct origin origin,
                  const struct buf *b); /* nothing happens when the asking link is gone */

/* list_handlers.c: the boxes of a team, sent as fast as the asker reads them. */
void desk_list(struct request *q);
void desk_list_go_on(struct ipc *l, void *peer);
void desk_list_drop(struct peer *p);

/* copy_handlers.c: snapshots and forks. False when the type is not one of them. */
bool handle_copy(struct request *q, enum wire_type type);

/* catalog_handlers.c: teams, keys and templates. False when the type is not one of them. */
bool handle_catalog(struct request *q, enum wire_type type);
/* build_handlers.c: builds of templates and their files. */
bool handle_build(struct request *q, enum wire_type type);
/* import.c: the answer comes when the image is unpacked. */
void handle_import(struct request *q);
/* admin_handlers.c: what `cloche template` asks for beyond that. */
bool handle_admin(struct request *q, enum wire_type type);

#endif
