/* pause.h - a box asleep and awake again.
 *
 * The tier is `frozen`: everything inside stops where it is (the cgroup freezer) and stays in memory; it does not survive
 * a restart of the machine, but it does survive one of the daemon. One passage at a time: what is asked while a box
 * changes its state waits and is answered by the state that follows. A kill waits for nothing. */
#ifndef CLOCHE_PAUSE_H
#define CLOCHE_PAUSE_H

#include "warden/box.h"

#define WAKE_LEAST_S 300u /* a box woken by traffic lives at least this long */

/* Both answer `ask` now or later. */
void box_pause(struct box *b, struct ask ask);
void box_connect(struct box *b, const struct wish *wish);
/* Its time is up: sleeps or ends, as it was made to. */
void box_expire(struct box *b);
/* The box is gone from the tables; whoever waits is told. True: a passage is under way and clears the remains itself. */
bool box_leave_passage(struct box *b);
/* After a restart of the daemon the freezer is brought to what the store says. */
void box_settle(struct box *b);

#endif
