/* SPDX-License-Identifier: Apache-2.0 */
/* proto_codec.c - the proto3 wire format by table. Unknown fields are skipped, the last of a repeated scalar wins,
 * lengths are checked before a byte is touched. Strings and bytes are borrowed from the input. */
#include "rpc/schema.h"

enum wire { WIRE_VARINT = 0, WIRE_I64 = 1, WIRE_LEN = 2, WIRE_START = 3, WIRE_END = 4, WIRE_I32 = 5 };

/* ---- reading ---- */

static int read_message(const struct schema *s, struct str in, struct arena *a, void *out, struct err *err, int depth);

static int take_varint(struct str *in, uint64_t *out)
{
  uint64_t v = 0;
  for (unsigned i = 0; i < 10 && i < in->n; i++) {
    uint8_t byte = (uint8_t)in->p[i];
    v |= (uint64_t)(byte & 0x7f) << (7 * i);
    if (!(byte & 0x80)) {
      *in = str_skip(*in, i + 1);
      *out = v;
      return 0;
    }
  }
  return -EINVAL;
}

static int take_len(struct str *in, struct str *out)
{
  uint64_t n;
  if (take_varint(in, &n) < 0 || n > in->n)
    return -EINVAL;
  *out = str_sub(*in, 0, (size_t)n);
  *in = str_skip(*in, (size_t)n);
  return 0;
}

/* Groups are not in any schema here; one from outside is skipped with everything in it. */
static int skip_value(struct str *in, unsigned wire, int depth)
{
  uint64_t v;
  struct str bytes;
  if (wire == WIRE_VARINT)
    return take_varint(in, &v);
  if (wire == WIRE_LEN)
    return take_len(in, &bytes);
  if (wire == WIRE_I64 || wire == WIRE_I32) {
    size_t n = wire == WIRE_I64 ? 8 : 4;
    if (in->n < n)
      return -EINVAL;
    *in = str_skip(*in, n);
    return 0;
  }
  if (wire != WIRE_START || depth > RPC_DEPTH_MAX)
    return -EINVAL;
  while (take_varint(in, &v) == 0) {
    if ((v & 7) == WIRE_END)
      return 0;
    if (skip_value(in, v & 7, depth + 1) < 0)
      return -EINVAL;
  }
  return -EINVAL;
}

static int32_t unzigzag(uint64_t v)
{
  uint32_t n = (uint32_t)v;
  return (int32_t)(n >> 1 ^ (0 - (n & 1)));
}

static int read_pair(struct str in, struct rpc_pair *out)
{
  *out = (struct rpc_pair){STR(""), STR("")};
  while (in.n) {
    uint64_t tag;
    if (take_varint(&in, &tag) < 0)
      return -EINVAL;
    int rc = 0;
    if (tag == (1 << 3 | WIRE_LEN))
      rc = take_len(&in, &out->key);
    else if (tag == (2 << 3 | WIRE_LEN))
      rc = take_len(&in, &out->value);
    else
      rc = skip_value(&in, tag & 7, 0);
    if (rc < 0)
      return rc;
  }
  return utf8_valid(out->key) && utf8_valid(out->value) ? 0 : -EINVAL;
}

static int read_time(struct str in, struct rpc_time *out)
{
  while (in.n) {
    uint64_t tag, v;
    if (take_varint(&in, &tag) < 0)
      return -EINVAL;
    if ((tag & 7) != WIRE_VARINT) {
      if (skip_value(&in, tag & 7, 0) < 0)
        return -EINVAL;
      continue;
    }
    if (take_varint(&in, &v) < 0)
      return -EINVAL;
    if (tag >> 3 == 1)
      out->sec = (int64_t)v;
    else if (tag >> 3 == 2)
      out->nsec = (int32_t)v;
  }
  return out->nsec >= 0 && out->nsec < 1000000000 ? 0 : -EINVAL;
}

static void store_varint(const struct field *f, uint64_t v, void *at)
{
  if (f->type == FT_BOOL)
    *(bool *)at = v != 0;
  else if (f->type == FT_INT64)
    *(int64_t *)at = (int64_t)v;
  else if (f->type == FT_SINT32)
    *(int32_t *)at = unzigzag(v);
  else
    *(uint32_t *)at = (uint32_t)v;
}

/* A message that comes in pieces is one message: later pieces are laid over the earlier ones. */
static int read_sub(const struct field *f, struct str bytes, struct arena *a, void **at, struct err *err, int depth)
{
  if (!*at)
    *at = arena_alloc(a, f->message->size ? f->message->size : 1);
  if (!*at)
    return err_set(err, -ENOMEM, "message too large");
  return read_message(f->message, bytes, a, *at, err, depth + 1);
}

