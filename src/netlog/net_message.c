/* SPDX-License-Identifier: Apache-2.0 */
/* net_message.c - see net_message.h. */
#include "netlog/net_message.h"

#include <arpa/inet.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

#define IPV4_HEAD         20
#define UDP_HEAD          8
#define DNS_HEAD          12

/* States of TCP in connection tracking; the kernel's header for them does not go with the C library's. */
#define TRACKED_TIME_WAIT 7
#define TRACKED_CLOSE     8

/* ---- attributes ---- */

struct attribute {
  unsigned type;
  const uint8_t *p;
  size_t n;
};

/* The next one of *at .. *at + *left; false at the end or where a length is wrong. */
static bool next_attribute(const uint8_t **at, size_t *left, struct attribute *a)
{
  struct nlattr head;
  if (*left < sizeof(head))
    return false;
  memcpy(&head, *at, sizeof(head));
  if (head.nla_len < sizeof(head) || head.nla_len > *left)
    return false;
  a->type = head.nla_type & NLA_TYPE_MASK;
  a->p = *at + sizeof(head);
  a->n = head.nla_len - sizeof(head);
  size_t step = MIN(NLA_ALIGN((size_t)head.nla_len), *left);
  *at += step;
  *left -= step;
  return true;
}

static bool find_attribute(const uint8_t *p, size_t n, unsigned type, struct attribute *a)
{
  while (next_attribute(&p, &n, a))
    if (a->type == type)
      return true;
  return false;
}

static uint64_t number(const struct attribute *a)
{
  uint64_t v = 0;
  for (size_t i = 0; i < a->n && i < sizeof(v); i++)
    v = v << 8 | a->p[i];
  return v;
}

/* ---- packets ---- */

static uint16_t get16(const uint8_t *p)
{
  return (uint16_t)(p[0] << 8 | p[1]);
}

static uint32_t get32(const uint8_t *p)
{
  return (uint32_t)get16(p) << 16 | get16(p + 2);
}

/* An IPv4 packet that a box sent. *payload is what follows its head. */
static bool read_packet(const uint8_t *p, size_t n, struct net_flow *f, const uint8_t **payload, size_t *left)
{
  if (n < IPV4_HEAD || p[0] >> 4 != 4)
    return false;
  size_t head = (size_t)(p[0] & 15) * 4;
  if (head < IPV4_HEAD || head > n)
    return false;
  f->protocol = p[9];
  f->box = get32(p + 12);
  f->to = get32(p + 16);
  f->from_port = f->port = 0;
  f->link = f->zone = 0;
  *payload = p + head;
  *left = n - head;
  bool first = (get16(p + 6) & 0x1fff) == 0; /* of its fragments */
  if (first && (f->protocol == IPPROTO_TCP || f->protocol == IPPROTO_UDP) && *left >= 4) {
    f->from_port = get16(*payload);
    f->port = get16(*payload + 2);
  }
  return true;
}

/* Answers come the other way round. */
static void read_answer(const uint8_t *p, size_t n, struct net_message *m)
{
  const uint8_t *udp;
  size_t left;
  struct net_flow seen;
  if (!read_packet(p, n, &seen, &udp, &left) || seen.protocol != IPPROTO_UDP || left < UDP_HEAD + DNS_HEAD)
    return;
  uint8_t copy[DNS_MESSAGE];
  const uint8_t *dns = udp + UDP_HEAD;
  size_t size = left - UDP_HEAD;
  if (size > sizeof(copy))
    return;
  memcpy(copy, dns, size);
  m->rcode = copy[3] & 15u;
  copy[2] &= 0x79; /* as it was asked: no response, not authoritative, not cut off */
  copy[3] = 0;
  memset(copy + 6, 0, 6); /* without answers */
  if (dns_question(copy, size, &m->question))
    return;
  if (m->rcode || dns_answer(dns, size, &m->question, &m->answer))
    m->answer = (struct dns_answer){0};
  m->flow =
      (struct net_flow){.box = seen.to, .to = seen.box, .protocol = IPPROTO_UDP, .port = 53, .from_port = seen.port};
  m->kind = NET_ANSWERED;
}

