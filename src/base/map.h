/* SPDX-License-Identifier: Apache-2.0 */
/* map.h - a hash map from bytes to a pointer. Keys are copied; values are the caller's.
 * The hash is keyed at random per process, so outsiders can't choose colliding keys. */
#ifndef CLOCHE_MAP_H
#define CLOCHE_MAP_H

#include "base/str.h"

struct map_slot {
  char *key;
  size_t klen;
  uint64_t hash;
  void *value;
};
struct map {
  struct map_slot *slots;
  size_t n, cap, dead;
};

void *map_get(const struct map *m, struct str key);        /* NULL when absent */
void *map_put(struct map *m, struct str key, void *value); /* the old value, or NULL; value may not be NULL */
void *map_del(struct map *m, struct str key);              /* the old value, or NULL */
void map_free(struct map *m);                              /* frees keys, not values */
/* Iterates: `for (size_t i = 0; map_next(m, &i, &key, &value);)`. The current entry may be deleted meanwhile. */
bool map_next(const struct map *m, size_t *i, struct str *key, void **value);

#endif
