/* SPDX-License-Identifier: Apache-2.0 */
/* codec.c - hex, base64, UTF-8, percent escapes, random ids. */
#include "base/codec.h"
#include "base/core.h"

#include <stdio.h>
#include <sys/random.h>

void hex_encode(const void *p, size_t n, char *out)
{
  static const char digit[] = "0123456789abcdef";
  const unsigned char *b = p;
  for (size_t i = 0; i < n; i++) {
    out[2 * i] = digit[b[i] >> 4];
    out[2 * i + 1] = digit[b[i] & 15];
  }
  out[2 * n] = 0;
}

static int hex_digit(char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  c |= 32;
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

int hex_decode(struct str s, void *out, size_t n)
{
  unsigned char *b = out;
  if (s.n != 2 * n)
    return -EINVAL;
  for (size_t i = 0; i < n; i++) {
    int hi = hex_digit(s.p[2 * i]), lo = hex_digit(s.p[2 * i + 1]);
    if (hi < 0 || lo < 0)
      return -EINVAL;
    b[i] = (unsigned char)(hi << 4 | lo);
  }
  return 0;
}

static const char b64[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

int base64_add(struct buf *b, const void *p, size_t n, bool pad)
{
  const unsigned char *s = p;
  int r = buf_reserve(b, (n + 2) / 3 * 4);
  if (r)
    return r;
  char *o = b->p + b->n;
  for (; n >= 3; n -= 3, s += 3) {
    *o++ = b64[s[0] >> 2];
    *o++ = b64[(s[0] & 3) << 4 | s[1] >> 4];
    *o++ = b64[(s[1] & 15) << 2 | s[2] >> 6];
    *o++ = b64[s[2] & 63];
  }
  if (n) {
    *o++ = b64[s[0] >> 2];
    *o++ = b64[(s[0] & 3) << 4 | (n == 2 ? s[1] >> 4 : 0)];
    if (n == 2)
      *o++ = b64[(s[1] & 15) << 2];
    for (size_t i = n; pad && i < 3; i++)
      *o++ = '=';
  }
  b->n = (size_t)(o - b->p);
  return 0;
}

static int b64_value(char c)
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

int base64_decode(struct str s, struct buf *out)
{
  if (s.n % 4 == 0 && str_ends(s, STR("==")))
    s.n -= 2;
  else if (s.n % 4 == 0 && str_ends(s, STR("=")))
    s.n -= 1;
  if (s.n % 4 == 1)
    return -EINVAL;
  int r = buf_reserve(out, s.n / 4 * 3 + 2);
  if (r)
    return r;
  uint32_t acc = 0;
  int bits = 0;
  char *o = out->p + out->n;
  for (size_t i = 0; i < s.n; i++) {
    int v = b64_value(s.p[i]);
    if (v < 0)
      return -EINVAL;
    acc = acc << 6 | (uint32_t)v;
    bits += 6;
    if (bits >= 8) {
      bits -= 8;
      *o++ = (char)(acc >> bits);
    }
  }
  out->n = (size_t)(o - out->p);
  return 0;
}

/* Length of the sequence a lead byte announces and the least second byte that is not overlong; 0 = not a lead. */
static size_t utf8_len(unsigned char c)
{
  if (c < 0x80)
    return 1;
  if (c >= 0xc2 && c <= 0xdf)
    return 2;
  if (c >= 0xe0 && c <= 0xef)
    return 3;
  return c >= 0xf0 && c <= 0xf4 ? 4 : 0;
}

static bool utf8_second(unsigned char lead, unsigned char c)
{
  unsigned char lo = 0x80, hi = 0xbf;
  if (lead == 0xe0)
    lo = 0xa0;
  if (lead == 0xed)
    hi = 0x9f;
  if (lead == 0xf0)
    lo = 0x90;
  if (lead == 0xf4)
    hi = 0x8f;
  return c >= lo && c <= hi;
}

/* Length of the character at the beginning, 0 = there is none. */
static size_t utf8_step(const unsigned char *p, size_t left)
{
  size_t n = utf8_len(p[0]);
  if (n == 1)
    return 1;
  if (!n || n > left || !utf8_second(p[0], p[1]))
    return 0;
  for (size_t k = 2; k < n; k++)
    if ((p[k] & 0xc0) != 0x80)
      return 0;
  return n;
}

bool utf8_valid(struct str s)
{
  const unsigned char *p = (const unsigned char *)s.p;
  for (size_t i = 0, n; i < s.n; i += n)
    if (!(n = utf8_step(p + i, s.n - i)))
      return false;
  return true;
}

int utf8_clean(struct str s, struct buf *out)
{
  const unsigned char *p = (const unsigned char *)s.p;
  for (size_t i = 0; i < s.n;) {
    size_t from = i, n;
    while (i < s.n && (n = utf8_step(p + i, s.n - i)))
      i += n;
    buf_add(out, p + from, i - from);
    if (i < s.n)
      buf_addz(out, "\xef\xbf\xbd"), i++;
  }
  return buf_failed(out);
}

size_t utf8_whole(struct str s)
{
  const unsigned char *p = (const unsigned char *)s.p;
  for (size_t back = 1; back <= 3 && back <= s.n; back++) {
    unsigned char c = p[s.n - back];
    if (c < 0x80)
      return s.n;
    if (c < 0xc0)
      continue;
    size_t n = utf8_len(c);
    if (n <= back || (back > 1 && !utf8_second(c, p[s.n - back + 1])))
      return s.n;
    return s.n - back;
  }
  return s.n;
}

int percent_decode(struct str s, bool plus, struct buf *out)
{
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i];
    if (c == '%') {
      int hi = i + 2 < s.n ? hex_digit(s.p[i + 1]) : -1, lo = i + 2 < s.n ? hex_digit(s.p[i + 2]) : -1;
      if (hi < 0 || lo < 0)
        return -EINVAL;
      c = (char)(hi << 4 | lo);
      i += 2;
    } else if (c == '+' && plus) {
      c = ' ';
    }
    buf_addc(out, c);
  }
  return buf_failed(out);
}

