/* SPDX-License-Identifier: Apache-2.0 */
/* pause_rules.h - what may be asked of a box in which state: decisions only, without a loop, a jail or a database.
 * pause.c, transition.c and fork.c follow them.
 *
 * While a box changes its state (PAUSING, RESUMING, COPYING) requests wait and are decided again in the state that
 * follows. A request that waited for a pause or a resume which another one began is part of it: all are answered alike.
 */
#ifndef CLOCHE_WARDEN_PAUSE_RULES_H
#define CLOCHE_WARDEN_PAUSE_RULES_H

#include "warden/box/transition_table.h"
#include "wire/wire.h"

#define WAKE_LEAST_S 300u /* a box resumed by traffic runs at least this long */

enum verdict {
  VERDICT_BEGIN,    /* a transition */
  VERDICT_WAIT,     /* for the one under way */
  VERDICT_DONE,     /* answered: the box is in the state that was asked for */
  VERDICT_EXTEND,   /* the same, and its timeout is extended */
  VERDICT_END,      /* the box ends */
  VERDICT_ALREADY,  /* -EALREADY: refused, the box is in that state already */
  VERDICT_PAUSED,   /* -EHOSTDOWN: refused, the box is paused */
  VERDICT_SILENT,   /* -ENOTRECOVERABLE: refused, its agent did not answer when it was paused */
  VERDICT_STARTING, /* -EBUSY: refused, the box is not launched yet */
};

/* How a request came here. `again`: a gate repeats what a warden that died was asked, whose work the state may be. */
struct asked {
  bool again;
  bool waited; /* for a transition that is over now */
  bool joined; /* which resumed the box */
};

enum verdict pause_verdict(enum box_state state, struct asked asked);
/* Without memory: only files are kept. Where checkpoints are impossible memory stays in memory. */
enum transition_op pause_op(bool without_memory, bool checkpoints_on);

/* The box reached its timeout. flags: BOX_* */
enum verdict expire_verdict(enum box_state state, unsigned flags);
bool expire_without_memory(unsigned flags);

struct connect_facts {
  enum box_state state;
  enum box_tier tier; /* of a paused box */
  unsigned flags;     /* BOX_* */
  bool cold;          /* the request wants no memory */
  bool busy;          /* a transition is under way: of a paused box the rest of its pause, or compression */
};
enum verdict connect_verdict(struct connect_facts box, enum connect_mode mode, struct asked asked);
/* The answer to a request at a running box says that it resumed the box. */
bool connect_resumed(enum connect_mode mode, struct asked asked);
enum transition_op resume_op(bool without_memory, enum box_tier tier);
/* Seconds that a resumed box runs: as asked; by traffic as long as it was made for, WAKE_LEAST_S at least. */
uint32_t resume_timeout(enum connect_mode mode, uint32_t asked_s, uint32_t box_s, uint32_t most_s);
/* A running box's end after a connect: never earlier than before, never later than its team's longest run allows. */
int64_t extended_end(int64_t now_us, uint32_t timeout_s, int64_t started_us, uint32_t most_s, int64_t end_us);

/* A fork or a snapshot: whether one is accepted at all, and what it does when its turn comes. */
enum verdict copy_accepted(enum box_state state);
enum verdict copy_verdict(enum box_state state);

#endif
