/* SPDX-License-Identifier: Apache-2.0 */
/* h1parse.c - a strict reader of HTTP/1.x.
 *
 * Two parsers that disagree about where a message ends are how requests are smuggled, so this one knows one reading
 * only and refuses everything else: a line ends in CR LF and nowhere else; no NUL and no other control bytes; no
 * folded headers; no blank before the colon; one Host; one Content-Length of digits; never a Content-Length beside a
 * Transfer-Encoding; a Transfer-Encoding that is `chunked` and nothing more; chunk sizes of plain hex digits.
 * What real clients do and the grammar allows is taken: any token as a method, header names with underscores, absolute
 * and asterisk targets, bytes above 0x7f in targets and values. The http-parser library that stable distributions ship
 * accepts several of the refused forms, which is why this file exists.
 *
 * There is no I/O and no allocation here. Results depend on the bytes alone, never on how reads happened to cut
 * them; tests/fuzz/http1.c holds that to be true. */
#include "net/h1parse.h"

#define EXT_LINE_MAX     256 /* extension bytes of one chunk */
#define TRAILER_LINE_MAX 4096
#define OVERHEAD_MAX     16384 /* extensions and trailers of one body */
#define CHUNK_DIGITS_MAX 15    /* a chunk below 2^60, leading zeros counted */

enum { TCHAR = 1, VCHAR = 2, UCHAR = 4 }; /* token; header value; target */

static uint8_t byte_class(unsigned char c)
{
  bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
  bool mark = c != 0 && memchr("!#$%&'*+-.^_`|~", c, 15) != NULL;
  bool value = c == '\t' || (c >= 0x20 && c != 0x7f);
  bool target = c > 0x20 && c != 0x7f && c != '#';
  return (uint8_t)((alnum || mark ? TCHAR : 0) | (value ? VCHAR : 0) | (target ? UCHAR : 0));
}

static uint8_t classes[256];

__attribute__((constructor)) static void classes_fill(void)
{
  for (unsigned c = 0; c < 256; c++)
    classes[c] = byte_class((unsigned char)c);
}

static bool all_of(struct str s, uint8_t class)
{
  for (size_t i = 0; i < s.n; i++)
    if (!(classes[(unsigned char)s.p[i]] & class))
      return false;
  return true;
}

bool h1_token(struct str s)
{
  return s.n > 0 && all_of(s, TCHAR);
}

bool h1_value(struct str s)
{
  return all_of(s, VCHAR);
}

bool h1_target(struct str s)
{
  return s.n > 0 && all_of(s, UCHAR);
}

static int refuse(const char **why, int status, const char *reason)
{
  *why = reason;
  return -status;
}

/* ---- the end of the head ---- */

static bool may_begin(enum h1_side side, char c)
{
  return side == H1_REQUEST ? (classes[(unsigned char)c] & TCHAR) != 0 || c == '\r' : c == 'H';
}

static int too_long(const struct h1scan *s, enum h1_side side, const char **why)
{
  if (side == H1_REQUEST && s->lines == 0)
    return refuse(why, 414, "request line too long");
  return refuse(why, 431, "header section too large");
}

ptrdiff_t h1_scan(struct h1scan *s, enum h1_side side, struct str in, const struct http_limits *limits,
                  const char **why)
{
  size_t n = MIN(in.n, limits->head_max);
  if (s->seen == 0 && n > 0 && !may_begin(side, in.p[0]))
    return refuse(why, 400, "not an HTTP message");
  while (s->seen < n) {
    const char *lf = memchr(in.p + s->seen, '\n', n - s->seen);
    if (!lf) {
      s->seen = n;
      break;
    }
    size_t at = (size_t)(lf - in.p);
    if (at == s->line || in.p[at - 1] != '\r')
      return refuse(why, 400, "bare LF");
    bool empty = at - s->line == 1;
    s->seen = s->line = at + 1;
    if (!empty && ++s->lines > limits->headers_max + 1)
      return refuse(why, 431, "too many header lines");
    if (empty && s->lines > 0)
      return (ptrdiff_t)s->line;
    if (empty && s->line > 2) /* one stray empty line before a request is forgiven, no more */
      return refuse(why, 400, "empty lines before the request");
  }
  return in.n >= limits->head_max ? too_long(s, side, why) : 0;
}

/* ---- lines ---- */

/* The next line without its CR LF; h1_scan has seen to it that there is one. */
static struct str next_line(struct str *head)
{
  const char *lf = memchr(head->p, '\n', head->n);
  struct str line = {head->p, lf && lf > head->p ? (size_t)(lf - head->p) - 1 : 0};
  *head = str_skip(*head, line.n + 2);
  return line;
}

