/* SPDX-License-Identifier: Apache-2.0 */
/* authority.h - who may send the warden which request.
 *
 * A gate parses what strangers send and is the likeliest part to be taken over. It therefore has no authority of its
 * own: for each request it shows what a client has shown to it, and the warden derives the team from that. What needs
 * no proof is what the edge does for everybody: check a key, look up a route, open a connection into a box, resume a
 * box that traffic may resume. The host's root user may send every request and name any team. */
#ifndef CLOCHE_WARDEN_RPC_AUTHORITY_H
#define CLOCHE_WARDEN_RPC_AUTHORITY_H

#include "warden/rpc/request.h"

/* Checks a request of a type that `may` (flags of enum authority, 0 = root only) send. Fills q->team and q->proven.
 * Negative: refused, and answered. */
int authority_admit(struct request *q, enum wire_type type, unsigned may);

bool authority_admin(const struct request *q); /* W_ADMIN is right */

#define UPLOAD_LINK_S 7200 /* clients ask for a link and upload at once, but a large archive may take its time */
void upload_sign(const struct warden *w, struct str team, struct str hash, uint64_t expires,
                 char out[2 * SHA256_LEN + 1]);

#endif
