/* SPDX-License-Identifier: Apache-2.0 */
/* warden_clock.c - samples of a box's usage in constant memory. */
#include "unit.h"

#include "warden/core/box_usage.h"

static void samples_thin_out_but_cover_a_whole_life(void **state)
{
  struct usage u = {0};
  int64_t now = 1;
  for (int i = 0; i < 100000; i++, now += USAGE_STEP_US)
    usage_add(&u, now, (uint64_t)i * 1000000,
              &(struct wire_sample){.wall_us = now, .cpus = 1, .mem_used = (uint64_t)i});
  assert_true(u.n <= USAGE_SAMPLES && u.n >= USAGE_SAMPLES / 4);
  assert_true(u.samples[u.n - 1].wall_us > now - 2 * u.step_us);
  for (size_t i = 1; i < u.n; i++) {
    assert_true(u.samples[i].wall_us > u.samples[i - 1].wall_us);
    assert_true(u.samples[i].cpu_pct >= 0 && u.samples[i].cpu_pct <= 100);
  }
  usage_free(&u);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples_thin_out_but_cover_a_whole_life),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
