/* SPDX-License-Identifier: Apache-2.0 */
/* proxy_talk.h - what is said to a proxy before it becomes a tunnel: SOCKS5 (RFC 1928, 1929) or HTTP CONNECT. Pure: the
 * caller reads exactly as many bytes as are wanted, so that none of the tunnel's is taken. */
#ifndef CLOCHE_EGRESS_PROXY_TALK_H
#define CLOCHE_EGRESS_PROXY_TALK_H

#include "wire/egress_policy.h"

#define PROXY_ANSWER_MAX 4096u /* of a head that answers CONNECT */

struct proxy_talk {
  const struct egress_proxy *proxy;
  struct str name;  /* of the server; empty: by address */
  uint32_t address; /* host byte order */
  uint16_t port;
  int state;
  size_t want; /* bytes that the next proxy_talk_next is to get; 0: all that came so far, after each byte */
};

/* Writes the first words to `out`. */
void proxy_talk_begin(struct proxy_talk *t, struct buf *out);
/* in: t->want bytes. What is to be sent is appended to `out`. 1: the tunnel stands; 0: go on; negative errno with a
 * reason. */
int proxy_talk_next(struct proxy_talk *t, struct str in, struct buf *out, const char **why);

#endif
