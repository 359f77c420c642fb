/* SPDX-License-Identifier: Apache-2.0 */
/* wire_isolation.c - words for tiers of isolation. */
#include "unit.h"

#include "wire/isolation.h"

static void words_and_numbers_are_each_others(void **state)
{
  unsigned n = 9;
  for (unsigned i = ISOLATION_ANY; i <= ISOLATION_MICROVM; i++) {
    assert_int_equal(isolation_read(str_of(isolation_name(i)), &n), 0);
    assert_int_equal(n, i);
  }
  assert_string_equal(isolation_name(77), "default");
  assert_int_equal(isolation_read(STR("gvisor"), &n), -EINVAL);
  assert_int_equal(isolation_read(STR_NONE, &n), -EINVAL);
  assert_int_equal(n, ISOLATION_MICROVM);
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(words_and_numbers_are_each_others)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
