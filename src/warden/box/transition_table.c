/* SPDX-License-Identifier: Apache-2.0 */
/* transition_table.c - see transition_table.h. */
#include "warden/box/transition_table.h"

/* In the order of enum transition_outcome: ok, failed, uncommitted, orphan. A box that ended meanwhile is reclaimed by
 * the transition, but its jail is no longer the box's once the row says that it is paused: that one is removed first. A
 * thawed or newly launched box runs, whether its row could be written or not. */
static const enum transition_next flow[TRANSITION_OPS][TRANSITION_STEPS][TRANSITION_OUTCOMES] = {
    [TRANSITION_FREEZE][STEP_ACT] = {END_DONE, END_FAILED, END_FAILED, END_ORPHAN},

    [TRANSITION_DUMP][STEP_ACT] = {NEXT_HARDEN, END_FAILED, END_FAILED, END_ORPHAN},
    [TRANSITION_DUMP][STEP_HARDEN] = {NEXT_REMOVE, NEXT_NEVER, NEXT_NEVER, NEXT_REMOVE},
    [TRANSITION_DUMP][STEP_REMOVE] = {END_DONE, NEXT_NEVER, NEXT_NEVER, END_ORPHAN},

    [TRANSITION_STOP][STEP_ACT] = {NEXT_HARDEN, END_FAILED, END_FAILED, END_ORPHAN},
    [TRANSITION_STOP][STEP_HARDEN] = {NEXT_REMOVE, NEXT_NEVER, NEXT_NEVER, NEXT_REMOVE},
    [TRANSITION_STOP][STEP_REMOVE] = {END_DONE, NEXT_NEVER, NEXT_NEVER, END_ORPHAN},

    [TRANSITION_THAW][STEP_ACT] = {END_DONE, END_FAILED, END_DONE, END_ORPHAN},

    [TRANSITION_RESTORE][STEP_ACT] = {NEXT_UNLINK, END_FAILED, NEXT_REMOVE, END_ORPHAN},
    [TRANSITION_RESTORE][STEP_UNLINK] = {END_DONE, NEXT_NEVER, NEXT_NEVER, END_ORPHAN},
    [TRANSITION_RESTORE][STEP_REMOVE] = {NEXT_NEVER, NEXT_NEVER, END_FAILED, END_ORPHAN},

    [TRANSITION_COLD][STEP_ACT] = {NEXT_HARDEN, NEXT_NEVER, END_FAILED, NEXT_NEVER},
    [TRANSITION_COLD][STEP_HARDEN] = {NEXT_REMOVE, NEXT_NEVER, NEXT_NEVER, NEXT_REMOVE},
    [TRANSITION_COLD][STEP_REMOVE] = {NEXT_LAUNCH, END_FAILED, NEXT_NEVER, END_ORPHAN},
    [TRANSITION_COLD][STEP_LAUNCH] = {END_DONE, NEXT_REMOVE, END_DONE, END_ORPHAN},

    [TRANSITION_COPY][STEP_ACT] = {END_DONE, END_DONE, NEXT_NEVER, END_ORPHAN}, /* the copy's owner is told of both */

    [TRANSITION_COMPRESS][STEP_ACT] = {END_DONE, END_DONE, NEXT_NEVER, END_ORPHAN}, /* it stays paused either way */
};

static enum transition_next at_timeout(enum transition_op op, bool relief)
{
  return op == TRANSITION_DUMP && !relief ? NEXT_FREEZE : END_BOX;
}

enum transition_next transition_next(enum transition_op op, enum transition_step step, enum transition_outcome outcome,
                                     struct transition_facts facts)
{
  enum transition_next next = flow[op][step][outcome];
  if (next == NEXT_HARDEN && !facts.jail) /* the row is no younger than the jail that is gone */
    next = flow[op][STEP_HARDEN][outcome];
  if (next == NEXT_REMOVE && !facts.jail)
    next = flow[op][STEP_REMOVE][outcome];
  return next == END_FAILED && facts.expired ? at_timeout(op, facts.relief) : next;
}

bool transition_pauses(enum transition_op op)
{
  return op == TRANSITION_FREEZE || op == TRANSITION_DUMP || op == TRANSITION_STOP;
}

bool transition_resumes(enum transition_op op)
{
  return op == TRANSITION_THAW || op == TRANSITION_RESTORE || op == TRANSITION_COLD;
}

bool transition_queued(enum transition_op op)
{
  return op == TRANSITION_DUMP || op == TRANSITION_RESTORE || op == TRANSITION_COPY;
}
