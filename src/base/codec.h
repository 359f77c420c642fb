/* SPDX-License-Identifier: Apache-2.0 */
/* codec.h - bytes as text and bytes as fingerprints: hex, base64, UTF-8, percent, SHA-256, HMAC, CRC, random ids. */
#ifndef CLOCHE_CODEC_H
#define CLOCHE_CODEC_H

#include "base/buf.h"
#include "base/str.h"

void hex_encode(const void *p, size_t n, char *out); /* 2n chars + NUL */
int hex_decode(struct str s, void *out, size_t n);   /* exactly n bytes, either case; 0 or -EINVAL */

int base64_add(struct buf *b, const void *p, size_t n, bool pad);
/* Standard or URL-safe alphabet, padding optional; appends the bytes. -EINVAL on anything else. */
int base64_decode(struct str s, struct buf *out);

bool utf8_valid(struct str s);
/* Length of the longest prefix that does not end inside a sequence (invalid bytes count as complete). */
size_t utf8_whole(struct str s);
int utf8_clean(struct str s, struct buf *out); /* appends it; each byte that is none of a character becomes U+FFFD */

/* %XX decoding; `plus` also turns '+' into a space (query values). -EINVAL on a broken escape. */
int percent_decode(struct str s, bool plus, struct buf *out);
int percent_encode(struct str s, struct buf *out); /* keeps unreserved characters */
/* First value of `name` in a raw query string, decoded; 1 found, 0 absent, negative on a broken escape, -E2BIG when it
 * is not among the first QUERY_PAIRS_MAX pairs and there are more. */
#define QUERY_PAIRS_MAX 256
int query_get(struct str query, const char *name, struct buf *out);

#define SHA256_LEN 32
struct sha256 {
  uint32_t h[8];
  uint64_t len;
  uint8_t block[64];
};
void sha256_init(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *p, size_t n);
void sha256_end(struct sha256 *s, uint8_t out[SHA256_LEN]);
void sha256_of(const void *p, size_t n, uint8_t out[SHA256_LEN]);
void sha256_portable(bool on); /* for tests: without the processor's own instructions */
void hmac_sha256(struct str key, struct str msg, uint8_t out[SHA256_LEN]);

uint32_t crc32c(uint32_t crc, const void *p, size_t n); /* of what came before (0 at first) and these bytes */

void random_bytes(void *p, size_t n);
void random_id(char *out, size_t n); /* n characters of [a-z0-9] + NUL */
#define UUID_TEXT 37
void uuid4(char out[UUID_TEXT]);
bool uuid_valid(struct str s);

#endif
