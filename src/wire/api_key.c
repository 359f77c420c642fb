/* SPDX-License-Identifier: Apache-2.0 */
/* api_key.c - see api_key.h. */
#include "wire/api_key.h"

#include <stdio.h>

void key_make(char text[KEY_TEXT], uint8_t hash[SHA256_LEN], char mask[KEY_MASK_SIZE])
{
  uint8_t raw[20];
  char hex[41];
  random_bytes(raw, sizeof(raw));
  hex_encode(raw, sizeof(raw), hex);
  snprintf(text, KEY_TEXT, "e2b_%s", hex);
  sha256_of(raw, sizeof(raw), hash);
  snprintf(mask, 64, "e2b_:40:%.2s:%.4s", hex, hex + 36);
}

int key_hash(struct str text, uint8_t hash[SHA256_LEN])
{
  uint8_t raw[64];
  if (!str_starts(text, STR("e2b_")) || text.n % 2 || text.n < 6 || text.n > 4 + 2 * sizeof(raw))
    return -EINVAL;
  size_t n = (text.n - 4) / 2;
  if (hex_decode(str_skip(text, 4), raw, n))
    return -EINVAL;
  sha256_of(raw, n, hash);
  return 0;
}

static void hash_token(struct str text, uint8_t hash[SHA256_LEN])
{
  sha256_of(text.p, text.n, hash);
}

void access_token_make(char text[KEY_TEXT], uint8_t hash[SHA256_LEN], char mask[KEY_MASK_SIZE])
{
  uint8_t raw[20];
  char hex[41];
  random_bytes(raw, sizeof(raw));
  hex_encode(raw, sizeof(raw), hex);
  snprintf(text, KEY_TEXT, ACCESS_TOKEN_PREFIX "%s", hex);
  hash_token(str_of(text), hash);
  snprintf(mask, KEY_MASK_SIZE, ACCESS_TOKEN_PREFIX ":40:%.2s:%.4s", hex, hex + 36);
}

int access_token_hash(struct str text, uint8_t hash[SHA256_LEN])
{
  uint8_t raw[20];
  size_t prefix = strlen(ACCESS_TOKEN_PREFIX);
  if (!str_starts(text, STR(ACCESS_TOKEN_PREFIX)) || text.n != prefix + 2 * sizeof(raw) ||
      hex_decode(str_skip(text, prefix), raw, sizeof(raw)))
    return -EINVAL;
  hash_token(text, hash);
  return 0;
}

void token_make(struct str secret, enum token_kind kind, struct str box, char out[TOKEN_TEXT])
{
  uint8_t mac[SHA256_LEN];
  cleanup_buf struct buf text = BUF_INIT(512);
  buf_addz(&text, kind == TOKEN_ACCESS ? "access:" : "traffic:");
  buf_adds(&text, box);
  hmac_sha256(secret, buf_str(&text), mac);
  hex_encode(mac, sizeof(mac), out);
}
