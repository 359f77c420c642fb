/* SPDX-License-Identifier: Apache-2.0 */
/* warden_clock.c - samples of a box's usage in constant memory. */
#include "unit.h"

#include "warden/core/box_usage.h"

static void samples_thin_out_but_cover_a_whole_life(void **state)
{
  struct usage u = {0};
  int64_t now = 1;
  for (int i = 0; i < 100000; i++, now += USAGE_STEP_US)
    usage_add(&u, now, 5000000, (uint64_t)i * 1000000,
              &(struct wire_sample){.wall_us = now, .cpus = 1, .mem_used = (uint64_t)i});
  assert_true(u.n <= USAGE_SAMPLES && u.n >= USAGE_SAMPLES / 4);
  assert_true(u.samples[u.n - 1].wall_us > now - 2 * u.step_us);
  for (size_t i = 1; i < u.n; i++) {
    assert_true(u.samples[i].wall_us > u.samples[i - 1].wall_us);
    assert_true(u.samples[i].cpu_pct >= 0 && u.samples[i].cpu_pct <= 100);
  }
  usage_free(&u);
}

static void figures_are_fine_enough_for_an_idle_box(void **state)
{
  struct usage u = {0};
  const struct wire_sample reading = {.cpus = 2};
  assert_true(usage_add(&u, 1000000, 4000000, 40000, &reading)); /* the first: over the box's life so far */
  assert_true(u.samples[0].cpu_pct > 0.49 && u.samples[0].cpu_pct < 0.51);
  assert_true(usage_add(&u, 6000000, 9000000, 40050, &reading)); /* 50 us of 5 s on two processors */
  assert_true(u.samples[1].cpu_pct > 0.00049 && u.samples[1].cpu_pct < 0.00051);
  assert_true(usage_add(&u, 11000000, 14000000, 100, &reading)); /* restored: its count began anew */
  assert_true(u.samples[2].cpu_pct > 0.00099 && u.samples[2].cpu_pct < 0.00101);
  usage_free(&u);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(samples_thin_out_but_cover_a_whole_life),
      cmocka_unit_test(figures_are_fine_enough_for_an_idle_box),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
