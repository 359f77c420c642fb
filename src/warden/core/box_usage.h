/* SPDX-License-Identifier: Apache-2.0 */
/* box_usage.h - what a box used over its life, in constant memory: when the row of samples is full, neighbours are
 * joined and the distance between samples doubles. */
#ifndef CLOCHE_WARDEN_BOX_USAGE_H
#define CLOCHE_WARDEN_BOX_USAGE_H

#include "wire/wire.h"

#define USAGE_SAMPLES 720
#define USAGE_STEP_US 5000000 /* first distance: 5 s, so an hour at full detail */

struct usage {
  struct wire_sample *samples;
  size_t n, cap;
  int64_t step_us;
  uint64_t cpu_usec;  /* at the last reading */
  int64_t read_at_us; /* monotonic */
  uint64_t care_usec; /* of the warden, for taking the readings */
};

/* Takes one reading. age_us: of the box, over which the first one is told. Returns true when a sample was kept. */
bool usage_add(struct usage *u, int64_t mono_us, int64_t age_us, uint64_t cpu_usec, const struct wire_sample *reading);
void usage_free(struct usage *u);

#endif
