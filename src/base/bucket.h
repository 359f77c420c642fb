/* SPDX-License-Identifier: Apache-2.0 */
/* bucket.h - so much a second, and a burst of it at once. */
#ifndef CLOCHE_BASE_BUCKET_H
#define CLOCHE_BASE_BUCKET_H

#include "base/core.h"

/* What may be done now. All zeros at first: `bucket_take` fills it. */
struct bucket {
  double level;
  uint64_t at; /* milliseconds of a clock that is never set back, not 0 */
};

static inline bool bucket_take(struct bucket *b, uint64_t now, unsigned a_second, unsigned burst)
{
  b->level = b->at ? MIN((double)burst, b->level + (double)(now - b->at) * a_second / 1000) : burst;
  b->at = now;
  if (b->level < 1)
    return false;
  b->level -= 1;
  return true;
}

#endif
