/* SPDX-License-Identifier: Apache-2.0 */
/* warden_warm_pool.c - how many boxes are made ahead, and when they are made and dropped. */
#include "unit.h"

#include "warden/warm/warm_policy.h"

/* ---- how many ---- */

static void the_usual_number_is_the_pools_setting(void **state)
{
  assert_int_equal(warm_usual((struct warm_build){.plain = true}, 4, 2), 4);
  assert_int_equal(warm_usual((struct warm_build){0}, 4, 2), 4); /* a copy without memory is cheap */
  assert_int_equal(warm_usual((struct warm_build){.plain = true, .checkpoint = true}, 4, 2), 2);
  assert_int_equal(warm_usual((struct warm_build){.checkpoint = true}, 4, 2), 0); /* a snapshot with memory */
  assert_int_equal(warm_usual((struct warm_build){.plain = true, .retired = true}, 4, 2), 0);
  assert_int_equal(warm_usual((struct warm_build){.plain = true}, 0, 2), 0); /* the pool is off */
}

static void a_pool_that_is_off_keeps_nothing_for_a_burst_either(void **state)
{
  assert_int_equal(warm_wanted(4, 3), 7);
  assert_int_equal(warm_wanted(0, 3), 0);
}

static void as_many_as_were_missing_at_once_are_kept_from_then_on(void **state)
{
  size_t more = 0;
  for (size_t missed = 1; missed <= 5; missed++) {
    assert_true(warm_burst(missed, 100, &more));
    assert_int_equal(more, missed);
  }
  assert_false(warm_burst(4, 100, &more)); /* a smaller one */
  assert_int_equal(more, 5);
  assert_true(warm_burst(5, 100, &more)); /* the same again: it is remembered anew */
  assert_true(warm_burst(300, 100, &more));
  assert_int_equal(more, 100);
  more = 0;
  assert_true(warm_burst(1, 0, &more));
  assert_int_equal(more, 0); /* none are wanted beside */
}

static void with_each_calm_period_half_of_them_go(void **state)
{
  size_t more = 100, periods = 0;
  assert_int_equal(warm_calmed(100, 59999999, 60000000), 100);
  for (; more; periods++)
    more = warm_calmed(more, 60000000, 60000000);
  assert_int_equal(periods, 7);
}

static const struct warm_spare favoured = {.favoured = true, .available_kb = 1 << 20, .percent = 2, .most = 100};

static void spare_boxes_fit_a_part_of_the_available_memory(void **state)
{
  assert_int_equal(warm_expected(4, 0, favoured), 4 + 6); /* 2 % of 1 GiB are 20 MiB, 3 MiB each */
  struct warm_spare s = favoured;
  s.available_kb = (uint64_t)1 << 30;
  assert_int_equal(warm_expected(4, 0, s), 104); /* a hundred at most */
  s.available_kb = 1000;
  assert_int_equal(warm_expected(4, 0, s), 4);
  s = favoured;
  s.percent = 0;
  assert_int_equal(warm_expected(4, 0, s), 4);
}

static void boxes_kept_for_a_burst_count_among_the_spare_ones(void **state)
{
  assert_int_equal(warm_expected(4 + 2, 2, favoured), 10);
  assert_int_equal(warm_expected(4 + 6, 6, favoured), 10);
  assert_int_equal(warm_expected(4 + 9, 9, favoured), 13);
}

static void only_the_favoured_pool_that_is_in_use_has_spare_boxes(void **state)
{
  struct warm_spare s = favoured;
  assert_int_equal(warm_expected(0, 0, favoured), 0);
  s.favoured = false;
  assert_int_equal(warm_expected(4, 0, s), 4);
  s = favoured;
  s.idle_us = POOL_COLD_US;
  assert_int_equal(warm_expected(4, 0, s), 10);
  s.idle_us++;
  assert_int_equal(warm_expected(4, 0, s), 4);
}

static void a_few_more_than_expected_are_not_worth_dropping(void **state)
{
  assert_int_equal(warm_surplus(10, 4, 10), 0);
  assert_int_equal(warm_surplus(10 + SPARE_SLACK, 4, 10), 0);
  assert_int_equal(warm_surplus(15, 4, 10), 3);
  assert_int_equal(warm_surplus(5, 4, 4), 1); /* without spare boxes the number is exact */
  assert_int_equal(warm_surplus(3, 0, 0), 3);
}

