/* SPDX-License-Identifier: Apache-2.0 */
/* Which box goes when the machine runs out of memory. */
#include "unit.h"
#include "warden/box/memory_guard.h"

static void one_that_is_kept_goes_first(void **state)
{
  const struct memory_user users[] = {{"a", 900, false}, {"b", 10, true}, {"b", 20, true}, {"c", 5, false}};
  assert_int_equal(memory_guard_choose(users, ARRAY_LEN(users)), 2);
}

static void then_the_largest_of_the_largest_team(void **state)
{
  const struct memory_user users[] = {{"a", 500, false}, {"b", 300, false}, {"b", 310, false}, {"c", 200, false}};
  assert_int_equal(memory_guard_choose(users, ARRAY_LEN(users)), 2);
  assert_int_equal(memory_guard_choose(users, 2), 0);
}

static void none_goes_where_there_is_none(void **state)
{
  assert_int_equal(memory_guard_choose(NULL, 0), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_that_is_kept_goes_first),
      cmocka_unit_test(then_the_largest_of_the_largest_team),
      cmocka_unit_test(none_goes_where_there_is_none),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
