/* SPDX-License-Identifier: Apache-2.0 */
/* fair_queue.h - who may run next, where several teams wait for a bounded number of places.
 *
 * Every team (any text; "" is the server itself) has a queue of its own, first come first served. Places go to the
 * teams round robin, one at a time, whatever the length of their queues; a team holds at most `share` places at once,
 * so that no team, however slow its work, keeps the others waiting as long as `share` < `places`. Pure bookkeeping:
 * what runs, and where, is the caller's. */
#ifndef CLOCHE_WIRE_FAIR_QUEUE_H
#define CLOCHE_WIRE_FAIR_QUEUE_H

#include "base/base.h"

struct fair_queue_team;

struct fair_queue_item {
  struct fair_queue_item *next;
  struct fair_queue_team *team; /* while it waits or runs */
  bool runs;
};

struct fair_queue {
  unsigned places, share; /* set by the owner; may change at any time */
  unsigned running;
  size_t waiting;
  struct map teams;             /* those that wait or run */
  struct fair_queue_team *ring; /* the last in the ring of waiting teams; its successor is served next */
};

void fair_queue_push(struct fair_queue *f, struct str team, struct fair_queue_item *item);
/* The next one to run, which holds a place from now on; NULL when none waits or none may. */
struct fair_queue_item *fair_queue_next(struct fair_queue *f);
void fair_queue_done(struct fair_queue *f, struct fair_queue_item *item); /* gives its place back */
bool fair_queue_cancel(
    struct fair_queue *f,
    struct fair_queue_item *item); /* true: it waited and does no more; false: it runs or is not known */

#endif
