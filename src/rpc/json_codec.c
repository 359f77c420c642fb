/* SPDX-License-Identifier: Apache-2.0 */
/* json_codec.c - proto3 JSON by table: lowerCamelCase written, snake_case accepted too, 64-bit numbers as strings,
 * bytes as base64, enums by name, default values left out, unknown members ignored, null = unset. */
#include "rpc/schema.h"
#include <inttypes.h>
#include <time.h>

/* ---- reading ---- */

static int read_message(const struct schema *s, const struct json *v, struct arena *a, void *out, struct err *err,
                        int depth);

static const struct field *field_named(const struct schema *s, struct str name)
{
  for (size_t i = 0; i < s->nfields; i++)
    if (str_is(name, s->fields[i].name) || str_is(name, s->fields[i].snake))
      return &s->fields[i];
  return NULL;
}

static int bad(const struct field *f, const char *wanted, struct err *err)
{
  return err_set(err, -EINVAL, "field %s: %s expected", f->name, wanted);
}

static int read_bytes(const struct field *f, const struct json *v, struct arena *a, struct str *out, struct err *err)
{
  if (!json_is(v, JSON_STRING))
    return bad(f, "base64 text", err);
  cleanup_buf struct buf raw = BUF_INIT(v->text.n + 4);
  if (base64_decode(v->text, &raw) < 0)
    return bad(f, "base64 text", err);
  *out = arena_str(a, buf_str(&raw));
  return out->p ? 0 : err_set(err, -ENOMEM, "message too large");
}

static int read_enum(const struct field *f, const struct json *v, uint32_t *out, struct err *err)
{
  int64_t n;
  if (json_is(v, JSON_STRING)) {
    for (const struct enum_name *e = f->enums; e->name; e++)
      if (str_is(v->text, e->name))
        return *out = e->value, 0;
    return err_set(err, -EINVAL, "field %s: unknown value \"" STR_FMT "\"", f->name, STR_ARG(str_sub(v->text, 0, 64)));
  }
  if (!json_is(v, JSON_NUMBER) || json_int(v, &n) < 0 || n < INT32_MIN || n > INT32_MAX)
    return bad(f, "name or number", err);
  *out = (uint32_t)n;
  return 0;
}

static int read_number(const struct field *f, const struct json *v, void *at, struct err *err)
{
  int64_t n;
  if (json_int(v, &n) < 0)
    return bad(f, "integer", err);
  if (f->type == FT_INT64)
    return *(int64_t *)at = n, 0;
  if (f->type == FT_UINT32 ? n < 0 || n > UINT32_MAX : n < INT32_MIN || n > INT32_MAX)
    return bad(f, "32-bit integer", err);
  *(uint32_t *)at = (uint32_t)n;
  return 0;
}

static int read_time(const struct field *f, const struct json *v, struct rpc_time *out, struct err *err)
{
  int64_t us;
  if (!json_is(v, JSON_STRING) || clock_parse(v->text, &us) < 0)
    return bad(f, "RFC 3339 time", err);
  out->sec = us / 1000000 - (us % 1000000 < 0);
  out->nsec = (int32_t)((us - out->sec * 1000000) * 1000);
  return 0;
}

static int read_map(const struct field *f, const struct json *v, struct arena *a, struct rpc_list *out, struct err *err)
{
  if (!json_is(v, JSON_OBJECT))
    return bad(f, "object", err);
  for (const struct json *kid = v->kids; kid; kid = kid->next) {
    if (!json_is(kid, JSON_STRING))
      return bad(f, "object of strings", err);
    struct rpc_pair pair = {kid->key, kid->text};
    if (rpc_list_add(a, out, sizeof(pair), &pair) < 0)
      return err_set(err, -ENOMEM, "message too large");
  }
  return 0;
}

static int read_one(const struct field *f, const struct json *v, struct arena *a, void *at, struct err *err, int depth)
{
  switch ((enum field_type)f->type) {
  case FT_STRING:
    if (!json_is(v, JSON_STRING))
      return bad(f, "string", err);
    *(struct str *)at = v->text;
    return 0;
  case FT_BYTES:
    return read_bytes(f, v, a, at, err);
  case FT_BOOL:
    if (!json_is(v, JSON_BOOL))
      return bad(f, "true or false", err);
    *(bool *)at = v->flag;
    return 0;
  case FT_UINT32:
  case FT_SINT32:
  case FT_INT64:
    return read_number(f, v, at, err);
  case FT_ENUM:
    return read_enum(f, v, at, err);
  case FT_TIME:
    return read_time(f, v, at, err);
  case FT_MAP:
    return read_map(f, v, a, at, err);
  case FT_MESSAGE:
    break;
  }
  void *sub = arena_alloc(a, f->message->size);
  if (!sub)
    return err_set(err, -ENOMEM, "message too large");
  *(void **)at = sub;
  return read_message(f->message, v, a, sub, err, depth + 1);
}

static int read_repeated(const struct field *f, const struct json *v, struct arena *a, struct rpc_list *out,
                         struct err *err, int depth)
{
  if (!json_is(v, JSON_ARRAY))
    return bad(f, "array", err);
  for (const struct json *kid = v->kids; kid; kid = kid->next) {
    union {
      struct str text;
      void *message;
    } item = {0};
    int rc = read_one(f, kid, a, &item, err, depth);
    if (rc < 0)
      return rc;
    size_t size = f->type == FT_MESSAGE ? sizeof(item.message) : sizeof(item.text);
    if (rpc_list_add(a, out, size, &item) < 0)
      return err_set(err, -ENOMEM, "message too large");
  }
  return 0;
}

