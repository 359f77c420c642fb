/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - readings of a box's use, as the warden keeps them. Counters and sizes come from the box's control groups
 * and disk: they go back after a restore, stand still, or jump. However they run, a bounded number is kept, in order,
 * with shares between 0 and 100. */
#include "must.h"

#include "warden/core/box_usage.h"

#include <math.h>

struct step {
  uint32_t gap_ms;
  uint64_t cpu_usec;
  uint8_t cpus;
  uint8_t fill;
} __attribute__((packed));

static void check(const struct usage *u)
{
  MUST(u->n <= USAGE_SAMPLES);
  for (size_t i = 0; i < u->n; i++)
    MUST(isfinite(u->samples[i].cpu_pct) && u->samples[i].cpu_pct >= 0 && u->samples[i].cpu_pct <= 100);
  for (size_t i = 1; i < u->n; i++)
    MUST(u->samples[i].wall_us >= u->samples[i - 1].wall_us);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct usage u = {0};
  int64_t now = 1;
  for (size_t at = 0; at + sizeof(struct step) <= size; at += sizeof(struct step)) {
    struct step s;
    memcpy(&s, data + at, sizeof(s));
    struct wire_sample reading;
    memset(&reading, s.fill, sizeof(reading));
    now += (int64_t)s.gap_ms * 1000;
    reading.wall_us = now;
    reading.cpus = s.cpus;
    reading.cpu_pct = 0;
    for (unsigned i = 0; i <= s.fill; i++) {
      now += s.fill * 1000000ll;
      reading.wall_us = now;
      usage_add(&u, now, 1000000, s.cpu_usec + i, &reading);
    }
    check(&u);
  }
  usage_free(&u);
  return 0;
}
