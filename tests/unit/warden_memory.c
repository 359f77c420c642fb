/* SPDX-License-Identifier: Apache-2.0 */
/* Whom a shortage of memory refuses, which box goes, and how long one is waited for. */
#include "unit.h"
#include "warden/box/memory_guard.h"

#define MIB ((uint64_t)1 << 20)

static void of_the_largest_team_one_that_is_kept_goes_first(void **state)
{
  const struct memory_user users[] = {{"a", 500, false, false},
                                      {"b", 100, true, false},
                                      {"b", 300, false, false},
                                      {"b", 310, false, false},
                                      {"c", 400, true, false}};
  assert_int_equal(memory_guard_choose(users, ARRAY_LEN(users)), 1); /* not the larger one of c */
}

static void otherwise_its_largest(void **state)
{
  const struct memory_user users[] = {
      {"a", 500, false, false}, {"b", 300, false, false}, {"b", 310, false, false}, {"c", 200, true, false}};
  assert_int_equal(memory_guard_choose(users, ARRAY_LEN(users)), 2);
  assert_int_equal(memory_guard_choose(users, 2), 0);
}

/* Many small ones that would be kept do not protect a large one, nor cost others their boxes meanwhile. */
static void a_small_one_that_is_kept_protects_no_large_one(void **state)
{
  const struct memory_user users[] = {
      {"a", 800, false, false}, {"a", 99, true, false}, {"a", 10, true, false}, {"b", 300, true, false}};
  assert_int_equal(memory_guard_choose(users, ARRAY_LEN(users)), 0);
  const struct memory_user enough[] = {{"a", 800, false, false}, {"a", 100, true, false}, {"b", 300, true, false}};
  assert_int_equal(memory_guard_choose(enough, ARRAY_LEN(enough)), 1);
}

static void one_whose_end_is_decided_counts_and_is_not_chosen_again(void **state)
{
  const struct memory_user users[] = {{"a", 800, false, true}, {"a", 20, false, false}, {"b", 300, true, false}};
  assert_int_equal(memory_guard_choose(users, ARRAY_LEN(users)), 1);
  assert_int_equal(memory_guard_choose(users, 1), 1); /* none */
}

static void none_goes_where_there_is_none(void **state)
{
  assert_int_equal(memory_guard_choose(NULL, 0), 0);
}

static void kept_is_what_a_pause_takes_out_of_memory(void **state)
{
  const unsigned kept = BOX_AUTO_PAUSE;
  assert_true(memory_guard_keeps(BOX_RUNNING, kept, true));
  assert_true(memory_guard_keeps(BOX_COPYING, kept, true));
  assert_true(memory_guard_keeps(BOX_PAUSING, 0, true)); /* on its way already */
  assert_true(memory_guard_keeps(BOX_RUNNING, kept | BOX_AUTO_COLD, false));
  assert_false(memory_guard_keeps(BOX_RUNNING, kept, false)); /* it would be frozen */
  assert_false(memory_guard_keeps(BOX_RUNNING, kept | BOX_MICROVM, true));
  assert_false(memory_guard_keeps(BOX_RUNNING, 0, true));
  assert_false(memory_guard_keeps(BOX_PAUSED, kept, true)); /* frozen */
  assert_false(memory_guard_keeps(BOX_RESUMING, kept, true));
}

static void a_pause_is_waited_for_up_to_a_bound_and_then_its_own_box_goes(void **state)
{
  assert_int_equal(memory_guard_relief(true, true, 0), RELIEF_WAIT);
  assert_int_equal(memory_guard_relief(true, true, MEMORY_RELIEF_US - 1), RELIEF_WAIT);
  assert_int_equal(memory_guard_relief(true, true, MEMORY_RELIEF_US), RELIEF_END);
  assert_int_equal(memory_guard_relief(true, false, MEMORY_SETTLE_US), RELIEF_CHOOSE);
  assert_int_equal(memory_guard_relief(false, false, MEMORY_SETTLE_US - 1), RELIEF_WAIT);
  assert_int_equal(memory_guard_relief(false, false, INT64_MAX), RELIEF_CHOOSE);
}

static bool refused(uint64_t available_mb, uint64_t own, uint64_t all, size_t teams)
{
  const struct memory_left left = {available_mb * MIB, 256, 128};
  return memory_guard_refuses(&left, own, all, teams);
}

static void below_the_first_mark_only_teams_that_use_their_share_are_refused(void **state)
{
  assert_false(refused(256, 900, 1000, 2));
  assert_true(refused(255, 900, 1000, 2));
  assert_false(refused(255, 100, 1000, 2));
  assert_false(refused(128, 0, 1000, 2)); /* a team without boxes */
  assert_false(refused(128, 0, 0, 0));
  assert_true(refused(255, 1000, 1000, 1)); /* it has all there is */
}

static void below_the_second_everyone_is(void **state)
{
  assert_true(refused(127, 0, 1000, 2));
  assert_true(refused(127, 0, 0, 0));
  const struct memory_left no_kill = {127 * MIB, 256, 0}, no_low = {1 * MIB, 0, 128};
  assert_true(memory_guard_refuses(&no_kill, 0, 0, 0));
  assert_false(memory_guard_refuses(&no_low, 10, 10, 1));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(of_the_largest_team_one_that_is_kept_goes_first),
      cmocka_unit_test(otherwise_its_largest),
      cmocka_unit_test(a_small_one_that_is_kept_protects_no_large_one),
      cmocka_unit_test(one_whose_end_is_decided_counts_and_is_not_chosen_again),
      cmocka_unit_test(none_goes_where_there_is_none),
      cmocka_unit_test(kept_is_what_a_pause_takes_out_of_memory),
      cmocka_unit_test(a_pause_is_waited_for_up_to_a_bound_and_then_its_own_box_goes),
      cmocka_unit_test(below_the_first_mark_only_teams_that_use_their_share_are_refused),
      cmocka_unit_test(below_the_second_everyone_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
