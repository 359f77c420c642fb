/* SPDX-License-Identifier: Apache-2.0 */
/* rtnl.c - rtnetlink messages built in a fixed buffer, one request and one acknowledgement at a time. Addresses are in
 * host byte order up to the message. */
#include "jail/net/rtnl.h"

#include <arpa/inet.h>
#include <linux/if_link.h>
#include <linux/ip.h>
#include <linux/neighbour.h>
#include <linux/pkt_sched.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/socket.h>

#pragma GCC diagnostic ignored "-Wsign-compare" /* of NLMSG_OK, whose length must be signed */

struct request {
  union {
    struct nlmsghdr h;
    char room[1024];
  };
};

static void *begin(struct request *q, unsigned type, unsigned flags, size_t body)
{
  memset(q, 0, sizeof(*q));
  q->h.nlmsg_type = (uint16_t)type;
  q->h.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | NLM_F_ACK | flags);
  q->h.nlmsg_len = NLMSG_LENGTH(body);
  return NLMSG_DATA(&q->h);
}

/* The requests here are a few hundred bytes of known shape; one that did not fit would be a mistake of ours. */
static struct rtattr *add(struct request *q, unsigned type, const void *data, size_t n)
{
  size_t at = NLMSG_ALIGN(q->h.nlmsg_len);
  if (at + RTA_SPACE(n) > sizeof(q->room))
    abort();
  struct rtattr *a = (struct rtattr *)(q->room + at);
  a->rta_type = (uint16_t)type;
  a->rta_len = (uint16_t)RTA_LENGTH(n);
  if (n)
    memcpy(RTA_DATA(a), data, n);
  q->h.nlmsg_len = (uint32_t)(at + RTA_ALIGN(a->rta_len));
  return a;
}

static void end(struct request *q, struct rtattr *nest)
{
  nest->rta_len = (uint16_t)(q->room + q->h.nlmsg_len - (char *)nest);
}

static void add_text(struct request *q, unsigned type, const char *text)
{
  add(q, type, text, strlen(text) + 1);
}

static void add_u32(struct request *q, unsigned type, uint32_t value)
{
  add(q, type, &value, sizeof(value));
}

/* Sends and reads until the acknowledgement; *index gets the link of an RTM_NEWLINK answer on the way. */
static int ask(int sock, struct request *q, int *index)
{
  static _Atomic uint32_t serial;
  q->h.nlmsg_seq = ++serial;
  if (send(sock, q, q->h.nlmsg_len, 0) < 0)
    return -errno;
  union {
    struct nlmsghdr h;
    char room[16384];
  } answer;
  for (;;) {
    ssize_t k = recv(sock, &answer, sizeof(answer), 0);
    if (k < 0 && errno == EINTR)
      continue;
    if (k < 0)
      return -errno;
    int left = (int)k;
    for (struct nlmsghdr *h = &answer.h; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
      if (h->nlmsg_seq != q->h.nlmsg_seq)
        continue;
      if (h->nlmsg_type == NLMSG_ERROR)
        return ((struct nlmsgerr *)NLMSG_DATA(h))->error;
      if (h->nlmsg_type == RTM_NEWLINK && index)
        *index = ((struct ifinfomsg *)NLMSG_DATA(h))->ifi_index;
    }
  }
}

int rtnl_open(void)
{
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  return fd < 0 ? -errno : fd;
}

static void add_no_v6(struct request *q)
{
  struct rtattr *v6 = add(q, AF_INET6, NULL, 0);
  add(q, IFLA_INET6_ADDR_GEN_MODE, &(uint8_t){1 /* none */}, 1);
  end(q, v6);
}

static void add_strict(struct request *q)
{
  struct rtattr *v4 = add(q, AF_INET, NULL, 0);
  struct rtattr *conf = add(q, IFLA_INET_CONF, NULL, 0);
  add_u32(q, IPV4_DEVCONF_RP_FILTER, 1);
  end(q, conf);
  end(q, v4);
}

