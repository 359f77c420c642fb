/* warden_clock.c - ten thousand deadlines on one timer, and samples in constant memory. */
#include "unit.h"

#include "warden/alarm.h"
#include "warden/box_usage.h"

#define MANY 10000

static uint64_t dice = 88172645463325252u;

static uint64_t roll(void)
{
  dice ^= dice << 13;
  dice ^= dice >> 7;
  dice ^= dice << 17;
  return dice;
}

static void alarms_ring_in_order_and_exactly_once(void **state)
{
  static struct alarm a[MANY];
  static int rang[MANY];
  struct alarms s = {0};
  memset(a, 0, sizeof(a));
  memset(rang, 0, sizeof(rang));
  for (size_t i = 0; i < MANY; i++)
    alarm_set(&s, &a[i], (int64_t)(roll() % 1000000));
  for (size_t i = 0; i < MANY; i++) { /* half are moved, a quarter is taken back */
    if (i % 2)
      alarm_set(&s, &a[i], (int64_t)(roll() % 1000000));
    if (i % 4 == 0)
      alarm_unset(&s, &a[i]);
  }
  int64_t last = -1;
  size_t count = 0;
  for (int64_t now = 0; now < 1000000; now += 100)
    for (struct alarm *due; (due = alarm_due(&s, now)); count++) {
      assert_true(due->at_us >= last && due->at_us <= now && due->at_us > now - 100);
      last = due->at_us;
      rang[due - a]++;
    }
  assert_int_equal(count, MANY - MANY / 4);
  for (size_t i = 0; i < MANY; i++)
    assert_int_equal(rang[i], i % 4 ? 1 : 0);
  assert_null(alarm_first(&s));
  alarms_free(&s);
}

static void an_alarm_may_be_set_again_while_it_rings(void **state)
{
  struct alarm a = {0}, b = {0};
  struct alarms s = {0};
  alarm_set(&s, &a, 10);
  alarm_set(&s, &b, 20);
  assert_ptr_equal(alarm_due(&s, 15), &a);
  assert_null(alarm_due(&s, 15));
  alarm_set(&s, &a, 30);
  assert_ptr_equal(alarm_first(&s), &b);
  alarm_unset(&s, &b);
  alarm_unset(&s, &b);
  assert_ptr_equal(alarm_due(&s, 30), &a);
  alarms_free(&s);
}

static void samples_thin_out_but_cover_a_whole_life(void **state)
{
  struct usage u = {0};
  int64_t now = 1;
  for (int i = 0; i < 100000; i++, now += USAGE_STEP_US)
    usage_add(&u, now, (uint64_t)i * 1000000, &(struct wire_sample){.wall_us = now, .cpus = 1, .mem_used = (uint64_t)i});
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
      cmocka_unit_test(alarms_ring_in_order_and_exactly_once),
      cmocka_unit_test(an_alarm_may_be_set_again_while_it_rings),
      cmocka_unit_test(samples_thin_out_but_cover_a_whole_life),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
