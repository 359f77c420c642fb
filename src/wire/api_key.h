/* SPDX-License-Identifier: Apache-2.0 */
/* api_key.h - API keys, access tokens and the tokens of boxes. A key is shown once; only the hash of its bytes is kept.
 * A box's tokens are HMACs of its id under the server's secret, so they stay the same for its whole life and need no
 * table. */
#ifndef CLOCHE_WIRE_API_KEY_H
#define CLOCHE_WIRE_API_KEY_H

#include "base/base.h"

#define KEY_TEXT            48
#define KEY_MASK_SIZE       64 /* what is shown of a key afterwards */
#define TOKEN_TEXT          (2 * SHA256_LEN + 1)

/* An access token is a key that is shown as a bearer, for what belongs to a team rather than to its sandboxes. It has a
 * prefix of its own, which is part of what is hashed: it never passes as an API key, nor a key as a token. */
#define ACCESS_TOKEN_PREFIX "sk_e2b_"

void access_token_make(char text[KEY_TEXT], uint8_t hash[SHA256_LEN], char mask[KEY_MASK_SIZE]);
int access_token_hash(struct str text, uint8_t hash[SHA256_LEN]); /* -EINVAL when it is not the prefix + hex */

void key_make(char text[KEY_TEXT], uint8_t hash[SHA256_LEN], char mask[KEY_MASK_SIZE]);
int key_hash(struct str text, uint8_t hash[SHA256_LEN]); /* -EINVAL when it is not e2b_ + hex */

enum token_kind { TOKEN_ACCESS, TOKEN_TRAFFIC };
void token_make(struct str secret, enum token_kind kind, struct str box, char out[TOKEN_TEXT]);

#endif
