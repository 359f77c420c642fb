/* SPDX-License-Identifier: Apache-2.0 */
/* buf.h - owned bytes that grow up to a stated maximum.
 *
 * Every buffer has a `max`; an append past it fails with -ENOBUFS and changes nothing. Appends mark the buffer
 * as failed, so a builder may append many times and look at buf_failed() once at the end. */
#ifndef CLOCHE_BUF_H
#define CLOCHE_BUF_H

#include "base/str.h"
#include <stdarg.h>

struct buf {
  char *p;
  size_t n, cap, max;
  int failed; /* 0, -ENOBUFS or -ENOMEM */
};

#define BUF_DEFAULT_MAX ((size_t)64 << 20)

void buf_init(struct buf *b, size_t max);
void buf_free(struct buf *b); /* gives the memory back; the buffer may be used again */
static inline void buf_clear(struct buf *b)
{
  b->n = 0;
  b->failed = 0;
}
#define cleanup_buf     __attribute__((cleanup(buf_free)))
#define BUF_INIT(limit) ((struct buf){.max = (limit)})

int buf_reserve(struct buf *b, size_t more); /* room for `more` bytes behind n */
int buf_add(struct buf *b, const void *p, size_t n);
int buf_adds(struct buf *b, struct str s);
int buf_addz(struct buf *b, const char *z);
int buf_addc(struct buf *b, char c);
int buf_addf(struct buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int buf_vaddf(struct buf *b, const char *fmt, va_list ap);
int buf_addu(struct buf *b, uint64_t v); /* decimal, quick */
void buf_drop(struct buf *b, size_t n);  /* the first n bytes leave */
const char *buf_z(struct buf *b);        /* NUL-terminated view; "" when it is not available */
static inline struct str buf_str(const struct buf *b)
{
  return (struct str){b->p, b->n};
}
static inline int buf_failed(const struct buf *b)
{
  return b->failed;
}

#endif
