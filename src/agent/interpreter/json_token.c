/* SPDX-License-Identifier: Apache-2.0 */
/* json_token.c - JSON text checked and carried over; see json_token.h. Nothing here recurses: nesting is a bit
 * per level in a fixed stack, so the depth a kernel can ask for costs 64 bytes. */
#include "agent/interpreter/json_token.h"

static const char hex_digits[] = "0123456789abcdef";

static bool is_space(char c)
{
  return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static bool is_digit(char c)
{
  return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
  if (is_digit(c))
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static void skip_space(struct str *in)
{
  while (in->n && is_space(*in->p))
    *in = str_skip(*in, 1);
}

/* Length of the run of bytes that need no look: printable ASCII but quote and backslash. Eight at a time, since
 * images are megabytes of base64. */
static size_t plain_run(const char *p, size_t n)
{
  const uint64_t ones = 0x0101010101010101u, high = 0x8080808080808080u;
  size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    uint64_t v;
    memcpy(&v, p + i, 8);
    uint64_t quote = v ^ (ones * '"'), slash = v ^ (ones * '\\');
    uint64_t odd = (v - ones * 0x20) | v | ((quote - ones) & ~quote) | ((slash - ones) & ~slash);
    if (odd & high)
      break;
  }
  while (i < n && (unsigned char)p[i] >= 0x20 && (unsigned char)p[i] < 0x80 && p[i] != '"' && p[i] != '\\')
    i++;
  return i;
}

/* Bytes of one escape at p (which holds a backslash), 0 when it is none. */
static size_t escape_len(const char *p, size_t n)
{
  if (n < 2)
    return 0;
  if (p[1] != 'u')
    return strchr("\"\\/bfnrt", p[1]) && p[1] ? 2 : 0;
  if (n < 6)
    return 0;
  for (int i = 2; i < 6; i++)
    if (hex_value(p[i]) < 0)
      return 0;
  return 6;
}

static unsigned escape_unit(const char *p)
{
  unsigned v = 0;
  for (int i = 2; i < 6; i++)
    v = v << 4 | (unsigned)hex_value(p[i]);
  return v;
}

static int take_string(struct str *in)
{
  size_t i = 1;
  while (i < in->n) {
    i += plain_run(in->p + i, in->n - i);
    if (i == in->n)
      break;
    if (in->p[i] == '"') {
      *in = str_skip(*in, i + 1);
      return 0;
    }
    size_t step = in->p[i] == '\\' ? escape_len(in->p + i, in->n - i) : 1;
    if (!step)
      return -EINVAL;
    i += step;
  }
  return -EINVAL;
}

static size_t digits_len(struct str s, size_t at)
{
  size_t n = 0;
  while (at + n < s.n && is_digit(s.p[at + n]))
    n++;
  return n;
}

static int take_number(struct str *in)
{
  size_t i = in->p[0] == '-' ? 1 : 0, n = digits_len(*in, i);
  if (!n || (n > 1 && in->p[i] == '0'))
    return -EINVAL;
  i += n;
  if (i < in->n && in->p[i] == '.') {
    n = digits_len(*in, i + 1);
    if (!n)
      return -EINVAL;
    i += n + 1;
  }
  if (i < in->n && (in->p[i] == 'e' || in->p[i] == 'E')) {
    i++;
    if (i < in->n && (in->p[i] == '+' || in->p[i] == '-'))
      i++;
    n = digits_len(*in, i);
    if (!n)
      return -EINVAL;
    i += n;
  }
  *in = str_skip(*in, i);
  return 0;
}

static const struct {
  struct str word;
  const char *as;
} words[] = {{STR("true"), "true"}, {STR("false"), "false"},   {STR("null"), "null"},
             {STR("NaN"), "null"},  {STR("Infinity"), "null"}, {STR("-Infinity"), "null"}};

static int take_word(struct str *in, const char **as)
{
  for (size_t i = 0; i < ARRAY_LEN(words); i++)
    if (str_starts(*in, words[i].word)) {
      *in = str_skip(*in, words[i].word.n);
      *as = words[i].as;
      return 0;
    }
  return -EINVAL;
}

/* One string, number or word; copied to out unless that is NULL. */
static int scalar_value(struct str *in, struct buf *out)
{
  struct str from = *in;
  const char *as = NULL;
  int rc = from.p[0] == '"' ? take_string(in) : take_word(in, &as) == 0 ? 0 : take_number(in);
  if (rc < 0 || !out)
    return rc;
  if (as)
    return buf_addz(out, as);
  struct str raw = {from.p, from.n - in->n};
  if (raw.p[0] != '"')
    return buf_adds(out, raw);
  buf_addc(out, '"');
  token_add_body(out, (struct str){raw.p + 1, raw.n - 2});
  return buf_addc(out, '"');
}

struct nest {
  uint64_t object[TOKEN_MAX_DEPTH / 64]; /* a bit per level: object or array */
  size_t depth;
};

static bool nest_object(const struct nest *s)
{
  size_t i = s->depth - 1;
  return s->object[i / 64] >> (i % 64) & 1;
}

static int nest_push(struct nest *s, bool object)
{
  if (s->depth == TOKEN_MAX_DEPTH)
    return -EINVAL;
  uint64_t bit = (uint64_t)1 << (s->depth % 64);
  uint64_t *word = &s->object[s->depth / 64];
  *word = object ? *word | bit : *word & ~bit;
  s->depth++;
  return 0;
}

static void emit(struct buf *out, char c)
{
  if (out)
    buf_addc(out, c);
}

static int take_key(struct str *in, struct buf *out)
{
  skip_space(in);
  if (!in->n || *in->p != '"' || scalar_value(in, out) < 0)
    return -EINVAL;
  skip_space(in);
  if (!in->n || *in->p != ':')
    return -EINVAL;
  emit(out, ':');
  *in = str_skip(*in, 1);
  return 0;
}

/* Behind a value: closes what ends here. 1 when the outermost value is complete, 0 when another value follows. */
static int after_value(struct str *in, struct buf *out, struct nest *s)
{
  while (s->depth) {
    skip_space(in);
    if (!in->n)
      return -EINVAL;
    bool object = nest_object(s);
    char c = *in->p;
    *in = str_skip(*in, 1);
    emit(out, c);
    if (c == ',')
      return object ? take_key(in, out) : 0;
    if (c != (object ? '}' : ']'))
      return -EINVAL;
    s->depth--;
  }
  return 1;
}

/* An opening bracket. 1 when the container is empty (and thereby a complete value), 0 when a value follows. */
static int open_value(struct str *in, struct buf *out, struct nest *s)
{
  bool object = *in->p == '{';
  emit(out, *in->p);
  *in = str_skip(*in, 1);
  skip_space(in);
  if (in->n && *in->p == (object ? '}' : ']')) {
    emit(out, *in->p);
    *in = str_skip(*in, 1);
    return 1;
  }
  if (nest_push(s, object) < 0)
    return -EINVAL;
  return object ? take_key(in, out) : 0;
}

static int any_value(struct str *in, struct buf *out)
{
  struct nest s = {.depth = 0};
  for (;;) {
    skip_space(in);
    if (!in->n)
      return -EINVAL;
    int rc = *in->p == '{' || *in->p == '[' ? open_value(in, out, &s) : scalar_value(in, out) < 0 ? -EINVAL : 1;
    if (rc < 0)
      return -EINVAL;
    if (rc == 0)
      continue;
    rc = after_value(in, out, &s);
    if (rc != 0)
      return rc < 0 ? -EINVAL : 0;
  }
}

int token_take(struct str *in, struct str *raw)
{
  skip_space(in);
  struct str from = *in;
  if (any_value(in, NULL) < 0)
    return -EINVAL;
  *raw = (struct str){from.p, from.n - in->n};
  return 0;
}

int token_copy(struct buf *out, struct str raw)
{
  int rc = any_value(&raw, out);
  return buf_failed(out) ? buf_failed(out) : rc;
}

int token_object(struct str *in)
{
  skip_space(in);
  if (!in->n || *in->p != '{')
    return -EINVAL;
  *in = str_skip(*in, 1);
  skip_space(in);
  return 0;
}

int token_member(struct str *in, struct str *key, struct str *value)
{
  skip_space(in);
  if (in->n && *in->p == '}') {
    *in = str_skip(*in, 1);
    return 0;
  }
  struct str from = *in;
  if (take_key(in, NULL) < 0)
    return -EINVAL;
  size_t n = from.n - in->n - 1;
  while (from.p[n - 1] != '"')
    n--;
  *key = (struct str){from.p + 1, n - 2};
  if (token_take(in, value) < 0)
    return -EINVAL;
  skip_space(in);
  if (!in->n || (*in->p != ',' && *in->p != '}'))
    return -EINVAL;
  if (*in->p == ',') {
    *in = str_skip(*in, 1);
    skip_space(in);
    return in->n && *in->p == '"' ? 1 : -EINVAL;
  }
  return 1;
}

bool token_body(struct str raw, struct str *body)
{
  if (raw.n < 2 || raw.p[0] != '"')
    return false;
  *body = (struct str){raw.p + 1, raw.n - 2};
  return true;
}

bool token_is(struct str body, const char *text)
{
  size_t i = 0;
  for (; i < body.n && *text; text++) {
    if (body.p[i] != '\\') {
      if (body.p[i++] != *text)
        return false;
      continue;
    }
    size_t n = escape_len(body.p + i, body.n - i);
    unsigned c = n == 6                                     ? escape_unit(body.p + i)
                 : n == 2 && strchr("\"\\/", body.p[i + 1]) ? (unsigned)body.p[i + 1]
                                                            : 0;
    if (!c || c != (unsigned char)*text)
      return false;
    i += n;
  }
  return i == body.n && !*text;
}

bool token_true(struct str raw)
{
  return str_is(raw, "true");
}

bool token_null(struct str raw)
{
  return raw.n == 0 || str_is(raw, "null") || str_is(raw, "NaN") || str_ends(raw, STR("Infinity"));
}

int token_int(struct str raw, int64_t *out)
{
  return str_i64(raw, out);
}

/* One code point of UTF-8 at p, its length in *len; anything else is U+FFFD for one byte. */
static unsigned utf8_point(const unsigned char *p, size_t n, size_t *len)
{
  static const unsigned least[] = {0, 0, 0x80, 0x800, 0x10000};
  size_t need = p[0] >= 0xf0 && p[0] < 0xf5 ? 4 : p[0] >= 0xe0 && p[0] < 0xf0 ? 3 : p[0] >= 0xc2 && p[0] < 0xe0 ? 2 : 0;
  *len = 1;
  if (!need || need > n)
    return 0xfffd;
  unsigned c = p[0] & (0xffu >> (need + 1));
  for (size_t i = 1; i < need; i++) {
    if ((p[i] & 0xc0) != 0x80)
      return 0xfffd;
    c = c << 6 | (p[i] & 0x3f);
  }
  if (c < least[need] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
    return 0xfffd;
  *len = need;
  return c;
}

static void add_unit(struct buf *out, unsigned c)
{
  char esc[6] = {
      '\\', 'u', hex_digits[c >> 12 & 15], hex_digits[c >> 8 & 15], hex_digits[c >> 4 & 15], hex_digits[c & 15]};
  buf_add(out, esc, sizeof(esc));
}

static void add_point(struct buf *out, unsigned c)
{
  if (c < 0x10000) {
    add_unit(out, c);
    return;
  }
  add_unit(out, 0xd800 + ((c - 0x10000) >> 10));
  add_unit(out, 0xdc00 + ((c - 0x10000) & 0x3ff));
}

static void add_control(struct buf *out, char c)
{
  const char *at = c ? strchr("\nn\rr\tt\bb\ff", c) : NULL;
  if (!at) {
    add_unit(out, (unsigned char)c);
    return;
  }
  char esc[2] = {'\\', at[1]};
  buf_add(out, esc, 2);
}

/* Both kinds of text share the walk; they differ in what a quote and a backslash mean. */
static int add_ascii(struct buf *out, struct str s, bool escaped)
{
  size_t i = 0;
  while (i < s.n && !buf_failed(out)) {
    size_t run = plain_run(s.p + i, s.n - i);
    buf_add(out, s.p + i, run);
    i += run;
    if (i == s.n)
      break;
    unsigned char c = (unsigned char)s.p[i];
    size_t len = 1;
    if (c >= 0x80) {
      add_point(out, utf8_point((const unsigned char *)s.p + i, s.n - i, &len));
    } else if (c < 0x20) {
      add_control(out, (char)c);
    } else if (escaped) {
      len = MAX(escape_len(s.p + i, s.n - i), (size_t)1);
      buf_add(out, s.p + i, len);
    } else {
      buf_addc(out, '\\');
      buf_addc(out, (char)c);
    }
    i += len;
  }
  return buf_failed(out);
}

int token_add_body(struct buf *out, struct str body)
{
  return add_ascii(out, body, true);
}

int token_add_text(struct buf *out, struct str bytes)
{
  return add_ascii(out, bytes, false);
}

static void add_utf8(struct buf *out, unsigned c)
{
  if (c >= 0xd800 && c < 0xe000)
    c = 0xfffd;
  if (c < 0x80) {
    buf_addc(out, (char)c);
  } else if (c < 0x800) {
    char b[2] = {(char)(0xc0 | c >> 6), (char)(0x80 | (c & 63))};
    buf_add(out, b, 2);
  } else if (c < 0x10000) {
    char b[3] = {(char)(0xe0 | c >> 12), (char)(0x80 | (c >> 6 & 63)), (char)(0x80 | (c & 63))};
    buf_add(out, b, 3);
  } else {
    char b[4] = {(char)(0xf0 | c >> 18), (char)(0x80 | (c >> 12 & 63)), (char)(0x80 | (c >> 6 & 63)),
                 (char)(0x80 | (c & 63))};
    buf_add(out, b, 4);
  }
}

/* Decodes the escape at p; a pair of surrogates is one character. Returns its length. */
static size_t decode_escape(const char *p, size_t n, struct buf *out)
{
  size_t len = escape_len(p, n);
  if (len == 2) {
    static const char letters[] = "bfnrt", controls[] = "\b\f\n\r\t";
    const char *at = strchr(letters, p[1]);
    buf_addc(out, at ? controls[at - letters] : p[1]);
    return 2;
  }
  unsigned c = escape_unit(p);
  if (c >= 0xd800 && c < 0xdc00 && n >= 12 && p[6] == '\\' && escape_len(p + 6, n - 6) == 6) {
    unsigned low = escape_unit(p + 6);
    if (low >= 0xdc00 && low < 0xe000) {
      add_utf8(out, 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00));
      return 12;
    }
  }
  add_utf8(out, c);
  return 6;
}

int token_decode(struct str body, struct buf *out)
{
  size_t i = 0;
  while (i < body.n && !buf_failed(out)) {
    if (body.p[i] == '\\') {
      i += decode_escape(body.p + i, body.n - i, out);
      continue;
    }
    size_t len = 1;
    unsigned char c = (unsigned char)body.p[i];
    add_utf8(out, c < 0x80 ? c : utf8_point((const unsigned char *)body.p + i, body.n - i, &len));
    i += len;
  }
  return buf_failed(out);
}

/* The character at the front of a body: its length, and itself when it is a quote. */
static size_t quote_at(struct str body, char *quote)
{
  *quote = 0;
  size_t n = body.p[0] == '\\' ? escape_len(body.p, body.n) : 1;
  unsigned c = n == 6 ? escape_unit(body.p) : (unsigned char)body.p[n == 2 ? 1 : 0];
  if (c == '\'' || c == '"')
    *quote = (char)c;
  return MAX(n, (size_t)1);
}

struct str token_unquote(struct str body)
{
  char first, last;
  if (!body.n)
    return body;
  size_t head = quote_at(body, &first), at = head, tail = 0;
  if (!first)
    return body;
  if (head == body.n)
    return str_sub(body, 0, 0);
  last = 0;
  for (; at < body.n; at += tail)
    tail = quote_at(str_skip(body, at), &last);
  return last == first ? str_sub(body, head, body.n - head - tail) : body;
}

/* Length of the one character at the front of an escaped body; a pair of surrogates counts as one. */
static size_t char_len(const char *p, size_t n)
{
  size_t len = p[0] == '\\' ? MAX(escape_len(p, n), (size_t)1) : 1;
  if (len != 6 || escape_unit(p) >> 10 != 0xd800 >> 10)
    return len;
  bool pair = n >= 12 && p[6] == '\\' && escape_len(p + 6, n - 6) == 6 && escape_unit(p + 6) >> 10 == 0xdc00 >> 10;
  return pair ? 12 : 6;
}

size_t token_prefix(struct str body, size_t max)
{
  if (body.n <= max)
    return body.n;
  size_t i = 0;
  for (;;) {
    size_t run = plain_run(body.p + i, body.n - i);
    if (i + run >= max)
      return max;
    i += run;
    size_t len = char_len(body.p + i, body.n - i);
    if (i + len > max)
      return i;
    i += len;
  }
}
