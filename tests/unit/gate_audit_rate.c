/* SPDX-License-Identifier: Apache-2.0 */
/* How many records of one team, and of nobody, get into the audit log, and that the rest is counted. */
#include "gate/audit_rate.h"
#include "unit.h"

#include <stdio.h>

struct told {
  size_t n;
  uint64_t nobody, team;
};

static void note(struct str team, uint64_t n, void *arg)
{
  struct told *t = arg;
  t->n++;
  *(team.n ? &t->team : &t->nobody) += n;
}

static size_t takes(struct audit_rates *a, struct str team, uint64_t now, size_t times, unsigned rate)
{
  size_t taken = 0;
  for (size_t i = 0; i < times; i++)
    taken += audit_rates_take(a, team, now, rate);
  return taken;
}

static void strangers_get_a_burst_and_then_their_rate(void **state)
{
  struct audit_rates a = {0};
  assert_int_equal(takes(&a, STR_NONE, 1000, 32000, 10), 100);
  assert_int_equal(takes(&a, STR_NONE, 2000, 32000, 10), 10);
  struct told t = {0};
  audit_rates_tell(&a, 2000, note, &t);
  assert_int_equal(t.n, 1);
  assert_int_equal(t.nobody, 64000 - 110);
  audit_rates_tell(&a, 2000, note, &t); /* told once */
  assert_int_equal(t.n, 1);
}

static void teams_and_strangers_do_not_take_from_each_other(void **state)
{
  struct audit_rates a = {0};
  struct told t = {0};
  takes(&a, STR_NONE, 1000, 1000, 10);
  assert_int_equal(takes(&a, STR("one"), 1000, 5000, 200), 2000);
  assert_int_equal(takes(&a, STR("two"), 1000, 50, 200), 50);
  audit_rates_tell(&a, 1000, note, &t);
  assert_int_equal(t.n, 2); /* nobody and team one */
  assert_int_equal(t.team, 3000);
  assert_int_equal(a.teams.n, 2);
  audit_rates_tell(&a, 100000, note, &t);
  assert_int_equal(t.n, 2);
  assert_int_equal(a.teams.n, 0); /* who is quiet takes no memory */
}

static void a_team_that_was_told_of_is_still_held_to_its_rate(void **state)
{
  struct audit_rates a = {0};
  struct told t = {0};
  takes(&a, STR("one"), 1000, 3000, 200);
  audit_rates_tell(&a, 1000, note, &t);
  assert_int_equal(takes(&a, STR("one"), 1000, 100, 200), 0);
  audit_rates_tell(&a, 1000, note, &t);
  audit_rates_tell(&a, 100000, note, &t);
  assert_int_equal(t.team, 1100);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(strangers_get_a_burst_and_then_their_rate),
      cmocka_unit_test(teams_and_strangers_do_not_take_from_each_other),
      cmocka_unit_test(a_team_that_was_told_of_is_still_held_to_its_rate),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
