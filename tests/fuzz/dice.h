/* SPDX-License-Identifier: Apache-2.0 */
/* dice.h - cuts and choices that are random, and the same for the same input. */
#ifndef CLOCHE_FUZZ_DICE_H
#define CLOCHE_FUZZ_DICE_H

#include "base/base.h"

static uint64_t dice;

static inline size_t roll(size_t max)
{
  dice ^= dice << 13;
  dice ^= dice >> 7;
  dice ^= dice << 17;
  return 1 + (size_t)(dice % max);
}

static inline void dice_set(struct str in)
{
  dice = 0xcbf29ce484222325u;
  for (size_t i = 0; i < in.n; i++)
    dice = (dice ^ (unsigned char)in.p[i]) * 0x100000001b3u;
  dice |= 1;
}

#endif
