/* SPDX-License-Identifier: Apache-2.0 */
/* signature.h - how a receiver knows that an event is from this server. */
#ifndef CLOCHE_WARDEN_WEBHOOK_SIGNATURE_H
#define CLOCHE_WARDEN_WEBHOOK_SIGNATURE_H

#include "base/base.h"

#define SIGNATURE_TEXT 44 /* 32 bytes in base64 without the final "=", and NUL */

/* What the contract wants: base64(SHA-256(secret, then body)) in the standard alphabet, without "=". */
void signature_v1(struct str secret, struct str body, char out[SIGNATURE_TEXT]);
/* HMAC-SHA-256 of the body in hex, which nobody can extend who has seen one. */
void signature_hmac(struct str secret, struct str body, char out[2 * SHA256_LEN + 1]);

#endif
