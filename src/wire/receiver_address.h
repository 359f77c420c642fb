/* SPDX-License-Identifier: Apache-2.0 */
/* receiver_address.h - where events may be posted to. Pure: the caller resolves names and says what is local. The
 * sender asks before each connection; the gate asks of an address that a webhook's URL itself holds.
 *
 * Always refused: link-local addresses, with the metadata services of clouds among them, other addresses of such
 * services, multicast, reserved and unspecified ones, the boxes' network and the server's own listeners. Private
 * ranges, loopback and every address of this machine are refused unless the operator allows them. An IPv4 address
 * inside an IPv6 one is judged as what it is. */
#ifndef CLOCHE_WIRE_RECEIVER_ADDRESS_H
#define CLOCHE_WIRE_RECEIVER_ADDRESS_H

#include "base/base.h"
#include <netinet/in.h>
#include <sys/socket.h>

#define OWN_LISTENERS 8

struct receiver_rules {
  bool private_allowed;
  uint32_t boxes; /* first address of the boxes' /16, host byte order; 0 = none */
  struct sockaddr_in own[OWN_LISTENERS];
  size_t nown;
};

/* NULL: it may be asked. Else why not, for a person; it lives as long as the program. local: the address is one of this
 * machine's. */
const char *receiver_refused(const struct receiver_rules *rules, const struct sockaddr *address, bool local);

/* "ADDRESS:PORT" lines; what is no IPv4 address is left out, as are more than OWN_LISTENERS. */
void receiver_own(struct receiver_rules *rules, struct str lines);

#endif
