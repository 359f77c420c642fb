/* SPDX-License-Identifier: Apache-2.0 */
/* cluster.h - this machine among others that share a store (docs/cluster.md). Everything here does nothing, and costs
 * nothing, unless the setting `store` is given.
 *
 * The warden tells the store process about this machine three times within a lease, and counts the lease from the
 * moment when it asked, by its own monotonic clock: it believes in it no longer than the store does. Without a lease it
 * starts nothing: boxes that run go on. Nothing here waits; an answer that does not come within store_seconds is an
 * error. */
#ifndef CLOCHE_WARDEN_CORE_CLUSTER_H
#define CLOCHE_WARDEN_CORE_CLUSTER_H

#include "warden/core/reply.h"
#include "wire/node_record.h"

struct warden;

/* status: this machine's figures, which a module above knows. */
int cluster_open(struct warden *w, void (*status)(struct warden *w, struct wire_status *out), struct err *err);
void cluster_link(struct warden *w, int fd); /* of the store process; a new one replaces it */
void cluster_close(struct warden *w);
bool cluster_on(const struct warden *w);
/* -ESHUTDOWN while this machine has no lease. */
int cluster_admit(const struct warden *w, struct err *err);
bool cluster_self(const struct warden *w, struct str name); /* it is this machine's */
/* What it says about itself; also of a machine that stands alone. */
void cluster_describe(struct warden *w, struct node_record *out);
/* A request for the store process, begun and filled but for its number; what it answers goes to the origin. */
int cluster_ask(struct warden *w, struct origin origin, struct buf *request, struct err *err);

#endif
