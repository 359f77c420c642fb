/* SPDX-License-Identifier: Apache-2.0 */
/* gc.h - removes what nothing needs any more: layers no build stands on, uploads, fetched blobs.
 *
 * Runs on the loop, where builds, tags and boxes are known: what any build of the catalogue, any running build or any
 * box names stays, however old. The rest is a cache and stays for a while after its last use. Removal is a rename here
 * and a walk on a worker thread later. */
#ifndef CLOCHE_WARDEN_BUILD_GC_H
#define CLOCHE_WARDEN_BUILD_GC_H

#include "base/base.h"

struct warden;

struct gc_params {
  bool only_say;
  int64_t unused_s;                            /* what was used in this time stays */
  struct str team;                             /* only layers that are this team's; empty: everything */
  void (*report)(const char *path, void *arg); /* of each thing that goes; may be NULL */
  void *arg;
};

/* How many things went (or would). */
size_t gc_run(struct warden *w, const struct gc_params *o);

#endif