static int parse_version(struct str v, struct http_head *out, const char **why)
{
  if (v.n != 8 || memcmp(v.p, "HTTP/", 5) != 0 || v.p[6] != '.' || v.p[5] < '0' || v.p[5] > '9' || v.p[7] < '0' ||
      v.p[7] > '9')
    return refuse(why, 400, "bad HTTP version");
  if (v.p[5] != '1')
    return refuse(why, 505, "HTTP version not supported");
  out->minor = v.p[7] == '0' ? 0 : 1;
  return 0;
}

static void split_query(struct str s, struct http_head *out)
{
  str_cut(s, '?', &out->path, &out->query);
}

/* scheme://authority/path?query */
static int parse_absolute(struct http_head *out, const char **why)
{
  ptrdiff_t at = str_search(out->target, STR("://"));
  if (at <= 0 || !h1_token(str_sub(out->target, 0, (size_t)at)))
    return refuse(why, 400, "bad request target");
  struct str rest = str_skip(out->target, (size_t)at + 3);
  size_t host = 0;
  while (host < rest.n && rest.p[host] != '/' && rest.p[host] != '?')
    host++;
  if (host == 0)
    return refuse(why, 400, "bad request target");
  split_query(str_skip(rest, host), out);
  if (out->path.n == 0)
    out->path = STR("/");
  return 0;
}

static int parse_target(struct http_head *out, const char **why)
{
  if (!h1_target(out->target))
    return refuse(why, 400, "bad byte in request target");
  if (str_is(out->method, "CONNECT")) {
    out->path = out->query = STR_NONE;
    bool authority = str_find(out->target, ':') > 0 && str_find(out->target, '/') < 0;
    return authority ? 0 : refuse(why, 400, "bad request target");
  }
  if (out->target.p[0] == '/') {
    split_query(out->target, out);
    return 0;
  }
  if (str_is(out->target, "*")) {
    out->path = out->target;
    out->query = STR_NONE;
    return 0;
  }
  return parse_absolute(out, why);
}

static int parse_request_line(struct str line, struct http_head *out, const char **why)
{
  struct str rest, version;
  if (!str_cut(line, ' ', &out->method, &rest) || !h1_token(out->method) || !str_cut(rest, ' ', &out->target, &version))
    return refuse(why, 400, "bad request line");
  int rc = parse_version(version, out, why);
  return rc < 0 ? rc : parse_target(out, why);
}

static int parse_status_line(struct str line, struct http_head *out, const char **why)
{
  struct str version, rest;
  str_cut(line, ' ', &version, &rest);
  int rc = parse_version(version, out, why);
  if (rc < 0)
    return rc;
  uint64_t status = 0;
  if (str_u64(str_sub(rest, 0, 3), &status) < 0 || status < 100 || status > 599 || (rest.n > 3 && rest.p[3] != ' '))
    return refuse(why, 400, "bad status line");
  out->status = (int)status;
  out->reason = str_skip(rest, 4);
  return h1_value(out->reason) ? 0 : refuse(why, 400, "bad byte in status line");
}

