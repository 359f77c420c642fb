/* SPDX-License-Identifier: Apache-2.0 */
/* warden_box_meter.c - counters of boxes: those with series of their own, the others together, none ever going back. */
#include "unit.h"

#include "warden/core/box_meter.h"

static void bytes_of_the_link_and_no_other_interface_are_read(void **state)
{
  struct box_reading got = {0};
  box_meter_parse(STR("Inter-|   Receive  |  Transmit\n face |bytes packets\n"
                      "    lo:  99 1 0 0 0 0 0 0 99 1 0 0 0 0 0 0\n"
                      "xeth0:  77 1 0 0 0 0 0 0 77 1 0 0 0 0 0 0\n"
                      "  eth0: 1234  10    0    0    0     0          0         0     5678   9 0 0 0 0 0 0\n"),
                  &got);
  assert_int_equal(got.net_in, 1234);
  assert_int_equal(got.net_out, 5678);
  struct box_reading none = {0};
  box_meter_parse(STR("eth0: 1 2 3\neth0: x 1 1 1 1 1 1 1 1\neth0"), &none);
  assert_int_equal(none.net_out, 0);
}

static void boxes_without_counters_of_their_own_share_some(void **state)
{
  struct box_meters all = {0};
  struct box_meter first = {0}, second = {0};
  box_meter_add(&all, &first, 1, &(struct box_reading){100, 10, 1});
  box_meter_add(&all, &second, 1, &(struct box_reading){7, 0, 0});
  box_meter_add(&all, &first, 1, &(struct box_reading){150, 10, 2});
  box_meter_add(&all, &second, 1, &(struct box_reading){9, 0, 0});
  assert_true(first.own && !second.own);
  assert_int_equal(first.total.cpu_usec, 150);
  assert_int_equal(first.total.net_out, 2);
  assert_int_equal(all.others.cpu_usec, 9);
  box_meter_add(&all, &first, 1, &(struct box_reading){30, 5, 0}); /* restored: its control group is a new one */
  assert_int_equal(first.total.cpu_usec, 180);
  assert_int_equal(first.total.net_in, 15);
  box_meter_drop(&all, &first);
  box_meter_drop(&all, &first);
  box_meter_add(&all, &second, 1, &(struct box_reading){10, 0, 0});
  assert_true(second.own);
  assert_int_equal(second.total.cpu_usec, 1);
  assert_int_equal(all.others.cpu_usec, 9);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(bytes_of_the_link_and_no_other_interface_are_read),
      cmocka_unit_test(boxes_without_counters_of_their_own_share_some),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
