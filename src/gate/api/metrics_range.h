/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_range.h - `start` and `end` of a request for metrics. */
#ifndef CLOCHE_GATE_METRICS_RANGE_H
#define CLOCHE_GATE_METRICS_RANGE_H

#include "gate/api/api.h"

struct metrics_range {
  int64_t from_s, to_s; /* unix seconds; all there is when they are not given */
  int64_t bucket_s;     /* width of what is told as one: grows with the range */
};

/* Answers 400 itself and returns false. */
bool metrics_range(struct req *r, struct metrics_range *out);

#endif
