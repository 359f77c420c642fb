/* SPDX-License-Identifier: Apache-2.0 */
/* build_layer.h - layers by the key of what made them: <data>/layers/<key>/fs is the tree (absent when the step wrote
 * nothing), <key>/out the values a step was run for. A key that is there is a step that need not run again; using it
 * touches the directory, so that its time tells when it was last of use. Layers never change. */
#ifndef CLOCHE_WARDEN_BUILD_BUILD_LAYER_H
#define CLOCHE_WARDEN_BUILD_BUILD_LAYER_H

#include "warden/build/build_box.h"
#include "wire/sizes.h"

/* True: it is there. Its values are added to `out` (may be NULL), its tree's path goes to `fs` ("" = none). */
bool build_layer_find(struct build_run *run, const char *key, char fs[DATA_DIR_SIZE], struct buf *out);
/* What a stopped box wrote, and perhaps values, under that key; `box` NULL: values only. Another build that was quicker
 * wins. */
int build_layer_keep(struct build_run *run, const char *key, struct build_box *box, struct str out, struct err *err);
void build_layer_sweep(const char *data); /* at start: what was never finished */

#endif
