/* SPDX-License-Identifier: Apache-2.0 */
/* transition.h - a box on its way between awake and asleep, on worker threads, one passage per box at a time.
 *
 * Asleep has three depths (enum box_tier). `frozen`: everything stops where it is and stays in memory; it survives the
 * daemon but not the machine. `checkpoint`: memory and processes are a checkpoint on disk. `files`: only what the box
 * wrote is kept, and waking up is a cold start. In the latter two nothing of the box is left but its directory, its
 * checkpoint, its id range and its row.
 *
 * No moment of a crash loses a box: going to disk, the row is written when the checkpoint and the files are whole and
 * before anything is killed; coming back, the restored box stands still until the row says that it runs, and the
 * checkpoint goes last. */
#ifndef CLOCHE_WARDEN_TRANSITION_H
#define CLOCHE_WARDEN_TRANSITION_H

#include "warden/box.h"

enum transition_kind {
  TRANSITION_FREEZE, /* to sleep: in memory */
  TRANSITION_DUMP,   /* to sleep: on disk */
  TRANSITION_STOP,   /* to sleep: files only */
  TRANSITION_THAW,   /* awake from memory */
  TRANSITION_RESTORE,
  TRANSITION_COLD,     /* awake from files alone, whatever else there was */
  TRANSITION_COPY,     /* stays awake but for a moment: memory and files are copied for other boxes */
  TRANSITION_COMPRESS, /* sleeps on: its checkpoint is made smaller */
};

/* What a copy is for. `done` is told on the loop, once; b is NULL when the box ended meanwhile and nothing was kept. */
struct copy {
  char checkpoint[64];  /* under <data>/checkpoints; empty: files only, where this host can't hold memory */
  char layer[1024];     /* a new directory */
  uint64_t bytes;       /* of the checkpoint, in the end */
  uint64_t layer_bytes; /* of the layer, unless it is fleeting */
  bool transient;       /* for boxes that begin at once: nothing of it is written out yet */
  void (*done)(struct copy *copy, struct box *b, int result, const struct err *err);
};

/* The wish that began it is answered at its end, and then those that came meanwhile (box->wishes). wish->ask.link NULL:
 * the clock asked. */
void transition_begin(struct box *b, enum transition_kind kind, const struct pending_op *pending_op);
/* The box is gone from the tables; whoever waits is told. True: a transition is under way and clears the remains
 * itself. */
bool box_abandon_transition(struct box *b);
/* Of a box that is paused on disk. Given up when somebody wants the box: transition_cancel_compress. */
void transition_compress(struct box *b);
void transition_cancel_compress(struct box *b);
/* Of a running box, or one that will soon be: then it waits its turn. Owned by the caller until done. */
void transition_copy(struct box *b, struct copy *copy);

#endif
