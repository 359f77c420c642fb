/* SPDX-License-Identifier: Apache-2.0 */
/* box_reply.h - how a box is described in replies, and which client may see what of it. */
#ifndef CLOCHE_WARDEN_BOX_REPLY_H
#define CLOCHE_WARDEN_BOX_REPLY_H

#include "warden/core/box_state.h"

void box_put_fields(struct buf *packet, const struct box *b); /* everything but tokens */
/* What the sender of a request may see: its own team also the tokens, the edge only what routing needs. */
void box_put_visible(struct buf *out, enum authority proven, const struct box *b);

/* Stock clients send a box's access token to its interpreter with cells, but not with requests about contexts. For
 * those it counts that the client, by its address, has shown the token or the key of the box's team before. */
void box_vouch(struct box *b, const uint8_t client[16]);
bool box_vouched(const struct box *b, const uint8_t client[16]);

/* The reply to a request about a box. Nothing is sent when the connection is gone. */
void reply_box(struct warden *w, struct origin origin, int status, struct box *b, const struct err *err);
/* The same with the marks that it passed; NULL: none. */
void reply_traced(struct warden *w, struct origin origin, int status, struct box *b, const struct err *err,
                  const struct wire_trace *trace);
/* The same to a create, with the trace of the launch. */
void reply_created(struct warden *w, struct origin origin, int status, struct box *b, const struct err *err);
/* One box of several; files: it has no memory of the source, only its files. reply_end follows the last one. */
void reply_item(struct warden *w, struct origin origin, int status, struct box *b, bool files, const struct err *err);

struct template;
void put_snapshot(struct buf *p, struct warden *w, const struct template *t, struct str tag);
void reply_snapshot(struct warden *w, struct origin origin, const struct template *t, const char *tag, bool files);

#endif
