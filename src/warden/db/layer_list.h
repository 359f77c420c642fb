/* SPDX-License-Identifier: Apache-2.0 */
/* layer_list.h - lists of layers as builds keep them: paths, top first, one per line. */
#ifndef CLOCHE_WARDEN_DB_LAYER_LIST_H
#define CLOCHE_WARDEN_DB_LAYER_LIST_H

#include "base/base.h"

/* The paths, and the runtime layer below them all; NULL-terminated, in the arena. */
const char *const *layer_stack(struct arena *a, struct str layers, const char *data, const char *runtime);
/* A tree with only what every launch writes: such a layer would only make a stack deeper. */
bool layer_empty(const char *fs);

#endif