/* ---- when ---- */

static void a_pool_that_nobody_used_for_a_while_is_emptied(void **state)
{
  struct warm_use use = {.idle_us = POOL_COLD_US, .newer_most = 8};
  assert_false(warm_useless(use));
  use.idle_us++;
  assert_true(warm_useless(use));
  use.public = true; /* but for public templates */
  assert_false(warm_useless(use));
  use.stale = true; /* while their default tag points to this build */
  assert_true(warm_useless(use));
  use.idle_us = POOL_STALE_US;
  assert_false(warm_useless(use));
  use.retired = true;
  assert_true(warm_useless(use));
  use = (struct warm_use){.public = true, .retired = true, .newer_most = 8};
  assert_true(warm_useless(use));
}

static void the_latest_used_private_templates_keep_their_pools(void **state)
{
  struct warm_use use = {.newer = 7, .newer_most = 8};
  assert_false(warm_useless(use));
  use.newer = 8;
  assert_true(warm_useless(use));
  use.public = true;
  assert_false(warm_useless(use));
}

static void two_boxes_are_made_at_a_time_until_the_pool_is_full(void **state)
{
  assert_int_equal(warm_launches((struct warm_counts){0}, 4), 2);
  assert_int_equal(warm_launches((struct warm_counts){.coming = 1}, 4), 1);
  assert_int_equal(warm_launches((struct warm_counts){.coming = 2}, 4), 0);
  assert_int_equal(warm_launches((struct warm_counts){.ready = 3}, 4), 1);
  assert_int_equal(warm_launches((struct warm_counts){.ready = 3, .coming = 1}, 4), 0);
  assert_int_equal(warm_launches((struct warm_counts){.ready = 9}, 4), 0);
  assert_int_equal(warm_launches((struct warm_counts){0}, 0), 0);
}

static void creates_that_found_nothing_come_before_the_pool(void **state)
{
  assert_int_equal(warm_launches((struct warm_counts){.missed = POOL_LAUNCHES}, 4), 2);
  assert_int_equal(warm_launches((struct warm_counts){.missed = POOL_LAUNCHES + 1}, 4), 0);
}

static void restored_boxes_come_one_by_one_within_their_memory(void **state)
{
  assert_true(warm_may_restore(0, 0, 0, 100, 100));
  assert_false(warm_may_restore(0, 0, 1, 100, 100));
  assert_false(warm_may_restore(1, 0, 0, 10, 100)); /* one is under way */
  assert_false(warm_may_restore(0, 1, 0, 10, 100)); /* a client waits for a restore */
}

/* All of one team, with a limit that they fill. */
static bool room_for(struct warm_holder *v, size_t n, int64_t used_us, uint64_t lacking)
{
  struct warm_asker a = {.used_us = used_us, .one = 100, .lacking = lacking};
  for (size_t i = 0; i < n; i++)
    a.most += v[i].ready * v[i].one;
  return warm_make_room(v, n, &a);
}

static void a_team_over_its_share_gives_to_one_below_it(void **state)
{
  struct warm_holder v[] = {{.team = 0, .used_us = 50, .ready = 3, .one = 100},
                            {.team = 0, .used_us = 40, .ready = 3, .one = 100},
                            {.team = 2, .used_us = 1, .ready = 2, .one = 100}};
  struct warm_asker a = {.team = 7, .used_us = 30, .one = 100, .most = 800, .lacking = 100};
  assert_true(warm_make_room(v, 3, &a)); /* its boxes were used since; of its own, the least recently used go */
  assert_int_equal(v[1].give, 1);
  assert_int_equal(v[0].give + v[2].give, 0);
  a.lacking = 300;
  assert_true(warm_make_room(v, 3, &a));
  assert_int_equal(v[1].give, 3);
  assert_int_equal(v[0].give + v[2].give, 0);
}

