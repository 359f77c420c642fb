/* SPDX-License-Identifier: Apache-2.0 */
/* buf.c - growing bytes with a maximum. */
#include "base/buf.h"
#include "base/core.h"

#include <stdio.h>

void buf_init(struct buf *b, size_t max)
{
  *b = (struct buf){.max = max};
}

void buf_free(struct buf *b)
{
  free(b->p);
  b->p = NULL;
  b->n = b->cap = 0;
  b->failed = 0;
}

static int buf_fail(struct buf *b, int code)
{
  if (!b->failed)
    b->failed = code;
  return code;
}

int buf_reserve(struct buf *b, size_t more)
{
  size_t max = b->max ? b->max : BUF_DEFAULT_MAX;
  if (more > max || b->n > max - more)
    return buf_fail(b, -ENOBUFS);
  size_t need = b->n + more;
  if (need <= b->cap)
    return 0;
  size_t cap = MAX(b->cap * 2, (size_t)64);
  cap = MAX(MIN(cap, max), need);
  char *p = realloc(b->p, cap + 1); /* one spare byte for buf_z */
  if (!p)
    return buf_fail(b, -ENOMEM);
  b->p = p;
  b->cap = cap;
  return 0;
}

int buf_add(struct buf *b, const void *p, size_t n)
{
  if (n == 0)
    return 0;
  int r = buf_reserve(b, n);
  if (r)
    return r;
  memcpy(b->p + b->n, p, n);
  b->n += n;
  return 0;
}

int buf_adds(struct buf *b, struct str s)
{
  return buf_add(b, s.p, s.n);
}

int buf_addz(struct buf *b, const char *z)
{
  return buf_add(b, z, strlen(z));
}

int buf_addc(struct buf *b, char c)
{
  return buf_add(b, &c, 1);
}

int buf_vaddf(struct buf *b, const char *fmt, va_list ap)
{
  va_list again;
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  int r = n < 0 ? buf_fail(b, -EINVAL) : buf_reserve(b, (size_t)n);
  if (!r && n > 0) {
    vsnprintf(b->p + b->n, (size_t)n + 1, fmt, again);
    b->n += (size_t)n;
  }
  va_end(again);
  return r;
}

int buf_addf(struct buf *b, const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  int r = buf_vaddf(b, fmt, ap);
  va_end(ap);
  return r;
}

int buf_addu(struct buf *b, uint64_t v)
{
  char tmp[20];
  size_t i = sizeof(tmp);
  do
    tmp[--i] = (char)('0' + v % 10);
  while (v /= 10);
  return buf_add(b, tmp + i, sizeof(tmp) - i);
}

void buf_drop(struct buf *b, size_t n)
{
  if (n >= b->n) {
    b->n = 0;
    return;
  }
  memmove(b->p, b->p + n, b->n - n);
  b->n -= n;
}

const char *buf_z(struct buf *b)
{
  if (!b->p && buf_reserve(b, 1))
    return "";
  b->p[b->n] = 0;
  return b->p;
}
