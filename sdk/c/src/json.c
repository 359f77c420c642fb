/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <locale.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "json.h"

#define DEPTH_MAX 96

struct reader {
  struct arena *a;
  const char *at, *end;
  bool no_memory;
};

static void skip_space(struct reader *r)
{
  while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r'))
    r->at++;
}

static int hex4(const char *p)
{
  int v = 0;
  for (int i = 0; i < 4; i++) {
    char c = p[i];
    int d = c >= '0' && c <= '9'   ? c - '0'
            : c >= 'a' && c <= 'f' ? c - 'a' + 10
            : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                   : -1;
    if (d < 0)
      return -1;
    v = v << 4 | d;
  }
  return v;
}

static char *put_utf8(char *out, unsigned c)
{
  if (c < 0x80) {
    *out++ = (char)c;
  } else if (c < 0x800) {
    *out++ = (char)(0xc0 | c >> 6);
    *out++ = (char)(0x80 | (c & 63));
  } else if (c < 0x10000) {
    *out++ = (char)(0xe0 | c >> 12);
    *out++ = (char)(0x80 | (c >> 6 & 63));
    *out++ = (char)(0x80 | (c & 63));
  } else {
    *out++ = (char)(0xf0 | c >> 18);
    *out++ = (char)(0x80 | (c >> 12 & 63));
    *out++ = (char)(0x80 | (c >> 6 & 63));
    *out++ = (char)(0x80 | (c & 63));
  }
  return out;
}

/* After \u; half of a pair alone becomes U+FFFD. NULL: no four digits. */
static char *read_unicode(struct reader *r, char *out)
{
  if (r->end - r->at < 4)
    return NULL;
  int c = hex4(r->at);
  if (c < 0)
    return NULL;
  r->at += 4;
  if (c >= 0xd800 && c < 0xdc00 && r->end - r->at >= 6 && r->at[0] == '\\' && r->at[1] == 'u') {
    int low = hex4(r->at + 2);
    if (low >= 0xdc00 && low < 0xe000) {
      r->at += 6;
      return put_utf8(out, 0x10000 + ((unsigned)(c - 0xd800) << 10) + (unsigned)(low - 0xdc00));
    }
  }
  return put_utf8(out, c >= 0xd800 && c < 0xe000 ? 0xfffd : (unsigned)c);
}

static char *read_escape(struct reader *r, char *out)
{
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  if (r->at == r->end)
    return NULL;
  char c = *r->at++;
  if (c == 'u')
    return read_unicode(r, out);
  const char *found = c ? strchr(from, c) : NULL;
  if (!found)
    return NULL;
  *out = to[found - from];
  return out + 1;
}

/* At the opening quote. */
static const char *read_string(struct reader *r, size_t *len)
{
  const char *close = ++r->at;
  while (close < r->end && *close != '"')
    close += *close == '\\' && close + 1 < r->end ? 2 : 1;
  if (close >= r->end)
    return NULL;
  char *begin = arena_alloc(r->a, (size_t)(close - r->at) + 1), *out = begin;
  if (!begin) {
    r->no_memory = true;
    return NULL;
  }
  while (*r->at != '"') {
    const char *from = r->at;
    while (*r->at != '"' && *r->at != '\\' && (unsigned char)*r->at >= 0x20)
      r->at++;
    memcpy(out, from, (size_t)(r->at - from));
    out += r->at - from;
    if (*r->at == '"')
      break;
    if (*r->at++ != '\\' || !(out = read_escape(r, out)))
      return NULL;
  }
  r->at++;
  *out = 0;
  *len = (size_t)(out - begin);
  return begin;
}

static bool read_digits(struct reader *r)
{
  const char *from = r->at;
  while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
    r->at++;
  return r->at > from;
}

static bool read_number(struct reader *r)
{
  if (*r->at == '-')
    r->at++;
  const char *first = r->at;
  if (!read_digits(r) || (*first == '0' && r->at - first > 1))
    return false;
  if (r->at < r->end && *r->at == '.') {
    r->at++;
    if (!read_digits(r))
      return false;
  }
  if (r->at < r->end && (*r->at == 'e' || *r->at == 'E')) {
    r->at++;
    if (r->at < r->end && (*r->at == '+' || *r->at == '-'))
      r->at++;
    return read_digits(r);
  }
  return true;
}

static bool read_word(struct reader *r, const char *word)
{
  size_t n = strlen(word);
  if ((size_t)(r->end - r->at) < n || memcmp(r->at, word, n) != 0)
    return false;
  r->at += n;
  return true;
}

