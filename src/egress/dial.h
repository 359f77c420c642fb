/* SPDX-License-Identifier: Apache-2.0 */
/* dial.h - a connection to a server: to its address, or by way of the box's proxy, over TLS where that is asked for.
 * The result is a plain socket in every case. An address that no box may reach is never connected to, also not a
 * proxy's, whose name is resolved for each connection. */
#ifndef CLOCHE_EGRESS_DIAL_H
#define CLOCHE_EGRESS_DIAL_H

#include "egress/gateway.h"

struct dial;

/* fd owned by the callee; negative errno with a reason otherwise. Never called from inside dial_start. */
typedef void dial_fn(void *arg, int fd, const char *why);

/* name: for the proxy to resolve; empty: by address. */
struct dial *dial_start(struct gateway *g, struct rules *rules, struct str name, uint32_t address, uint16_t port,
                        dial_fn *fn, void *arg);
void dial_cancel(struct dial *d); /* `fn` is not called */

#endif