static int set_families(int sock, int index, bool strict, bool no_v6)
{
  struct request q;
  *(struct ifinfomsg *)begin(&q, RTM_SETLINK, 0, sizeof(struct ifinfomsg)) = (struct ifinfomsg){.ifi_index = index};
  struct rtattr *spec = add(&q, IFLA_AF_SPEC, NULL, 0);
  if (strict)
    add_strict(&q);
  if (no_v6)
    add_no_v6(&q);
  end(&q, spec);
  return ask(sock, &q, NULL);
}

/* Neither end can come up before both are there. */
int rtnl_veth(int sock, const char *name, int netns)
{
  struct request q;
  begin(&q, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifinfomsg));
  add_text(&q, IFLA_IFNAME, name);
  struct rtattr *info = add(&q, IFLA_LINKINFO, NULL, 0);
  add_text(&q, IFLA_INFO_KIND, "veth");
  struct rtattr *data = add(&q, IFLA_INFO_DATA, NULL, 0);
  struct rtattr *peer = add(&q, VETH_INFO_PEER, &(struct ifinfomsg){0}, sizeof(struct ifinfomsg));
  add_text(&q, IFLA_IFNAME, "eth0");
  add_u32(&q, IFLA_NET_NS_FD, (uint32_t)netns);
  end(&q, peer);
  end(&q, data);
  end(&q, info);
  return ask(sock, &q, NULL);
}

