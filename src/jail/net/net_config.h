/* SPDX-License-Identifier: Apache-2.0 */
/* net_config.h - what the boxes of one instance share in networking. */
#ifndef CLOCHE_JAIL_NET_NET_CONFIG_H
#define CLOCHE_JAIL_NET_NET_CONFIG_H

#include "jail/jail_defs.h"

#define JAIL_NET_SLOTS   65000u
#define JAIL_NET_DNS_MAX 10 /* name servers of a box's own */

struct jail_net_config {
  const char *instance;
  uint32_t pool;         /* host byte order; first address of a /16 that is nobody else's, such as 10.213.0.0 */
  uint32_t resolver;     /* where the boxes' name server questions go; 0 = the host's own resolver, if it has one */
  unsigned connections;  /* open at a time per box; 0 = 1024 */
  uint64_t rate;         /* bytes per second each way per box; 0 = no cap */
  unsigned log_group;    /* netlink group that is told of connections (netlog/netlog.h); 0 = none */
  unsigned log_rate;     /* messages a second of each kind and box */
  bool log_ends;         /* the kernel is to tell the end of a connection soon */
  const char *dns_lists; /* directory of its own for lists of domain names; NULL = such entries are refused */
  uint16_t egress_port;  /* of the egress gateway, at the boxes' gateway address; 0 = there is none */
  uint32_t egress_uid;   /* the egress gateway's user, which reaches only what boxes may; 0 = not known */
};

/* The first address of a box, behind the gateway's and some that are kept free. */
#define JAIL_NET_FIRST 16u

/* The boxes' gateway, also their name server. */
static inline uint32_t jail_net_gateway(const struct jail_net_config *config)
{
  return config->pool + 1;
}

#endif
