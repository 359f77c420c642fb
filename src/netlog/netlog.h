/* SPDX-License-Identifier: Apache-2.0 */
/* netlog.h - the watcher: a process that writes down which names boxes looked up and where they connected.
 *
 * Start here in this folder. Rules of jail_net copy the first packet of each connection of a box, each refused one and
 * each answer of a name server to a netlink group, a bounded number per second and box; connection tracking tells ends
 * and bytes (mode full): when a TCP connection has closed, the keeper asks the kernel for its bytes, and other
 * connections are told when the kernel forgets them. The watcher reads both and writes lines (net_lines.h) into the
 * ring of the box that has the address, a file that the warden opened. It has no rights but these descriptors: a packet
 * that takes it over can spoil the logs, nothing else. Two processes, forked while the daemon has one thread: the
 * keeper starts the watcher again when it ends.
 *
 * A slot serves one box after the other, and messages wait in the kernel for a moment. Each box has a link of its own:
 * messages with the link of the box before are dropped, and those without one for a second after a slot has changed
 * hands, so that no box's log tells of another one. */
#ifndef CLOCHE_NETLOG_NETLOG_H
#define CLOCHE_NETLOG_NETLOG_H

#include "jail/net/net_config.h"
#include "wire/egress_policy.h"

enum netlog_mode { NETLOG_OFF, NETLOG_NAMES, NETLOG_FULL };

/* Packets to the watcher. */
enum netlog_order {
  NETLOG_BIND = 1, /* a descriptor of the ring comes along: the slot's box is known from now on */
  NETLOG_UNBIND,
  NETLOG_REQUEST, /* behind it an egress_record_body and its texts: a line for the slot's box */
};
struct netlog_packet {
  uint32_t order, slot;
};
#define NETLOG_PACKET_MAX                                                                                              \
  (sizeof(struct netlog_packet) + sizeof(struct egress_record_body) + 4 * EGRESS_RECORD_TEXT_MAX)

struct netlog {
  pid_t keeper;
  int fd; /* packets go here; one byte comes from each new watcher: it knows no slot yet */
};

/* The netlink group of an instance, which its log rules name. */
unsigned netlog_group(const char *instance);
/* What the watcher remembers of each box, the newest. */
struct netlog_limits {
  unsigned names;       /* addresses that were told, to name connections by */
  unsigned connections; /* whose ends will be told */
};
/* Forks: call while the process has one thread. */
int netlog_start(const struct jail_net_config *config, enum netlog_mode mode, const struct netlog_limits *limits,
                 struct netlog *out, struct err *err);
void netlog_stop(struct netlog *n);

#endif
