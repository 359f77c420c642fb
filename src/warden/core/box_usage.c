/* SPDX-License-Identifier: Apache-2.0 */
/* box_usage.c - see box_usage.h. */
#include "warden/core/box_usage.h"

static void join_pairs(struct usage *u)
{
  size_t half = u->n / 2;
  for (size_t i = 0; i < half; i++) {
    struct wire_sample a = u->samples[2 * i], *b = &u->samples[2 * i + 1];
    double cpu = (a.cpu_pct + b->cpu_pct) / 2;
    u->samples[i] = *b;
    u->samples[i].cpu_pct = cpu;
  }
  u->n = half;
  u->step_us *= 2;
}

bool usage_add(struct usage *u, int64_t mono_us, int64_t age_us, uint64_t cpu_usec, const struct wire_sample *reading)
{
  if (!u->step_us)
    u->step_us = USAGE_STEP_US;
  if (u->n && mono_us - u->read_at_us < u->step_us - USAGE_STEP_US / 5)
    return false;
  struct wire_sample s = *reading;
  int64_t span = u->read_at_us ? mono_us - u->read_at_us : age_us;
  /* A box that was restored counts anew. */
  uint64_t busy = cpu_usec < u->cpu_usec ? cpu_usec : cpu_usec - u->cpu_usec;
  s.cpu_pct = span > 0 && s.cpus ? 100.0 * (double)busy / (double)span / s.cpus : 0;
  s.cpu_pct = MIN(s.cpu_pct, 100.0);
  u->cpu_usec = cpu_usec;
  u->read_at_us = mono_us;
  if (u->n == USAGE_SAMPLES)
    join_pairs(u);
  if (u->n == u->cap)
    vec_grow((void **)&u->samples, &u->cap, u->n + 1, sizeof(*u->samples));
  u->samples[u->n++] = s;
  return true;
}

void usage_free(struct usage *u)
{
  free(u->samples);
  *u = (struct usage){0};
}
