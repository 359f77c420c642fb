/* SPDX-License-Identifier: Apache-2.0 */
/* fork.h - boxes made from a running one: forks at once, snapshots under a name for later.
 *
 * Both begin with a copy: the source is frozen for a moment, its memory goes into a checkpoint (not of a snapshot
 * without memory, nor where the host can't) and its files into a layer, and it runs on. The copy is a build. That of a
 * snapshot has a name and tags as a template has. That of a fork has neither and is listed nowhere; its checkpoint is
 * removed when all its boxes are launched, the build with the last of them. */
#ifndef CLOCHE_FORK_H
#define CLOCHE_FORK_H

#include "warden/box/box.h"

#define FORKS_MAX 100

struct snapshot_params {
  struct origin origin;
  struct str name;  /* [namespace/]alias[:tag]; empty = none */
  struct str build; /* a new id, chosen by the gate: a request that is repeated names the same snapshot */
  bool files_only;  /* no memory: boxes made from it start cold */
};
/* Answered now or later. */
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
/* A box of this build is gone; with the last one of a fork the build goes. */
void fork_release(struct warden *w, struct build *build);
/* At start: removes builds of forks that no box needs. */
void fork_sweep(struct warden *w);

#endif
