/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h - memory that dies together. Everything of a request comes from its arena and goes with it. */
#ifndef CLOCHE_ARENA_H
#define CLOCHE_ARENA_H

#include "base/str.h"

struct arena_block;
struct arena {
  struct arena_block *head;
  size_t used, max; /* bytes handed out, and the most it may hand out (0 = no limit) */
};

#define ARENA_INIT(limit) ((struct arena){.max = (limit)})
void arena_free(struct arena *a);
#define cleanup_arena __attribute__((cleanup(arena_free)))

void *arena_alloc(struct arena *a, size_t n);        /* 16-byte aligned, zeroed; NULL past the limit */
struct str arena_str(struct arena *a, struct str s); /* copy with a closing NUL (not counted); p NULL on failure */
char *arena_z(struct arena *a, struct str s);        /* the same as a C string */
char *arena_fmt(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