static int read_repeated(const struct field *f, struct str bytes, struct arena *a, struct rpc_list *list,
                         struct err *err, int depth)
{
  if (f->type == FT_MESSAGE) {
    void *sub = NULL;
    int rc = read_sub(f, bytes, a, &sub, err, depth);
    if (rc < 0)
      return rc;
    return rpc_list_add(a, list, sizeof(sub), &sub);
  }
  if (f->type == FT_STRING && !utf8_valid(bytes))
    return err_set(err, -EINVAL, "field %s: not UTF-8", f->name);
  return rpc_list_add(a, list, sizeof(bytes), &bytes);
}

static int read_len_field(const struct field *f, struct str bytes, struct arena *a, void *out, struct err *err,
                          int depth)
{
  void *at = field_at(f, out);
  struct rpc_pair pair;
  if (f->rule == FR_REPEATED)
    return read_repeated(f, bytes, a, at, err, depth);
  switch ((enum field_type)f->type) {
  case FT_STRING:
    if (!utf8_valid(bytes))
      return err_set(err, -EINVAL, "field %s: not UTF-8", f->name);
    *(struct str *)at = bytes;
    return 0;
  case FT_BYTES:
    *(struct str *)at = bytes;
    return 0;
  case FT_MESSAGE:
    return read_sub(f, bytes, a, at, err, depth);
  case FT_TIME:
    return read_time(bytes, at) < 0 ? err_set(err, -EINVAL, "field %s: bad time", f->name) : 0;
  case FT_MAP:
    if (read_pair(bytes, &pair) < 0)
      return err_set(err, -EINVAL, "field %s: bad entry", f->name);
    return rpc_list_add(a, at, sizeof(pair), &pair);
  default:
    return err_set(err, -EINVAL, "field %s: wrong wire type", f->name);
  }
}

static bool wants_varint(const struct field *f)
{
  return f->type == FT_BOOL || f->type == FT_UINT32 || f->type == FT_SINT32 || f->type == FT_INT64 ||
         f->type == FT_ENUM;
}

/* A member of a group pushes out the one that was there; a half-read message of the other must not shine through. */
static void enter_oneof(const struct field *f, void *out)
{
  if (f->rule == FR_ONEOF && f->type == FT_MESSAGE && *(uint32_t *)((char *)out + f->mark) != f->number)
    *(void **)field_at(f, out) = NULL;
  field_mark(f, out);
}

static int read_known(const struct field *f, unsigned wire, struct str *in, struct arena *a, void *out, struct err *err,
                      int depth)
{
  uint64_t v;
  struct str bytes;
  if (wants_varint(f)) {
    if (wire != WIRE_VARINT || take_varint(in, &v) < 0)
      return err_set(err, -EINVAL, "field %s: bad varint", f->name);
    field_mark(f, out);
    store_varint(f, v, field_at(f, out));
    return 0;
  }
  if (wire != WIRE_LEN || take_len(in, &bytes) < 0)
    return err_set(err, -EINVAL, "field %s: bad length", f->name);
  enter_oneof(f, out);
  return read_len_field(f, bytes, a, out, err, depth);
}

static const struct field *field_numbered(const struct schema *s, uint64_t number)
{
  for (size_t i = 0; i < s->nfields; i++)
    if (s->fields[i].number == number)
      return &s->fields[i];
  return NULL;
}

static int read_message(const struct schema *s, struct str in, struct arena *a, void *out, struct err *err, int depth)
{
  if (depth > RPC_DEPTH_MAX)
    return err_set(err, -EINVAL, "%s: nested too deep", s->name);
  while (in.n) {
    uint64_t tag;
    if (take_varint(&in, &tag) < 0 || tag >> 3 == 0 || tag > UINT32_MAX)
      return err_set(err, -EINVAL, "%s: bad tag", s->name);
    const struct field *f = field_numbered(s, tag >> 3);
    int rc = f ? read_known(f, tag & 7, &in, a, out, err, depth) : skip_value(&in, tag & 7, 0);
    if (rc < 0)
      return err && err->code ? rc : err_set(err, rc, "%s: truncated", s->name);
  }
  return 0;
}

int proto_decode(const struct schema *s, struct str bytes, struct arena *a, void **out, struct err *err)
{
  *out = arena_alloc(a, s->size ? s->size : 1);
  if (!*out)
    return err_set(err, -ENOMEM, "message too large");
  return read_message(s, bytes, a, *out, err, 0);
}

