/* SPDX-License-Identifier: Apache-2.0 */
/* warm_pool.h - boxes launched ahead. A warm box is complete but for its identity: namespaces and mounts are there, the
 * agent listens, Python is forked and waits. A create takes one and tells it who it is; the pool fills up again behind
 * it, and grows for a while after a burst of creates found too few (warm_policy.h).
 *
 * Boxes of a template that has a checkpoint (its start command runs) are restored and stay frozen until somebody takes
 * one. They cost the memory of that command, so they are fewer (ready_pool) and have a limit in megabytes for all
 * templates together (ready_pool_mb). The same numbers bound the boxes of templates that no zygote serves: each loads a
 * Python of its own while it waits, and the memory of that is measured. A warm pool is that of a build, so a tag that
 * moves leads to another pool. */
#ifndef CLOCHE_WARDEN_WARM_WARM_POOL_H
#define CLOCHE_WARDEN_WARM_WARM_POOL_H

#include "base/base.h"

struct build;
struct warden;
struct warm_box;
struct zygote;

/* A warm box of this build, or NULL. The pool counts as used either way. */
struct warm_box *warm_pool_take(struct warden *w, struct build *b);
/* A create that got NULL is over. */
void warm_pool_miss_served(struct warden *w, struct build *b);
void warm_box_drop(struct warm_box *p);                    /* the box too */
void warm_pool_warm_up(struct warden *w, struct build *b); /* begins to fill */
void warm_pool_load(struct warden *w,
                    struct build *b);      /* a new build: its Python is loaded, boxes are made when one is asked for */
void warm_pool_maintain(struct warden *w); /* now and then: cold pools are emptied, others filled */
void warm_pool_drain(struct warden *w);    /* at the end: all warm boxes go */
bool warm_pool_low(struct warden *w);      /* one in use has less than half of its boxes */
size_t warm_pool_count(struct warden *w);
bool warm_pool_stands_on(struct warden *w,
                         const struct zygote *z); /* a warm box, or one under way, may be entered by it */

#endif
