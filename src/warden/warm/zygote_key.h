/* footing.h - what a loaded Python of a template stands on: the layers from the topmost one down that has a say in what is loaded,
 * and the variables that libraries read while they are loaded. Templates with one footing share one loaded Python; a template that only
 * adds files elsewhere has the footing of the one it was made from. */
#ifndef CLOCHE_FOOTING_H
#define CLOCHE_FOOTING_H

#include "base/base.h"

struct footing {
  struct buf layers; /* paths, top first, one per line */
  struct buf env;    /* NAME=VALUE, each ended by a NUL, in the order of their names */
};

/* From a build's list of layers and its settings. Looks into the layers' directories. */
void footing_find(struct footing *f, struct str layers, struct str config);
void footing_key(const struct footing *f, char key[2 * SHA256_LEN + 1]);
void footing_free(struct footing *f);

/* Whether files of this layer may change what a Python below it would load. */
bool footing_touched(const char *layer);

#endif
