/* SPDX-License-Identifier: Apache-2.0 */
/* http_fields.c - see http_fields.h. */
#include "agent/envd/http_fields.h"
#include <stdio.h>

static const char days[7][4] = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
static const char months[12][4] = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

void http_date_text(time_t t, char out[HTTP_DATE_TEXT])
{
  struct tm tm;
  clock_utc(t, &tm);
  snprintf(out, HTTP_DATE_TEXT, "%s, %02d %s %04d %02d:%02d:%02d GMT", days[tm.tm_wday], tm.tm_mday, months[tm.tm_mon],
           tm.tm_year + 1900, tm.tm_hour, tm.tm_min, tm.tm_sec);
}

static int digits(struct str text, size_t at, size_t n, int *out)
{
  uint64_t v;
  if (str_u64(str_sub(text, at, n), &v) < 0)
    return -EINVAL;
  *out = (int)v;
  return 0;
}

/* Only the form of today: `Sun, 06 Nov 1994 08:49:37 GMT`. */
int http_date_parse(struct str text, time_t *out)
{
  struct tm tm = {0};
  text = str_trim(text);
  if (text.n != 29 || !str_ends(text, STR(" GMT")))
    return -EINVAL;
  tm.tm_mon = -1;
  for (int i = 0; i < 12; i++)
    if (str_is(str_sub(text, 8, 3), months[i]))
      tm.tm_mon = i;
  if (tm.tm_mon < 0 || digits(text, 5, 2, &tm.tm_mday) < 0 || digits(text, 12, 4, &tm.tm_year) < 0 ||
      digits(text, 17, 2, &tm.tm_hour) < 0 || digits(text, 20, 2, &tm.tm_min) < 0 ||
      digits(text, 23, 2, &tm.tm_sec) < 0)
    return -EINVAL;
  tm.tm_year -= 1900;
  *out = timegm(&tm);
  return 0;
}

int http_range_parse(struct str text, uint64_t size, uint64_t *from, uint64_t *n)
{
  struct str spec, first, last;
  uint64_t a = 0, b = 0;
  if (!str_starts(text, STR("bytes=")))
    return 0;
  spec = str_trim(str_skip(text, 6));
  if (str_find(spec, ',') >= 0 || !str_cut(spec, '-', &first, &last))
    return 0;
  if (first.n == 0) {
    if (str_u64(last, &b) < 0)
      return 0;
    *n = MIN(b, size);
    *from = size - *n;
    return *n ? 1 : -ERANGE;
  }
  if (str_u64(first, &a) < 0 || (last.n && (str_u64(last, &b) < 0 || b < a)))
    return 0;
  if (a >= size)
    return -ERANGE;
  *from = a;
  *n = (last.n ? MIN(b + 1, size) : size) - a;
  return 1;
}

static bool token_char(char c)
{
  return c > 0x20 && c < 0x7f && !strchr("()<>@,;:\\\"/[]?=", c);
}

void http_disposition(struct str name, struct buf *out)
{
  bool token = name.n > 0, ascii = true;
  for (size_t i = 0; i < name.n; i++) {
    token &= token_char(name.p[i]);
    ascii &= name.p[i] >= 0x20 && name.p[i] < 0x7f;
  }
  buf_addz(out, "inline; filename");
  if (!ascii) {
    buf_addz(out, "*=utf-8''");
    percent_encode(name, out);
    return;
  }
  buf_addz(out, token ? "=" : "=\"");
  for (size_t i = 0; i < name.n; i++) {
    if (name.p[i] == '"' || name.p[i] == '\\')
      buf_addc(out, '\\');
    buf_addc(out, name.p[i]);
  }
  if (!token)
    buf_addc(out, '"');
}

const char *http_mime_type(struct str name)
{
  static const struct {
    const char *ending, *type;
  } types[] = {
      {".avif", "image/avif"},
      {".bz2", "application/x-bzip2"},
      {".css", "text/css; charset=utf-8"},
      {".csv", "text/csv; charset=utf-8"},
      {".gif", "image/gif"},
      {".gz", "application/gzip"},
      {".htm", "text/html; charset=utf-8"},
      {".html", "text/html; charset=utf-8"},
      {".ico", "image/vnd.microsoft.icon"},
      {".jpeg", "image/jpeg"},
      {".jpg", "image/jpeg"},
      {".js", "text/javascript; charset=utf-8"},
      {".json", "application/json"},
      {".md", "text/markdown; charset=utf-8"},
      {".mjs", "text/javascript; charset=utf-8"},
      {".mp3", "audio/mpeg"},
      {".mp4", "video/mp4"},
      {".pdf", "application/pdf"},
      {".png", "image/png"},
      {".svg", "image/svg+xml"},
      {".tar", "application/x-tar"},
      {".txt", "text/plain; charset=utf-8"},
      {".wasm", "application/wasm"},
      {".wav", "audio/wav"},
      {".webm", "video/webm"},
      {".webp", "image/webp"},
      {".xml", "text/xml; charset=utf-8"},
      {".zip", "application/zip"},
  };
  ptrdiff_t dot = str_rfind(name, '.');
  for (size_t i = 0; dot >= 0 && i < ARRAY_LEN(types); i++)
    if (str_ieq(str_skip(name, (size_t)dot), str_of(types[i].ending)))
      return types[i].type;
  return "application/octet-stream";
}

/* ---- Accept-Encoding ---- */

static bool refused(struct str params)
{
  struct str one;
  bool more = params.n > 0;
  while (more) {
    more = str_cut(params, ';', &one, &params);
    one = str_trim(one);
    if (!str_istarts(one, STR("q=")))
      continue;
    struct str q = str_skip(one, 2);
    bool zero = q.n > 0 && q.p[0] == '0';
    for (size_t i = 1; i < q.n; i++)
      zero &= q.p[i] == '0' || q.p[i] == '.';
    return zero;
  }
  return false;
}

/* gzip is worth its time only where it was asked for alone: every fetch() lists it by itself. It is also outbound
 * networking where the plain bytes are refused. */
enum http_coding http_coding_choose(struct str accept, bool ranged)
{
  struct str one, name, params;
  bool gzip = false, identity = true, said_identity = false, only = true, more = true;
  if (!accept.n)
    return CODING_IDENTITY;
  while (more) {
    more = str_cut(accept, ',', &one, &accept);
    str_cut(one, ';', &name, &params);
    name = str_trim(name);
    bool no = refused(params);
    if (str_ieq(name, STR("gzip")))
      gzip = !no;
    else if (name.n)
      only = false;
    if (str_ieq(name, STR("identity"))) {
      identity = !no;
      said_identity = true;
    } else if (str_is(name, "*") && !said_identity) {
      identity = !no;
    }
  }
  if (ranged)
    return identity ? CODING_IDENTITY : CODING_NONE;
  if (gzip && (only || !identity))
    return CODING_GZIP;
  return identity ? CODING_IDENTITY : CODING_NONE;
}
