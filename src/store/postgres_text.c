/* SPDX-License-Identifier: Apache-2.0 */
/* postgres_text.c - see postgres_text.h. */
#include "store/postgres_text.h"

#include <ctype.h>

static bool word_char(char c)
{
  return isalnum((unsigned char)c) || c == '_';
}

static const char *skip_quoted(const char *p, struct buf *out)
{
  const char *end = strchr(p + 1, '\'');
  end = end ? end + 1 : p + strlen(p);
  buf_add(out, p, (size_t)(end - p));
  return end;
}

static const char *value(const char *p, unsigned *count, struct buf *out)
{
  const char *end = ++p;
  while (isdigit((unsigned char)*end))
    end++;
  if (end == p)
    buf_addf(out, "$%u", ++*count);
  else
    buf_addf(out, "$%.*s", (int)(end - p), p);
  return end;
}

static const char *skip_words(const char *p, int words)
{
  for (; words; words--) {
    while (*p == ' ')
      p++;
    while (word_char(*p))
      p++;
  }
  return p;
}

void postgres_text(const char *sql, struct buf *out)
{
  static const char indexed[] = " INDEXED BY ", cross[] = " CROSS JOIN ";
  unsigned count = 0;
  for (const char *p = sql; *p;) {
    bool begins = p == sql || p[-1] == ' ' || p[-1] == '(';
    if (*p == '\'')
      p = skip_quoted(p, out);
    else if (*p == '?')
      p = value(p, &count, out);
    else if (!strncmp(p, indexed, sizeof(indexed) - 1))
      p = skip_words(p, 3);
    else if (!strncmp(p, cross, sizeof(cross) - 1))
      p = skip_words(p, 1);
    else if (*p == '+' && begins && (isalpha((unsigned char)p[1])))
      p++;
    else
      buf_addc(out, *p++);
  }
}