static struct str trim_spaces(struct str s)
{
  while (s.n && (s.p[0] == ' ' || s.p[0] == '\t'))
    s = str_skip(s, 1);
  while (s.n && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
    s.n--;
  return s;
}

static int parse_header(struct str line, struct http_header *h, const char **why)
{
  if (line.p[0] == ' ' || line.p[0] == '\t')
    return refuse(why, 400, "folded header line");
  if (!str_cut(line, ':', &h->name, &h->value) || !h1_token(h->name))
    return refuse(why, 400, "bad header name");
  h->value = trim_spaces(h->value);
  return h1_value(h->value) ? 0 : refuse(why, 400, "bad byte in header value");
}

/* ---- what the headers say about framing ---- */

struct notes {
  bool length, coding, host;
  bool close, keep_alive;
};

static int note_length(struct str v, struct notes *seen, struct h1_frame *f, const char **why)
{
  if (seen->length)
    return refuse(why, 400, "more than one Content-Length");
  seen->length = true;
  if (v.n == 0 || v.n > 18 || str_u64(v, &f->length) < 0)
    return refuse(why, 400, "bad Content-Length");
  return 0;
}

static int note_coding(struct str v, struct notes *seen, const char **why)
{
  if (seen->coding)
    return refuse(why, 400, "more than one Transfer-Encoding");
  seen->coding = true;
  if (str_ieq(v, STR("chunked")))
    return 0;
  if (v.n == 0 || str_search(v, STR("chunked")) >= 0 || str_find(v, ',') >= 0)
    return refuse(why, 400, "bad Transfer-Encoding");
  return refuse(why, 501, "transfer coding not supported");
}

static int note_host(struct str v, struct notes *seen, const char **why)
{
  if (seen->host)
    return refuse(why, 400, "more than one Host");
  seen->host = true;
  for (size_t i = 0; i < v.n; i++)
    if (memchr(" \t,/@\\?", v.p[i], 7))
      return refuse(why, 400, "bad Host");
  return 0;
}

static void note_connection(struct str v, struct notes *seen)
{
  struct str word;
  do {
    str_cut(v, ',', &word, &v);
    word = trim_spaces(word);
    seen->close |= str_ieq(word, STR("close"));
    seen->keep_alive |= str_ieq(word, STR("keep-alive"));
  } while (v.n);
}

static int note_header(const struct http_header *h, struct notes *seen, struct h1_frame *f, const char **why)
{
  switch (h->name.n) {
  case 4:
    return str_ieq(h->name, STR("host")) ? note_host(h->value, seen, why) : 0;
  case 6:
    if (str_ieq(h->name, STR("expect")))
      f->expect = str_ieq(h->value, STR("100-continue"));
    return 0;
  case 10:
    if (str_ieq(h->name, STR("connection")))
      note_connection(h->value, seen);
    return 0;
  case 14:
    return str_ieq(h->name, STR("content-length")) ? note_length(h->value, seen, f, why) : 0;
  case 17:
    return str_ieq(h->name, STR("transfer-encoding")) ? note_coding(h->value, seen, why) : 0;
  default:
    return 0;
  }
}

static int parse_headers(struct str head, struct http_head *out, struct http_header *hv, size_t cap, struct notes *seen,
                         struct h1_frame *f, const char **why)
{
  out->headers = hv;
  for (struct str line = next_line(&head); line.n; line = next_line(&head)) {
    if (out->nheaders == cap)
      return refuse(why, 431, "too many header lines");
    struct http_header *h = &hv[out->nheaders++];
    int rc = parse_header(line, h, why);
    if (rc == 0)
      rc = note_header(h, seen, f, why);
    if (rc < 0)
      return rc;
  }
  if (seen->length && seen->coding)
    return refuse(why, 400, "both Content-Length and Transfer-Encoding");
  if (seen->coding && out->minor == 0)
    return refuse(why, 400, "Transfer-Encoding in HTTP/1.0");
  f->keep = out->minor == 0 ? seen->keep_alive && !seen->close : !seen->close;
  f->kind = seen->coding ? H1_CHUNKED : seen->length && f->length ? H1_LENGTH : H1_NONE;
  return 0;
}

int h1_request(struct str head, struct http_head *out, struct http_header *hv, size_t cap, struct h1_frame *frame,
               const char **why)
{
  struct notes seen = {0};
  *out = (struct http_head){0};
  *frame = (struct h1_frame){0};
  struct str line = next_line(&head);
  if (line.n == 0)
    line = next_line(&head);
  int rc = parse_request_line(line, out, why);
  if (rc == 0)
    rc = parse_headers(head, out, hv, cap, &seen, frame, why);
  if (rc < 0)
    return rc;
  if (out->minor > 0 && !seen.host)
    return refuse(why, 400, "no Host");
  frame->expect = frame->expect && out->minor > 0;
  return 0;
}

int h1_response(struct str head, bool bodyless, struct http_head *out, struct http_header *hv, size_t cap,
                struct h1_frame *frame, const char **why)
{
  struct notes seen = {0};
  *out = (struct http_head){0};
  *frame = (struct h1_frame){0};
  int rc = parse_status_line(next_line(&head), out, why);
  if (rc == 0)
    rc = parse_headers(head, out, hv, cap, &seen, frame, why);
  if (rc < 0)
    return rc;
  if (bodyless || out->status < 200 || out->status == 204 || out->status == 304) {
    frame->kind = H1_NONE;
  } else if (!seen.coding && !seen.length) {
    frame->kind = H1_UNTIL_EOF;
    frame->keep = false;
  }
  return 0;
}

/* ---- bodies ---- */

enum chunk_state { SIZE, EXTENSION, SIZE_LF, DATA, DATA_CR, DATA_LF, TRAILER, TRAILER_LINE, TRAILER_LF, LAST_LF };

void h1_body_start(struct h1_body *b, const struct h1_frame *frame)
{
  *b = (struct h1_body){.kind = frame->kind, .state = SIZE};
  if (frame->kind == H1_LENGTH)
    b->left = frame->length;
  b->done = frame->kind == H1_NONE;
}

static int take(struct h1_body *b, struct str *in, struct str *data)
{
  *data = str_sub(*in, 0, (size_t)MIN((uint64_t)in->n, b->left));
  b->left -= data->n;
  *in = str_skip(*in, data->n);
  return H1_DATA;
}

static int hex_digit(char c)
{
  if (c >= '0' && c <= '9')
    return c - '0';
  if (c >= 'a' && c <= 'f')
    return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static int size_byte(struct h1_body *b, char c)
{
  int digit = hex_digit(c);
  if (digit >= 0) {
    b->left = b->left << 4 | (unsigned)digit;
    return ++b->digits > CHUNK_DIGITS_MAX ? -400 : 0;
  }
  if (b->digits == 0 || (c != '\r' && c != ';'))
    return -400;
  b->state = c == ';' ? EXTENSION : SIZE_LF;
  b->line = 0;
  return 0;
}

/* One byte of an extension or of a trailer's value. */
static int line_byte(struct h1_body *b, char c, unsigned line_max)
{
  if (!(classes[(unsigned char)c] & VCHAR) || ++b->line > line_max || ++b->overhead > OVERHEAD_MAX)
    return -400;
  return 0;
}

static int extension_byte(struct h1_body *b, char c)
{
  if (c != '\r')
    return line_byte(b, c, EXT_LINE_MAX);
  b->state = SIZE_LF;
  return 0;
}

static void keep_byte(struct h1_body *b, char c)
{
  if (b->kept)
    buf_addc(b->kept, c);
}

static int trailer_byte(struct h1_body *b, char c)
{
  if (c == '\r') {
    bool whole = b->state == TRAILER_LINE && b->named;
    if (b->state == TRAILER_LINE && !whole)
      return -400;
    b->state = whole ? TRAILER_LF : LAST_LF;
    return 0;
  }
  if (b->state == TRAILER) {
    b->state = TRAILER_LINE;
    b->line = 0;
    b->named = false;
  }
  if (!b->named && c == ':' && b->line > 0) {
    b->named = true;
  } else if (!b->named && !(classes[(unsigned char)c] & TCHAR)) {
    return -400;
  }
  keep_byte(b, c);
  return line_byte(b, c, TRAILER_LINE_MAX);
}

static int lf_byte(struct h1_body *b, char c)
{
  if (c != '\n')
    return -400;
  switch (b->state) {
  case SIZE_LF:
    b->state = b->left ? DATA : TRAILER;
    break;
  case DATA_LF:
    b->state = SIZE;
    b->digits = 0;
    break;
  case TRAILER_LF:
    keep_byte(b, '\n');
    b->state = TRAILER;
    break;
  default:
    b->done = true;
  }
  return 0;
}

static int chunk_byte(struct h1_body *b, char c)
{
  switch (b->state) {
  case SIZE:
    return size_byte(b, c);
  case EXTENSION:
    return extension_byte(b, c);
  case DATA_CR:
    b->state = DATA_LF;
    return c == '\r' ? 0 : -400;
  case TRAILER:
  case TRAILER_LINE:
    return trailer_byte(b, c);
  default:
    return lf_byte(b, c);
  }
}

static int chunked_next(struct h1_body *b, struct str *in, struct str *data)
{
  while (in->n && !b->done) {
    if (b->state == DATA) {
      take(b, in, data);
      if (b->left == 0)
        b->state = DATA_CR;
      return H1_DATA;
    }
    int rc = chunk_byte(b, in->p[0]);
    if (rc < 0)
      return rc;
    *in = str_skip(*in, 1);
  }
  return b->done ? H1_END : H1_MORE;
}

int h1_body_next(struct h1_body *b, struct str *in, struct str *data)
{
  if (b->kind == H1_LENGTH && b->left == 0)
    b->done = true;
  if (b->done)
    return H1_END;
  if (in->n == 0)
    return H1_MORE;
  switch (b->kind) {
  case H1_CHUNKED:
    return chunked_next(b, in, data);
  case H1_UNTIL_EOF:
    *data = *in;
    *in = str_skip(*in, in->n);
    return H1_DATA;
  default:
    return take(b, in, data);
  }
}

size_t h1_trailers(struct arena *a, struct str kept, struct http_header **out)
{
  struct str rest = arena_str(a, kept), line, name, value;
  size_t n = 0, lines = 0;
  for (size_t i = 0; i < kept.n; i++)
    lines += kept.p[i] == '\n';
  struct http_header *hv = lines && rest.p ? arena_alloc(a, lines * sizeof(*hv)) : NULL;
  while (hv && n < lines && str_cut(rest, '\n', &line, &rest)) {
    if (str_cut(line, ':', &name, &value) && h1_token(name) && h1_value(str_trim(value)))
      hv[n++] = (struct http_header){name, str_trim(value)};
    else
      lines--;
  }
  *out = hv;
  return n;
}
