/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A strict JSON reader. It keeps where each value stands in the text, so that numbers and whole objects can be handed
 * on as they came; strings are decoded into the arena. Depth is bounded; what is no JSON gives NULL.
 */
#ifndef CLOCHE_JSON_H
#define CLOCHE_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "mem.h"

enum json_type { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
  enum json_type type;
  const char *raw;
  size_t raw_len;
  const char *text; /* JSON_STRING: decoded, with a NUL; JSON_NUMBER: its digits */
  size_t len;       /* of text; of arrays and objects the number of members */
  const char *key;  /* in an object */
  struct json *child, *next;
};

/* NULL: no JSON, or (*no_memory) no memory. The text must live as long as the values. */
struct json *json_read(struct arena *a, const char *text, size_t len, bool *no_memory);
const struct json *json_get(const struct json *object, const char *key); /* NULL: absent, or JSON null */
const char *json_text(const struct json *object, const char *key);       /* NULL: no string of that name */
double json_double(const struct json *value);                            /* 0: no number; in any locale */
int64_t json_int(const struct json *value, int64_t otherwise);           /* numbers and texts of digits */

#endif
