/* SPDX-License-Identifier: Apache-2.0 */
/* core.h - the macros and allocation functions that the other modules of this folder are written with. Everyone outside
 * of it includes base.h. */
#ifndef CLOCHE_BASE_CORE_H
#define CLOCHE_BASE_CORE_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define ARRAY_LEN(a)      (sizeof(a) / sizeof((a)[0]))
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define MUST_CHECK        __attribute__((warn_unused_result))
#define UNUSED            __attribute__((unused))

#ifdef __cppcheck__ /* which can't read statements in expressions */
#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))
#else
#define MIN(a, b)                                                                                                      \
  ({                                                                                                                   \
    __typeof__(a) min_a = (a);                                                                                         \
    __typeof__(b) min_b = (b);                                                                                         \
    min_a < min_b ? min_a : min_b;                                                                                     \
  })
#define MAX(a, b)                                                                                                      \
  ({                                                                                                                   \
    __typeof__(a) max_a = (a);                                                                                         \
    __typeof__(b) max_b = (b);                                                                                         \
    max_a > max_b ? max_a : max_b;                                                                                     \
  })
#endif

/* Hands a pointer out of a cleanup_* local: the local forgets it. */
#define steal(pp)                                                                                                      \
  ({                                                                                                                   \
    __typeof__(*(pp)) stolen = *(pp);                                                                                  \
    *(pp) = NULL;                                                                                                      \
    stolen;                                                                                                            \
  })

static inline void cleanup_free_p(void *p)
{
  free(*(void **)p);
}
#define cleanup_free __attribute__((cleanup(cleanup_free_p)))

/* Memory that must be there: the daemon ends with a message where a few bytes is not available. Used for small
 * bookkeeping objects only; anything whose size an outsider chooses goes through buf or arena, which can fail. */
void *xmalloc(size_t n);
void *xcalloc(size_t n, size_t size);
void *xrealloc(void *p, size_t n);
char *xstrdup(const char *s);
char *xstrndup(const char *s, size_t n);
char *xasprintf(const char *fmt, ...) PRINTF_LIKE(1, 2);

#endif