static void a_team_at_its_share_takes_from_itself_only(void **state)
{
  struct warm_holder v[] = {{.team = 0, .used_us = 50, .ready = 2, .one = 100},
                            {.team = 0, .used_us = 40, .ready = 2, .one = 100},
                            {.team = 1, .used_us = 1, .ready = 4, .one = 100}};
  struct warm_asker a = {.team = 0, .used_us = 60, .one = 100, .most = 800, .lacking = 100};
  assert_true(warm_make_room(v, 3, &a));
  assert_int_equal(v[1].give, 1);
  assert_int_equal(v[2].give, 0); /* though it was not used for long */
  a.lacking = 500;
  assert_false(warm_make_room(v, 3, &a));
}

static void what_is_too_much_goes_from_the_team_that_holds_the_most(void **state)
{
  struct warm_holder v[] = {{.team = 0, .used_us = 50, .ready = 1, .coming = 5, .one = 100},
                            {.team = 1, .used_us = 40, .ready = 2, .one = 100},
                            {.team = 1, .used_us = 30, .ready = 2, .one = 100},
                            {.team = 2, .used_us = 20, .ready = 1, .one = 100}};
  struct warm_asker a = {.team = WARM_NOBODY, .most = 900, .lacking = 200};
  assert_true(warm_make_room(v, 4, &a));
  assert_int_equal(v[0].give, 1); /* what is on its way can't be given */
  assert_int_equal(v[2].give, 1);
  assert_int_equal(v[1].give + v[3].give, 0);
}

static void the_least_recently_used_pool_gives_its_boxes_first(void **state)
{
  struct warm_holder v[] = {{.used_us = 30, .ready = 2, .one = 100},
                            {.used_us = 10, .ready = 2, .one = 100},
                            {.used_us = 20, .ready = 2, .one = 100}};
  assert_true(room_for(v, 3, 40, 100));
  assert_int_equal(v[1].give, 1);
  assert_int_equal(v[0].give + v[2].give, 0);
  assert_true(room_for(v, 3, 40, 250));
  assert_int_equal(v[1].give, 2);
  assert_int_equal(v[2].give, 1);
  assert_int_equal(v[0].give, 0);
  assert_true(room_for(v, 3, 40, 0)); /* there is room */
  assert_int_equal(v[0].give + v[1].give + v[2].give, 0);
}

static void no_pool_gives_a_box_to_one_that_was_used_before_it(void **state)
{
  struct warm_holder v[] = {{.used_us = 30, .ready = 2, .one = 100}, {.used_us = 10, .ready = 1, .one = 100}};
  assert_true(room_for(v, 2, 20, 100));
  assert_int_equal(v[1].give, 1);
  assert_false(room_for(v, 2, 20, 101)); /* the other was used since */
  assert_int_equal(v[0].give, 0);
  assert_false(room_for(v, 2, 10, 1)); /* nor to itself */
  assert_int_equal(v[0].give + v[1].give, 0);
}

static void a_pool_is_low_below_half(void **state)
{
  assert_true(warm_low((struct warm_counts){.ready = 1}, 4));
  assert_false(warm_low((struct warm_counts){.ready = 1, .coming = 1}, 4));
  assert_false(warm_low((struct warm_counts){0}, 0));
}

/* ---- spare boxes ---- */

static bool idle_now;
static unsigned looks;

static bool idle(void)
{
  looks++;
  return idle_now;
}

static const int64_t T = 1000000000;

static void no_spare_box_is_made_while_somebody_asks(void **state)
{
  struct spare_clock c = {.spree_us = T + SPARE_SPREE_US};
  struct spare_load load = {.asked_us = T - SPARE_CALM_US + 1};
  int64_t again;
  looks = 0;
  assert_int_equal(spare_pace(&c, load, 0, T, idle, &again), 0);
  assert_int_equal(again, T + 1); /* as soon as it has been calm long enough */
  assert_int_equal(c.spree_us, 0);
  assert_int_equal(looks, 0);
}

static void on_idle_processors_spare_boxes_are_made_in_a_spree(void **state)
{
  struct spare_clock c = {0};
  struct spare_load load = {0};
  int64_t again;
  looks = 0;
  idle_now = true;
  assert_int_equal(spare_pace(&c, load, 0, T, idle, &again), POOL_LAUNCHES);
  load.launches = 2; /* its own */
  idle_now = false;  /* by their work */
  assert_int_equal(spare_pace(&c, load, 2, T + 1000, idle, &again), POOL_LAUNCHES);
  assert_int_equal(again, 0);
  assert_int_equal(looks, 1);
  assert_int_equal(spare_pace(&c, load, 2, T + SPARE_SPREE_US, idle, &again), 0); /* it is over */
  assert_int_equal(looks, 2);
}

