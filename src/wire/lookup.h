/* SPDX-License-Identifier: Apache-2.0 */
/* lookup.h - names become addresses, on threads of the process's own.
 *
 * A name belongs to whoever chose the URL or proxy, and its name servers may never answer. So a team has at most
 * `share` of the threads at once, also while a lookup that nobody waits for any more goes on; further names of that
 * team wait for its own, and those of others do not. Sender and egress gateway use it. */
#ifndef CLOCHE_WIRE_LOOKUP_H
#define CLOCHE_WIRE_LOOKUP_H

#include "wire/fair_queue.h"
#include <netdb.h>
#include <pthread.h>
#include <uv.h>

#define LOOKUP_THREADS 128

struct lookup {
  struct fair_queue_item item; /* first */
  struct lookup *next;         /* in a list of struct lookups */
  char name[256], port[8];
  int family; /* AF_INET: such addresses only; 0 = any */
  int status; /* of getaddrinfo */
  struct addrinfo *list;
  /* On the loop; status 0 with addresses, or a negative EAI_ code. The lookup is the callee's again, and so is the list
   * (freeaddrinfo). */
  void (*done)(struct lookup *l, int status, struct addrinfo *list);
};

struct lookups {
  struct fair_queue queue;
  uv_async_t async;
  pthread_mutex_t lock;
  pthread_cond_t more, begun;
  int threads;                           /* that have begun */
  struct lookup *run, **run_last, *over; /* under the lock */
};

/* Starts the threads, in the rights that the process has by then, and waits until they run: what a thread does first
 * would not pass the filter (confine.h). */
int lookups_open(struct lookups *s, uv_loop_t *loop, unsigned share, struct err *err);
void lookup_start(struct lookups *s, struct str team, struct lookup *l); /* name, port and done are set */
bool lookup_cancel(struct lookups *s, struct lookup *l); /* true: it did not begin, and done does not come */

#endif
