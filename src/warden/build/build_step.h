/* SPDX-License-Identifier: Apache-2.0 */
/* build_step.h - what each step of a recipe does. */
#ifndef CLOCHE_WARDEN_BUILD_BUILD_STEP_H
#define CLOCHE_WARDEN_BUILD_BUILD_STEP_H

#include "warden/build/build_run.h"

/* Runs step i (from 0), or takes it from the cache, and moves the state on. */
int build_step(struct build_run *run, size_t i, struct err *err);
/* The first layer above an image: the user `user`, its home, sudo. */
int build_settle(struct build_run *run, struct err *err);
/* Starts the start command in a box of the finished layers and waits until it is ready. */
int build_finalize(struct build_run *run, struct err *err);

#endif
