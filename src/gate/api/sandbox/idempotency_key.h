/* SPDX-License-Identifier: Apache-2.0 */
/* idempotency_key.h - the header Idempotency-Key of a create, and what makes two requests the same. */
#ifndef CLOCHE_GATE_IDEMPOTENCY_KEY_H
#define CLOCHE_GATE_IDEMPOTENCY_KEY_H

#include "wire/sizes.h"
#include "wire/wire.h"

/* 1 to 255 of a-z, 0-9 and hyphen; -EINVAL. */
int idempotency_key_check(struct str key, struct err *err);

/* SHA-256 of everything in a request to the warden that has an effect: all fields but the box's id, with the JSON texts
 * by their values, so that white space, escapes and the order of names don't count, nor do empty objects. -ENOMEM: the
 * arena is full. */
int idempotency_fingerprint(struct arena *a, struct str packet, uint8_t out[SHA256_LEN]);

#endif
