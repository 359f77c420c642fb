/* SPDX-License-Identifier: Apache-2.0 */
/* jwt.h - keys that sign JSON Web Tokens (ES256), and how they are published. */
#ifndef CLOCHE_WARDEN_SECRET_JWT_H
#define CLOCHE_WARDEN_SECRET_JWT_H

#include "base/base.h"

#define JWT_TEXT_SIZE 44 /* 32 bytes as base64url */
#define JWT_DER_MAX   512

/* What verifies: the coordinates of a point of P-256, and the key's name, which is their thumbprint (RFC 7638). */
struct jwt_public {
  char id[JWT_TEXT_SIZE], x[JWT_TEXT_SIZE], y[JWT_TEXT_SIZE];
};

struct jwt_key;
int jwt_key_make(struct jwt_key **out, struct err *err);
int jwt_key_read(struct str der, struct jwt_key **out, struct err *err);
int jwt_key_write(const struct jwt_key *k, struct buf *der); /* the private key: to be sealed, then wiped */
const struct jwt_public *jwt_key_public(const struct jwt_key *k);
void jwt_key_free(struct jwt_key *k);

/* Appends header.claims.signature; claims is a JSON object. */
int jwt_sign(const struct jwt_key *k, struct str claims, struct buf *out, struct err *err);
void jwt_public_put(struct jw *w, const struct jwt_public *p); /* as a JSON Web Key */

#endif
