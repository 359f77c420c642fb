/* SPDX-License-Identifier: Apache-2.0 */
/* peek.c - see peek.h. */
#include "egress/peek.h"

#define RECORD_HANDSHAKE 22
#define CLIENT_HELLO     1
#define EXT_SERVER_NAME  0

struct reader {
  const unsigned char *p;
  size_t n;
  bool bad;
};

static unsigned take(struct reader *r, unsigned bytes)
{
  unsigned v = 0;
  if (r->n < bytes)
    r->bad = true;
  for (unsigned i = 0; !r->bad && i < bytes; i++)
    v = v << 8 | r->p[i];
  if (r->bad)
    return 0;
  r->p += bytes;
  r->n -= bytes;
  return v;
}

/* What the next `bytes`-wide length announces. */
static struct reader part(struct reader *r, unsigned bytes)
{
  unsigned n = take(r, bytes);
  if (n > r->n)
    r->bad = true;
  if (r->bad)
    return (struct reader){.bad = true};
  struct reader inner = {r->p, n, false};
  r->p += n;
  r->n -= n;
  return inner;
}

bool peek_name(struct str s, char name[DOMAIN_SIZE])
{
  bool letter = false;
  size_t label = 0;
  if (s.n && s.p[s.n - 1] == '.')
    s.n--;
  if (!s.n || s.n > 253 || s.p[s.n - 1] == '.')
    return false;
  for (size_t i = 0; i < s.n; i++) {
    char c = s.p[i] >= 'A' && s.p[i] <= 'Z' ? (char)(s.p[i] + 32) : s.p[i];
    bool alpha = (c >= 'a' && c <= 'z') || c == '_';
    if (!alpha && !(c >= '0' && c <= '9') && c != '-' && c != '.')
      return false;
    label = c == '.' ? 0 : label + 1;
    if (label > 63 || (c == '.' && (i == 0 || s.p[i - 1] == '.')))
      return false;
    letter |= alpha;
    name[i] = c;
  }
  name[s.n] = 0;
  return letter;
}

static enum peek server_name(struct reader list, char name[DOMAIN_SIZE])
{
  struct reader names = part(&list, 2);
  if (names.bad || list.n || !names.n)
    return PEEK_BROKEN;
  unsigned type = take(&names, 1);
  struct reader host = part(&names, 2);
  if (names.bad || host.bad || names.n || type) /* one host_name, as every client sends it */
    return PEEK_BROKEN;
  return peek_name(str_make(host.p, host.n), name) ? PEEK_NAMED : PEEK_BROKEN;
}

static enum peek client_hello(struct reader h, char name[DOMAIN_SIZE])
{
  take(&h, 2);
  if (h.n < 32)
    return PEEK_BROKEN;
  h.p += 32;
  h.n -= 32;
  part(&h, 1);
  part(&h, 2);
  part(&h, 1);
  if (h.bad)
    return PEEK_BROKEN;
  if (!h.n)
    return PEEK_NONE;
  struct reader extensions = part(&h, 2);
  enum peek found = PEEK_NONE;
  while (!extensions.bad && extensions.n) {
    unsigned type = take(&extensions, 2);
    struct reader body = part(&extensions, 2);
    if (extensions.bad || body.bad)
      return PEEK_BROKEN;
    if (type != EXT_SERVER_NAME)
      continue;
    if (found != PEEK_NONE)
      return PEEK_BROKEN;
    found = server_name(body, name);
    if (found == PEEK_BROKEN)
      return found;
  }
  return extensions.bad || h.n ? PEEK_BROKEN : found;
}

/* Joins the hello's bytes from its records; *have of them are there. */
static enum peek join_records(struct str in, unsigned char *hello, size_t *have)
{
  *have = 0;
  while (in.n >= 5) {
    const unsigned char *p = (const unsigned char *)in.p;
    size_t n = (size_t)p[3] << 8 | p[4];
    if (p[0] != RECORD_HANDSHAKE || p[1] != 3 || !n || n > 16384 + 256)
      return PEEK_BROKEN;
    size_t here = MIN(n, in.n - 5);
    memcpy(hello + *have, p + 5, here); /* never more than came */
    *have += here;
    if (*have >= 4 && *have - 4 >= ((size_t)hello[1] << 16 | (size_t)hello[2] << 8 | hello[3]))
      return PEEK_NONE;
    in = str_skip(in, 5 + here);
    if (here < n)
      break;
  }
  return PEEK_MORE;
}

enum peek peek_tls(struct str in, char name[DOMAIN_SIZE])
{
  unsigned char hello[PEEK_MAX];
  size_t have;
  name[0] = 0;
  if (!in.n)
    return PEEK_MORE;
  if ((unsigned char)in.p[0] != RECORD_HANDSHAKE)
    return PEEK_OTHER;
  enum peek r = join_records(str_sub(in, 0, PEEK_MAX), hello, &have);
  if (have && hello[0] != CLIENT_HELLO)
    return PEEK_BROKEN;
  if (r == PEEK_MORE)
    return in.n >= PEEK_MAX ? PEEK_BROKEN : PEEK_MORE;
  if (r == PEEK_BROKEN)
    return r;
  size_t n = (size_t)hello[1] << 16 | (size_t)hello[2] << 8 | hello[3];
  r = client_hello((struct reader){hello + 4, n, false}, name);
  if (r != PEEK_NAMED)
    name[0] = 0;
  return r;
}

static bool is_method(struct str in)
{
  size_t i = 0;
  while (i < in.n && in.p[i] >= 'A' && in.p[i] <= 'Z' && i < 20)
    i++;
  return i == in.n ? i < 20 : i > 0 && in.p[i] == ' ';
}

static struct str without_port(struct str host)
{
  ptrdiff_t colon = str_rfind(host, ':');
  return colon > 0 ? str_sub(host, 0, (size_t)colon) : host;
}

enum peek peek_http(struct str in, char name[DOMAIN_SIZE])
{
  struct str line, rest = in, field, value;
  enum peek found = PEEK_NONE;
  name[0] = 0;
  if (!in.n)
    return PEEK_MORE;
  if (!is_method(in))
    return PEEK_OTHER;
  bool more = str_cut(rest, '\n', &line, &rest);
  while (more) {
    more = str_cut(rest, '\n', &line, &rest);
    if (!more)
      break;
    if (!str_trim(line).n)
      return found;
    if (!str_cut(line, ':', &field, &value) || !str_ieq(field, STR("host")))
      continue;
    if (found != PEEK_NONE)
      return PEEK_BROKEN;
    found = peek_name(without_port(str_trim(value)), name) ? PEEK_NAMED : PEEK_OTHER;
  }
  return in.n >= PEEK_MAX ? PEEK_NONE : PEEK_MORE;
}
