/* SPDX-License-Identifier: Apache-2.0 */
/* sha256.c - SHA-256 and HMAC for tokens, signatures, layer keys and images. Written here because the agent is static
 * and must stay small; TLS uses OpenSSL. Where the processor has instructions for it they are used: images are
 * gigabytes. */
#include "base/codec.h"
#include "base/core.h"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t ror(uint32_t x, int n)
{
  return x >> n | x << (32 - n);
}

static void block_portable(struct sha256 *s, const uint8_t *p)
{
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    uint32_t a = w[i - 15], b = w[i - 2];
    w[i] = w[i - 16] + w[i - 7] + (ror(a, 7) ^ ror(a, 18) ^ a >> 3) + (ror(b, 17) ^ ror(b, 19) ^ b >> 10);
  }
  memcpy(v, s->h, sizeof(v));
  for (int i = 0; i < 64; i++) {
    uint32_t s1 = ror(v[4], 6) ^ ror(v[4], 11) ^ ror(v[4], 25), ch = (v[4] & v[5]) ^ (~v[4] & v[6]);
    uint32_t t1 = v[7] + s1 + ch + K[i] + w[i];
    uint32_t s0 = ror(v[0], 2) ^ ror(v[0], 13) ^ ror(v[0], 22), maj = (v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]);
    memmove(v + 1, v, 7 * sizeof(*v));
    v[4] += t1;
    v[0] = t1 + s0 + maj;
  }
  for (int i = 0; i < 8; i++)
    s->h[i] += v[i];
}

#if defined(__x86_64__)
/* The instructions keep the eight words as two rows, A B E F and C D G H, and do two rounds at a time. */
__attribute__((target("sha,sse4.1,ssse3"))) static void block_own(struct sha256 *s, const uint8_t *p)
{
  const __m128i swap = _mm_set_epi64x(0x0c0d0e0f08090a0bLL, 0x0405060700010203LL);
  __m128i w[16];
  __m128i low = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)&s->h[0]), 0xb1),
          high = _mm_shuffle_epi32(_mm_loadu_si128((const __m128i *)&s->h[4]), 0x1b);
  __m128i abef = _mm_alignr_epi8(low, high, 8), cdgh = _mm_blend_epi16(high, low, 0xf0);
  const __m128i abef_before = abef, cdgh_before = cdgh;
  for (int i = 0; i < 16; i++) {
    if (i < 4)
      w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(p + (ptrdiff_t)16 * i)), swap);
    else
      w[i] = _mm_sha256msg2_epu32(
          _mm_add_epi32(_mm_sha256msg1_epu32(w[i - 4], w[i - 3]), _mm_alignr_epi8(w[i - 1], w[i - 2], 4)), w[i - 1]);
    __m128i words = _mm_add_epi32(w[i], _mm_loadu_si128((const __m128i *)&K[(ptrdiff_t)4 * i]));
    cdgh = _mm_sha256rnds2_epu32(cdgh, abef, words);
    abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(words, 0x0e));
  }
  low = _mm_shuffle_epi32(_mm_add_epi32(abef, abef_before), 0x1b);
  high = _mm_shuffle_epi32(_mm_add_epi32(cdgh, cdgh_before), 0xb1);
  _mm_storeu_si128((__m128i *)&s->h[0], _mm_blend_epi16(low, high, 0xf0));
  _mm_storeu_si128((__m128i *)&s->h[4], _mm_alignr_epi8(high, low, 8));
}

static bool has_own(void)
{
  unsigned a, b, c, d, a7, b7, c7, d7;
  return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1) && (c & bit_SSSE3) &&
         __get_cpuid_count(7, 0, &a7, &b7, &c7, &d7) && (b7 & bit_SHA);
}
#else
static void block_own(struct sha256 *s, const uint8_t *p)
{
  block_portable(s, p);
}

static bool has_own(void)
{
  return false;
}
#endif

enum way { UNKNOWN, PORTABLE, OWN };
static _Atomic enum way way;

void sha256_portable(bool on)
{
  way = on ? PORTABLE : UNKNOWN;
}

static void sha256_block(struct sha256 *s, const uint8_t *p)
{
  enum way known = way;
  if (known == UNKNOWN) /* every thread finds the same */
    way = known = has_own() ? OWN : PORTABLE;
  if (known == OWN)
    block_own(s, p);
  else
    block_portable(s, p);
}

void sha256_init(struct sha256 *s)
{
  *s = (struct sha256){
      .h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *s, const void *p, size_t n)
{
  const uint8_t *at = p;
  size_t have = s->len % 64;
  s->len += n;
  while (n > 0) {
    if (have == 0 && n >= 64) {
      sha256_block(s, at);
      at += 64;
      n -= 64;
      continue;
    }
    size_t k = MIN(n, 64 - have);
    memcpy(s->block + have, at, k);
    at += k;
    n -= k;
    have = (have + k) % 64;
    if (have == 0)
      sha256_block(s, s->block);
  }
}

void sha256_end(struct sha256 *s, uint8_t out[SHA256_LEN])
{
  uint64_t bits = s->len * 8;
  uint8_t tail[72] = {0x80};
  size_t pad = (s->len % 64 < 56 ? 56 : 120) - s->len % 64;
  for (int i = 0; i < 8; i++)
    tail[pad + (size_t)i] = (uint8_t)(bits >> (56 - 8 * i));
  sha256_add(s, tail, pad + 8);
  for (int i = 0; i < 32; i++)
    out[i] = (uint8_t)(s->h[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_of(const void *p, size_t n, uint8_t out[SHA256_LEN])
{
  struct sha256 s;
  sha256_init(&s);
  sha256_add(&s, p, n);
  sha256_end(&s, out);
}

void hmac_sha256(struct str key, struct str msg, uint8_t out[SHA256_LEN])
{
  uint8_t pad[64], k[64] = {0}, inner[SHA256_LEN];
  if (key.n > 64)
    sha256_of(key.p, key.n, k);
  else if (key.n)
    memcpy(k, key.p, key.n);
  struct sha256 s;
  sha256_init(&s);
  for (int i = 0; i < 64; i++)
    pad[i] = k[i] ^ 0x36;
  sha256_add(&s, pad, 64);
  sha256_add(&s, msg.p, msg.n);
  sha256_end(&s, inner);
  sha256_init(&s);
  for (int i = 0; i < 64; i++)
    pad[i] = k[i] ^ 0x5c;
  sha256_add(&s, pad, 64);
  sha256_add(&s, inner, sizeof(inner));
  sha256_end(&s, out);
}
