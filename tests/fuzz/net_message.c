/* SPDX-License-Identifier: Apache-2.0 */
/* net_message.c - messages of the kernel about packets that boxes and strangers wrote. The bytes are taken as a message
 * as they are, as the packet in a log message, and as an answer of a name server in one; whatever is read can be
 * written as one line of JSON. */
#include "must.h"

#include "netlog/net_lines.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

static void check_line(const struct buf *line)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  MUST(!buf_failed(line) && line->n && line->p[line->n - 1] == '\n');
  MUST(memchr(line->p, '\n', line->n) == line->p + line->n - 1);
  MUST(json_is(json_read(&a, str_make(line->p, line->n - 1), 0, NULL), JSON_OBJECT));
}

/* What is asked is the flow that was told. */
static void check_question(const struct net_flow *f)
{
  static struct net_message back;
  uint8_t question[NET_QUESTION_MAX];
  size_t n = net_count_question(f, question);
  MUST(n <= sizeof(question));
  ((struct nlmsghdr *)question)->nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE;
  net_message_read(question, n, &back);
  MUST(back.kind == NET_ENDED && back.flow.box == f->box && back.flow.to == f->to && back.flow.port == f->port &&
       back.flow.from_port == f->from_port && back.flow.protocol == f->protocol && back.flow.zone == f->zone);
}

static void check(const void *message, size_t n)
{
  static struct net_message m;
  cleanup_buf struct buf line = BUF_INIT(NET_LINE_MAX);
  cleanup_free uint8_t *copy = xmalloc(MAX(n, (size_t)1)); /* of its exact length, so that a byte too far is seen */
  memcpy(copy, message, n);
  net_message_read(copy, n, &m);
  if (m.kind == NET_ANSWERED) {
    MUST(m.answer.count <= DNS_ADDRESSES);
    net_line_name(&line, 1, &m);
  } else if (m.kind == NET_CLOSED) {
    check_question(&m.flow);
    return;
  } else if (m.kind == NET_ENDED) {
    net_line_end(&line, 1, 7, m.in, m.out);
  } else if (m.kind == NET_PACKET) {
    net_line_packet(&line, 1, m.mark, &m.flow, 7, "example.org");
  } else {
    return;
  }
  check_line(&line);
}

static void put_attribute(struct buf *b, unsigned type, const void *p, size_t n)
{
  struct nlattr head = {.nla_len = (uint16_t)(sizeof(head) + n), .nla_type = (uint16_t)type};
  buf_add(b, &head, sizeof(head));
  buf_add(b, p, n);
  while (b->n % NLA_ALIGNTO)
    buf_addc(b, 0);
}

static void check_packet(const char *mark, const uint8_t *packet, size_t n)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 17);
  struct nlmsghdr head = {.nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET};
  struct nfgenmsg group = {.nfgen_family = 2};
  buf_add(&b, &head, sizeof(head));
  buf_add(&b, &group, sizeof(group));
  put_attribute(&b, NFULA_PREFIX, mark, 2);
  put_attribute(&b, NFULA_PAYLOAD, packet, n);
  head.nlmsg_len = (uint32_t)b.n;
  memcpy(b.p, &head, sizeof(head));
  check(b.p, b.n);
}

/* A change of a connection. */
static void check_state(const uint8_t *attributes, size_t n)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 17);
  struct nlmsghdr head = {.nlmsg_type = NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW};
  struct nfgenmsg group = {.nfgen_family = 2};
  uint8_t state = 7;
  cleanup_buf struct buf tcp = BUF_INIT(64), info = BUF_INIT(64);
  put_attribute(&tcp, CTA_PROTOINFO_TCP_STATE, &state, 1);
  put_attribute(&info, CTA_PROTOINFO_TCP, tcp.p, tcp.n);
  head.nlmsg_len = (uint32_t)(sizeof(head) + sizeof(group) + 4 + info.n + n);
  buf_add(&b, &head, sizeof(head));
  buf_add(&b, &group, sizeof(group));
  put_attribute(&b, CTA_PROTOINFO, info.p, info.n);
  buf_add(&b, attributes, n);
  check(b.p, b.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  if (size > 60000)
    return 0;
  check(data, size);
  check_packet("o", data, size);
  check_packet("d", data, size);
  check_state(data, size);
  return 0;
}
