/* SPDX-License-Identifier: Apache-2.0 */
/* str.c - borrowed bytes: comparing, cutting, reading numbers. */
#include "base/str.h"
#include "base/core.h"

static unsigned char lower(char c)
{
  return (unsigned char)(c >= 'A' && c <= 'Z' ? c + 32 : c);
}

bool str_ieq(struct str a, struct str b)
{
  if (a.n != b.n)
    return false;
  for (size_t i = 0; i < a.n; i++)
    if (lower(a.p[i]) != lower(b.p[i]))
      return false;
  return true;
}

int str_cmp(struct str a, struct str b)
{
  size_t n = MIN(a.n, b.n);
  int r = n ? memcmp(a.p, b.p, n) : 0;
  return r ? r : (a.n > b.n) - (a.n < b.n);
}

bool str_starts(struct str s, struct str prefix)
{
  return s.n >= prefix.n && str_eq(str_sub(s, 0, prefix.n), prefix);
}

bool str_istarts(struct str s, struct str prefix)
{
  return s.n >= prefix.n && str_ieq(str_sub(s, 0, prefix.n), prefix);
}

bool str_ends(struct str s, struct str suffix)
{
  return s.n >= suffix.n && str_eq(str_skip(s, s.n - suffix.n), suffix);
}

struct str str_sub(struct str s, size_t from, size_t n)
{
  from = MIN(from, s.n);
  return (struct str){s.p ? s.p + from : NULL, MIN(n, s.n - from)};
}

struct str str_skip(struct str s, size_t n)
{
  return str_sub(s, n, s.n);
}

static bool is_space(char c)
{
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

struct str str_trim(struct str s)
{
  while (s.n && is_space(s.p[0]))
    s = str_skip(s, 1);
  while (s.n && is_space(s.p[s.n - 1]))
    s.n--;
  return s;
}

ptrdiff_t str_find(struct str s, char c)
{
  const char *p = s.n ? memchr(s.p, c, s.n) : NULL;
  return p ? p - s.p : -1;
}

ptrdiff_t str_rfind(struct str s, char c)
{
  const char *p = s.n ? memrchr(s.p, c, s.n) : NULL;
  return p ? p - s.p : -1;
}

ptrdiff_t str_search(struct str s, struct str needle)
{
  if (needle.n == 0)
    return 0;
  const char *p = s.n >= needle.n ? memmem(s.p, s.n, needle.p, needle.n) : NULL;
  return p ? p - s.p : -1;
}

bool str_cut(struct str s, char sep, struct str *head, struct str *rest)
{
  ptrdiff_t at = str_find(s, sep);
  if (at < 0) {
    *head = s;
    *rest = str_skip(s, s.n);
    return false;
  }
  *head = str_sub(s, 0, (size_t)at);
  *rest = str_skip(s, (size_t)at + 1);
  return true;
}

static int digits(struct str s, unsigned base, uint64_t *out)
{
  uint64_t v = 0;
  if (s.n == 0)
    return -EINVAL;
  for (size_t i = 0; i < s.n; i++) {
    unsigned d = (unsigned char)s.p[i] - (unsigned)'0';
    if (d >= base)
      return -EINVAL;
    if (__builtin_mul_overflow(v, base, &v) || __builtin_add_overflow(v, d, &v))
      return -ERANGE;
  }
  *out = v;
  return 0;
}

int str_u64(struct str s, uint64_t *out)
{
  return digits(s, 10, out);
}

int str_i64(struct str s, int64_t *out)
{
  bool minus = s.n && s.p[0] == '-';
  uint64_t v;
  int r = digits(minus ? str_skip(s, 1) : s, 10, &v);
  if (r)
    return r;
  if (v > (uint64_t)INT64_MAX + (minus ? 1 : 0))
    return -ERANGE;
  *out = minus ? (int64_t)(0 - v) : (int64_t)v;
  return 0;
}

int str_copyz(struct str s, char *dst, size_t size)
{
  if (s.n >= size)
    return -ENAMETOOLONG;
  if (str_find(s, 0) >= 0)
    return -EINVAL;
  if (s.n)
    memcpy(dst, s.p, s.n);
  dst[s.n] = 0;
  return 0;
}

bool str_eq_secret(struct str a, struct str b)
{
  unsigned char diff = a.n != b.n;
  for (size_t i = 0; i < a.n && i < b.n; i++)
    diff |= (unsigned char)(a.p[i] ^ b.p[i]);
  return diff == 0;
}

void text_blank_controls(char *p, size_t n)
{
  for (size_t i = 0; i < n; i++) {
    unsigned char c = (unsigned char)p[i];
    bool high = c == 0xc2 && i + 1 < n && (unsigned char)p[i + 1] >= 0x80 && (unsigned char)p[i + 1] <= 0x9f;
    if (c < 0x20 || c == 0x7f || high)
      p[i] = '?';
    if (high)
      p[++i] = '?';
  }
}
