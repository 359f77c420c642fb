/* SPDX-License-Identifier: Apache-2.0 */
/* ext_conns.h - connections that a box on disk had to the outside.
 *
 * Nobody at their other end waits, and the box may have another address when it comes back. criu can put such a socket
 * back only where its address is; so former addresses stay with the box on its loopback, where they lead nowhere but to
 * itself, and every connection that is not the box's own with itself is ended: its owner sees it aborted, as after a
 * lost network. */
#ifndef CLOCHE_JAIL_CHECKPOINT_EXT_CONNS_H
#define CLOCHE_JAIL_CHECKPOINT_EXT_CONNS_H

#include "jail/checkpoint/manifest.h"

int ext_conns_collect(int netns, struct manifest *m, struct err *err); /* fills m->addresses */
/* `own`: the address the box has now, 0 = none. */
int ext_conns_keep_addresses(int netns, const struct manifest *m, uint32_t own, struct err *err);
int ext_conns_abort(int netns, const struct manifest *m, struct err *err);

/* After a killed criu: connections of this process that it held still move again. */
void ext_conns_unrepair(pid_t pid, int64_t until_us); /* looks at no more descriptors after that */

#endif
