/* SPDX-License-Identifier: Apache-2.0 */
/* signature.c - see signature.h. */
#include "warden/webhook/signature.h"

void signature_v1(struct str secret, struct str body, char out[SIGNATURE_TEXT])
{
  uint8_t digest[SHA256_LEN];
  struct sha256 hash;
  cleanup_buf struct buf b = BUF_INIT(SIGNATURE_TEXT);
  sha256_init(&hash);
  sha256_add(&hash, secret.p, secret.n);
  sha256_add(&hash, body.p, body.n);
  sha256_end(&hash, digest);
  base64_add(&b, digest, sizeof(digest), false);
  memcpy(out, b.p, SIGNATURE_TEXT - 1);
  out[SIGNATURE_TEXT - 1] = 0;
}

void signature_hmac(struct str secret, struct str body, char out[2 * SHA256_LEN + 1])
{
  uint8_t digest[SHA256_LEN];
  hmac_sha256(secret, body, digest);
  hex_encode(digest, sizeof(digest), out);
}
