/* SPDX-License-Identifier: Apache-2.0 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cloche.h"
#include "mem.h"

#define BLOCK_BYTES 1024
#define ALIGNED(n)  (((n) + 15) & ~(size_t)15)

struct arena_block {
  struct arena_block *next;
  size_t size;
};

static void *arena_grow(struct arena *a, size_t need)
{
  size_t head = ALIGNED(sizeof(struct arena_block));
  size_t room = a->blocks ? a->blocks->size * 2 : BLOCK_BYTES;
  if (room > (1 << 20))
    room = 1 << 20;
  if (room < need)
    room = need;
  if (room > SIZE_MAX - head)
    return NULL;
  if (a->max && (a->size > a->max || head + room > a->max - a->size)) {
    a->full = true;
    return NULL;
  }
  struct arena_block *block = malloc(head + room);
  if (!block)
    return NULL;
  a->size += head + room;
  block->size = room;
  char *begin = (char *)block + head;
  if (room == need && a->blocks) { /* a large one of its own: what is left of the last block stays in use */
    block->next = a->blocks->next;
    a->blocks->next = block;
    return begin;
  }
  block->next = a->blocks;
  a->blocks = block;
  a->at = begin + need;
  a->end = begin + room;
  return begin;
}

void *arena_alloc(struct arena *a, size_t size)
{
  if (size > SIZE_MAX / 2)
    return NULL;
  size_t need = ALIGNED(size ? size : 1);
  char *found = NULL;
  if (a->at && (size_t)(a->end - a->at) >= need) {
    found = a->at;
    a->at += need;
  } else {
    found = arena_grow(a, need);
  }
  if (found)
    memset(found, 0, need);
  return found;
}

void *arena_array(struct arena *a, size_t count, size_t size)
{
  if (size && count > SIZE_MAX / 2 / size)
    return NULL;
  return arena_alloc(a, count * size);
}

char *arena_text(struct arena *a, const char *data, size_t len)
{
  char *out = len < SIZE_MAX / 2 ? arena_alloc(a, len + 1) : NULL;
  if (out && len)
    memcpy(out, data, len);
  return out;
}

void arena_free(struct arena *a)
{
  while (a->blocks) {
    struct arena_block *next = a->blocks->next;
    free(a->blocks);
    a->blocks = next;
  }
  a->at = a->end = NULL;
}

#define RESULT_HEAD ALIGNED(sizeof(struct arena))

void *result_new(size_t size)
{
  struct arena a = {0};
  char *head = arena_alloc(&a, RESULT_HEAD + size);
  if (!head)
    return NULL;
  memcpy(head, &a, sizeof a);
  return head + RESULT_HEAD;
}

struct arena *result_arena(void *result)
{
  return (struct arena *)(void *)((char *)result - RESULT_HEAD);
}

void cloche_free(void *result)
{
  if (!result)
    return;
  struct arena a = *result_arena(result);
  arena_free(&a);
}

void buf_free(struct buf *b)
{
  free(b->data);
  size_t max = b->max;
  *b = (struct buf){.max = max};
}

static bool buf_room(struct buf *b, size_t more)
{
  if (b->failed || more > SIZE_MAX / 4 || (b->max && b->len + more > b->max)) {
    b->failed = true;
    return false;
  }
  if (b->len + more + 1 <= b->cap)
    return true;
  size_t cap = b->cap ? b->cap : 256;
  while (cap < b->len + more + 1)
    cap *= 2;
  char *data = realloc(b->data, cap);
  if (!data) {
    b->failed = true;
    return false;
  }
  b->data = data;
  b->cap = cap;
  return true;
}

void buf_add(struct buf *b, const void *data, size_t len)
{
  if (!buf_room(b, len))
    return;
  if (len)
    memcpy(b->data + b->len, data, len);
  b->len += len;
  b->data[b->len] = 0;
}

void buf_puts(struct buf *b, const char *text)
{
  buf_add(b, text, strlen(text));
}

void buf_printf(struct buf *b, const char *format, ...)
{
  char small[512];
  va_list args;
  va_start(args, format);
  int n = vsnprintf(small, sizeof small, format, args);
  va_end(args);
  if (n < 0) {
    b->failed = true;
  } else if ((size_t)n < sizeof small) {
    buf_add(b, small, (size_t)n);
  } else if (buf_room(b, (size_t)n)) {
    va_start(args, format);
    vsnprintf(b->data + b->len, (size_t)n + 1, format, args);
    va_end(args);
    b->len += (size_t)n;
  }
}

void buf_cut(struct buf *b, size_t from_front)
{
  if (!from_front)
    return;
  memmove(b->data, b->data + from_front, b->len - from_front + 1);
  b->len -= from_front;
}

char *buf_steal(struct buf *b)
{
  if (!b->failed && !b->data)
    buf_add(b, "", 0);
  char *out = b->failed ? NULL : b->data;
  if (!out)
    free(b->data);
  *b = (struct buf){.max = b->max};
  return out;
}

void buf_escape(struct buf *b, const char *text)
{
  static const char hex[] = "0123456789ABCDEF";
  for (const unsigned char *p = (const unsigned char *)text; *p; p++) {
    bool plain = (*p >= '0' && *p <= '9') || (*p >= 'A' && *p <= 'Z') || (*p >= 'a' && *p <= 'z') || *p == '-' ||
                 *p == '.' || *p == '_' || *p == '~';
    char coded[3] = {'%', hex[*p >> 4], hex[*p & 15]};
    buf_add(b, plain ? (const char *)p : coded, plain ? 1 : 3);
  }
}

