/* SPDX-License-Identifier: Apache-2.0 */
/* json_write.c - JSON out of values. Strings are escaped; in ASCII mode every code point above 0x7f is too, because
 * clients cut the stream anywhere and split lines on more than LF. */
#include "base/json.h"
#include "base/core.h"

#include <math.h>
#include <stdio.h>

/* Decodes one code point; returns its length, or 0 for a byte that begins nothing valid. Surrogates in their 3-byte
 * form are let through: they came from an escape and go back into one. */
static size_t decode(const unsigned char *p, size_t n, uint32_t *out)
{
  size_t len = p[0] < 0x80                   ? 1
               : p[0] >= 0xc2 && p[0] < 0xe0 ? 2
               : p[0] >= 0xe0 && p[0] < 0xf0 ? 3
               : p[0] >= 0xf0 && p[0] < 0xf5 ? 4
                                             : 0;
  if (len == 0 || len > n)
    return 0;
  uint32_t c = len == 1 ? p[0] : p[0] & (0x7fu >> len);
  for (size_t i = 1; i < len; i++) {
    if ((p[i] & 0xc0) != 0x80)
      return 0;
    c = c << 6 | (p[i] & 63);
  }
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  if (len > 1 && (c < least[len] || c > 0x10ffff))
    return 0;
  *out = c;
  return len;
}

static void put_unit(struct buf *b, uint32_t u)
{
  static const char digit[] = "0123456789abcdef";
  char t[6] = {'\\', 'u', digit[u >> 12 & 15], digit[u >> 8 & 15], digit[u >> 4 & 15], digit[u & 15]};
  buf_add(b, t, 6);
}

static void put_escaped(struct buf *b, uint32_t c)
{
  switch (c) {
  case '"':
    buf_addz(b, "\\\"");
    return;
  case '\\':
    buf_addz(b, "\\\\");
    return;
  case '\n':
    buf_addz(b, "\\n");
    return;
  case '\r':
    buf_addz(b, "\\r");
    return;
  case '\t':
    buf_addz(b, "\\t");
    return;
  }
  if (c >= 0x10000) {
    put_unit(b, 0xd800 + ((c - 0x10000) >> 10));
    c = 0xdc00 + ((c - 0x10000) & 0x3ff);
  }
  put_unit(b, c);
}

static bool as_is(unsigned char c)
{
  return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

int json_put_str(struct buf *b, struct str s, bool ascii)
{
  const unsigned char *p = (const unsigned char *)s.p;
  buf_reserve(b, s.n + 2);
  buf_addc(b, '"');
  for (size_t i = 0; i < s.n;) {
    size_t run = i;
    while (run < s.n && as_is(p[run]))
      run++;
    buf_add(b, p + i, run - i);
    if ((i = run) == s.n)
      break;
    uint32_t c = 0xfffd;
    size_t n = decode(p + i, s.n - i, &c);
    if (c < 0x80 || ascii || (c >= 0xd800 && c < 0xe000))
      put_escaped(b, c);
    else if (n == 0)
      buf_addz(b, "\xef\xbf\xbd");
    else
      buf_add(b, p + i, n);
    i += n ? n : 1;
  }
  buf_addc(b, '"');
  return buf_failed(b);
}

int json_put(struct buf *b, const struct json *v, bool ascii)
{
  static const char *const marks[] = {[JSON_ARRAY] = "[]", [JSON_OBJECT] = "{}"};
  if (!v || v->type == JSON_NULL)
    return buf_addz(b, "null");
  if (v->type == JSON_BOOL)
    return buf_addz(b, v->flag ? "true" : "false");
  if (v->type == JSON_NUMBER)
    return buf_adds(b, v->text);
  if (v->type == JSON_STRING)
    return json_put_str(b, v->text, ascii);
  buf_addc(b, marks[v->type][0]);
  for (const struct json *k = v->kids; k; k = k->next) {
    if (k != v->kids)
      buf_addc(b, ',');
    if (v->type == JSON_OBJECT) {
      json_put_str(b, k->key, ascii);
      buf_addc(b, ':');
    }
    json_put(b, k, ascii);
  }
  return buf_addc(b, marks[v->type][1]);
}

/* ---- the builder ---- */

static void sep(struct jw *w)
{
  if (w->comma)
    buf_addc(w->b, ',');
  w->comma = true;
}

void jw_open(struct jw *w, char c)
{
  sep(w);
  buf_addc(w->b, c);
  w->comma = false;
}

void jw_close(struct jw *w, char c)
{
  buf_addc(w->b, c);
  w->comma = true;
}

void jw_keys(struct jw *w, struct str name)
{
  sep(w);
  json_put_str(w->b, name, w->ascii);
  buf_addc(w->b, ':');
  w->comma = false;
}

void jw_key(struct jw *w, const char *name)
{
  jw_keys(w, str_of(name));
}

void jw_str(struct jw *w, struct str s)
{
  sep(w);
  json_put_str(w->b, s, w->ascii);
}

void jw_z(struct jw *w, const char *z)
{
  jw_str(w, str_of(z));
}

void jw_int(struct jw *w, int64_t v)
{
  sep(w);
  buf_addf(w->b, "%lld", (long long)v);
}

void jw_uint(struct jw *w, uint64_t v)
{
  sep(w);
  buf_addu(w->b, v);
}

void jw_double(struct jw *w, double v, int decimals)
{
  sep(w);
  if (isfinite(v))
    buf_addf(w->b, "%.*f", decimals, v);
  else
    buf_addz(w->b, "null");
}

void jw_bool(struct jw *w, bool v)
{
  sep(w);
  buf_addz(w->b, v ? "true" : "false");
}

void jw_null(struct jw *w)
{
  sep(w);
  buf_addz(w->b, "null");
}

void jw_raw(struct jw *w, struct str token)
{
  sep(w);
  buf_adds(w->b, token);
}

void jw_value(struct jw *w, const struct json *v)
{
  sep(w);
  json_put(w->b, v, w->ascii);
}