int percent_encode(struct str s, struct buf *out)
{
  for (size_t i = 0; i < s.n; i++) {
    unsigned char c = (unsigned char)s.p[i];
    bool keep = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || strchr("-._~", c);
    if (keep && c)
      buf_addc(out, (char)c);
    else
      buf_addf(out, "%%%02X", c);
  }
  return buf_failed(out);
}

/* Decodes as it goes, and only as far as the two agree. */
static bool key_is(struct str key, const char *name)
{
  size_t i = 0;
  for (; i < key.n && *name; name++) {
    char c = key.p[i] == '+' ? ' ' : key.p[i];
    if (c == '%') {
      int hi = i + 2 < key.n ? hex_digit(key.p[i + 1]) : -1, lo = i + 2 < key.n ? hex_digit(key.p[i + 2]) : -1;
      if (hi < 0 || lo < 0)
        return false;
      c = (char)(hi << 4 | lo);
      i += 2;
    }
    if (c != *name)
      return false;
    i++;
  }
  return i == key.n && !*name;
}

int query_get(struct str query, const char *name, struct buf *out)
{
  for (int n = 0; query.n; n++) {
    struct str pair, key, value;
    if (n == QUERY_PAIRS_MAX)
      return -E2BIG;
    str_cut(query, '&', &pair, &query);
    str_cut(pair, '=', &key, &value);
    if (!key_is(key, name))
      continue;
    int r = percent_decode(value, true, out);
    return r ? r : 1;
  }
  return 0;
}

void random_bytes(void *p, size_t n)
{
  for (char *at = p; n > 0;) {
    ssize_t k = getrandom(at, n, 0);
    if (k < 0)
      continue;
    at += k;
    n -= (size_t)k;
  }
}

void random_id(char *out, size_t n)
{
  static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789";
  unsigned char drawn[32]; /* many at a time: each call goes to the kernel */
  for (size_t i = 0, k = sizeof(drawn); i < n; k++) {
    if (k == sizeof(drawn)) {
      random_bytes(drawn, sizeof(drawn));
      k = 0;
    }
    if (drawn[k] < 252)
      out[i++] = letters[drawn[k] % 36];
  }
  out[n] = 0;
}

void uuid4(char out[UUID_TEXT])
{
  unsigned char b[16];
  random_bytes(b, sizeof(b));
  b[6] = (b[6] & 15) | 0x40;
  b[8] = (b[8] & 63) | 0x80;
  char h[33];
  hex_encode(b, 16, h);
  snprintf(out, UUID_TEXT, "%.8s-%.4s-%.4s-%.4s-%.12s", h, h + 8, h + 12, h + 16, h + 20);
}

bool uuid_valid(struct str s)
{
  if (s.n != 36)
    return false;
  for (size_t i = 0; i < 36; i++) {
    bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? s.p[i] != '-' : hex_digit(s.p[i]) < 0)
      return false;
  }
  return true;
}
