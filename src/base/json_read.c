/* SPDX-License-Identifier: Apache-2.0 */
/* json_read.c - JSON text into an arena: strict grammar, bounded depth, number tokens kept. */
#include "base/json.h"
#include "base/codec.h"
#include "base/core.h"

#include <math.h>

struct reader {
  struct arena *arena;
  const char *p, *end, *start;
  int flags, depth;
  const char *what;
};

static struct json *fail(struct reader *r, const char *what)
{
  if (!r->what)
    r->what = what;
  return NULL;
}

static void space(struct reader *r)
{
  while (r->p < r->end && (*r->p == ' ' || *r->p == '\t' || *r->p == '\n' || *r->p == '\r'))
    r->p++;
}

static struct json *node(struct reader *r, enum json_type type)
{
  struct json *v = arena_alloc(r->arena, sizeof(*v));
  if (!v)
    return fail(r, "too large");
  v->type = type;
  return v;
}

static int hex4(struct reader *r, uint32_t *out)
{
  uint8_t b[2];
  if (r->end - r->p < 4 || hex_decode((struct str){r->p, 4}, b, 2))
    return -EINVAL;
  r->p += 4;
  *out = (uint32_t)b[0] << 8 | b[1];
  return 0;
}

static char *put_utf8(char *o, uint32_t c)
{
  if (c < 0x80) {
    *o++ = (char)c;
  } else if (c < 0x800) {
    *o++ = (char)(0xc0 | c >> 6);
    *o++ = (char)(0x80 | (c & 63));
  } else if (c < 0x10000) {
    *o++ = (char)(0xe0 | c >> 12);
    *o++ = (char)(0x80 | (c >> 6 & 63));
    *o++ = (char)(0x80 | (c & 63));
  } else {
    *o++ = (char)(0xf0 | c >> 18);
    *o++ = (char)(0x80 | (c >> 12 & 63));
    *o++ = (char)(0x80 | (c >> 6 & 63));
    *o++ = (char)(0x80 | (c & 63));
  }
  return o;
}

/* After "\u": one code unit, or a pair. A lone surrogate stays what it is. */
static char *unicode_escape(struct reader *r, char *o)
{
  uint32_t c, low;
  if (hex4(r, &c))
    return NULL;
  if (c >= 0xd800 && c < 0xdc00 && r->end - r->p >= 6 && r->p[0] == '\\' && r->p[1] == 'u') {
    const char *back = r->p;
    r->p += 2;
    if (hex4(r, &low))
      return NULL;
    if (low >= 0xdc00 && low < 0xe000)
      c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
    else
      r->p = back;
  }
  return put_utf8(o, c);
}

static char *escape(struct reader *r, char *o)
{
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  if (r->p >= r->end)
    return NULL;
  char c = *r->p++;
  if (c == 'u')
    return unicode_escape(r, o);
  const char *at = c ? strchr(from, c) : NULL;
  if (!at)
    return NULL;
  *o++ = to[at - from];
  return o;
}

/* r->p is behind the opening quote. Most strings have no escape and no odd byte: copied in one go. */
static int string(struct reader *r, struct str *out)
{
  const char *q = r->p;
  bool plain = true;
  while (q < r->end && *q != '"') {
    if (*q == '\\') {
      plain = false;
      q++;
    } else if ((unsigned char)*q < 0x20) {
      fail(r, "control character in a string");
      return -EINVAL;
    }
    q++;
  }
  if (q >= r->end) {
    fail(r, "string without an end");
    return -EINVAL;
  }
  struct str raw = {r->p, (size_t)(q - r->p)};
  if (!utf8_valid(raw) && !(r->flags & JSON_REPAIR_UTF8)) {
    fail(r, "bytes that are not UTF-8");
    return -EINVAL;
  }
  char *o = arena_alloc(r->arena, raw.n + 1), *begin = o;
  if (!o) {
    fail(r, "too large");
    return -ENOMEM;
  }
  if (plain) {
    memcpy(o, raw.p, raw.n);
    o += raw.n;
    r->p = q;
  }
  while (!plain && r->p < q) {
    const char *bs = memchr(r->p, '\\', (size_t)(q - r->p));
    size_t n = (size_t)((bs ? bs : q) - r->p);
    memcpy(o, r->p, n);
    o += n;
    r->p += n;
    if (!bs)
      break;
    r->p++;
    o = escape(r, o);
    if (!o || r->p > q) {
      fail(r, "bad escape in a string");
      return -EINVAL;
    }
  }
  r->p = q + 1;
  *out = (struct str){begin, (size_t)(o - begin)};
  return 0;
}

static const char *run_of_digits(const char *p, const char *end)
{
  while (p < end && *p >= '0' && *p <= '9')
    p++;
  return p;
}