/* ---- writing ---- */

static size_t put_varint(char out[10], uint64_t v)
{
  size_t n = 0;
  while (v >= 0x80) {
    out[n++] = (char)(v | 0x80);
    v >>= 7;
  }
  out[n++] = (char)v;
  return n;
}

static void write_varint(struct buf *b, uint64_t v)
{
  char text[10];
  buf_add(b, text, put_varint(text, v));
}

/* The length stands before what it counts, and is known only after: write, then open a gap of the right size. */
static void close_len(struct buf *b, size_t start)
{
  char text[10];
  if (buf_failed(b))
    return;
  size_t len = b->n - start, width = put_varint(text, len);
  if (buf_add(b, text, width) < 0)
    return;
  memmove(b->p + start + width, b->p + start, len);
  memcpy(b->p + start, text, width);
}

static void write_bytes(struct buf *b, struct str s)
{
  write_varint(b, s.n);
  buf_adds(b, s);
}

/* Names of files may be any bytes, strings of the wire may not: what is not UTF-8 becomes U+FFFD. */
static void write_text(struct buf *b, struct str s)
{
  if (utf8_valid(s)) {
    write_bytes(b, s);
    return;
  }
  size_t start = b->n;
  while (s.n) {
    size_t n = 1;
    while (n <= 4 && n <= s.n && !utf8_valid(str_sub(s, 0, n)))
      n++;
    bool whole = n <= 4 && n <= s.n;
    if (whole)
      buf_add(b, s.p, n);
    else
      buf_addz(b, "\xEF\xBF\xBD");
    s = str_skip(s, whole ? n : 1);
  }
  close_len(b, start);
}

static void write_pair(struct buf *b, const struct rpc_pair *pair)
{
  size_t start = b->n;
  buf_addc(b, 1 << 3 | WIRE_LEN);
  write_text(b, pair->key);
  buf_addc(b, 2 << 3 | WIRE_LEN);
  write_text(b, pair->value);
  close_len(b, start);
}

static void write_time(struct buf *b, const struct rpc_time *t)
{
  size_t start = b->n;
  if (t->sec) {
    buf_addc(b, 1 << 3 | WIRE_VARINT);
    write_varint(b, (uint64_t)t->sec);
  }
  if (t->nsec) {
    buf_addc(b, 2 << 3 | WIRE_VARINT);
    write_varint(b, (uint64_t)(int64_t)t->nsec);
  }
  close_len(b, start);
}

static uint64_t load_varint(const struct field *f, const void *at)
{
  if (f->type == FT_BOOL)
    return *(const bool *)at;
  if (f->type == FT_INT64)
    return (uint64_t) * (const int64_t *)at;
  if (f->type == FT_SINT32) {
    int32_t v = *(const int32_t *)at;
    return (uint32_t)v << 1 ^ (v < 0 ? UINT32_MAX : 0);
  }
  return *(const uint32_t *)at;
}

static void write_one(const struct field *f, const void *at, struct buf *b)
{
  if (wants_varint(f)) {
    write_varint(b, (uint64_t)f->number << 3 | WIRE_VARINT);
    write_varint(b, load_varint(f, at));
    return;
  }
  write_varint(b, (uint64_t)f->number << 3 | WIRE_LEN);
  size_t start = b->n;
  if (f->type == FT_STRING)
    write_text(b, *(const struct str *)at);
  else if (f->type == FT_BYTES)
    write_bytes(b, *(const struct str *)at);
  else if (f->type == FT_TIME)
    write_time(b, at);
  else if (f->type == FT_MAP)
    write_pair(b, at);
  else {
    proto_encode(f->message, *(void *const *)at, b);
    close_len(b, start);
  }
}

static void write_list(const struct field *f, const struct rpc_list *list, struct buf *b)
{
  size_t size = f->type == FT_MAP       ? sizeof(struct rpc_pair)
                : f->type == FT_MESSAGE ? sizeof(void *)
                                        : sizeof(struct str);
  for (size_t i = 0; i < list->n; i++)
    write_one(f, (const char *)list->p + i * size, b);
}

void proto_encode(const struct schema *s, const void *msg, struct buf *b)
{
  for (size_t i = 0; msg && i < s->nfields; i++) {
    const struct field *f = &s->fields[i];
    if (!field_present(f, msg))
      continue;
    if (f->rule == FR_REPEATED || f->type == FT_MAP)
      write_list(f, field_of(f, msg), b);
    else
      write_one(f, field_of(f, msg), b);
  }
}
