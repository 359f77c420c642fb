/* SPDX-License-Identifier: Apache-2.0 */
/* volume_token.h - the bearer that opens the files of one volume: its id, and an HMAC of it under the server's secret.
 * It needs no row of its own, is the same each time it is asked for, and ends with its volume. Pure. */
#ifndef CLOCHE_WARDEN_VOLUME_TOKEN_H
#define CLOCHE_WARDEN_VOLUME_TOKEN_H

#include "base/base.h"
#include "wire/sizes.h"

#define VOLUME_TOKEN_PREFIX "cvol_"
#define VOLUME_TOKEN_SIZE   (sizeof(VOLUME_TOKEN_PREFIX) + 36 + 1 + 2 * SHA256_LEN)

void volume_token_make(struct str secret, const char *id, char out[VOLUME_TOKEN_SIZE]);
/* The volume that it opens, 0; or -EACCES: it was not made with this secret. Whether the volume is still there is
 * another question. */
int volume_token_read(struct str secret, struct str token, char id[UUID_SIZE]);

#endif
