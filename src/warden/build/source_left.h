/* SPDX-License-Identifier: Apache-2.0 */
/* source_left.h - what becomes of the unpacker's id range when it is done. On the loop. */
#ifndef CLOCHE_WARDEN_BUILD_SOURCE_LEFT_H
#define CLOCHE_WARDEN_BUILD_SOURCE_LEFT_H

#include "warden/build/source_spec.h"

struct warden;

/* The slot is free, or as soon as what is left of the unpacker's box is gone. */
void source_reclaim(struct warden *w, const char *team, const struct source_left *left, unsigned slot);

#endif
