/* SPDX-License-Identifier: Apache-2.0 */
/* dns_message.c - reading messages of RFC 1035. */
#include "jail/net/dns_message.h"

#define HEADER   12
#define TYPE_A   1
#define CLASS_IN 1

static unsigned u16(const uint8_t *p)
{
  return (unsigned)p[0] << 8 | p[1];
}

static uint32_t u32(const uint8_t *p)
{
  return (uint32_t)u16(p) << 16 | u16(p + 2);
}

static char lower(char c)
{
  return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

static bool name_char(char c)
{
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_';
}

/* Appends a label; dots and odd bytes inside one would make another name of it and are refused. */
static int add_label(char out[DNS_NAME], size_t *n, const uint8_t *p, size_t len)
{
  if (*n + len + 2 > DNS_NAME)
    return -EINVAL;
  if (*n > 0)
    out[(*n)++] = '.';
  for (size_t i = 0; i < len; i++) {
    char c = lower((char)p[i]);
    if (!name_char(c))
      return -EINVAL;
    out[(*n)++] = c;
  }
  return 0;
}

/* The uncompressed name of a question. The offset behind it, or negative. */
static int read_name(const uint8_t *m, size_t n, size_t at, char out[DNS_NAME])
{
  size_t len = 0;
  while (at < n && m[at] != 0) {
    size_t label = m[at];
    if (label > 63 || at + 1 + label >= n)
      return -EINVAL;
    int r = add_label(out, &len, m + at + 1, label);
    if (r)
      return r;
    at += 1 + label;
  }
  if (at >= n)
    return -EINVAL;
  out[len] = 0;
  return (int)at + 1;
}

/* Behind a name that may end in a pointer; where it points does not matter here. */
static int skip_name(const uint8_t *m, size_t n, size_t at)
{
  for (int i = 0; i < 128 && at < n; i++) {
    if (m[at] == 0)
      return (int)at + 1;
    if (m[at] >= 192)
      return at + 2 <= n ? (int)at + 2 : -EINVAL;
    if (m[at] > 63)
      return -EINVAL;
    at += 1 + (size_t)m[at];
  }
  return -EINVAL;
}

static int read_question(const uint8_t *m, size_t n, struct dns_question *q)
{
  if (n < HEADER || n > DNS_MESSAGE || u16(m + 4) != 1)
    return -EINVAL;
  int at = read_name(m, n, HEADER, q->name);
  if (at < 0 || (size_t)at + 4 > n || u16(m + at + 2) != CLASS_IN)
    return -EINVAL;
  q->id = (uint16_t)u16(m);
  q->type = (uint16_t)u16(m + at);
  q->end = (size_t)at + 4;
  return 0;
}

int dns_question(const uint8_t *m, size_t n, struct dns_question *q)
{
  int r = read_question(m, n, q);
  return r || (m[2] & 0xf8) != 0 ? -EINVAL : 0; /* a response, or another kind of query */
}

int dns_answer(const uint8_t *m, size_t n, const struct dns_question *q, struct dns_answer *a)
{
  struct dns_question echo;
  *a = (struct dns_answer){.ttl = 0};
  if (read_question(m, n, &echo) || !(m[2] & 0x80) || echo.id != q->id || echo.type != q->type ||
      strcmp(echo.name, q->name) != 0)
    return -EINVAL;
  size_t at = echo.end;
  for (unsigned i = u16(m + 6); i > 0; i--) {
    int r = skip_name(m, n, at);
    if (r < 0 || (size_t)r + 10 > n)
      return -EINVAL;
    const uint8_t *record = m + r;
    size_t len = u16(record + 8);
    at = (size_t)r + 10 + len;
    if (at > n)
      return -EINVAL;
    if (u16(record) != TYPE_A || u16(record + 2) != CLASS_IN || len != 4 || a->count == DNS_ADDRESSES)
      continue;
    uint32_t ttl = u32(record + 4);
    a->ttl = a->count ? MIN(a->ttl, ttl) : ttl;
    a->address[a->count++] = u32(record + 10);
  }
  return 0;
}

size_t dns_ask(uint8_t *m, size_t room, struct str name)
{
  static const uint8_t head[HEADER] = {[2] = 0x01, [5] = 1}, tail[5] = {0, 0, TYPE_A, 0, CLASS_IN};
  struct str label;
  size_t n = HEADER;
  if (room < HEADER + name.n + 2 + sizeof(tail) || name.n > 253)
    return 0;
  memcpy(m, head, HEADER);
  while (name.n) {
    str_cut(name, '.', &label, &name);
    if (!label.n || label.n > 63)
      return 0;
    m[n++] = (uint8_t)label.n;
    memcpy(m + n, label.p, label.n);
    n += label.n;
  }
  memcpy(m + n, tail, sizeof(tail));
  return n + sizeof(tail);
}

size_t dns_refuse(uint8_t *m, const struct dns_question *q)
{
  m[2] = (uint8_t)((m[2] & 0x01) | 0x80); /* response; recursion was desired */
  m[3] = 0x80 | 5;                        /* recursion is available; refused */
  memset(m + 6, 0, 6);                    /* no records */
  return q->end;
}

static bool matches(struct str pattern, struct str name)
{
  if (str_is(pattern, "*"))
    return true;
  if (!str_starts(pattern, STR("*.")))
    return str_ieq(pattern, name);
  struct str suffix = str_skip(pattern, 1); /* with its dot */
  return name.n > suffix.n && str_ieq(str_skip(name, name.n - suffix.n), suffix);
}

bool dns_listed(struct str lines, const char *name)
{
  struct str line;
  while (lines.n > 0) {
    str_cut(lines, '\n', &line, &lines);
    if (line.n > 0 && matches(line, str_of(name)))
      return true;
  }
  return false;
}

bool dns_pattern(const char *entry)
{
  struct str rest = str_of(entry), label;
  if (str_is(rest, "*"))
    return true;
  if (str_starts(rest, STR("*.")))
    rest = str_skip(rest, 2);
  if (rest.n == 0 || rest.n > 253)
    return false;
  bool more = true, letters = false;
  while (more) {
    more = str_cut(rest, '.', &label, &rest);
    if (label.n == 0 || label.n > 63)
      return false;
    for (size_t i = 0; i < label.n; i++) {
      char c = lower(label.p[i]);
      letters |= c >= 'a' && c <= 'z';
      if (!name_char(c))
        return false;
    }
  }
  return letters; /* digits and dots alone are an address gone wrong */
}
