/* SPDX-License-Identifier: Apache-2.0 */
/* proxy_talk.c - see proxy_talk.h. */
#include "egress/proxy_talk.h"

#define SOCKS       5
#define NO_AUTH     0
#define BY_PASSWORD 2
#define IPV4        1
#define DOMAIN      3
#define IPV6        4

enum { METHOD, PASSWORD, ANSWER, BOUND, CONNECT_HEAD };

static void put(struct buf *b, unsigned v)
{
  buf_addc(b, (char)v);
}

static void put_address(struct buf *b, uint32_t a)
{
  for (int shift = 24; shift >= 0; shift -= 8)
    put(b, a >> shift & 255);
}

static void put_target(const struct proxy_talk *t, struct buf *out)
{
  if (t->name.n)
    buf_adds(out, t->name);
  else
    buf_addf(out, "%u.%u.%u.%u", t->address >> 24, t->address >> 16 & 255, t->address >> 8 & 255, t->address & 255);
  buf_addf(out, ":%u", t->port);
}

static void connect_request(const struct proxy_talk *t, struct buf *out)
{
  buf_addz(out, "CONNECT ");
  put_target(t, out);
  buf_addz(out, " HTTP/1.1\r\nHost: ");
  put_target(t, out);
  if (t->proxy->user.n) {
    cleanup_buf struct buf both = BUF_INIT(1024);
    buf_adds(&both, t->proxy->user);
    buf_addc(&both, ':');
    buf_adds(&both, t->proxy->password);
    buf_addz(out, "\r\nProxy-Authorization: Basic ");
    base64_add(out, both.p, both.n, true);
    explicit_bzero(both.p, both.n);
  }
  buf_addz(out, "\r\n\r\n");
}

void proxy_talk_begin(struct proxy_talk *t, struct buf *out)
{
  if (t->proxy->kind == EGRESS_CONNECT) {
    t->state = CONNECT_HEAD;
    t->want = 0;
    connect_request(t, out);
    return;
  }
  t->state = METHOD;
  t->want = 2;
  put(out, SOCKS);
  put(out, 1);
  put(out, t->proxy->user.n ? BY_PASSWORD : NO_AUTH);
}

static void socks_request(struct proxy_talk *t, struct buf *out)
{
  put(out, SOCKS);
  put(out, 1); /* connect */
  put(out, 0);
  if (t->name.n) {
    put(out, DOMAIN);
    put(out, (unsigned)t->name.n);
    buf_adds(out, t->name);
  } else {
    put(out, IPV4);
    put_address(out, t->address);
  }
  put(out, t->port >> 8);
  put(out, t->port & 255);
  t->state = ANSWER;
  t->want = 5; /* as far as the length of what it is bound to */
}

static int method_chosen(struct proxy_talk *t, const unsigned char *p, struct buf *out, const char **why)
{
  unsigned wanted = t->proxy->user.n ? BY_PASSWORD : NO_AUTH;
  *why = p[0] != SOCKS ? "it does not speak SOCKS5" : "it does not take the way of authentication";
  if (p[0] != SOCKS || p[1] != wanted)
    return -EPROTO;
  if (wanted == NO_AUTH) {
    socks_request(t, out);
    return 0;
  }
  put(out, 1);
  put(out, (unsigned)t->proxy->user.n);
  buf_adds(out, t->proxy->user);
  put(out, (unsigned)t->proxy->password.n);
  buf_adds(out, t->proxy->password);
  t->state = PASSWORD;
  t->want = 2;
  return 0;
}

static int password_taken(struct proxy_talk *t, const unsigned char *p, struct buf *out, const char **why)
{
  *why = "it refused the user name and password";
  if (p[0] != 1 || p[1] != 0)
    return -EACCES;
  socks_request(t, out);
  return 0;
}

static int answered(struct proxy_talk *t, const unsigned char *p, const char **why)
{
  static const char *const reasons[] = {"",
                                        "it failed",
                                        "its rules do not allow the connection",
                                        "the network is unreachable from it",
                                        "the host is unreachable from it",
                                        "the server refused its connection",
                                        "its time was over",
                                        "it does not know the command",
                                        "it does not know the kind of address"};
  *why = "it does not speak SOCKS5";
  if (p[0] != SOCKS)
    return -EPROTO;
  *why = p[1] < ARRAY_LEN(reasons) ? reasons[p[1]] : "it failed";
  if (p[1])
    return p[1] == 5 ? -ECONNREFUSED : -EHOSTUNREACH;
  *why = "it answered with an unknown kind of address";
  if (p[3] != IPV4 && p[3] != DOMAIN && p[3] != IPV6)
    return -EPROTO;
  size_t length = p[3] == IPV4 ? 4 : p[3] == IPV6 ? 16 : (size_t)p[4] + 1;
  t->want = length - 1 + 2; /* its first byte was among the five */
  t->state = BOUND;
  return 0;
}

/* "HTTP/1.x 2yz ...", and all of its head. */
static int connect_answered(struct str in, const char **why)
{
  *why = "it answered with too long a head";
  if (!str_ends(in, STR("\r\n\r\n")))
    return in.n >= PROXY_ANSWER_MAX ? -EPROTO : 0;
  *why = "it does not speak HTTP";
  if (!str_starts(in, STR("HTTP/1.")) || in.n < 13 || in.p[8] != ' ')
    return -EPROTO;
  *why = in.p[9] == '4' && in.p[10] == '0' && in.p[11] == '7' ? "it refused the user name and password"
                                                              : "it did not make the connection";
  if (in.p[9] != '2')
    return -EHOSTUNREACH;
  return 1;
}

int proxy_talk_next(struct proxy_talk *t, struct str in, struct buf *out, const char **why)
{
  if (t->state == CONNECT_HEAD)
    return connect_answered(in, why);
  if (in.n != t->want || !t->want)
    return -EINVAL;
  const unsigned char *p = (const unsigned char *)in.p;
  switch (t->state) {
  case METHOD:
    return method_chosen(t, p, out, why);
  case PASSWORD:
    return password_taken(t, p, out, why);
  case ANSWER:
    return answered(t, p, why);
  default:
    return 1;
  }
}
