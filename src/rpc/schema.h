/* SPDX-License-Identifier: Apache-2.0 */
/* schema.h - messages as tables: one row per field drives both wire formats.
 *
 * A message is a plain C struct; its schema lists where each field lives, its protobuf number and its JSON name. The
 * same rows serve proto3 JSON (json_codec.c) and the binary format (proto_codec.c). A generated codec (protobuf-c)
 * would bring no JSON and ten times the code into a program that has to stay small in every box; the contract has some
 * thirty small messages, so tables it is.
 *
 * C types by field type: STRING, BYTES struct str · BOOL bool · UINT32, ENUM uint32_t · SINT32 int32_t · INT64
 * int64_t · TIME struct rpc_time · MESSAGE pointer to the struct (NULL = unset) · MAP struct rpc_list of
 * struct rpc_pair · REPEATED struct rpc_list of struct str or of pointers. Decoded memory belongs to the arena given;
 * bytes of the input may be borrowed, so the input must live as long. */
#ifndef CLOCHE_RPC_SCHEMA_H
#define CLOCHE_RPC_SCHEMA_H

#include "base/base.h"

enum field_type { FT_STRING, FT_BYTES, FT_BOOL, FT_UINT32, FT_SINT32, FT_INT64, FT_ENUM, FT_MESSAGE, FT_TIME, FT_MAP };
enum field_rule { FR_PLAIN, FR_OPTIONAL, FR_ONEOF, FR_REPEATED };

struct schema;
struct enum_name {
  uint32_t value;
  const char *name; /* NULL closes the list */
};

struct field {
  uint32_t number;
  uint8_t type, rule;
  uint16_t offset;          /* of the value */
  uint16_t mark;            /* OPTIONAL: of its bool; ONEOF: of the uint32_t that holds the number of the member set */
  const char *name, *snake; /* JSON name, and the original one that is accepted too */
  const struct schema *message; /* FT_MESSAGE */
  const struct enum_name *enums;
};

struct schema {
  const char *name;
  const struct field *fields;
  size_t nfields, size;
};

struct rpc_list {
  void *p;
  size_t n, cap;
};
struct rpc_pair {
  struct str key, value;
};
struct rpc_time {
  int64_t sec;
  int32_t nsec;
};

#define RPC_DEPTH_MAX 16 /* no schema nests deeper than this */

/* 0 or a negative errno; err says what is wrong and where. *out is a zeroed struct of the schema's size. */
int json_decode(const struct schema *s, struct str text, struct arena *a, void **out, struct err *err);
int proto_decode(const struct schema *s, struct str bytes, struct arena *a, void **out, struct err *err);

/* Append to b; look at buf_failed(b) at the end. */
void json_encode(const struct schema *s, const void *msg, struct buf *b);
void proto_encode(const struct schema *s, const void *msg, struct buf *b);

/* Shared by both codecs. */
int rpc_list_add(struct arena *a, struct rpc_list *list, size_t size, const void *item);
bool field_present(const struct field *f, const void *msg); /* is it to be written? */
void field_mark(const struct field *f, void *msg);

static inline void *field_at(const struct field *f, void *msg)
{
  return (char *)msg + f->offset;
}
static inline const void *field_of(const struct field *f, const void *msg)
{
  return (const char *)msg + f->offset;
}

#endif
