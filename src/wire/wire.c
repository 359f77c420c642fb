/* SPDX-License-Identifier: Apache-2.0 */
/* wire.c - packets as rows of tagged fields, each padded to 8 bytes so that numbers are read in place. */
#include "wire/wire.h"

struct field {
  uint32_t tag, len;
};

static size_t padded(size_t n)
{
  return (n + 7) & ~(size_t)7;
}

void wire_begin(struct buf *b, enum wire_type type, uint64_t id, int status)
{
  buf_clear(b);
  buf_add(b, &(struct wire_head){type, status, id}, sizeof(struct wire_head));
}

void wire_put(struct buf *b, enum wire_tag tag, struct str value)
{
  static const char zeros[8];
  buf_add(b, &(struct field){tag, (uint32_t)value.n}, sizeof(struct field));
  buf_add(b, value.p, value.n);
  buf_add(b, zeros, padded(value.n) - value.n);
}

void wire_putz(struct buf *b, enum wire_tag tag, const char *value)
{
  wire_put(b, tag, str_of(value));
}

void wire_put_u64(struct buf *b, enum wire_tag tag, uint64_t value)
{
  wire_put(b, tag, (struct str){(const char *)&value, sizeof(value)});
}

/* Steps to the next field; false at the end or when the row is broken (*bad). */
static bool next(struct str packet, size_t *at, struct field *f, struct str *value, bool *bad)
{
  if (*at == packet.n)
    return false;
  if (packet.n - *at < sizeof(*f)) {
    *bad = true;
    return false;
  }
  memcpy(f, packet.p + *at, sizeof(*f));
  *at += sizeof(*f);
  if (padded(f->len) > packet.n - *at) {
    *bad = true;
    return false;
  }
  *value = (struct str){packet.p + *at, f->len};
  *at += padded(f->len);
  return true;
}

int wire_check(struct str packet)
{
  if (packet.n < sizeof(struct wire_head) || packet.n > WIRE_MAX)
    return -EINVAL;
  struct field f;
  struct str v;
  bool bad = false;
  for (size_t at = sizeof(struct wire_head); next(packet, &at, &f, &v, &bad);)
    ;
  return bad ? -EINVAL : 0;
}

const struct wire_head *wire_head(struct str packet)
{
  return (const struct wire_head *)packet.p;
}

struct str wire_get(struct str packet, enum wire_tag tag)
{
  struct field f;
  struct str v;
  bool bad = false;
  for (size_t at = sizeof(struct wire_head); next(packet, &at, &f, &v, &bad);)
    if (f.tag == tag)
      return v;
  return STR_NONE;
}

uint64_t wire_u64(struct str packet, enum wire_tag tag, uint64_t otherwise)
{
  struct str v = wire_get(packet, tag);
  uint64_t out = otherwise;
  if (v.n == sizeof(out))
    memcpy(&out, v.p, sizeof(out));
  return out;
}

int wire_copyz(struct str packet, enum wire_tag tag, char *dst, size_t size)
{
  struct str v = wire_get(packet, tag);
  return v.p ? str_copyz(v, dst, size) : -EINVAL;
}

bool wire_next(struct str packet, size_t *at, enum wire_tag *tag, struct str *value)
{
  struct field f;
  bool bad = false;
  *at = *at ? *at : sizeof(struct wire_head);
  if (!next(packet, at, &f, value, &bad))
    return false;
  *tag = (enum wire_tag)f.tag;
  return true;
}
