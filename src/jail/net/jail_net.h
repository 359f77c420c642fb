/* SPDX-License-Identifier: Apache-2.0 */
/* jail_net.h - outbound networking of a box, for those that may go out.
 *
 * Each box gets a veth of its own to the host: no shared segment, so no neighbour to listen to or to pretend to be. The
 * host routes one address to it, takes only that one from it (strict reverse path filter), translates it on outbound
 * networking and sorts its traffic in one nftables table per instance. Never reached, whatever the lists say: the host
 * itself, other boxes, private, link-local and metadata addresses. IPv6 is shut. A box without a struct jail_net has
 * only lo. */
#ifndef CLOCHE_JAIL_NET_JAIL_NET_H
#define CLOCHE_JAIL_NET_JAIL_NET_H

#include "jail/net/net_config.h"

/* What one box may reach. A slot belongs to one living box. Entries are addresses or prefixes ("1.2.3.4", "1.2.0.0/16")
 * in both lists; IPv6 ones are taken and open nothing. Allow beats deny, "0.0.0.0/0" in deny closes everything else.
 * Name servers are addresses like others: one that the lists do not leave open does not answer. The box's own, the
 * gateway, is open where the lists leave either it or the resolver behind it open. `allow` also takes domain names
 * ("example.com", "*.example.com", "*"): then every question goes to a proxy, which refuses those for other names, and
 * what an allowed name was answered with is open to the box. Beside names, "dns:ADDRESS" (up to JAIL_NET_DNS_MAX) says
 * who is asked for them instead of the resolver: these addresses are open as a whole, so the proxy passes every name on
 * to them, but opens the addresses of allowed names alone. "dns:none": nobody answers the box; its allowed names that
 * are no patterns are looked up by the proxy itself, so that a box which knows their addresses reaches them. Of these,
 * too, the host and the addresses that no box reaches are never asked. */
enum jail_net_egress {
  JAIL_EGRESS_NONE, /* the plain path */
  JAIL_EGRESS_WEB,  /* TCP to ports 80 and 443 goes to the egress gateway, never out directly; QUIC is refused */
  JAIL_EGRESS_TCP,  /* all TCP does */
};

struct jail_net {
  const struct jail_net_config *config;
  uint32_t slot;            /* 0 .. JAIL_NET_SLOTS - 1 */
  const char *const *allow; /* NULL-terminated, or NULL */
  const char *const *deny;
  /* The lists judge the original destination before a connection reaches the gateway. Needs config.egress_port. */
  enum jail_net_egress egress;
  bool guest; /* the address is that of a guest behind the box's tap (tap.h), not of its own end of the link */
  bool quic;  /* with JAIL_EGRESS_TCP: UDP to port 443 stays open (a box that has a proxy and no header rules) */
};

/* At daemon start, in the network namespace that has outbound networking, while the process has one thread (with
 * config.dns_lists it forks). Keeps what living boxes have from before. The config must stay as it is. */
int jail_net_open(const struct jail_net_config *config, struct err *err);
/* Takes table and rules away; boxes still connected lose outbound networking. */
void jail_net_close(const char *instance);

/* A netlink socket inside a box's network, for those who set it up from outside. */
int jail_net_talk(int netns, int protocol, struct err *err);
/* The loopback of a restored box, whose processes did not bring it up themselves. */
int jail_net_loopback(int netns, struct err *err);
/* jail_spawn and jail_restore do this for spec.net. netns: the box's, owned by its user namespace. */
int jail_net_attach(const struct jail_net *net, int netns, struct err *err);
/* New lists for a running box: complete, at once, for connections made from now on. */
int jail_net_update(const struct jail_net *net, struct err *err);
/* The names of a box that is gone; its rules are replaced when the slot is taken anew. */
int jail_net_forget(const struct jail_net_config *config, uint32_t slot, struct err *err);
/* -EINVAL with the entry named when it is no address or prefix of either family. */
int jail_net_check(const char *entry, struct err *err);

/* The egress gateway's listening socket, at the boxes' gateway address whether or not a box has it yet. Several may be
 * open at once (SO_REUSEPORT). Needs config.egress_port. A descriptor, or negative. */
int jail_net_listen(const struct jail_net_config *config, struct err *err);

uint32_t jail_net_address(const struct jail_net *net); /* of the box, host byte order */
/* Names as nftables and the kernel know them, for doctor and tests. */
#define JAIL_NET_PREFIX 8  /* bytes of the names that links of an instance begin with */
#define JAIL_NET_TABLE  80 /* bytes of the name of its table */
void jail_net_prefix(const char *instance, char out[JAIL_NET_PREFIX]);
void jail_net_table(const char *instance, char out[JAIL_NET_TABLE]);

#endif
