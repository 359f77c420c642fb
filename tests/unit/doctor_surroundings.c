/* SPDX-License-Identifier: Apache-2.0 */
/* Firewalls of others, as nft prints their chains. */
#include "doctor/surroundings.h"
#include "unit.h"

static void dockers_policy_is_found(void **state)
{
  static const char text[] = "table ip nat {\n\tchain DOCKER {\n\t}\n}\n"
                             "table ip filter {\n\tchain DOCKER-USER {\n\t}\n\tchain FORWARD {\n"
                             "\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n";
  char where[64];
  bool docker;
  assert_true(forward_drops(STR(text), where, sizeof(where), &docker));
  assert_true(docker);
  assert_string_equal(where, "ip filter FORWARD");
}

static void our_own_and_open_ones_are_left_alone(void **state)
{
  static const char text[] = "table inet cloche_0a1b2c3d {\n\tchain forward {\n"
                             "\t\ttype filter hook forward priority filter; policy drop;\n\t}\n}\n"
                             "table inet filter {\n\tchain forward {\n"
                             "\t\ttype filter hook forward priority filter; policy accept;\n\t}\n\tchain input {\n"
                             "\t\ttype filter hook input priority filter; policy drop;\n\t}\n}\n";
  char where[64];
  bool docker;
  assert_false(forward_drops(STR(text), where, sizeof(where), &docker));
  assert_false(docker);
  assert_false(forward_drops(STR(""), where, sizeof(where), &docker));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(dockers_policy_is_found),
      cmocka_unit_test(our_own_and_open_ones_are_left_alone),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