static struct json *number(struct reader *r)
{
  const char *p = r->p, *q;
  if (p < r->end && *p == '-')
    p++;
  q = run_of_digits(p, r->end);
  if (q == p || (*p == '0' && q > p + 1))
    return fail(r, "bad number");
  if (q < r->end && *q == '.') {
    p = q + 1;
    q = run_of_digits(p, r->end);
    if (q == p)
      return fail(r, "bad number");
  }
  if (q < r->end && (*q == 'e' || *q == 'E')) {
    p = q + 1;
    if (p < r->end && (*p == '+' || *p == '-'))
      p++;
    q = run_of_digits(p, r->end);
    if (q == p)
      return fail(r, "bad number");
  }
  struct json *v = node(r, JSON_NUMBER);
  if (!v)
    return NULL;
  v->text = arena_str(r->arena, (struct str){r->p, (size_t)(q - r->p)});
  r->p = q;
  return v->text.p ? v : fail(r, "too large");
}

static bool word(struct reader *r, const char *w)
{
  size_t n = strlen(w);
  if ((size_t)(r->end - r->p) < n || memcmp(r->p, w, n))
    return false;
  r->p += n;
  return true;
}

static struct json *literal(struct reader *r)
{
  bool yes = word(r, "true");
  if (yes || word(r, "false")) {
    struct json *v = node(r, JSON_BOOL);
    if (v)
      v->flag = yes;
    return v;
  }
  if (word(r, "null"))
    return node(r, JSON_NULL);
  if ((r->flags & JSON_ALLOW_NAN) && (word(r, "NaN") || word(r, "Infinity") || word(r, "-Infinity")))
    return node(r, JSON_NULL);
  return fail(r, "unexpected character");
}

static struct json *value(struct reader *r);

static struct json *member(struct reader *r)
{
  struct str key;
  if (r->p >= r->end || *r->p != '"')
    return fail(r, "expected a name in quotes");
  r->p++;
  if (string(r, &key))
    return NULL;
  space(r);
  if (r->p >= r->end || *r->p++ != ':')
    return fail(r, "expected ':'");
  struct json *v = value(r);
  if (v)
    v->key = key;
  return v;
}

static struct json *container(struct reader *r, enum json_type type, char close)
{
  struct json *v = node(r, type), **tail = v ? &v->kids : NULL;
  if (!v)
    return NULL;
  if (++r->depth > JSON_MAX_DEPTH)
    return fail(r, "nested too deeply");
  r->p++;
  space(r);
  if (r->p < r->end && *r->p == close) {
    r->p++;
    r->depth--;
    return v;
  }
  for (;;) {
    space(r);
    struct json *kid = type == JSON_OBJECT ? member(r) : value(r);
    if (!kid)
      return NULL;
    *tail = kid;
    tail = &kid->next;
    v->count++;
    space(r);
    if (r->p >= r->end)
      return fail(r, "ends too early");
    char c = *r->p++;
    if (c == close)
      break;
    if (c != ',') {
      r->p--;
      return fail(r, "expected ',' or an end");
    }
  }
  r->depth--;
  return v;
}

static struct json *value(struct reader *r)
{
  space(r);
  if (r->p >= r->end)
    return fail(r, "ends too early");
  switch (*r->p) {
  case '{':
    return container(r, JSON_OBJECT, '}');
  case '[':
    return container(r, JSON_ARRAY, ']');
  case '"': {
    struct json *v = node(r, JSON_STRING);
    r->p++;
    return v && !string(r, &v->text) ? v : NULL;
  }
  case '-':
    if (r->p + 1 < r->end && r->p[1] == 'I')
      return literal(r);
    return number(r);
  default:
    return *r->p >= '0' && *r->p <= '9' ? number(r) : literal(r);
  }
}

struct json *json_read(struct arena *a, struct str text, int flags, struct json_error *why)
{
  struct reader r = {.arena = a, .p = text.p, .start = text.p, .end = text.p + text.n, .flags = flags};
  struct json *v = value(&r);
  if (v) {
    space(&r);
    if (r.p != r.end)
      v = fail(&r, "something behind the value");
  }
  if (!v && why)
    *why = (struct json_error){(size_t)(r.p - r.start), r.what ? r.what : "invalid"};
  return v;
}

struct json *json_get(const struct json *obj, const char *name)
{
  struct json *found = NULL;
  if (!json_is(obj, JSON_OBJECT))
    return NULL;
  for (struct json *k = obj->kids; k; k = k->next)
    if (str_is(k->key, name))
      found = k;
  return found;
}

struct str json_text(const struct json *v, struct str otherwise)
{
  return json_is(v, JSON_STRING) ? v->text : otherwise;
}

bool json_is(const struct json *v, enum json_type type)
{
  return v && v->type == type;
}

bool json_given(const struct json *v)
{
  return v && v->type != JSON_NULL;
}

int json_double(const struct json *v, double *out)
{
  if (!json_is(v, JSON_NUMBER))
    return -EINVAL;
  *out = strtod(v->text.p, NULL); /* the token is NUL-terminated in the arena */
  return isfinite(*out) ? 0 : -ERANGE;
}

int json_int(const struct json *v, int64_t *out)
{
  if (json_is(v, JSON_STRING))
    return str_i64(v->text, out);
  if (!json_is(v, JSON_NUMBER))
    return -EINVAL;
  if (!str_i64(v->text, out))
    return 0;
  double d;
  int r = json_double(v, &d);
  if (r || d != floor(d) || d < -9007199254740992.0 || d > 9007199254740992.0)
    return r ? r : -EINVAL;
  *out = (int64_t)d;
  return 0;
}
