/* SPDX-License-Identifier: Apache-2.0 */
/* delivery.h - one thread that posts requests to the collector, one after the other. For the files of this folder. */
#ifndef CLOCHE_EXPORTER_DELIVERY_H
#define CLOCHE_EXPORTER_DELIVERY_H

#include "base/base.h"
#include "exporter/exporter_config.h"

struct delivery;

struct delivery_counts {
  uint64_t sent, failed, dropped; /* requests: taken by the collector; given up; for which there was no room */
};

/* With the rights that the process begins with: reads files. */
struct delivery *delivery_new(const struct exporter_config *config, struct err *err);
int delivery_start(struct delivery *d, struct err *err); /* the thread, before the filter of system calls */
/* Takes the body. False: the queue is full, it was dropped and counted. */
bool delivery_add(struct delivery *d, const char *path, struct buf *body);
size_t delivery_waiting(struct delivery *d); /* requests in its queue */
struct delivery_counts delivery_counts(struct delivery *d);
/* No more comes: what waits is tried once each, as long as `ms` last. */
void delivery_stop(struct delivery *d, unsigned ms);

#endif
