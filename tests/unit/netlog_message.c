/* SPDX-License-Identifier: Apache-2.0 */
/* Messages of the kernel about packets and connections, and the lines that are made of them. */
#include "unit.h"

#include "netlog/net_lines.h"
#include "wire/logring.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <stdio.h>
#include <sys/mman.h>

static void put_attribute(struct buf *b, unsigned type, const void *p, size_t n)
{
  struct nlattr head = {.nla_len = (uint16_t)(sizeof(head) + n), .nla_type = (uint16_t)type};
  buf_add(b, &head, sizeof(head));
  buf_add(b, p, n);
  while (b->n % NLA_ALIGNTO)
    buf_addc(b, 0);
}

static void put_head(struct buf *b, unsigned type)
{
  struct nlmsghdr head = {.nlmsg_type = (uint16_t)type};
  struct nfgenmsg group = {.nfgen_family = 2};
  buf_add(b, &head, sizeof(head));
  buf_add(b, &group, sizeof(group));
}

static void close_head(struct buf *b)
{
  uint32_t length = (uint32_t)b->n;
  memcpy(b->p, &length, sizeof(length));
}

static const uint8_t syn[] = {0x45, 0,    0,    40,   0, 0, 0x40, 0, 64, 6, 0, 0, 10,   150, 0, 20, 198, 51, 100, 2,
                              0x9c, 0x40, 0x01, 0xbb, 0, 0, 0,    0, 0,  0, 0, 0, 0x50, 2,   0, 0,  0,   0,  0,   0};

static void log_message(struct buf *b, const char *mark, const void *packet, size_t n)
{
  uint8_t link[] = {0, 0, 1, 44};
  put_head(b, NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET);
  put_attribute(b, NFULA_PREFIX, mark, 2);
  put_attribute(b, NFULA_IFINDEX_INDEV, link, sizeof(link));
  put_attribute(b, NFULA_PAYLOAD, packet, n);
  close_head(b);
}

static void a_first_packet_tells_the_flow(void **state)
{
  struct net_message m;
  (void)state;
  cleanup_buf struct buf b = BUF_INIT(4096);
  log_message(&b, "o", syn, sizeof(syn));
  net_message_read(b.p, b.n, &m);
  assert_int_equal(m.kind, NET_PACKET);
  assert_int_equal(m.mark, NET_MARK_OPENED);
  assert_int_equal(m.flow.box, 0x0a960014);
  assert_int_equal(m.flow.to, 0xc6336402);
  assert_int_equal(m.flow.from_port, 40000);
  assert_int_equal(m.flow.port, 443);
  assert_int_equal(m.flow.link, 300);
  for (size_t n = 0; n < b.n; n++) { /* cut anywhere it is nothing */
    net_message_read(b.p, n, &m);
    assert_int_equal(m.kind, NET_NOTHING);
  }
}

static void packets_that_are_cut_or_of_another_kind_have_no_ports(void **state)
{
  struct net_message m;
  (void)state;
  for (size_t n = 0; n < sizeof(syn); n++) {
    cleanup_buf struct buf b = BUF_INIT(4096);
    log_message(&b, "r", syn, n);
    net_message_read(b.p, b.n, &m);
    assert_int_equal(m.kind, n < 20 ? NET_NOTHING : NET_PACKET);
    if (n >= 20)
      assert_int_equal(m.flow.port, n < 24 ? 0 : 443);
  }
  uint8_t later[sizeof(syn)];
  memcpy(later, syn, sizeof(syn));
  later[7] = 5; /* a fragment's offset: what follows are no ports */
  cleanup_buf struct buf b = BUF_INIT(4096);
  log_message(&b, "r", later, sizeof(later));
  net_message_read(b.p, b.n, &m);
  assert_int_equal(m.flow.port, 0);
}

static void an_answer_tells_name_and_addresses(void **state)
{
  static const uint8_t answer[] = {0x45, 0, 0,  0, 0,  0,    0, 0,   64, 17,  0,   0,   10, 150,  0,    1, 10,
                                   150,  0, 20, 0, 53, 0x80, 0, 0,   0,  0,   0,   0,   7,  0x81, 0x80, 0, 1,
                                   0,    1, 0,  0, 0,  0,    1, 'a', 2,  'd', 'e', 0,   0,  1,    0,    1, 0xc0,
                                   12,   0, 1,  0, 1,  0,    0, 0,   60, 0,   4,   198, 51, 100,  2};
  struct net_message m;
  (void)state;
  cleanup_buf struct buf b = BUF_INIT(4096), line = BUF_INIT(NET_LINE_MAX);
  log_message(&b, "d", answer, sizeof(answer));
  net_message_read(b.p, b.n, &m);
  assert_int_equal(m.kind, NET_ANSWERED);
  assert_int_equal(m.flow.box, 0x0a960014);
  assert_string_equal(m.question.name, "a.de");
  assert_int_equal(m.answer.count, 1);
  net_line_name(&line, 5, &m);
  assert_string_equal(buf_z(&line),
                      "{\"t\":5,\"e\":\"name\",\"n\":\"a.de\",\"a\":[\"198.51.100.2\"],\"k\":1,\"r\":0}\n");
}