static struct json *read_value(struct reader *r, int depth);

/* Members of an array or an object, after its opening character. */
static bool read_members(struct reader *r, struct json *v, int depth)
{
  char close = v->type == JSON_ARRAY ? ']' : '}';
  struct json **tail = &v->child;
  r->at++;
  skip_space(r);
  if (r->at < r->end && *r->at == close) {
    r->at++;
    return true;
  }
  for (;;) {
    const char *key = NULL;
    size_t key_len;
    skip_space(r);
    if (v->type == JSON_OBJECT) {
      if (r->at == r->end || *r->at != '"' || !(key = read_string(r, &key_len)))
        return false;
      skip_space(r);
      if (r->at == r->end || *r->at++ != ':')
        return false;
    }
    struct json *member = read_value(r, depth + 1);
    if (!member)
      return false;
    member->key = key;
    *tail = member;
    tail = &member->next;
    v->len++;
    skip_space(r);
    if (r->at == r->end)
      return false;
    if (*r->at == close) {
      r->at++;
      return true;
    }
    if (*r->at++ != ',')
      return false;
  }
}

static bool read_body(struct reader *r, struct json *v, int depth)
{
  switch (*r->at) {
  case '{':
  case '[':
    v->type = *r->at == '{' ? JSON_OBJECT : JSON_ARRAY;
    return depth < DEPTH_MAX && read_members(r, v, depth);
  case '"':
    v->type = JSON_STRING;
    return (v->text = read_string(r, &v->len)) != NULL;
  case 't':
    v->type = JSON_TRUE;
    return read_word(r, "true");
  case 'f':
    v->type = JSON_FALSE;
    return read_word(r, "false");
  case 'n':
    v->type = JSON_NULL;
    return read_word(r, "null");
  default:
    v->type = JSON_NUMBER;
    if (!read_number(r))
      return false;
    v->len = (size_t)(r->at - v->raw);
    v->text = arena_text(r->a, v->raw, v->len);
    r->no_memory |= !v->text;
    return v->text != NULL;
  }
}

static struct json *read_value(struct reader *r, int depth)
{
  skip_space(r);
  if (r->at == r->end)
    return NULL;
  struct json *v = arena_alloc(r->a, sizeof *v);
  if (!v) {
    r->no_memory = true;
    return NULL;
  }
  v->raw = r->at;
  if (!read_body(r, v, depth))
    return NULL;
  v->raw_len = (size_t)(r->at - v->raw);
  return v;
}

struct json *json_read(struct arena *a, const char *text, size_t len, bool *no_memory)
{
  const char *from = text ? text : ""; /* an answer without a body */
  struct reader r = {.a = a, .at = from, .end = from + (text ? len : 0)};
  struct json *v = read_value(&r, 0);
  skip_space(&r);
  *no_memory = r.no_memory;
  return v && r.at == r.end ? v : NULL;
}

const struct json *json_get(const struct json *object, const char *key)
{
  if (!object || object->type != JSON_OBJECT)
    return NULL;
  const struct json *found = NULL; /* the last one of a name counts, as in other readers */
  for (const struct json *m = object->child; m; m = m->next)
    if (strcmp(m->key, key) == 0)
      found = m;
  return found && found->type != JSON_NULL ? found : NULL;
}

const char *json_text(const struct json *object, const char *key)
{
  const struct json *v = json_get(object, key);
  return v && v->type == JSON_STRING ? v->text : NULL;
}

/* A program may have a locale in which numbers have commas; JSON has not. glibc and musl hold this one without memory.
 */
static locale_t plain;
static pthread_once_t plain_once = PTHREAD_ONCE_INIT;

static void find_plain(void)
{
  plain = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static double plain_double(const char *text, char **end)
{
  pthread_once(&plain_once, find_plain);
  return plain ? strtod_l(text, end, plain) : strtod(text, end);
}

double json_double(const struct json *v)
{
  return v && v->type == JSON_NUMBER ? plain_double(v->text, NULL) : 0;
}

int64_t json_int(const struct json *v, int64_t otherwise)
{
  if (!v || (v->type != JSON_NUMBER && v->type != JSON_STRING))
    return otherwise;
  char *end;
  errno = 0;
  long long n = strtoll(v->text, &end, 10);
  if (end != v->text && *end == 0 && errno == 0)
    return n;
  double d = plain_double(v->text, &end);
  return end != v->text && *end == 0 && d >= -9e18 && d <= 9e18 ? (int64_t)d : otherwise;
}