static bool read_tuple(const struct attribute *tuple, struct net_flow *f)
{
  struct attribute ip, proto, a;
  if (!find_attribute(tuple->p, tuple->n, CTA_TUPLE_IP, &ip) ||
      !find_attribute(tuple->p, tuple->n, CTA_TUPLE_PROTO, &proto))
    return false;
  if (!find_attribute(ip.p, ip.n, CTA_IP_V4_SRC, &a) || a.n != 4)
    return false;
  f->box = (uint32_t)number(&a);
  if (!find_attribute(ip.p, ip.n, CTA_IP_V4_DST, &a) || a.n != 4)
    return false;
  f->to = (uint32_t)number(&a);
  if (!find_attribute(proto.p, proto.n, CTA_PROTO_NUM, &a))
    return false;
  f->protocol = (uint8_t)number(&a);
  f->from_port = find_attribute(proto.p, proto.n, CTA_PROTO_SRC_PORT, &a) ? (uint16_t)number(&a) : 0;
  f->port = find_attribute(proto.p, proto.n, CTA_PROTO_DST_PORT, &a) ? (uint16_t)number(&a) : 0;
  f->zone = find_attribute(tuple->p, tuple->n, CTA_TUPLE_ZONE, &a) ? (uint16_t)number(&a) : 0;
  f->link = 0;
  return true;
}

/* Where it was going before it was turned to the egress gateway or the resolver. */
static void read_original(const uint8_t *p, size_t n, struct net_flow *f)
{
  struct attribute connection, tuple;
  struct net_flow original;
  if (find_attribute(p, n, NFULA_CT, &connection) &&
      find_attribute(connection.p, connection.n, CTA_TUPLE_ORIG, &tuple) && read_tuple(&tuple, &original) &&
      original.box == f->box && original.protocol == f->protocol)
    *f = original;
}

static void read_log(const uint8_t *p, size_t n, struct net_message *m)
{
  struct attribute prefix, packet, link;
  const uint8_t *payload;
  size_t left;
  if (!find_attribute(p, n, NFULA_PREFIX, &prefix) || !prefix.n || !find_attribute(p, n, NFULA_PAYLOAD, &packet))
    return;
  m->mark = (char)prefix.p[0];
  bool answer = m->mark == NET_MARK_ANSWER;
  if (answer) {
    read_answer(packet.p, packet.n, m);
  } else if (read_packet(packet.p, packet.n, &m->flow, &payload, &left)) {
    read_original(p, n, &m->flow);
    m->kind = NET_PACKET;
  }
  if (find_attribute(p, n, answer ? NFULA_IFINDEX_OUTDEV : NFULA_IFINDEX_INDEV, &link))
    m->flow.link = (uint32_t)number(&link);
}

/* ---- connections ---- */

static uint64_t counted(const uint8_t *p, size_t n, unsigned type)
{
  struct attribute counters, bytes;
  return find_attribute(p, n, type, &counters) && find_attribute(counters.p, counters.n, CTA_COUNTERS_BYTES, &bytes)
             ? number(&bytes)
             : 0;
}

static void read_end(const uint8_t *p, size_t n, struct net_message *m)
{
  struct attribute tuple;
  if (!find_attribute(p, n, CTA_TUPLE_ORIG, &tuple) || !read_tuple(&tuple, &m->flow))
    return;
  m->out = counted(p, n, CTA_COUNTERS_ORIG);
  m->in = counted(p, n, CTA_COUNTERS_REPLY);
  m->kind = NET_ENDED;
}

