/* SPDX-License-Identifier: Apache-2.0 */
/* json.h - JSON read into an arena and written into a buf.
 *
 * Numbers keep the very text they had (a client checks that 100.0 stays 100.0 and 19 digits stay 19 digits), so a
 * value read here and written again differs only in white space, in escapes, and where the writer is told to be
 * ASCII. Depth, size and node count are bounded. Bare NaN and Infinity tokens are read as null when allowed. */
#ifndef CLOCHE_JSON_H
#define CLOCHE_JSON_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
  enum json_type type;
  bool flag;         /* BOOL */
  struct str text;   /* STRING: decoded bytes (lone surrogates as their 3-byte form); NUMBER: the token */
  struct str key;    /* decoded name when this is a member of an object */
  struct json *kids; /* ARRAY, OBJECT: first of a list linked by next */
  struct json *next;
  size_t count;
};

#define JSON_MAX_DEPTH 128

struct json_error {
  size_t offset;
  const char *what;
};

enum { JSON_ALLOW_NAN = 1, JSON_REPAIR_UTF8 = 2 }; /* read flags; without REPAIR invalid UTF-8 is an error */

/* The whole text must be one value. NULL with *why filled when it isn't, or when the arena's limit is reached. */
struct json *json_read(struct arena *a, struct str text, int flags, struct json_error *why);

/* All take NULL and wrong types calmly. Duplicate names: the last one wins. */
struct json *json_get(const struct json *obj, const char *name);
struct str json_text(const struct json *v, struct str otherwise); /* STRING only */
bool json_is(const struct json *v, enum json_type type);          /* false for NULL */
bool json_given(const struct json *v);                            /* present and not null */
int json_int(const struct json *v, int64_t *out);                 /* integral number (1.0, 1e3 too) or decimal string */
int json_double(const struct json *v, double *out);

/* Writing. json_put_str writes quotes and escapes; ascii = every code point >= 0x80 as \uXXXX; bytes that are
 * not UTF-8 become U+FFFD. */
int json_put_str(struct buf *b, struct str s, bool ascii);
int json_put(struct buf *b, const struct json *v, bool ascii);

/* A tiny builder that takes care of commas: jw_open(&w,'{'); jw_key(&w,"a"); jw_int(&w,1); jw_close(&w,'}'). */
struct jw {
  struct buf *b;
  bool ascii, comma;
};
#define JW(buffer) ((struct jw){.b = (buffer)})
void jw_open(struct jw *w, char c);
void jw_close(struct jw *w, char c);
void jw_key(struct jw *w, const char *name);
void jw_keys(struct jw *w, struct str name);
void jw_str(struct jw *w, struct str s);
void jw_z(struct jw *w, const char *z);
void jw_int(struct jw *w, int64_t v);
void jw_uint(struct jw *w, uint64_t v);
void jw_double(struct jw *w, double v, int decimals);
void jw_bool(struct jw *w, bool v);
void jw_null(struct jw *w);
void jw_raw(struct jw *w, struct str token); /* already JSON */
void jw_value(struct jw *w, const struct json *v);

#endif
