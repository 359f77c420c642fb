/* SPDX-License-Identifier: Apache-2.0 */
/* Which boxes are frozen when the disk ends, and which one goes. */
#include "unit.h"
#include "warden/box/disk_guard.h"

#define MIB ((uint64_t)1 << 20)

static void the_steps_follow_the_mark(void **state)
{
  assert_int_equal(disk_guard_step(4096 * MIB, 1024 * MIB), DISK_ENOUGH);
  assert_int_equal(disk_guard_step(4095 * MIB, 1024 * MIB), DISK_NEAR);
  assert_int_equal(disk_guard_step(1024 * MIB, 1024 * MIB), DISK_NEAR);
  assert_int_equal(disk_guard_step(1023 * MIB, 1024 * MIB), DISK_FREEZE);
  assert_int_equal(disk_guard_step(256 * MIB, 1024 * MIB), DISK_FREEZE);
  assert_int_equal(disk_guard_step(255 * MIB, 1024 * MIB), DISK_END);
  assert_int_equal(disk_guard_step(0, 0), DISK_ENOUGH); /* the setting is 0 */
}

static void only_what_writes_is_frozen(void **state)
{
  const struct disk_user writes = {"a", 10 * MIB, MIB, true, false}, rests = {"a", 10 * MIB, MIB - 1, true, false};
  const struct disk_user frozen = {"a", 10 * MIB, MIB, false, false}, leaves = {"a", 10 * MIB, MIB, true, true};
  assert_true(disk_guard_writes(&writes));
  assert_false(disk_guard_writes(&rests));
  assert_false(disk_guard_writes(&frozen));
  assert_false(disk_guard_writes(&leaves));
}

/* A team that has much and does not write is not asked first: freezing it would help nobody. */
static void of_the_teams_that_write_the_one_that_takes_the_most_stops_first(void **state)
{
  const struct disk_user users[] = {{"a", 900 * MIB, 0, true, false},
                                    {"b", 100 * MIB, 50 * MIB, true, false},
                                    {"c", 40 * MIB, 2 * MIB, true, false},
                                    {"c", 80 * MIB, 0, true, false}};
  assert_string_equal(disk_guard_writer(users, ARRAY_LEN(users)), "c");
  assert_string_equal(disk_guard_writer(users, 2), "b");
  assert_null(disk_guard_writer(users, 1));
  assert_null(disk_guard_writer(NULL, 0));
}

static void the_largest_of_the_largest_team_goes(void **state)
{
  const struct disk_user users[] = {{"a", 500, 0, true, false},
                                    {"b", 300, 0, false, false},
                                    {"b", 310, 0, false, true}, /* on its way, and counts */
                                    {"c", 0, 0, true, false}};
  assert_int_equal(disk_guard_largest(users, ARRAY_LEN(users)), 1);
  assert_int_equal(disk_guard_largest(users + 3, 1), 1); /* it has nothing that could be freed */
  assert_int_equal(disk_guard_largest(NULL, 0), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_steps_follow_the_mark),
      cmocka_unit_test(only_what_writes_is_frozen),
      cmocka_unit_test(of_the_teams_that_write_the_one_that_takes_the_most_stops_first),
      cmocka_unit_test(the_largest_of_the_largest_team_goes),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
