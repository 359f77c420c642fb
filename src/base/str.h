/* SPDX-License-Identifier: Apache-2.0 */
/* str.h - borrowed bytes with a length. Never owns, never assumes a NUL. */
#ifndef CLOCHE_STR_H
#define CLOCHE_STR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct str {
  const char *p;
  size_t n;
};

#define STR(lit)   ((struct str){(lit), sizeof(lit) - 1})
#define STR_NONE   ((struct str){NULL, 0})
#define STR_FMT    "%.*s"
#define STR_ARG(s) (int)((s).n > INT32_MAX ? INT32_MAX : (s).n), (s).p ? (s).p : ""

static inline struct str str_of(const char *z)
{
  return (struct str){z, z ? strlen(z) : 0};
}
static inline struct str str_make(const void *p, size_t n)
{
  return (struct str){p, n};
}
static inline bool str_eq(struct str a, struct str b)
{
  return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}
static inline bool str_is(struct str a, const char *z)
{
  return str_eq(a, str_of(z));
}

bool str_ieq(struct str a, struct str b); /* ASCII case ignored */
int str_cmp(struct str a, struct str b);  /* byte order */
bool str_starts(struct str s, struct str prefix);
bool str_istarts(struct str s, struct str prefix);
bool str_ends(struct str s, struct str suffix);
struct str str_sub(struct str s, size_t from, size_t n); /* clamped */
struct str str_skip(struct str s, size_t n);             /* without the first n bytes, clamped */
struct str str_trim(struct str s);                       /* spaces and tabs, CR, LF */
ptrdiff_t str_find(struct str s, char c);                /* index or -1 */
ptrdiff_t str_rfind(struct str s, char c);
ptrdiff_t str_search(struct str s, struct str needle); /* index or -1 */

/* Splits at the first `sep`: *head gets what is before it, *rest what is after; false when there is none
 * (then *head is all of it and *rest empty). */
bool str_cut(struct str s, char sep, struct str *head, struct str *rest);

#define U64_TEXT 24 /* a 64-bit number in decimal, with sign and NUL */
/* Whole-string decimal numbers: 0, or -EINVAL / -ERANGE. No sign for u64, optional '-' for i64. */
int str_u64(struct str s, uint64_t *out);
int str_i64(struct str s, int64_t *out);

/* Copies with a closing NUL into a fixed buffer: -ENAMETOOLONG when it does not fit, -EINVAL on an inner NUL. */
int str_copyz(struct str s, char *dst, size_t size);

/* Bytes that move a terminal's cursor or end a line become '?': those below a space, DEL, and U+0080 to U+009F. */
void text_blank_controls(char *p, size_t n);

/* Constant time in the contents (not in the lengths). */
bool str_eq_secret(struct str a, struct str b);

#endif
