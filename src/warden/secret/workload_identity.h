/* SPDX-License-Identifier: Apache-2.0 */
/* workload_identity.h - tokens that say which box a request is from, for others to verify.
 *
 * A box is given names of tokens and the audience of each when it is created (row_box.tokens: lines of name, tab,
 * audience). A token is a JWT-SVID, signed when a request needs it, by a key of the server that lies sealed in the
 * store (secrets.h); what verifies is published. A key is followed by another one after a while, and stays published
 * for as long as a token of it can be valid. */
#ifndef CLOCHE_WARDEN_SECRET_WORKLOAD_IDENTITY_H
#define CLOCHE_WARDEN_SECRET_WORKLOAD_IDENTITY_H

#include "warden/db/store.h"

struct warden;

#define IDENTITY_TOKEN_MAX (16u << 10) /* bytes of a token */

/* Appends the box's token of this name, valid from now on; *reuse_s: for so long it may be used again. Quick enough for
 * the loop: one signature. -ENOENT: the box has no such token. -ENOKEY: the master key is missing. */
int identity_token(struct warden *w, const struct row_box *row, struct str name, struct buf *out, unsigned *reuse_s,
                   struct err *err);
bool identity_has(const struct row_box *row, struct str name);

bool identity_ready(struct warden *w, struct err *err);                   /* tokens can be signed */
void identity_published(struct warden *w, struct buf *jwks);              /* a JSON Web Key Set */
int identity_rotate(struct warden *w, struct err *err);                   /* another key from now on */
int identity_reseal(struct warden *w, uint64_t *failed, struct err *err); /* by the current master key */
void identity_close(void);

#endif