/* A change of a connection, or the answer to a question about one. */
static void read_state(const uint8_t *p, size_t n, struct net_message *m)
{
  struct attribute info, tcp, state, counters;
  if (!find_attribute(p, n, CTA_PROTOINFO, &info) || !find_attribute(info.p, info.n, CTA_PROTOINFO_TCP, &tcp) ||
      !find_attribute(tcp.p, tcp.n, CTA_PROTOINFO_TCP_STATE, &state) ||
      (number(&state) != TRACKED_TIME_WAIT && number(&state) != TRACKED_CLOSE))
    return;
  read_end(p, n, m);
  if (m->kind == NET_ENDED && !find_attribute(p, n, CTA_COUNTERS_ORIG, &counters))
    m->kind = NET_CLOSED;
}

void net_message_read(const void *message, size_t n, struct net_message *out)
{
  struct nlmsghdr head;
  out->kind = NET_NOTHING;
  if (n < NLMSG_HDRLEN + sizeof(struct nfgenmsg))
    return;
  memcpy(&head, message, sizeof(head));
  if (head.nlmsg_len > n || head.nlmsg_len < NLMSG_HDRLEN + sizeof(struct nfgenmsg))
    return;
  size_t skip = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct nfgenmsg));
  const uint8_t *p = (const uint8_t *)message + skip;
  size_t left = head.nlmsg_len > skip ? head.nlmsg_len - skip : 0;
  if (head.nlmsg_type == (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET))
    read_log(p, left, out);
  else if (head.nlmsg_type == (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE))
    read_end(p, left, out);
  else if (head.nlmsg_type == (NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW))
    read_state(p, left, out);
}

/* ---- questions ---- */

static uint8_t *put_attribute(uint8_t *at, unsigned type, const void *value, size_t n)
{
  struct nlattr head = {(uint16_t)(sizeof(head) + n), (uint16_t)type};
  memcpy(at, &head, sizeof(head));
  memcpy(at + sizeof(head), value, n);
  return at + NLA_ALIGN(head.nla_len);
}

static uint8_t *open_attribute(uint8_t *at)
{
  return at + sizeof(struct nlattr);
}

static void close_attribute(uint8_t *from, uint8_t *to, unsigned type)
{
  struct nlattr head = {(uint16_t)(to - from), (uint16_t)(type | NLA_F_NESTED)};
  memcpy(from, &head, sizeof(head));
}

size_t net_count_question(const struct net_flow *f, uint8_t out[NET_QUESTION_MAX])
{
  struct nlmsghdr head = {.nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_GET, .nlmsg_flags = NLM_F_REQUEST};
  struct nfgenmsg family = {.nfgen_family = AF_INET, .version = NFNETLINK_V0};
  uint32_t from = htonl(f->box), to = htonl(f->to);
  uint16_t from_port = htons(f->from_port), port = htons(f->port), zone = htons(f->zone);
  memset(out, 0, NET_QUESTION_MAX);
  uint8_t *tuple = out + NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(family)), *part = open_attribute(tuple);
  uint8_t *at = put_attribute(open_attribute(part), CTA_IP_V4_SRC, &from, sizeof(from));
  at = put_attribute(at, CTA_IP_V4_DST, &to, sizeof(to));
  close_attribute(part, at, CTA_TUPLE_IP);
  part = at;
  at = put_attribute(open_attribute(part), CTA_PROTO_NUM, &f->protocol, sizeof(f->protocol));
  at = put_attribute(at, CTA_PROTO_SRC_PORT, &from_port, sizeof(from_port));
  at = put_attribute(at, CTA_PROTO_DST_PORT, &port, sizeof(port));
  close_attribute(part, at, CTA_TUPLE_PROTO);
  if (f->zone)
    at = put_attribute(at, CTA_TUPLE_ZONE, &zone, sizeof(zone));
  close_attribute(tuple, at, CTA_TUPLE_ORIG);
  head.nlmsg_len = (uint32_t)(at - out);
  memcpy(out, &head, sizeof(head));
  memcpy(out + NLMSG_HDRLEN, &family, sizeof(family));
  return head.nlmsg_len;
}
