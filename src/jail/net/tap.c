/* SPDX-License-Identifier: Apache-2.0 */
/* tap.c - see tap.h. The device belongs to the namespace of its opener, so the calling thread steps in for the whole of
 * it; QEMU gets the descriptor and needs neither the device nor a right. Nothing listens on the jail's side. */
#include "jail/net/tap.h"
#include "jail/net/rtnl.h"
#include "wire/guest_frame.h"

#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <sys/ioctl.h>

#define TAP      "tap0"
#define LOOPBACK 0x7f000000u

static int put_text(const char *path, const char *text, struct err *err)
{
  cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
  return fd < 0 || write(fd, text, strlen(text)) < 0 ? err_errno(err, "writing %s to %s", text, path) : 0;
}

static int set_link(uint32_t guest, struct err *err)
{
  cleanup_fd int sock = rtnl_open();
  int index = sock < 0 ? sock : rtnl_index(sock, TAP);
  int r = MIN(index, 0);
  r = r ? r : rtnl_mac(sock, index, GUEST_HOST_MAC);
  r = r ? r : rtnl_up(sock, index, false);
  r = r ? r : rtnl_address(sock, index, GUEST_HOST, 32);
  r = r ? r : rtnl_route(sock, index, guest, 32, 0);
  r = r ? r : rtnl_neighbour(sock, index, guest, GUEST_MAC);
  if (r)
    return err_set(err, r, "setting up " TAP ": %s", strerrordesc_np(-r));
  r = put_text("/proc/sys/net/ipv4/conf/" TAP "/route_localnet", "1", err);
  r = r ? r : put_text("/proc/sys/net/ipv4/ip_forward", "1", err);
  if (!r && (r = rtnl_route(sock, index, LOOPBACK, 8, guest)))
    err_set(err, r, "routing 127/8 over " TAP ": %s", strerrordesc_np(-r));
  return r;
}

static int make_tap(uint32_t guest, struct err *err)
{
  struct ifreq q = {.ifr_name = TAP, .ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
  cleanup_fd int fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0 || ioctl(fd, TUNSETIFF, &q))
    return err_errno(err, "making a tap with /dev/net/tun");
  int r = set_link(guest, err);
  return r ? r : steal_fd(&fd);
}

int tap_open(int netns, uint32_t guest, struct err *err)
{
  cleanup_fd int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (home < 0 || setns(netns, CLONE_NEWNET))
    return err_errno(err, "entering a jail's network namespace");
  int fd = make_tap(guest, err);
  if (setns(home, CLONE_NEWNET)) {
    log_error("returning to the host's network namespace failed");
    abort();
  }
  return fd;
}
