/* SPDX-License-Identifier: Apache-2.0 */
/* build_keep.h - the very box in which a build failed, kept as a sandbox to look around in (recipe.keep): its
 * processes, mounts and environment stay as the failed step left them. It is one of the team's sandboxes from then on,
 * counted and timed. */
#ifndef CLOCHE_WARDEN_BUILD_BUILD_KEEP_H
#define CLOCHE_WARDEN_BUILD_BUILD_KEEP_H

#include "warden/build/build_box.h"

/* Is there one worth keeping after `result`? Not of a build that was cancelled, nor of a box that is gone. */
bool build_keep_wanted(const struct build_box *b, int result);
/* Lets go of it and leaves it frozen, so that its files can be copied. */
int build_keep_hold(struct build_box *b, struct err *err);
/* Makes it a sandbox; the log tells which one. On failure the box is still the caller's. */
int build_keep_give(struct build_box *b, struct err *err);

#endif
