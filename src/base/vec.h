/* SPDX-License-Identifier: Apache-2.0 */
/* vec.h - a growing array of any type: `VEC(int) v = {0}; vec_push(&v, 3); v.p[0]; vec_free(&v);` */
#ifndef CLOCHE_VEC_H
#define CLOCHE_VEC_H

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define VEC(type)                                                                                                      \
  struct {                                                                                                             \
    type *p;                                                                                                           \
    size_t n, cap;                                                                                                     \
  }

void vec_grow(void **p, size_t *cap, size_t need, size_t size); /* ends the program when memory is out */

#define vec_push(v, x)                                                                                                 \
  do {                                                                                                                 \
    if ((v)->n == (v)->cap)                                                                                            \
      vec_grow((void **)&(v)->p, &(v)->cap, (v)->n + 1, sizeof(*(v)->p));                                              \
    (v)->p[(v)->n++] = (x);                                                                                            \
  } while (0)

/* Order is not kept: the last element takes the place of the removed one. */
#define vec_remove_swap(v, i) ((v)->p[(i)] = (v)->p[--(v)->n])
#define vec_remove(v, i)                                                                                               \
  do {                                                                                                                 \
    memmove(&(v)->p[(i)], &(v)->p[(i) + 1], ((v)->n - (i)-1) * sizeof(*(v)->p));                                       \
    (v)->n--;                                                                                                          \
  } while (0)

#define vec_free(v)                                                                                                    \
  do {                                                                                                                 \
    free((v)->p);                                                                                                      \
    (v)->p = NULL;                                                                                                     \
    (v)->n = (v)->cap = 0;                                                                                             \
  } while (0)

#endif
