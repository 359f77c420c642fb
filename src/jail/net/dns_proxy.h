/* SPDX-License-Identifier: Apache-2.0 */
/* dns_proxy.h - the name server of boxes whose lists have domain names in them.
 *
 * Such a box asks here and nowhere else (nftables turns its questions this way). A question for a name that is not on
 * the box's list is refused; for one that is, the answer's addresses are opened to that box before the answer is sent.
 *
 * Two processes, forked at the daemon's start. The keeper has rights and understands one fixed message: "open these
 * addresses to that slot for so long". The worker reads what boxes and the resolver send, as a user without rights;
 * when it dies the keeper starts another. The worker waits for nobody: while the keeper opens addresses, in one
 * transaction for all that asked meanwhile, other questions are taken and answered; a box has few openings under way at
 * once and a bounded number of new addresses per second, so no box's names wait for another's. The lists are files,
 * <dir>/<slot>, one pattern per line, so nothing has to be told again after any restart.
 *
 * A first line DNS_PROXY_SERVERS with addresses behind it names the box's own name servers: any name is passed on to
 * them, the next one after a second of silence, and only those on the list open something. Without an address every
 * question is refused, and the worker itself asks the resolver, again and again, for the names of the list that are no
 * patterns, and opens what they have. */
#ifndef CLOCHE_JAIL_NET_DNS_PROXY_H
#define CLOCHE_JAIL_NET_DNS_PROXY_H

#include "jail/net/net_config.h"

#define DNS_PROXY_SERVERS "@"

/* What an answer opens. */
#define DNS_OPENING_MAX   32
struct dns_opening {
  uint32_t id; /* the worker's own */
  uint32_t slot, seconds, count;
  uint32_t address[DNS_OPENING_MAX]; /* host byte order */
};
/* What the keeper does with addresses: adds them to the sets of their slots, all or none. Runs in the keeper. */
typedef int dns_proxy_open_fn(const struct jail_net_config *config, const struct dns_opening *list, size_t n);

/* Forks: call while the process has one thread. The keeper's pid, or negative. */
int dns_proxy_start(const struct jail_net_config *config, uint32_t resolver, dns_proxy_open_fn *open, struct err *err);
void dns_proxy_stop(pid_t keeper);

/* The list of one slot: lines, or NULL to have none. */
int dns_proxy_set(const char *dir, uint32_t slot, const char *lines, struct err *err);

#endif
