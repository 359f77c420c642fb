/* SPDX-License-Identifier: Apache-2.0 */
/* egress_peek.c - what the egress gateway reads of boxes and proxies before anything else.
 *
 * The first byte chooses: t a TLS hello, h a request's head, s answers of a SOCKS proxy, c of one that is asked by
 * CONNECT. A name that is found is one, and the same bytes cut shorter never name another host. */
#include "must.h"

#include "egress/peek.h"
#include "egress/proxy_talk.h"

static void name(struct str in, enum peek (*look)(struct str, char *))
{
  char found[DOMAIN_SIZE], again[DOMAIN_SIZE];
  enum peek r = look(in, found);
  MUST(r != PEEK_NAMED || (peek_name(str_of(found), again) && !strcmp(found, again)));
  enum peek half = look(str_sub(in, 0, in.n / 2), again);
  MUST(half != PEEK_NAMED || look != peek_tls || (r == PEEK_NAMED && !strcmp(found, again)));
}

static void proxy(struct str in, enum egress_proxy_kind kind)
{
  struct egress_proxy p = {.kind = kind, .user = STR("u"), .password = STR("p")};
  struct proxy_talk t = {.proxy = &p, .name = STR("a.b"), .port = 443};
  cleanup_buf struct buf out = BUF_INIT(1 << 16);
  const char *why = NULL;
  int r = 0;
  proxy_talk_begin(&t, &out);
  for (size_t n = 1; !r && in.n && n <= in.n;) {
    size_t take = t.want ? t.want : n++;
    if (take > in.n)
      break;
    bool whole = t.want;
    r = proxy_talk_next(&t, str_sub(in, 0, take), &out, &why);
    MUST(r >= 0 || (why && why[0]));
    if (whole)
      in = str_skip(in, take);
  }
  MUST(t.want <= 300 && !buf_failed(&out));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (!size)
    return 0;
  struct str rest = str_make(data + 1, size - 1);
  if (data[0] == 't')
    name(rest, peek_tls);
  else if (data[0] == 'h')
    name(rest, peek_http);
  else if (data[0] == 's')
    proxy(rest, EGRESS_SOCKS5);
  else
    proxy(str_sub(rest, 0, 5000), EGRESS_CONNECT);
  return 0;
}