/* The length of the UTF-8 character at p; 0: it is none. */
static size_t utf8_length(const unsigned char *p)
{
  if (*p < 0x80)
    return 1;
  if (*p >= 0xc2 && *p < 0xe0)
    return (p[1] & 0xc0) == 0x80 ? 2 : 0;
  if (*p >= 0xe0 && *p < 0xf0) {
    if ((p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80 || (*p == 0xe0 && p[1] < 0xa0) || (*p == 0xed && p[1] >= 0xa0))
      return 0;
    return 3;
  }
  if (*p >= 0xf0 && *p < 0xf5) {
    if ((p[1] & 0xc0) != 0x80 || (p[2] & 0xc0) != 0x80 || (p[3] & 0xc0) != 0x80 || (*p == 0xf0 && p[1] < 0x90) ||
        (*p == 0xf4 && p[1] >= 0x90))
      return 0;
    return 4;
  }
  return 0;
}

void buf_json(struct buf *b, const char *text)
{
  buf_add(b, "\"", 1);
  const unsigned char *p = (const unsigned char *)text;
  while (*p) {
    const unsigned char *from = p;
    size_t n = 1;
    while (*p >= 0x20 && *p != '"' && *p != '\\' && (n = utf8_length(p)))
      p += n;
    buf_add(b, from, (size_t)(p - from));
    if (!*p)
      break;
    if (!n)
      buf_puts(b, "\\ufffd");
    else if (*p == '\n')
      buf_puts(b, "\\n");
    else if (*p == '"' || *p == '\\')
      buf_add(b, (char[]){'\\', (char)*p}, 2);
    else
      buf_printf(b, "\\u%04x", *p);
    p++;
  }
  buf_add(b, "\"", 1);
}

static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void buf_base64(struct buf *b, const void *data, size_t len)
{
  const unsigned char *p = data;
  for (size_t i = 0; i < len; i += 3) {
    unsigned v = (unsigned)p[i] << 16 | (i + 1 < len ? (unsigned)p[i + 1] << 8 : 0) | (i + 2 < len ? p[i + 2] : 0);
    char out[4] = {digits[v >> 18], digits[v >> 12 & 63], i + 1 < len ? digits[v >> 6 & 63] : '=',
                   i + 2 < len ? digits[v & 63] : '='};
    buf_add(b, out, 4);
  }
}

static int digit_value(unsigned char c)
{
  if (c >= 'A' && c <= 'Z')
    return c - 'A';
  if (c >= 'a' && c <= 'z')
    return c - 'a' + 26;
  if (c >= '0' && c <= '9')
    return c - '0' + 52;
  if (c == '+' || c == '-')
    return 62;
  return c == '/' || c == '_' ? 63 : -1;
}

long base64_decode(const char *text, size_t len, unsigned char *out)
{
  unsigned bits = 0, have = 0, pad = 0;
  long n = 0;
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];
    if (c == '\n' || c == '\r')
      continue;
    if (c == '=') {
      if (++pad > 2)
        return -1;
      continue;
    }
    int v = digit_value(c);
    if (v < 0 || pad)
      return -1;
    bits = bits << 6 | (unsigned)v;
    have += 6;
    if (have >= 8) {
      have -= 8;
      out[n++] = (unsigned char)(bits >> have);
    }
  }
  return have == 6 ? -1 : n;
}

static const uint32_t round_words[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#define TURN(x, n) ((x) >> (n) | (x) << (32 - (n)))

static void sha256_block(struct sha256 *s, const unsigned char *p)
{
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
  for (int i = 16; i < 64; i++)
    w[i] = w[i - 16] + (TURN(w[i - 15], 7) ^ TURN(w[i - 15], 18) ^ w[i - 15] >> 3) + w[i - 7] +
           (TURN(w[i - 2], 17) ^ TURN(w[i - 2], 19) ^ w[i - 2] >> 10);
  memcpy(v, s->state, sizeof v);
  for (int i = 0; i < 64; i++) {
    uint32_t a = v[7] + (TURN(v[4], 6) ^ TURN(v[4], 11) ^ TURN(v[4], 25)) + ((v[4] & v[5]) ^ (~v[4] & v[6])) +
                 round_words[i] + w[i];
    uint32_t b = (TURN(v[0], 2) ^ TURN(v[0], 13) ^ TURN(v[0], 22)) + ((v[0] & v[1]) ^ (v[0] & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof v[0]);
    v[4] += a;
    v[0] = a + b;
  }
  for (int i = 0; i < 8; i++)
    s->state[i] += v[i];
}

void sha256_begin(struct sha256 *s)
{
  static const unsigned first[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memset(s, 0, sizeof *s);
  memcpy(s->state, first, sizeof first);
}

void sha256_add(struct sha256 *s, const void *data, size_t len)
{
  const unsigned char *p = data;
  while (len) {
    size_t at = s->len % 64, n = 64 - at < len ? 64 - at : len;
    memcpy(s->block + at, p, n);
    s->len += n;
    p += n;
    len -= n;
    if (s->len % 64 == 0)
      sha256_block(s, s->block);
  }
}

void sha256_end(struct sha256 *s, unsigned char out[32])
{
  unsigned long long bits = s->len * 8;
  unsigned char tail[8];
  for (int i = 0; i < 8; i++)
    tail[i] = (unsigned char)(bits >> (56 - 8 * i));
  sha256_add(s, "\x80", 1);
  while (s->len % 64 != 56)
    sha256_add(s, "", 1);
  sha256_add(s, tail, 8);
  for (int i = 0; i < 32; i++)
    out[i] = (unsigned char)(s->state[i / 4] >> (24 - i % 4 * 8));
}
