/* SPDX-License-Identifier: Apache-2.0 */
/* network_attempts.c - by way of sockets. The lists and addresses of boxes with a way out are tried in jail_net_test.c.
 */
#include "attempts.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/un.h>

static struct verdict socket_to_the_hypervisor(void)
{
  return refused(socket(AF_VSOCK, SOCK_STREAM, 0));
}
static struct verdict packet_socket(void)
{
  return refused(socket(AF_PACKET, SOCK_RAW, htons(3)));
}
static struct verdict crypto_socket(void)
{
  return refused(socket(AF_ALG, SOCK_SEQPACKET, 0));
}
static struct verdict bluetooth_socket(void)
{
  return refused(socket(AF_BLUETOOTH, SOCK_RAW, 1));
}
static struct verdict xdp_socket(void)
{
  return refused(socket(AF_XDP, SOCK_RAW, 0));
}
/* The kernel takes the low 32 bits; a filter that compared all 64 would let this pass as something else. */
static struct verdict packet_socket_with_high_bits(void)
{
  return refused(syscall(SYS_socket, 0x100000000L | AF_PACKET, SOCK_RAW, htons(3)));
}
static struct verdict netfilter_socket(void)
{
  return refused(socket(AF_NETLINK, SOCK_RAW, NETLINK_NETFILTER));
}
static struct verdict xfrm_socket(void)
{
  return refused(socket(AF_NETLINK, SOCK_RAW, NETLINK_XFRM));
}
static struct verdict set_iptables_rules(void)
{
  char room[256] = {0};
  int s = socket(AF_INET, SOCK_RAW, IPPROTO_RAW);
  return s < 0 ? refused(-1) : refused(setsockopt(s, IPPROTO_IP, 64 /* IPT_SO_SET_REPLACE */, room, sizeof(room)));
}
static struct verdict make_a_tunnel(void)
{
  return refused(open("/dev/net/tun", O_RDWR));
}
static struct verdict take_lo_down(void)
{
  struct ifreq ifr = {.ifr_name = "lo"};
  int s = socket(AF_INET, SOCK_DGRAM, 0);
  return s < 0 ? refused(-1) : refused(ioctl(s, SIOCSIFFLAGS, &ifr));
}
static struct verdict make_a_link(void)
{
  struct {
    struct nlmsghdr h;
    struct ifinfomsg i;
    struct rtattr info;
    struct rtattr kind;
    char name[8];
  } q = {
      .h = {.nlmsg_len = sizeof(q), .nlmsg_type = RTM_NEWLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK | NLM_F_CREATE},
      .info = {.rta_type = IFLA_LINKINFO, .rta_len = 16},
      .kind = {.rta_type = IFLA_INFO_KIND, .rta_len = 10},
      .name = "bridge"};
  char answer[4096];
  int s = socket(AF_NETLINK, SOCK_RAW, NETLINK_ROUTE);
  if (s < 0 || send(s, &q, sizeof(q), 0) < 0 || recv(s, answer, sizeof(answer), 0) < (ssize_t)sizeof(struct nlmsghdr))
    return refused(-1);
  int code = ((struct nlmsgerr *)NLMSG_DATA((struct nlmsghdr *)answer))->error;
  errno = -code;
  return refused(code ? -1 : 0);
}
static struct verdict reach(const char *address, int port)
{
  struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  int s = socket(AF_INET, SOCK_STREAM, 0);
  inet_pton(AF_INET, address, &sa.sin_addr);
  return s < 0 ? refused(-1) : refused(connect(s, (struct sockaddr *)&sa, sizeof(sa)));
}
static struct verdict reach_the_hosts_loopback(void)
{
  return reach("127.0.0.1", facts.port);
}
static struct verdict reach_the_metadata_address(void)
{
  return reach("169.254.169.254", 80);
}
static struct verdict reach_an_address_outside(void)
{
  return reach("198.51.100.1", 80);
}
static struct verdict raw_packet_to_metadata(void)
{
  struct sockaddr_in sa = {.sin_family = AF_INET};
  int s = socket(AF_INET, SOCK_RAW, IPPROTO_ICMP);
  inet_pton(AF_INET, "169.254.169.254", &sa.sin_addr);
  return s < 0 ? refused(-1) : refused(sendto(s, "\10\0\0\0\0\0\0\0", 8, 0, (struct sockaddr *)&sa, sizeof(sa)));
}
static struct verdict reach_a_hosts_abstract_socket(void)
{
  struct sockaddr_un sa = {.sun_family = AF_UNIX};
  size_t n = strlen(facts.abstract);
  memcpy(sa.sun_path + 1, facts.abstract, n);
  int s = socket(AF_UNIX, SOCK_STREAM, 0);
  return refused(connect(s, (struct sockaddr *)&sa, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + n)));
}

const struct attempt network_attempts[] = {
    ATTEMPT(socket_to_the_hypervisor),
    ATTEMPT(packet_socket),
    ATTEMPT(crypto_socket),
    ATTEMPT(bluetooth_socket),
    ATTEMPT(xdp_socket),
    ATTEMPT(packet_socket_with_high_bits),
    ATTEMPT(netfilter_socket),
    ATTEMPT(xfrm_socket),
    ATTEMPT(set_iptables_rules),
    ATTEMPT(make_a_tunnel),
    ATTEMPT(take_lo_down),
    ATTEMPT(make_a_link),
    ATTEMPT(reach_the_hosts_loopback),
    ATTEMPT(reach_the_metadata_address),
    ATTEMPT(reach_an_address_outside),
    ATTEMPT(raw_packet_to_metadata),
    ATTEMPT(reach_a_hosts_abstract_socket),
    {NULL, NULL},
};
