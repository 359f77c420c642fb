/* SPDX-License-Identifier: Apache-2.0 */
/* warm_pool.h - boxes made ahead. A warm box is complete but for its identity: walls up, agent listening, Python forked
 * and waiting. A create takes one and tells it who it is; the pool fills up again behind it, and grows for a while
 * where a crowd found too few. Templates become hot by being used, and cold when nobody wanted them for a while.
 *
 * Of a template that holds memory (its start command runs) the boxes are restored and frozen: not a moment of theirs
 * passes before somebody has one. They cost what the command has in memory, so they are fewer (ready_pool) and have a
 * limit in megabytes for all templates together (ready_pool_mb). A warm pool is a build's, so a tag that moves leads to
 * another warm pool. */
#ifndef CLOCHE_WARDEN_WARM_WARM_POOL_H
#define CLOCHE_WARDEN_WARM_WARM_POOL_H

#include "warden/box.h"

struct zygote;
struct warm_box {
  struct warm_box *next;
  struct jail jail;
  char name[64], dir[512];
  unsigned slot;
  int boot; /* the agent waits for its identity here; -1: it is frozen */
  uv_poll_t *watch;
  struct warm_pool *warm_pool;
};

#define POOL_COLD_US  600000000 /* a template nobody used for ten minutes keeps no boxes ready */
#define POOL_STALE_US 60000000  /* nor a build for a minute that its default tag no longer points to */

/* A ready box of this build, or NULL. Marks the template as hot either way. */
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
                         const struct zygote *z); /* a box made ahead, or under way, may be entered by it */

#endif
