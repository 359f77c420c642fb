/* SPDX-License-Identifier: Apache-2.0 */
/* zygote_key.h - what a loaded Python of a template stands on: the layers from the topmost one down that has a say in
 * what is loaded, and the variables that libraries read while they are loaded. Templates with one key share one
 * loaded Python; a template that only adds files elsewhere has the key of the one it was made from. */
#ifndef CLOCHE_WARDEN_WARM_ZYGOTE_KEY_H
#define CLOCHE_WARDEN_WARM_ZYGOTE_KEY_H

#include "base/base.h"

struct zygote_key {
  struct buf layers; /* paths, top first, one per line */
  struct buf env;    /* NAME=VALUE, each ended by a NUL, in the order of their names */
};

/* From a build's list of layers and its settings. Looks into the layers' directories. */
void zygote_key_find(struct zygote_key *f, struct str layers, struct str config);
void zygote_key_hash(const struct zygote_key *f, char key[2 * SHA256_LEN + 1]);
void zygote_key_free(struct zygote_key *f);

/* Whether files of this layer may change what a Python below it would load. */
bool zygote_key_touched(const char *layer);

#endif