static void on_busy_processors_a_spare_box_is_made_now_and_then(void **state)
{
  struct spare_clock c = {.begun_us = T - SPARE_BUSY_US};
  struct spare_load load = {0};
  int64_t again;
  looks = 0;
  idle_now = false;
  assert_int_equal(spare_pace(&c, load, 0, T, idle, &again), 0);
  assert_int_equal(again, T + SPARE_LOOK_US);
  assert_int_equal(spare_pace(&c, load, 0, T + 1, idle, &again), 1);
  assert_int_equal(looks, 1); /* not twice within SPARE_LOOK_US */
  load.launches = 1;
  assert_int_equal(spare_pace(&c, load, 0, T + 1, idle, &again), 0);
}

static void other_work_of_the_warden_starts_no_spree(void **state)
{
  static const struct spare_load loads[] = {{.launches = 1}, {.removals = 1}, {.restores = 1}};
  int64_t again;
  idle_now = true;
  for (size_t i = 0; i < ARRAY_LEN(loads); i++) {
    struct spare_clock c = {.begun_us = T};
    assert_int_equal(spare_pace(&c, loads[i], 0, T, idle, &again), 0);
    assert_int_equal(c.spree_us, 0);
  }
}

static void spare_boxes_do_not_move_with_every_request(void **state)
{
  const struct warm_build plain = {.plain = true}, retired = {.plain = true, .retired = true},
                          restored = {.plain = true, .checkpoint = true};
  assert_true(spare_moves(plain, NULL, 0));
  assert_false(spare_moves(plain, &plain, SPARE_KEEP_US));
  assert_true(spare_moves(plain, &plain, SPARE_KEEP_US + 1));
  assert_true(spare_moves(plain, &retired, 0));
  assert_false(spare_moves(restored, NULL, 0));
  assert_false(spare_moves(restored, &retired, SPARE_KEEP_US + 1));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_usual_number_is_the_pools_setting),
      cmocka_unit_test(a_pool_that_is_off_keeps_nothing_for_a_burst_either),
      cmocka_unit_test(as_many_as_were_missing_at_once_are_kept_from_then_on),
      cmocka_unit_test(with_each_calm_period_half_of_them_go),
      cmocka_unit_test(spare_boxes_fit_a_part_of_the_available_memory),
      cmocka_unit_test(boxes_kept_for_a_burst_count_among_the_spare_ones),
      cmocka_unit_test(only_the_favoured_pool_that_is_in_use_has_spare_boxes),
      cmocka_unit_test(a_few_more_than_expected_are_not_worth_dropping),
      cmocka_unit_test(a_pool_that_nobody_used_for_a_while_is_emptied),
      cmocka_unit_test(the_latest_used_private_templates_keep_their_pools),
      cmocka_unit_test(two_boxes_are_made_at_a_time_until_the_pool_is_full),
      cmocka_unit_test(creates_that_found_nothing_come_before_the_pool),
      cmocka_unit_test(restored_boxes_come_one_by_one_within_their_memory),
      cmocka_unit_test(the_least_recently_used_pool_gives_its_boxes_first),
      cmocka_unit_test(no_pool_gives_a_box_to_one_that_was_used_before_it),
      cmocka_unit_test(a_team_over_its_share_gives_to_one_below_it),
      cmocka_unit_test(a_team_at_its_share_takes_from_itself_only),
      cmocka_unit_test(what_is_too_much_goes_from_the_team_that_holds_the_most),
      cmocka_unit_test(a_pool_is_low_below_half),
      cmocka_unit_test(no_spare_box_is_made_while_somebody_asks),
      cmocka_unit_test(on_idle_processors_spare_boxes_are_made_in_a_spree),
      cmocka_unit_test(on_busy_processors_a_spare_box_is_made_now_and_then),
      cmocka_unit_test(other_work_of_the_warden_starts_no_spree),
      cmocka_unit_test(spare_boxes_do_not_move_with_every_request),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