static void the_end_of_a_connection_has_its_bytes(void **state)
{
  struct net_message m;
  uint8_t src[] = {10, 150, 0, 20}, dst[] = {198, 51, 100, 2}, tcp = 6, from[] = {0x9c, 0x40}, to[] = {1, 0xbb};
  uint8_t out[] = {0, 0, 0, 0, 0, 0, 3, 0x20}, in[] = {0, 0, 0, 0, 0, 0, 0x14, 0};
  (void)state;
  cleanup_buf struct buf b = BUF_INIT(4096), ip = BUF_INIT(256), proto = BUF_INIT(256), tuple = BUF_INIT(512),
                         sent = BUF_INIT(256), got = BUF_INIT(256);
  put_attribute(&ip, CTA_IP_V4_SRC, src, 4);
  put_attribute(&ip, CTA_IP_V4_DST, dst, 4);
  put_attribute(&proto, CTA_PROTO_NUM, &tcp, 1);
  put_attribute(&proto, CTA_PROTO_SRC_PORT, from, 2);
  put_attribute(&proto, CTA_PROTO_DST_PORT, to, 2);
  put_attribute(&tuple, CTA_TUPLE_IP | NLA_F_NESTED, ip.p, ip.n);
  put_attribute(&tuple, CTA_TUPLE_PROTO | NLA_F_NESTED, proto.p, proto.n);
  put_attribute(&sent, CTA_COUNTERS_BYTES, out, 8);
  put_attribute(&got, CTA_COUNTERS_BYTES, in, 8);
  put_head(&b, NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_DELETE);
  put_attribute(&b, CTA_TUPLE_ORIG | NLA_F_NESTED, tuple.p, tuple.n);
  put_attribute(&b, CTA_COUNTERS_ORIG | NLA_F_NESTED, sent.p, sent.n);
  put_attribute(&b, CTA_COUNTERS_REPLY | NLA_F_NESTED, got.p, got.n);
  close_head(&b);
  net_message_read(b.p, b.n, &m);
  assert_int_equal(m.kind, NET_ENDED);
  assert_int_equal(m.flow.port, 443);
  assert_int_equal(m.out, 800);
  assert_int_equal(m.in, 5120);
}

/* The kernel's answer to a question, or its word of a change, in that state of TCP. */
static void state_message(struct buf *b, const struct net_flow *f, uint8_t state, bool counted)
{
  uint8_t question[NET_QUESTION_MAX], bytes[] = {0, 0, 0, 0, 0, 0, 3, 0x20};
  size_t head = NLMSG_HDRLEN + NLMSG_ALIGN(sizeof(struct nfgenmsg)), n = net_count_question(f, question);
  cleanup_buf struct buf tcp = BUF_INIT(64), info = BUF_INIT(64), sent = BUF_INIT(64);
  put_attribute(&tcp, CTA_PROTOINFO_TCP_STATE, &state, 1);
  put_attribute(&info, CTA_PROTOINFO_TCP, tcp.p, tcp.n);
  put_attribute(&sent, CTA_COUNTERS_BYTES, bytes, 8);
  put_head(b, NFNL_SUBSYS_CTNETLINK << 8 | IPCTNL_MSG_CT_NEW);
  buf_add(b, question + head, n - head);
  put_attribute(b, CTA_PROTOINFO | NLA_F_NESTED, info.p, info.n);
  if (counted)
    put_attribute(b, CTA_COUNTERS_ORIG | NLA_F_NESTED, sent.p, sent.n);
  close_head(b);
}

static void a_closed_connection_is_asked_for_and_its_answer_is_the_end(void **state)
{
  struct net_message m;
  const struct net_flow f = {
      .box = 0x0a960014, .to = 0xc6336402, .from_port = 40000, .port = 443, .protocol = 6, .zone = 777};
  (void)state;
  for (uint8_t tcp = 0; tcp < 12; tcp++)
    for (int counted = 0; counted < 2; counted++) {
      cleanup_buf struct buf b = BUF_INIT(4096);
      state_message(&b, &f, tcp, counted);
      net_message_read(b.p, b.n, &m);
      assert_int_equal(m.kind, tcp != 7 && tcp != 8 ? NET_NOTHING : counted ? NET_ENDED : NET_CLOSED);
      if (m.kind == NET_NOTHING)
        continue;
      assert_int_equal(m.flow.box, f.box);
      assert_int_equal(m.flow.to, f.to);
      assert_int_equal(m.flow.from_port, f.from_port);
      assert_int_equal(m.flow.port, f.port);
      assert_int_equal(m.flow.zone, f.zone);
      assert_int_equal(m.out, counted ? 800 : 0);
    }
}

static void a_ring_keeps_the_newest_lines(void **state)
{
  struct logring_head h;
  (void)state;
  cleanup_fd int fd = memfd_create("ring", MFD_CLOEXEC);
  assert_int_equal(logring_make(fd, 100), 0);
  assert_int_equal(logring_open(fd, &h), 0);
  assert_int_equal(logring_append(fd, &h, STR("")), 0);
  for (int i = 0; i < 50; i++) {
    char line[16];
    snprintf(line, sizeof(line), "line %02d\n", i);
    assert_int_equal(logring_append(fd, &h, str_of(line)), 0);
  }
  cleanup_buf struct buf lines = BUF_INIT(1000);
  assert_int_equal(logring_read(fd, 1000, &lines), 0);
  assert_true(str_ends(buf_str(&lines), STR("line 48\nline 49\n")));
  assert_true(str_starts(buf_str(&lines), STR("line 3")));
  char large[200];
  memset(large, 'x', sizeof(large));
  assert_int_equal(logring_append(fd, &h, str_make(large, sizeof(large))), -EMSGSIZE);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_first_packet_tells_the_flow),
      cmocka_unit_test(packets_that_are_cut_or_of_another_kind_have_no_ports),
      cmocka_unit_test(an_answer_tells_name_and_addresses),
      cmocka_unit_test(the_end_of_a_connection_has_its_bytes),
      cmocka_unit_test(a_closed_connection_is_asked_for_and_its_answer_is_the_end),
      cmocka_unit_test(a_ring_keeps_the_newest_lines),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
