/* names.h - the name server of boxes whose lists have domain names in them.
 *
 * Such a box asks here and nowhere else (nftables turns its questions this way). A question for a name that is not on
 * the box's list is refused; for one that is, the answer's addresses are opened to that box before the answer is sent.
 *
 * Two processes, forked at the daemon's start. The keeper has rights and understands one fixed message: "open this
 * address to that slot for so long". The worker reads what boxes and the resolver send, as a user without rights; when
 * it dies the keeper starts another. The lists are files, <dir>/<slot>, one pattern per line, so nothing has to be told
 * again after any restart. */
#ifndef CLOCHE_NAMES_H
#define CLOCHE_NAMES_H

#include "jail/net/jail_net.h"

#define NAMES_USER 65534 /* nobody */

/* What the keeper does with an address: adds it to the set of a slot. Runs in the keeper. */
typedef int names_open_fn(const struct jail_net_config *config, uint32_t slot, uint32_t address, unsigned seconds);

/* Forks: call while the process has one thread. The keeper's pid, or negative. */
int names_start(const struct jail_net_config *config, uint32_t resolver, names_open_fn *open, struct err *err);
void names_stop(pid_t keeper);

/* The list of one slot: lines, or NULL to have none. */
int names_set(const char *dir, uint32_t slot, const char *lines, struct err *err);

#endif
