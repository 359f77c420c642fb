/* SPDX-License-Identifier: Apache-2.0 */
/* mem.c - small allocations that must succeed, arenas and vectors. A daemon that can't get a few hundred bytes can't
 * answer anybody; it says so and ends, and the supervisor starts a fresh one. */
#include "base/arena.h"
#include "base/core.h"
#include "base/vec.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static void *must(void *p, size_t n)
{
  if (p != NULL || n == 0)
    return p;
  static const char msg[] = "cloche: out of memory\n";
  ssize_t ignored UNUSED = write(2, msg, sizeof(msg) - 1);
  abort();
}

void *xmalloc(size_t n)
{
  return must(malloc(n ? n : 1), n);
}

void *xcalloc(size_t n, size_t size)
{
  return must(calloc(n ? n : 1, size ? size : 1), n);
}

void *xrealloc(void *p, size_t n)
{
  return must(realloc(p, n ? n : 1), n);
}

char *xstrndup(const char *s, size_t n)
{
  char *p = xmalloc(n + 1);
  memcpy(p, s, n);
  p[n] = 0;
  return p;
}

char *xstrdup(const char *s)
{
  return xstrndup(s, strlen(s));
}

char *xasprintf(const char *fmt, ...)
{
  va_list ap;
  va_start(ap, fmt);
  char *out = NULL;
  int n = vasprintf(&out, fmt, ap);
  va_end(ap);
  return must(n < 0 ? NULL : out, 1);
}

void vec_grow(void **p, size_t *cap, size_t need, size_t size)
{
  size_t want = *cap ? *cap * 2 : 8;
  while (want < need)
    want *= 2;
  if (want > SIZE_MAX / size)
    must(NULL, 1);
  *p = xrealloc(*p, want * size);
  *cap = want;
}

/* ---- arena ---- */

struct arena_block {
  struct arena_block *next;
  size_t used, cap;
  _Alignas(16) char data[];
};

#define ARENA_BLOCK 4096

void arena_free(struct arena *a)
{
  for (struct arena_block *b = a->head, *next; b; b = next) {
    next = b->next;
    free(b);
  }
  a->head = NULL;
  a->used = 0;
}

static struct arena_block *arena_grow(struct arena *a, size_t n)
{
  size_t cap = MAX((size_t)ARENA_BLOCK - sizeof(struct arena_block), n);
  if (a->used > 65536)
    cap = MAX(cap, (size_t)65536);
  struct arena_block *b = malloc(sizeof(*b) + cap);
  if (!b)
    return NULL;
  b->used = 0;
  b->cap = cap;
  /* A big allocation gets a block of its own behind the head, so that the head's room is not lost. */
  if (a->head && n > ARENA_BLOCK / 2 && a->head->cap - a->head->used >= 64) {
    b->next = a->head->next;
    a->head->next = b;
  } else {
    b->next = a->head;
    a->head = b;
  }
  return b;
}

void *arena_alloc(struct arena *a, size_t n)
{
  if (n > SIZE_MAX - 64)
    return NULL;
  size_t size = (n + 15) & ~(size_t)15;
  if (a->max && (size > a->max || a->used > a->max - size))
    return NULL;
  struct arena_block *b = a->head;
  if (!b || b->cap - b->used < size)
    b = arena_grow(a, size);
  if (!b)
    return NULL;
  void *p = b->data + b->used;
  b->used += size;
  a->used += size;
  return memset(p, 0, size);
}

struct str arena_str(struct arena *a, struct str s)
{
  char *p = arena_alloc(a, s.n + 1);
  if (!p)
    return STR_NONE;
  if (s.n)
    memcpy(p, s.p, s.n);
  return (struct str){p, s.n};
}

char *arena_z(struct arena *a, struct str s)
{
  return (char *)arena_str(a, s).p;
}

char *arena_fmt(struct arena *a, const char *fmt, ...)
{
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  char *p = n < 0 ? NULL : arena_alloc(a, (size_t)n + 1);
  if (p)
    vsnprintf(p, (size_t)n + 1, fmt, again);
  va_end(again);
  return p;
}
