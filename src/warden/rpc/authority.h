/* SPDX-License-Identifier: Apache-2.0 */
/* authority.h - who may ask the warden what.
 *
 * A gate parses what strangers send and is the likeliest part to be taken over. It therefore has no authority of its
 * own: for each request it shows what a client has shown to it, and the warden derives the team from that. What needs
 * no proof is what the edge does for everybody: check a key, look up a route, open a connection into a box, wake a box
 * that traffic may wake. The machine's own root may ask everything, and names teams as it likes. A type that is missing
 * from the table is root's alone. */
#ifndef CLOCHE_WARDEN_RPC_AUTHORITY_H
#define CLOCHE_WARDEN_RPC_AUTHORITY_H

#include "wire/wire.h"

enum authority {
  BY_ANYONE = 1, /* no proof; the handler shows and does only what the edge needs */
  BY_KEY = 2,    /* W_PROOF is the hash of a key; the team is that key's */
  BY_ADMIN = 4,  /* W_ADMIN is the hash of the administrator's token; the team is the one W_TEAM names */
  BY_LINK = 8,   /* W_SIGNATURE of an upload link, under the server's secret; the team is the one it was made for */
  BY_ROOT = 16,
};

struct request;
/* Fills q->team and q->proven. Negative: refused, and answered. */
int authority_admit(struct request *q, enum wire_type type);

bool authority_admin(const struct request *q); /* W_ADMIN is right */

struct warden;
#define UPLOAD_LINK_S 7200 /* clients ask for a link and upload at once, but a large archive may take its time */
void upload_sign(const struct warden *w, struct str team, struct str hash, uint64_t expires,
                 char out[2 * SHA256_LEN + 1]);

/* What a gate may name a box, a template: they become names of files. */
bool id_good(struct str id); /* 1 to 47 of a-z and 0-9 */

#endif