static int read_field(const struct field *f, const struct json *v, struct arena *a, void *out, struct err *err,
                      int depth)
{
  if (f->rule == FR_ONEOF) {
    uint32_t set = *(uint32_t *)((char *)out + f->mark);
    if (set && set != f->number)
      return err_set(err, -EINVAL, "field %s: another member of its group is set already", f->name);
  }
  field_mark(f, out);
  if (f->rule == FR_REPEATED)
    return read_repeated(f, v, a, field_at(f, out), err, depth);
  return read_one(f, v, a, field_at(f, out), err, depth);
}

static int read_message(const struct schema *s, const struct json *v, struct arena *a, void *out, struct err *err,
                        int depth)
{
  if (!json_is(v, JSON_OBJECT))
    return err_set(err, -EINVAL, "%s: object expected", s->name);
  if (depth > RPC_DEPTH_MAX)
    return err_set(err, -EINVAL, "%s: nested too deep", s->name);
  for (const struct json *kid = v->kids; kid; kid = kid->next) {
    const struct field *f = field_named(s, kid->key);
    if (!f || kid->type == JSON_NULL)
      continue;
    int rc = read_field(f, kid, a, out, err, depth);
    if (rc < 0)
      return rc;
  }
  return 0;
}

int json_decode(const struct schema *s, struct str text, struct arena *a, void **out, struct err *err)
{
  struct json_error why = {0};
  struct json *root = json_read(a, text, 0, &why);
  if (!root)
    return err_set(err, -EINVAL, "syntax error at offset %zu: %s", why.offset, why.what ? why.what : "too large");
  *out = arena_alloc(a, s->size ? s->size : 1);
  if (!*out)
    return err_set(err, -ENOMEM, "message too large");
  return read_message(s, root, a, *out, err, 0);
}

/* ---- writing ---- */

static void write_base64(struct buf *b, struct str s)
{
  buf_addc(b, '"');
  base64_add(b, s.p, s.n, true);
  buf_addc(b, '"');
}

static void write_enum(const struct field *f, uint32_t value, struct buf *b)
{
  for (const struct enum_name *e = f->enums; e->name; e++)
    if (e->value == value) {
      buf_addf(b, "\"%s\"", e->name);
      return;
    }
  buf_addf(b, "%" PRId32, (int32_t)value);
}

/* 0, 3, 6 or 9 fraction digits, as few as say it all. */
static void write_time(struct buf *b, struct rpc_time t)
{
  struct tm tm;
  time_t sec = (time_t)t.sec;
  gmtime_r(&sec, &tm);
  buf_addf(b, "\"%04d-%02d-%02dT%02d:%02d:%02d", tm.tm_year + 1900, tm.tm_mon + 1, tm.tm_mday, tm.tm_hour, tm.tm_min,
           tm.tm_sec);
  if (t.nsec % 1000)
    buf_addf(b, ".%09d", t.nsec);
  else if (t.nsec % 1000000)
    buf_addf(b, ".%06d", t.nsec / 1000);
  else if (t.nsec)
    buf_addf(b, ".%03d", t.nsec / 1000000);
  buf_addz(b, "Z\"");
}

static void write_map(struct buf *b, const struct rpc_list *map)
{
  const struct rpc_pair *pairs = map->p;
  buf_addc(b, '{');
  for (size_t i = 0; i < map->n; i++) {
    if (i)
      buf_addc(b, ',');
    json_put_str(b, pairs[i].key, false);
    buf_addc(b, ':');
    json_put_str(b, pairs[i].value, false);
  }
  buf_addc(b, '}');
}

static void write_one(const struct field *f, const void *at, struct buf *b)
{
  switch ((enum field_type)f->type) {
  case FT_STRING:
    json_put_str(b, *(const struct str *)at, false);
    break;
  case FT_BYTES:
    write_base64(b, *(const struct str *)at);
    break;
  case FT_BOOL:
    buf_addz(b, *(const bool *)at ? "true" : "false");
    break;
  case FT_UINT32:
    buf_addu(b, *(const uint32_t *)at);
    break;
  case FT_SINT32:
    buf_addf(b, "%" PRId32, *(const int32_t *)at);
    break;
  case FT_INT64:
    buf_addf(b, "\"%" PRId64 "\"", *(const int64_t *)at);
    break;
  case FT_ENUM:
    write_enum(f, *(const uint32_t *)at, b);
    break;
  case FT_TIME:
    write_time(b, *(const struct rpc_time *)at);
    break;
  case FT_MAP:
    write_map(b, at);
    break;
  case FT_MESSAGE:
    json_encode(f->message, *(void *const *)at, b);
    break;
  }
}

static void write_repeated(const struct field *f, const struct rpc_list *list, struct buf *b)
{
  buf_addc(b, '[');
  for (size_t i = 0; i < list->n; i++) {
    size_t size = f->type == FT_MESSAGE ? sizeof(void *) : sizeof(struct str);
    if (i)
      buf_addc(b, ',');
    write_one(f, (const char *)list->p + i * size, b);
  }
  buf_addc(b, ']');
}

void json_encode(const struct schema *s, const void *msg, struct buf *b)
{
  bool comma = false;
  buf_addc(b, '{');
  for (size_t i = 0; msg && i < s->nfields; i++) {
    const struct field *f = &s->fields[i];
    if (!field_present(f, msg))
      continue;
    if (comma)
      buf_addc(b, ',');
    comma = true;
    buf_addc(b, '"');
    buf_addz(b, f->name);
    buf_addz(b, "\":");
    if (f->rule == FR_REPEATED)
      write_repeated(f, field_of(f, msg), b);
    else
      write_one(f, field_of(f, msg), b);
  }
  buf_addc(b, '}');
}
