/* SPDX-License-Identifier: Apache-2.0 */
/* source_spec.c - see source_spec.h. */
#include "warden/build/source_spec.h"

unsigned source_seconds(const struct source_spec *spec, unsigned most)
{
  int64_t left = spec->deadline_us ? (spec->deadline_us - clock_mono_us()) / 1000000 + 1 : most;
  return (unsigned)MAX(MIN(left, (int64_t)most), (int64_t)1);
}

void source_base_free(struct source_base *b)
{
  buf_free(&b->config);
  buf_free(&b->layers);
}
