/* SPDX-License-Identifier: Apache-2.0 */
/* volume_token.c - see volume_token.h. */
#include "warden/volume/volume_token.h"

#include <stdio.h>

void volume_token_make(struct str secret, const char *id, char out[VOLUME_TOKEN_SIZE])
{
  uint8_t mac[SHA256_LEN];
  char hex[2 * SHA256_LEN + 1];
  cleanup_buf struct buf b = BUF_INIT(256);
  buf_addf(&b, "volume:%s", id);
  hmac_sha256(secret, buf_str(&b), mac);
  hex_encode(mac, sizeof(mac), hex);
  snprintf(out, VOLUME_TOKEN_SIZE, VOLUME_TOKEN_PREFIX "%.36s_%s", id, hex);
}

int volume_token_read(struct str secret, struct str token, char id[UUID_SIZE])
{
  char want[VOLUME_TOKEN_SIZE];
  struct str named = str_sub(token, sizeof(VOLUME_TOKEN_PREFIX) - 1, 36);
  if (token.n != VOLUME_TOKEN_SIZE - 1 || !str_starts(token, STR(VOLUME_TOKEN_PREFIX)) || !uuid_valid(named) ||
      str_copyz(named, id, UUID_SIZE))
    return -EACCES;
  volume_token_make(secret, id, want);
  return str_eq_secret(token, str_of(want)) ? 0 : -EACCES;
}
