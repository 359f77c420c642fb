/* SPDX-License-Identifier: Apache-2.0 */
/* rtnl.h - the few requests to the kernel's routing socket that a box's network takes. */
#ifndef CLOCHE_JAIL_NET_RTNL_H
#define CLOCHE_JAIL_NET_RTNL_H

#include "base/base.h"

int rtnl_open(void); /* socket in the calling thread's namespace, or -errno */

int rtnl_veth(int sock, const char *name, int netns); /* a veth pair: `name` here, eth0 in netns, both down */
/* Without an automatic IPv6 address. strict: takes only packets from addresses that are routed to it. */
int rtnl_up(int sock, int index, bool strict);
int rtnl_index(int sock, const char *name); /* of a link in the socket's namespace, or -errno */
int rtnl_address(int sock, int index, uint32_t address, unsigned prefix);
int rtnl_each_address(int sock, void (*seen)(uint32_t address, void *arg), void *arg); /* IPv4, of every link */
/* To address/prefix (0/0 = default) by way of `via` (0 = on the link itself). Replaces an older one. */
int rtnl_route(int sock, int index, uint32_t address, unsigned prefix, uint32_t via);
int rtnl_mac(int sock, int index, const char mac[6]);
int rtnl_neighbour(int sock, int index, uint32_t address, const char mac[6]); /* for ever: it is not asked for */
int rtnl_rate(int sock, int index, uint64_t bytes_per_second);                /* a token bucket as the link's queue */

#endif
