/* SPDX-License-Identifier: Apache-2.0 */
/* rescue.h - undoes what a killed criu left behind in a living box; criu_journal.h is what it goes by.
 *
 * A process that had foreign code in it gets back its registers, its signal mask and its own code, and loses the memory
 * the code was in. Helpers of the dead criu are ended, connections it held still move again. Where the box was let go
 * in good order before, nothing is touched. */
#ifndef CLOCHE_JAIL_CHECKPOINT_RESCUE_H
#define CLOCHE_JAIL_CHECKPOINT_RESCUE_H

#include "base/base.h"

/* The journal of a dump into this directory: a descriptor for criu, or negative. */
int rescue_open(int checkpoint, struct err *err);
/* Whom it is of, before criu is told what to do. */
int rescue_name(int journal, pid_t criu, struct err *err);
/* `id` NULL: only criu is ended. The box is thawed. 0 also where there is no journal; *undone tells how many threads
 * had to be put back. */
int rescue(int checkpoint, const char *instance, const char *id, unsigned *undone, struct err *err);

#endif
