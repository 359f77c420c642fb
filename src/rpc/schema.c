/* SPDX-License-Identifier: Apache-2.0 */
/* schema.c - what both codecs ask of a field: is it set, mark it set, add to its list. */
#include "rpc/schema.h"

/* Lists double in the arena; what they outgrow stays there until the request ends, at most as much again. */
int rpc_list_add(struct arena *a, struct rpc_list *list, size_t size, const void *item)
{
  if (list->n == list->cap) {
    size_t cap = list->cap ? list->cap * 2 : 4;
    char *p = arena_alloc(a, cap * size);
    if (!p)
      return -ENOMEM;
    if (list->n)
      memcpy(p, list->p, list->n * size);
    list->p = p;
    list->cap = cap;
  }
  memcpy((char *)list->p + list->n++ * size, item, size);
  return 0;
}

static bool plain_present(const struct field *f, const void *at)
{
  switch ((enum field_type)f->type) {
  case FT_STRING:
  case FT_BYTES:
    return ((const struct str *)at)->n > 0;
  case FT_BOOL:
    return *(const bool *)at;
  case FT_UINT32:
  case FT_SINT32:
  case FT_ENUM:
    return *(const uint32_t *)at != 0;
  case FT_INT64:
    return *(const int64_t *)at != 0;
  case FT_MESSAGE:
    return *(void *const *)at != NULL;
  case FT_TIME:
    return ((const struct rpc_time *)at)->sec != 0 || ((const struct rpc_time *)at)->nsec != 0;
  case FT_MAP:
    return ((const struct rpc_list *)at)->n > 0;
  }
  return false;
}

bool field_present(const struct field *f, const void *msg)
{
  const void *at = field_of(f, msg);
  switch ((enum field_rule)f->rule) {
  case FR_REPEATED:
    return ((const struct rpc_list *)at)->n > 0;
  case FR_OPTIONAL:
    return *(const bool *)((const char *)msg + f->mark);
  case FR_ONEOF:
    return *(const uint32_t *)((const char *)msg + f->mark) == f->number;
  case FR_PLAIN:
    break;
  }
  return plain_present(f, at);
}

void field_mark(const struct field *f, void *msg)
{
  if (f->rule == FR_OPTIONAL)
    *(bool *)((char *)msg + f->mark) = true;
  else if (f->rule == FR_ONEOF)
    *(uint32_t *)((char *)msg + f->mark) = f->number;
}
