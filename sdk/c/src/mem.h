/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the library: arenas, in which a result and all that it points to live and die together, and buffers that
 * grow. Nothing here aborts; what has no memory gives NULL, or marks the buffer as failed, which its owner looks at
 * once at the end.
 */
#ifndef CLOCHE_MEM_H
#define CLOCHE_MEM_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct arena_block;
struct arena {
  struct arena_block *blocks;
  char *at, *end;
  size_t size, max; /* of its blocks; max 0: no bound */
  bool full;        /* something did not fit into max */
};

void *arena_alloc(struct arena *a, size_t size); /* zeroed; NULL: no memory */
void *arena_array(struct arena *a, size_t count, size_t size);
char *arena_text(struct arena *a, const char *data, size_t len); /* with a NUL behind it */
void arena_free(struct arena *a);

/* A result: a zeroed struct whose arena lies hidden before it; cloche_free() frees both. */
void *result_new(size_t size);
struct arena *result_arena(void *result);

struct buf {
  char *data;
  size_t len, cap, max; /* max 0: no bound of its own */
  bool failed;
};

void buf_free(struct buf *b);
void buf_add(struct buf *b, const void *data, size_t len);
void buf_puts(struct buf *b, const char *text);
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_cut(struct buf *b, size_t from_front);
/* The text with its NUL, to be freed by the caller; NULL when the buffer failed. */
char *buf_steal(struct buf *b);

/* Texts that go into a URL: everything but A-Z a-z 0-9 - . _ ~ as %XX. */
void buf_escape(struct buf *b, const char *text);
/* A JSON string, quotes included; bytes that are no UTF-8 become U+FFFD. */
void buf_json(struct buf *b, const char *text);
void buf_base64(struct buf *b, const void *data, size_t len);

/* -1: no base64; else the length of what was written to out, which has room for len / 4 * 3 + 3. */
long base64_decode(const char *text, size_t len, unsigned char *out);

struct sha256 {
  unsigned state[8];
  unsigned long long len;
  unsigned char block[64];
};
void sha256_begin(struct sha256 *s);
void sha256_add(struct sha256 *s, const void *data, size_t len);
void sha256_end(struct sha256 *s, unsigned char out[32]);

#endif
