/* SPDX-License-Identifier: Apache-2.0 */
/* audit_record.c - see audit_record.h. */
#include "wire/audit_record.h"

#include "wire/wire.h"
#include <stddef.h>

static const char *const whos[AUDIT_WHOS] = {"nobody", "key", "token", "admin", "link", "root"};

/* In the order of the line. */
static const struct text {
  size_t at;
  enum wire_tag tag;
  const char *name;
  size_t most; /* bytes of it that are kept */
} texts[] = {
    {offsetof(struct audit_record, key), W_KEY_ID, "key", 64},
    {offsetof(struct audit_record, team), W_TEAM, "team", 64},
    {offsetof(struct audit_record, team_name), W_NAME, "teamName", 128},
    {offsetof(struct audit_record, client), W_CLIENT, "client", 96},
    {offsetof(struct audit_record, forwarded), W_ORIGIN, "forwardedFor", 128},
    {offsetof(struct audit_record, agent), W_HEADERS, "userAgent", AUDIT_TEXT_MAX},
    {offsetof(struct audit_record, method), W_OP, "method", 16},
    {offsetof(struct audit_record, route), W_PATH, "route", 128},
    {offsetof(struct audit_record, id), W_ID, "id", 128},
    {offsetof(struct audit_record, second), W_REF, "second", 128},
    {offsetof(struct audit_record, made), W_TARGET, "made", 128},
};

static struct str *text_of(const struct audit_record *r, const struct text *t)
{
  return (struct str *)((char *)(uintptr_t)r + t->at);
}

bool audit_record_unproven(const struct audit_record *r)
{
  return r->who == AUDIT_NOBODY || (r->who == AUDIT_LINK && r->status >= 400);
}

void audit_record_pack(struct buf *b, const struct audit_record *r)
{
  wire_begin(b, WIRE_AUDIT, 0, 0);
  wire_put_u64(b, W_CLASS, r->who);
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    if (text_of(r, &texts[i])->n)
      wire_put(b, texts[i].tag, str_sub(*text_of(r, &texts[i]), 0, texts[i].most));
  wire_put_u64(b, W_HTTP_STATUS, r->status);
  wire_put_u64(b, W_DURATION, r->took_us);
  if (r->lost)
    wire_put_u64(b, W_COUNT, r->lost);
  if (r->left_out)
    wire_put_u64(b, W_MOST, r->left_out);
}

int audit_record_read(struct str packet, bool of_warden, struct audit_record *r)
{
  if (wire_check(packet) || wire_head(packet)->type != WIRE_AUDIT)
    return -EINVAL;
  uint64_t who = wire_u64(packet, W_CLASS, AUDIT_NOBODY);
  if ((who == AUDIT_ROOT) != of_warden)
    return -EINVAL;
  *r = (struct audit_record){.who = who < AUDIT_WHOS ? (enum audit_who)who : AUDIT_NOBODY,
                             .status = (unsigned)wire_u64(packet, W_HTTP_STATUS, 0),
                             .took_us = wire_u64(packet, W_DURATION, 0),
                             .lost = wire_u64(packet, W_COUNT, 0),
                             .left_out = wire_u64(packet, W_MOST, 0)};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    *text_of(r, &texts[i]) = str_sub(wire_get(packet, texts[i].tag), 0, texts[i].most);
  return 0;
}

static void put_clean(struct jw *w, struct str text)
{
  char clean[AUDIT_TEXT_MAX];
  text = str_sub(text, 0, sizeof(clean));
  memcpy(clean, text.p, text.n);
  text_blank_controls(clean, text.n);
  jw_str(w, str_make(clean, text.n));
}

static void put_count(struct jw *w, const char *name, uint64_t n)
{
  if (!n)
    return;
  jw_key(w, name);
  jw_uint(w, n);
}

void audit_record_line(struct buf *b, const struct audit_record *r, uint64_t gate, int64_t wall_us)
{
  struct jw w = JW(b);
  char when[CLOCK_TEXT];
  clock_text(wall_us, when);
  jw_open(&w, '{');
  jw_key(&w, "time");
  jw_z(&w, when);
  if (r->who != AUDIT_ROOT) {
    jw_key(&w, "gate");
    jw_uint(&w, gate);
  }
  jw_key(&w, "who");
  jw_z(&w, whos[r->who]);
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    if (text_of(r, &texts[i])->n) {
      jw_key(&w, texts[i].name);
      put_clean(&w, *text_of(r, &texts[i]));
    }
  jw_key(&w, "status");
  jw_uint(&w, r->status);
  jw_key(&w, "tookMs");
  jw_double(&w, (double)r->took_us / 1000, 3);
  put_count(&w, "lost", r->lost);
  put_count(&w, "leftOut", r->left_out);
  jw_close(&w, '}');
  buf_addc(b, '\n');
}
