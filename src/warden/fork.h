/* SPDX-License-Identifier: Apache-2.0 */
/* fork.h - boxes made from a running one: forks at once, snapshots under a name for later.
 *
 * Both begin with a copy: the source stands still for a moment, its memory goes into a checkpoint and its files into a
 * layer, and it goes on. The copy is a build. That of a snapshot has a name and tags like any template's; that of a
 * fork has neither, is shown to nobody, loses its checkpoint when all its boxes have begun and goes with the last of
 * them.
 */
#ifndef CLOCHE_FORK_H
#define CLOCHE_FORK_H

#include "warden/box.h"

#define FORKS_MAX 100

struct snapshot_params {
  struct origin origin;
  struct str name;  /* [namespace/]alias[:tag]; empty = none */
  struct str build; /* a new id, the gate's choice: asked again, it is the same snapshot */
};
/* Answers now or later. */
void box_snapshot(struct box *b, const struct snapshot_params *o);

struct fork_params {
  struct origin origin;
  struct str build; /* as above */
  struct str ids;   /* of the new boxes, joined by commas */
  uint32_t timeout_s;
};
void box_fork(struct box *b, const struct fork_params *o);

/* Deletes a template; the memory and files of its snapshots go too. */
int snapshots_delete(struct warden *w, struct str team, struct template *t, struct err *err);
/* A box of this build is gone: was it the last of a fork? */
void fork_release(struct warden *w, struct build *build);
/* At start: what forks left that no box needs. */
void fork_sweep(struct warden *w);

#endif
