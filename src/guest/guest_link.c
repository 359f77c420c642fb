/* SPDX-License-Identifier: Apache-2.0 */
/* guest_link.c - the guest's end of the one link it has.
 *
 * The jail routes 127/8 over the link, so that connections from outside reach what listens on the guest's loopback; the
 * guest takes such packets (route_localnet) from its one peer. Addresses of both ends are fixed, ARP included: a guest
 * that is restored somewhere else finds its peer at once. */
#include "wire/guest_frame.h"
#include "guest/guest.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <net/route.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#define LINK "eth0"

static void put_text(const char *path, const char *text)
{
  cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0)
    guest_die("writing %s to %s: %s", text, path, strerror(errno));
}

static struct sockaddr socket_address(uint32_t address)
{
  struct sockaddr out = {0};
  struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr = {htonl(address)}};
  memcpy(&out, &in, sizeof(out));
  return out;
}

static void set(int sock, unsigned long request, void *arg, const char *what)
{
  if (ioctl(sock, request, arg))
    guest_die("network: %s: %s", what, strerror(errno));
}

static void up(int sock, const char *name)
{
  struct ifreq q = {0};
  snprintf(q.ifr_name, sizeof(q.ifr_name), "%s", name);
  set(sock, SIOCGIFFLAGS, &q, name);
  q.ifr_flags |= IFF_UP | IFF_RUNNING;
  set(sock, SIOCSIFFLAGS, &q, name);
}

static void route(int sock, uint32_t to, uint32_t mask, uint32_t via, const char *what)
{
  char link[] = LINK;
  struct rtentry r = {.rt_dst = socket_address(to),
                      .rt_genmask = socket_address(mask),
                      .rt_gateway = socket_address(via),
                      .rt_dev = link,
                      .rt_flags = (unsigned short)(RTF_UP | (via ? RTF_GATEWAY : 0) | (~mask ? 0 : RTF_HOST))};
  set(sock, SIOCADDRT, &r, what);
}

/* A peer whose address is fixed is not asked for it. */
static void know_peer(int sock)
{
  struct arpreq a = {.arp_flags = ATF_COM | ATF_PERM, .arp_dev = LINK};
  a.arp_pa = socket_address(GUEST_HOST);
  a.arp_ha.sa_family = ARPHRD_ETHER;
  memcpy(a.arp_ha.sa_data, GUEST_HOST_MAC, 6);
  set(sock, SIOCSARP, &a, "the peer's address");
}

void guest_link_up(uint32_t address)
{
  cleanup_fd int sock = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  struct ifreq q = {.ifr_name = LINK};
  if (sock < 0)
    guest_die("network: %s", strerror(errno));
  up(sock, "lo");
  q.ifr_addr = socket_address(address);
  set(sock, SIOCSIFADDR, &q, "address");
  q.ifr_netmask = socket_address(UINT32_MAX);
  set(sock, SIOCSIFNETMASK, &q, "netmask");
  up(sock, LINK);
  put_text("/proc/sys/net/ipv4/conf/" LINK "/route_localnet", "1");
  put_text("/proc/sys/net/ipv4/ping_group_range", "0 65535");
  route(sock, GUEST_HOST, UINT32_MAX, 0, "route to the jail");
  route(sock, 0, 0, GUEST_HOST, "default route");
  know_peer(sock);
}
