/* ties.h - connections that a box on disk had to the outside.
 *
 * Nobody at their other end waits, and the box may have another address when it comes back. criu can put such a socket back
 * only where its address is; so former addresses stay with the box on its loopback, where they lead nowhere but to itself,
 * and every connection that is not the box's own with itself is ended: its owner sees it aborted, as after a lost network. */
#ifndef CLOCHE_TIES_H
#define CLOCHE_TIES_H

#include "jail/checkpoint/manifest.h"

int ties_see(int netns, struct manifest *m, struct err *err); /* fills m->addresses */
/* `own`: the address the box has now, 0 = none. */
int ties_hold(int netns, const struct manifest *m, uint32_t own, struct err *err);
int ties_cut(int netns, const struct manifest *m, struct err *err);

/* After a killed criu: connections of this process that it held still move again. */
void ties_mend(pid_t pid);

#endif
