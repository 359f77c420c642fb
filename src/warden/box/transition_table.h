/* SPDX-License-Identifier: Apache-2.0 */
/* transition_table.h - which step of a transition follows which: decisions only, without a loop, a jail or a database.
 * transition.c performs them.
 *
 *   FREEZE    ACT
 *   DUMP      ACT, HARDEN, REMOVE
 *   STOP      ACT, HARDEN, REMOVE
 *   THAW      ACT
 *   RESTORE   ACT, UNLINK; REMOVE when the row could not be written
 *   COLD      ACT, HARDEN and REMOVE where processes are left, LAUNCH; REMOVE when the agent did not answer
 *   COPY      ACT
 *   COMPRESS  ACT */
#ifndef CLOCHE_WARDEN_TRANSITION_TABLE_H
#define CLOCHE_WARDEN_TRANSITION_TABLE_H

#include <stdbool.h>

enum transition_op {
  TRANSITION_FREEZE,   /* pause: processes stay in memory */
  TRANSITION_DUMP,     /* pause: to a checkpoint on disk */
  TRANSITION_STOP,     /* pause: only files are kept */
  TRANSITION_THAW,     /* resume from memory */
  TRANSITION_RESTORE,  /* resume from a checkpoint */
  TRANSITION_COLD,     /* resume from files alone, whatever else there was */
  TRANSITION_COPY,     /* the box runs on, but for a moment: memory and files are copied for other boxes */
  TRANSITION_COMPRESS, /* the box stays paused: its checkpoint is compressed */
  TRANSITION_OPS,
};

enum transition_step {
  STEP_ACT,    /* what the operation is about; of a cold start: the row that gives up the memory */
  STEP_UNLINK, /* of a restored box: names that criu gave to deleted files are removed again */
  STEP_HARDEN, /* the row of a paused box reaches the disk */
  STEP_REMOVE, /* processes, namespaces and mounts go; the box's directory stays */
  STEP_LAUNCH, /* of a cold start: a new agent */
  TRANSITION_STEPS,
};

enum transition_outcome {
  OUTCOME_OK,
  OUTCOME_FAILED,      /* this step, or an earlier one that is being undone */
  OUTCOME_UNCOMMITTED, /* the step worked, but its row could not be written */
  OUTCOME_ORPHAN,      /* the box ended meanwhile */
  TRANSITION_OUTCOMES,
};

enum transition_next {
  NEXT_NEVER, /* no transition comes here */
  NEXT_UNLINK,
  NEXT_HARDEN,
  NEXT_REMOVE,
  NEXT_LAUNCH,
  NEXT_FREEZE, /* a pause at the timeout that could not reach the disk begins again as FREEZE */
  END_DONE,    /* the box is in its new state */
  END_FAILED,  /* the box is in the state it came from; whoever asked is told why */
  END_BOX,     /* the box reached its timeout, or its memory is needed, and can't be paused: it ends */
  END_ORPHAN,  /* the box's remains are reclaimed */
};

struct transition_facts {
  bool expired; /* the timeout asked for it, no client */
  bool relief;  /* the machine needs its memory: a box that stays in it is no help */
  bool jail;    /* processes of the box are there that the transition has to remove */
};

enum transition_next transition_next(enum transition_op op, enum transition_step step, enum transition_outcome outcome,
                                     struct transition_facts facts);

bool transition_pauses(enum transition_op op);  /* from running to paused */
bool transition_resumes(enum transition_op op); /* from paused to running */
bool transition_queued(enum transition_op op);  /* its act is criu's and waits in the checkpoint queue */

#endif
