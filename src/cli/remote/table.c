/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/table.h"

#define CELL_MAX 4096

/* Bytes of the character at p, 0 when it is not UTF-8; *code is its number. */
static size_t utf8_at(const unsigned char *p, size_t n, uint32_t *code)
{
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t len = *p < 0x80                 ? 1
               : *p >= 0xc2 && *p < 0xe0 ? 2
               : *p >= 0xe0 && *p < 0xf0 ? 3
               : *p >= 0xf0 && *p < 0xf5 ? 4
                                         : 0;
  if (!len || len > n)
    return 0;
  *code = len == 1 ? *p : *p & (0x7fu >> len);
  for (size_t i = 1; i < len; i++) {
    if ((p[i] & 0xc0) != 0x80)
      return 0;
    *code = *code << 6 | (p[i] & 0x3f);
  }
  return *code < least[len] || (*code >= 0xd800 && *code < 0xe000) || *code > 0x10ffff ? 0 : len;
}

static bool harmless(uint32_t c)
{
  bool control = c < 0x20 || (c >= 0x7f && c < 0xa0);
  bool direction = c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
  return !control && !direction && c != 0x2028 && c != 0x2029;
}

/* Length of a colour sequence, ESC [ digits and semicolons m; 0: none. */
static size_t colour_at(struct str s)
{
  size_t i = 2;
  if (s.n < 3 || s.p[0] != '\033' || s.p[1] != '[')
    return 0;
  while (i < s.n && ((s.p[i] >= '0' && s.p[i] <= '9') || s.p[i] == ';'))
    i++;
  return i < s.n && s.p[i] == 'm' ? i + 1 : 0;
}

void text_clean(struct buf *out, struct str text, int flags)
{
  for (size_t i = 0, len; i < text.n; i += len) {
    uint32_t code = 0;
    struct str rest = str_skip(text, i);
    if (flags & CLEAN_COLOURS && (len = colour_at(rest)))
      continue;
    len = utf8_at((const unsigned char *)rest.p, rest.n, &code);
    bool line = flags & CLEAN_LINES && (code == '\n' || code == '\t');
    if (len && (line || harmless(code)))
      buf_add(out, rest.p, len);
    else
      buf_addc(out, '?');
    len = MAX(len, (size_t)1);
  }
}

void duration_text(struct buf *out, int64_t s)
{
  if (s < 0)
    buf_addc(out, '-');
  else if (s < 120)
    buf_addf(out, "%llds", (long long)s);
  else if (s < 7200)
    buf_addf(out, "%lldm", (long long)s / 60);
  else
    buf_addf(out, s < 172800 ? "%lldh" : "%lldd", (long long)s / (s < 172800 ? 3600 : 86400));
}

/* Characters, not bytes. */
static size_t width(const char *z)
{
  size_t n = 0;
  for (; *z; z++)
    n += (*z & 0xc0) != 0x80;
  return n;
}

void table_add(struct table *t, const char *cell)
{
  cleanup_buf struct buf b = BUF_INIT(CELL_MAX);
  text_clean(&b, str_of(cell), 0);
  vec_push(&t->cells, xstrdup(buf_failed(&b) || !b.n ? "-" : buf_z(&b)));
}

void table_print(const struct table *t, struct buf *out)
{
  for (size_t i = 0; i < t->cells.n; i++) {
    size_t column = i % t->columns, widest = 0, own = width(t->cells.p[i]);
    bool last = column + 1 == t->columns;
    for (size_t k = column; k < t->cells.n; k += t->columns)
      widest = MAX(widest, width(t->cells.p[k]));
    buf_addz(out, t->cells.p[i]);
    for (; !last && own < widest + 2; own++)
      buf_addc(out, ' ');
    if (last)
      buf_addc(out, '\n');
  }
}

void table_free(struct table *t)
{
  for (size_t i = 0; i < t->cells.n; i++)
    free(t->cells.p[i]);
  vec_free(&t->cells);
}