/* The flags of a message take effect before its address family part: two messages. */
int rtnl_up(int sock, int index, bool strict)
{
  struct request q;
  int r = set_families(sock, index, strict, true);
  if (r == -EAFNOSUPPORT) /* a kernel without IPv6 */
    r = strict ? set_families(sock, index, true, false) : 0;
  if (r)
    return r;
  *(struct ifinfomsg *)begin(&q, RTM_SETLINK, 0, sizeof(struct ifinfomsg)) =
      (struct ifinfomsg){.ifi_index = index, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
  return ask(sock, &q, NULL);
}

int rtnl_index(int sock, const char *name)
{
  struct request q;
  int index = -ENODEV;
  begin(&q, RTM_GETLINK, 0, sizeof(struct ifinfomsg));
  add_text(&q, IFLA_IFNAME, name);
  int r = ask(sock, &q, &index);
  return r ? r : index;
}

int rtnl_address(int sock, int index, uint32_t address, unsigned prefix)
{
  struct request q;
  uint32_t net = htonl(address);
  *(struct ifaddrmsg *)begin(&q, RTM_NEWADDR, NLM_F_CREATE | NLM_F_EXCL, sizeof(struct ifaddrmsg)) =
      (struct ifaddrmsg){.ifa_family = AF_INET, .ifa_prefixlen = (uint8_t)prefix, .ifa_index = (uint32_t)index};
  add(&q, IFA_LOCAL, &net, sizeof(net));
  add(&q, IFA_ADDRESS, &net, sizeof(net));
  return ask(sock, &q, NULL);
}

int rtnl_route(int sock, int index, uint32_t address, unsigned prefix, uint32_t via)
{
  struct request q;
  uint32_t dst = htonl(address), gateway = htonl(via);
  *(struct rtmsg *)begin(&q, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, sizeof(struct rtmsg)) = (struct rtmsg){
      .rtm_family = AF_INET,
      .rtm_dst_len = (uint8_t)prefix,
      .rtm_table = RT_TABLE_MAIN,
      .rtm_protocol = RTPROT_STATIC,
      .rtm_scope = via ? RT_SCOPE_UNIVERSE : RT_SCOPE_LINK,
      .rtm_type = RTN_UNICAST,
      .rtm_flags = via ? RTNH_F_ONLINK : 0,
  };
  if (prefix)
    add(&q, RTA_DST, &dst, sizeof(dst));
  if (via)
    add(&q, RTA_GATEWAY, &gateway, sizeof(gateway));
  add_u32(&q, RTA_OIF, (uint32_t)index);
  return ask(sock, &q, NULL);
}

int rtnl_mac(int sock, int index, const char mac[6])
{
  struct request q;
  *(struct ifinfomsg *)begin(&q, RTM_SETLINK, 0, sizeof(struct ifinfomsg)) = (struct ifinfomsg){.ifi_index = index};
  add(&q, IFLA_ADDRESS, mac, 6);
  return ask(sock, &q, NULL);
}

int rtnl_neighbour(int sock, int index, uint32_t address, const char mac[6])
{
  struct request q;
  uint32_t dst = htonl(address);
  *(struct ndmsg *)begin(&q, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE, sizeof(struct ndmsg)) =
      (struct ndmsg){.ndm_family = AF_INET, .ndm_ifindex = index, .ndm_state = NUD_PERMANENT};
  add(&q, NDA_DST, &dst, sizeof(dst));
  add(&q, NDA_LLADDR, mac, 6);
  return ask(sock, &q, NULL);
}

/* A bucket of 1/20 second, and a queue of another 1/5 behind it. */
int rtnl_rate(int sock, int index, uint64_t bytes_per_second)
{
  struct request q;
  uint64_t burst64 = MIN(MAX(bytes_per_second / 20, (uint64_t)32768), (uint64_t)(64u << 20));
  uint64_t queue64 = MIN(MAX(bytes_per_second / 5, (uint64_t)65536), (uint64_t)(256u << 20));
  uint64_t rate32 = MIN(bytes_per_second, (uint64_t)UINT32_MAX);
  uint32_t burst = (uint32_t)burst64;
  struct tc_tbf_qopt opt = {
      .rate = {.linklayer = TC_LINKLAYER_ETHERNET, .rate = (uint32_t)rate32},
      .limit = burst + (uint32_t)queue64,
  };
  *(struct tcmsg *)begin(&q, RTM_NEWQDISC, NLM_F_CREATE | NLM_F_REPLACE, sizeof(struct tcmsg)) =
      (struct tcmsg){.tcm_ifindex = index, .tcm_handle = 0x10000, .tcm_parent = TC_H_ROOT};
  add_text(&q, TCA_KIND, "tbf");
  struct rtattr *options = add(&q, TCA_OPTIONS, NULL, 0);
  add(&q, TCA_TBF_PARMS, &opt, sizeof(opt));
  add_u32(&q, TCA_TBF_BURST, burst);
  if (bytes_per_second > UINT32_MAX)
    add(&q, TCA_TBF_RATE64, &bytes_per_second, sizeof(bytes_per_second));
  end(&q, options);
  return ask(sock, &q, NULL);
}

/* True at the end of the list. */
static bool read_addresses(char *bytes, ssize_t n, void (*seen)(uint32_t address, void *arg), void *arg)
{
  unsigned left = (unsigned)n;
  for (struct nlmsghdr *h = (struct nlmsghdr *)bytes; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
    if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
      return true;
    unsigned rest = IFA_PAYLOAD(h);
    for (struct rtattr *a = IFA_RTA((struct ifaddrmsg *)NLMSG_DATA(h)); RTA_OK(a, rest); a = RTA_NEXT(a, rest)) {
      uint32_t net;
      if (a->rta_type != IFA_LOCAL || RTA_PAYLOAD(a) != sizeof(net))
        continue;
      memcpy(&net, RTA_DATA(a), sizeof(net));
      seen(ntohl(net), arg);
    }
  }
  return false;
}

int rtnl_each_address(int sock, void (*seen)(uint32_t address, void *arg), void *arg)
{
  struct request q;
  cleanup_free char *bytes = xmalloc(65536);
  ((struct ifaddrmsg *)begin(&q, RTM_GETADDR, NLM_F_DUMP, sizeof(struct ifaddrmsg)))->ifa_family = AF_INET;
  if (send(sock, &q, q.h.nlmsg_len, 0) < 0)
    return -errno;
  for (bool over = false; !over;) {
    ssize_t n = recv(sock, bytes, 65536, 0);
    if (n < 0 && errno != EINTR)
      return -errno;
    over = n >= 0 && read_addresses(bytes, n, seen, arg);
  }
  return 0;
}
