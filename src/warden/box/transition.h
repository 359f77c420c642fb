/* SPDX-License-Identifier: Apache-2.0 */
/* transition.h - a box on its way between running and paused, on worker threads, one transition per box at a time.
 *
 * A paused box is kept in one of three tiers (enum box_tier). `frozen`: processes stop and stay in memory; it survives
 * the daemon but not the machine. `checkpoint`: memory and processes are a checkpoint on disk. `files`: only what the
 * box wrote is kept, and a resume is a cold start. In the latter two nothing of the box is left but its directory, its
 * checkpoint, its id range and its row.
 *
 * A crash loses no box at any moment. To disk: the row is written when checkpoint and files are complete and before
 * anything is killed. Back: the restored box stays frozen until the row says that it runs, and the checkpoint is
 * removed last. */
#ifndef CLOCHE_WARDEN_TRANSITION_H
#define CLOCHE_WARDEN_TRANSITION_H

#include "warden/box/box.h"
#include "warden/box/transition_table.h"
#include "wire/sizes.h"

/* What a copy is for. `done` is told on the loop, once; b is NULL when the box ended meanwhile and nothing was kept. */
struct copy {
  char checkpoint[CHECKPOINT_NAME_SIZE]; /* under <data>/checkpoints; empty: files only, as asked or as far as
                                            the host can */
  char layer[DATA_PATH_SIZE];            /* a new directory */
  uint64_t bytes;                        /* of the checkpoint, in the end */
  uint64_t layer_bytes;                  /* of the layer */
  bool transient;                        /* for boxes that begin at once: not written out */
  void (*done)(struct copy *copy, struct box *b, int result, const struct err *err);
};

/* The request that began it is answered at its end, and then those that came meanwhile (box->pending_ops).
 * pending_op->origin.ipc NULL: the box reached its timeout. */
void transition_begin(struct box *b, enum transition_op op, const struct pending_op *pending_op);
/* The box is no longer known; whoever waits is told. True: a transition is under way and reclaims the box itself. */
bool box_abandon_transition(struct box *b);
/* Of a box that is paused on disk. Given up when somebody wants the box: transition_cancel_compress. */
void transition_compress(struct box *b);
void transition_cancel_compress(struct box *b);
/* Of a running box; one that changes its state is copied afterwards. Owned by the caller until done. */
void transition_copy(struct box *b, struct copy *copy);

#endif
