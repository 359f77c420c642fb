/* SPDX-License-Identifier: Apache-2.0 */
/* ns_pool.h - pre-created namespaces, for boxes that are launched when somebody asks.
 *
 * They have what takes longest of a launch: its namespaces, the network's above all, with ids, control groups and the
 * link to the outside; what is missing is a root and a program (jail_create). All boxes of the same limits, and of the
 * same loaded Python or none, can be started in them. Those that were asked for last are kept ready, nets_ready of
 * them; they cost no memory to speak of, yet go when it is short, when no box is requested for ten minutes, and at the
 * end. Those of a daemon that was killed end by themselves. */
#ifndef CLOCHE_WARDEN_WARM_NS_POOL_H
#define CLOCHE_WARDEN_WARM_NS_POOL_H

#include "base/base.h"
#include "wire/sizes.h"

struct build;
struct warden;

struct jail_created;
struct pooled_ns {
  struct pooled_ns *next;
  struct jail_created *created; /* owned */
  char name[HOST_NAME_SIZE];
  unsigned slot;
};

/* One for a box of this build with a plain way out, or NULL; the next ones are made for the like of it. The caller owns
 * it. */
struct pooled_ns *ns_pool_take(struct warden *w, struct build *b);
void ns_pool_drop(struct warden *w, struct pooled_ns *pooled_ns); /* removes them, on a worker */
void ns_pool_maintain(struct warden *w, bool memory_short);
void ns_pool_drain(struct warden *w); /* at the end */

#endif
