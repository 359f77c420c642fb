/* SPDX-License-Identifier: Apache-2.0 */
/* warm_policy.h - how many boxes a warm pool keeps and when they are made and dropped: decisions only, without a loop,
 * a jail or a database. warm_pool.c follows them.
 *
 * A pool keeps the usual number of its build. Creates that find it empty are counted while they are under way, and as
 * many as were under way at once are kept beside the usual number from then on, so that the same burst finds its boxes
 * the next time; with every calm period half of them go. The build that was asked for last has spare boxes beside, as
 * many as a small part of the available memory holds, made while nobody asks and the processors are idle. Boxes that
 * hold memory of their own have a limit for all pools together, of which each team has a share: a pool in use gets room
 * from a team over its share, or from pools of its own team used before it. */
#ifndef CLOCHE_WARDEN_WARM_WARM_POLICY_H
#define CLOCHE_WARDEN_WARM_WARM_POLICY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define POOL_LAUNCHES  2         /* at a time for one pool */
#define POOL_COLD_US   600000000 /* a template nobody used for ten minutes keeps no boxes ready */
#define POOL_STALE_US  60000000  /* nor a build for a minute that its default tag no longer points to */
#define SPARE_KB       3072      /* of memory per warm box */
#define SPARE_CALM_US  400000    /* nobody has asked for a box for so long */
#define SPARE_LOOK_US  150000    /* between two looks at the processors */
#define SPARE_SPREE_US 2000000   /* made so long at full speed once these are idle: their own work would hide it */
#define SPARE_BUSY_US  3000000   /* between two of them while the processors have other work */
#define SPARE_DROPS    8         /* dropped at a time */
#define SPARE_SLACK    2         /* more than expected are kept: available memory moves by the boxes themselves */
#define SPARE_KEEP_US  60000000  /* another build gets the spare boxes when theirs was not asked for so long */

struct warm_build {
  bool retired;    /* its template is gone */
  bool checkpoint; /* its boxes are restored, and hold memory */
  bool alone;      /* each of its boxes loads a Python of its own, which holds as much */
  bool plain;      /* built, not copied of a single box */
};
/* Boxes kept ready of a build. A copy of a single box is seldom asked for twice. */
size_t warm_usual(struct warm_build b, unsigned pool, unsigned ready_pool);
size_t warm_wanted(size_t usual, size_t more);

struct warm_spare {
  bool favoured;   /* this is the pool with the spare boxes */
  int64_t idle_us; /* since it was last asked for a box */
  uint64_t available_kb;
  unsigned percent; /* of that memory */
  unsigned most;    /* with those that are kept beside the usual number */
};
/* With its spare boxes. */
size_t warm_expected(size_t wanted, size_t more, struct warm_spare spare);

/* A create found nothing, and `missed` are under way now. True: they are a burst, and *more follows it. */
bool warm_burst(size_t missed, unsigned most, size_t *more);
/* What of `more` is left after so long without a burst. */
size_t warm_calmed(size_t more, int64_t calm_us, int64_t period_us);
/* Ready boxes beyond what is kept. */
size_t warm_surplus(size_t ready, size_t wanted, size_t expected);

struct warm_use {
  bool retired, public;
  bool stale;               /* the default tag of its template points to another build */
  int64_t idle_us;          /* since its last use */
  size_t newer, newer_most; /* private templates with a Python of their own that were used since */
};
/* The pool is emptied. */
bool warm_useless(struct warm_use use);

struct warm_counts {
  size_t ready, coming; /* there, and being made */
  size_t missed;        /* creates under way that found none */
};
/* Launches to begin now. None while more creates than that wait for boxes of their own: they come first. */
size_t warm_launches(struct warm_counts c, size_t wanted);
/* One more box that holds memory: one at a time, none while a client waits for a restore, all within their memory. */
bool warm_may_restore(size_t coming, size_t waiting, uint64_t held, uint64_t one, uint64_t most);
/* Pools whose boxes hold memory share a limit, and teams have equal shares of it, those of them that hold or ask for
 * some. A pool that lacks `lacking` bytes gets them from the team that holds the most over its share, as long as its
 * own team is within its share with what it asks for; else from pools of its own team that were used before it was. The
 * least recently used first: `give` says how many of its ready boxes each ends. False: all of them together would not
 * be enough. */
#define WARM_NOBODY SIZE_MAX
struct warm_holder {
  size_t team; /* a number of the caller's choice */
  int64_t used_us;
  size_t ready, coming;
  uint64_t one; /* bytes of one box */
  size_t give;
};
struct warm_asker {
  size_t team; /* WARM_NOBODY: all together hold too much */
  int64_t used_us;
  uint64_t one;
  uint64_t most; /* the limit */
  uint64_t lacking;
};
bool warm_make_room(struct warm_holder *v, size_t n, const struct warm_asker *a);
bool warm_low(struct warm_counts c, size_t wanted); /* less than half is there or on its way */

struct spare_clock {
  int64_t begun_us; /* when the last spare box was begun */
  int64_t look_us;  /* when the processors are looked at again */
  int64_t spree_us; /* until when they need not be */
};
struct spare_load {
  int64_t asked_us;                    /* when any box was last asked for */
  size_t launches, removals, restores; /* under way; restores: waiting */
};
/* How many spare boxes may be under way. *again_us: when to ask again, 0 = when the next one is ready. */
size_t spare_pace(struct spare_clock *c, struct spare_load load, size_t coming, int64_t now,
                  bool (*processors_idle)(void), int64_t *again_us);
/* The spare boxes become those of another build; of one whose boxes hold memory never. */
bool spare_moves(struct warm_build to, const struct warm_build *from, int64_t from_idle_us);

#endif
