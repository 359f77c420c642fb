/* SPDX-License-Identifier: Apache-2.0 */
/* reply.h - where questions are answered: those of gates, which prove what they may ask (authority.h), and those of the
 * machine's own root, who may ask everything. */
#ifndef CLOCHE_WARDEN_RPC_REPLY_H
#define CLOCHE_WARDEN_RPC_REPLY_H

#include "warden/box.h"

enum peer_kind { PEER_GATE, PEER_ROOT };

/* Takes the descriptor; the link is among the warden's from now on and leaves by itself. */
struct ipc *desk_link(struct warden *w, int fd, enum peer_kind kind);

/* The late answer to a create (or another question about a box); nothing happens when the asking link is gone. */
void reply_box(struct warden *w, struct origin origin, int status, struct box *b, const struct err *err);
/* The same to a create, with the trace of the launch. */
void reply_created(struct warden *w, struct origin origin, int status, struct box *b, const struct err *err);

/* Answers of more than one part, and others about what was made of a box. */
struct template;
/* files: it has no memory of the source, only its files */
void reply_item(struct warden *w, struct origin origin, int status, struct box *b, bool files, const struct err *err);
void reply_end(struct warden *w, struct origin origin, int status,
               const struct err *err); /* err may be NULL when status is 0 */
void reply_snapshot(struct warden *w, struct origin origin, const struct template *t, const char *tag, bool files);

#endif
