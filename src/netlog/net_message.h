/* SPDX-License-Identifier: Apache-2.0 */
/* net_message.h - what the kernel tells about packets and connections of boxes, read into one shape.
 *
 * The messages are the kernel's, but the packets in them were written by boxes and by strangers: every length is
 * checked before anything is read, and nothing is allocated. */
#ifndef CLOCHE_NETLOG_NET_MESSAGE_H
#define CLOCHE_NETLOG_NET_MESSAGE_H

#include "base/base.h"
#include "jail/net/dns_message.h"

/* Prefixes of the log rules (jail_net.c writes them). */
enum net_mark {
  NET_MARK_OPENED = 'o',
  NET_MARK_REFUSED = 'r',
  NET_MARK_LIMIT = 'l', /* too many connections */
  NET_MARK_ANSWER = 'd',
  NET_MARK_OVER = 'x', /* more than are logged */
};

struct net_flow {
  uint32_t box, to;         /* host byte order */
  uint16_t from_port, port; /* 0 where the protocol has none */
  uint8_t protocol;
  uint32_t link; /* index of the box's link, never used for another one; 0 = not told */
  uint16_t zone; /* of connection tracking; 0 = none, or not told */
};

struct net_message {
  /* NET_CLOSED: a TCP connection is over, its bytes are to be asked for (net_count_question). */
  enum { NET_NOTHING, NET_PACKET, NET_ANSWERED, NET_CLOSED, NET_ENDED } kind;
  char mark; /* NET_PACKET */
  struct net_flow flow;
  uint64_t in, out;             /* NET_ENDED: bytes from and to the server */
  struct dns_question question; /* NET_ANSWERED: asked by flow.box, answered by flow.to */
  struct dns_answer answer;
  unsigned rcode;
};

/* One netlink message of the log or of connection tracking; NET_NOTHING for what is neither, broken, or not IPv4. */
void net_message_read(const void *message, size_t n, struct net_message *out);

/* The question for what connection tracking has counted of a flow; its answer is read as NET_ENDED. */
#define NET_QUESTION_MAX 128
size_t net_count_question(const struct net_flow *f, uint8_t out[NET_QUESTION_MAX]);

#endif
