/* SPDX-License-Identifier: Apache-2.0 */
/* id_filter.h - which sandbox IDs exist, in memory that the warden writes and all gates read.
 *
 * A Bloom filter: an ID that exists is always found; one that does not is found by mistake with a chance of one in two
 * thousand million with 10,000 boxes and one in four thousand with 100,000. Which IDs these are depends on a random key
 * of the filter, so nobody outside can compute them. The warden alone keeps the counts by which entries are removed. */
#ifndef CLOCHE_WIRE_ID_FILTER_H
#define CLOCHE_WIRE_ID_FILTER_H

#include "base/base.h"

struct id_filter;

struct id_filter *id_filter_new(struct err *err); /* the writer's; NULL without memory */
int id_filter_fd(const struct id_filter *f);      /* borrowed; whoever gets it can read and not write */
struct id_filter *id_filter_attach(int fd);       /* a reader's; the descriptor stays the caller's. NULL: unusable */
void id_filter_add(struct id_filter *f, struct str id);
void id_filter_remove(struct id_filter *f, struct str id); /* of one that was added */
bool id_filter_has(const struct id_filter *f, struct str id);
void id_filter_free(struct id_filter *f);

#endif
