/* garbage.h - removes what nothing needs any more: layers no build stands on, uploads, fetched blobs.
 *
 * Runs on the loop, where builds, tags and boxes are known: what any build of the catalogue, any running build or any box
 * names stays, however old. The rest is a cache and stays for a while after its last use. Removal is a rename here and a
 * walk on a worker thread later. */
#ifndef CLOCHE_GARBAGE_H
#define CLOCHE_GARBAGE_H

#include "warden/warden.h"

struct garbage_order {
  bool only_say;
  int64_t unused_s;                          /* what was used in this time stays */
  void (*tell)(const char *path, void *arg); /* of each thing that goes; may be NULL */
  void *arg;
};

/* How many things went (or would). */
size_t garbage_collect(struct warden *w, const struct garbage_order *o);

#endif
