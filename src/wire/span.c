/* SPDX-License-Identifier: Apache-2.0 */
/* span.c - see span.h. */
#include "wire/span.h"

#include "wire/wire.h"

struct packed_phase {
  int64_t from_us, to_us;
  char name[16];
};

static bool all_zero(const uint8_t *p, size_t n)
{
  uint8_t any = 0;
  for (size_t i = 0; i < n; i++)
    any |= p[i];
  return !any;
}

/* Small letters only, as the recommendation says. */
static int read_hex(struct str text, uint8_t *out)
{
  for (size_t i = 0; i < text.n; i++)
    if (!((text.p[i] >= '0' && text.p[i] <= '9') || (text.p[i] >= 'a' && text.p[i] <= 'f')))
      return -EINVAL;
  for (size_t i = 0; i + 1 < text.n; i += 2) {
    char high = text.p[i], low = text.p[i + 1];
    out[i / 2] =
        (uint8_t)((high <= '9' ? high - '0' : high - 'a' + 10) << 4 | (low <= '9' ? low - '0' : low - 'a' + 10));
  }
  return 0;
}

/* "00-<32 digits>-<16 digits>-<2 digits>", more behind a dash where the version is a later one. */
int span_context_read(struct str t, struct span_context *out)
{
  uint8_t version, flags;
  struct span_context c = {0};
  if (t.n < 55 || t.p[2] != '-' || t.p[35] != '-' || t.p[52] != '-')
    return -EINVAL;
  if (read_hex(str_sub(t, 0, 2), &version) || version == 0xff || read_hex(str_sub(t, 3, 32), c.trace) ||
      read_hex(str_sub(t, 36, 16), c.parent) || read_hex(str_sub(t, 53, 2), &flags))
    return -EINVAL;
  if ((version == 0 && t.n != 55) || (t.n > 55 && t.p[55] != '-'))
    return -EINVAL;
  if (all_zero(c.trace, sizeof(c.trace)) || all_zero(c.parent, sizeof(c.parent)))
    return -EINVAL;
  c.sampled = flags & 1;
  *out = c;
  return 0;
}

void span_phase_add(struct span *s, const char *name, int64_t from_us, int64_t to_us)
{
  if (s->nphases < SPAN_PHASES && from_us > 0 && to_us >= from_us)
    s->phases[s->nphases++] = (struct span_phase){.name = name, .from_us = from_us, .to_us = to_us};
}

void span_shift(struct span *s, int64_t by_us)
{
  s->from_us += by_us;
  s->to_us += by_us;
  for (size_t i = 0; i < s->nphases; i++) {
    s->phases[i].from_us += by_us;
    s->phases[i].to_us += by_us;
  }
}

void span_pack(struct buf *b, const struct span *s)
{
  wire_begin(b, WIRE_SPAN, 0, 0);
  wire_put(b, W_TRACE_ID, str_make(s->context.trace, sizeof(s->context.trace)));
  wire_put(b, W_PARENT_ID, str_make(s->context.parent, sizeof(s->context.parent)));
  wire_put(b, W_SPAN_ID, str_make(s->id, sizeof(s->id)));
  wire_put(b, W_NAME, str_sub(s->name, 0, SPAN_TEXT_MAX));
  wire_put(b, W_PATH, str_sub(s->route, 0, SPAN_TEXT_MAX));
  wire_put(b, W_ID, str_sub(s->box, 0, SPAN_TEXT_MAX));
  wire_put(b, W_TEAM, str_sub(s->team, 0, SPAN_TEXT_MAX));
  wire_put(b, W_BUILD, str_sub(s->build, 0, SPAN_TEXT_MAX));
  wire_put_u64(b, W_HTTP_STATUS, s->status);
  wire_put_u64(b, W_FROM, (uint64_t)s->from_us);
  wire_put_u64(b, W_TO, (uint64_t)s->to_us);
  struct packed_phase packed[SPAN_PHASES] = {0};
  for (size_t i = 0; i < s->nphases; i++) {
    packed[i].from_us = s->phases[i].from_us;
    packed[i].to_us = s->phases[i].to_us;
    str_copyz(str_sub(str_of(s->phases[i].name), 0, sizeof(packed[i].name) - 1), packed[i].name,
              sizeof(packed[i].name));
  }
  wire_put(b, W_BODY, str_make(packed, s->nphases * sizeof(packed[0])));
}

static int read_bytes(struct str packet, enum wire_tag tag, uint8_t *out, size_t n)
{
  struct str v = wire_get(packet, tag);
  if (v.n != n)
    return -EINVAL;
  memcpy(out, v.p, n);
  return 0;
}

int span_read(struct str packet, struct span *s)
{
  if (wire_check(packet) || wire_head(packet)->type != WIRE_SPAN)
    return -EINVAL;
  *s = (struct span){.name = str_sub(wire_get(packet, W_NAME), 0, SPAN_TEXT_MAX),
                     .route = str_sub(wire_get(packet, W_PATH), 0, SPAN_TEXT_MAX),
                     .box = str_sub(wire_get(packet, W_ID), 0, SPAN_TEXT_MAX),
                     .team = str_sub(wire_get(packet, W_TEAM), 0, SPAN_TEXT_MAX),
                     .build = str_sub(wire_get(packet, W_BUILD), 0, SPAN_TEXT_MAX),
                     .status = (unsigned)wire_u64(packet, W_HTTP_STATUS, 0),
                     .from_us = (int64_t)wire_u64(packet, W_FROM, 0),
                     .to_us = (int64_t)wire_u64(packet, W_TO, 0)};
  int r = read_bytes(packet, W_TRACE_ID, s->context.trace, sizeof(s->context.trace));
  r = r ? r : read_bytes(packet, W_PARENT_ID, s->context.parent, sizeof(s->context.parent));
  r = r ? r : read_bytes(packet, W_SPAN_ID, s->id, sizeof(s->id));
  struct str rows = wire_get(packet, W_BODY);
  if (r || rows.n % sizeof(struct packed_phase) || rows.n / sizeof(struct packed_phase) > SPAN_PHASES)
    return -EINVAL;
  for (; rows.n; rows = str_skip(rows, sizeof(struct packed_phase))) {
    struct packed_phase p;
    memcpy(&p, rows.p, sizeof(p));
    const char *name = rows.p + offsetof(struct packed_phase, name);
    s->phases[s->nphases++] = (struct span_phase){
        .text = str_make(name, strnlen(name, sizeof(p.name))), .from_us = p.from_us, .to_us = p.to_us};
  }
  return 0;
}
