/* SPDX-License-Identifier: Apache-2.0 */
/* warden_idempotency.c - what a create with an idempotency key gets, by all that is known of the key. */
#include "unit.h"

#include "warden/box/idempotency_rules.h"

#define KEEP 86400000000LL
#define WAIT 30000000LL

static enum key_verdict verdict(struct key_facts k)
{
  return key_verdict(&k, KEEP, WAIT);
}

static struct key_facts facts(unsigned bits, int64_t age_us)
{
  return (struct key_facts){
      .reserved = true, .answered = bits & 1, .same = bits & 2, .own = bits & 4, .live = bits & 8, .age_us = age_us};
}

static void an_unknown_key_is_new_whatever_else_is_said(void **state)
{
  for (unsigned bits = 0; bits < 16; bits++) {
    struct key_facts k = facts(bits, 0);
    k.reserved = false;
    assert_int_equal(verdict(k), KEY_NEW);
  }
}

static void a_key_is_new_again_when_its_time_is_over(void **state)
{
  for (unsigned bits = 0; bits < 16; bits++) {
    assert_int_equal(verdict(facts(bits, KEEP)), KEY_NEW);
    assert_int_not_equal(verdict(facts(bits, KEEP - 1)), KEY_NEW);
  }
}

static void another_request_is_refused_in_every_state(void **state)
{
  for (unsigned bits = 0; bits < 16; bits++)
    if (!(bits & 2))
      assert_int_equal(verdict(facts(bits, 5)), KEY_MISMATCH);
}

static void the_same_request_gets_the_stored_answer(void **state)
{
  for (unsigned bits = 0; bits < 16; bits++)
    if ((bits & 3) == 3)
      assert_int_equal(verdict(facts(bits, KEEP - 1)), KEY_REPLAY);
}

static void a_request_at_work_is_joined_however_long_it_takes(void **state)
{
  assert_int_equal(verdict(facts(2 | 8, 0)), KEY_JOIN);
  assert_int_equal(verdict(facts(2 | 4 | 8, 0)), KEY_JOIN);
  assert_int_equal(verdict(facts(2 | 8, KEEP - 1)), KEY_JOIN);
}

static void what_a_dead_warden_left_is_done_by_the_gates_repeat_alone(void **state)
{
  assert_int_equal(verdict(facts(2 | 4, 0)), KEY_EXECUTE);
  assert_int_equal(verdict(facts(2 | 4, WAIT + 1)), KEY_EXECUTE);
  assert_int_equal(verdict(facts(2, 0)), KEY_BUSY);
  assert_int_equal(verdict(facts(2, WAIT - 1)), KEY_BUSY);
  assert_int_equal(verdict(facts(2, WAIT)), KEY_UNKNOWN);
  assert_int_equal(verdict(facts(2, KEEP - 1)), KEY_UNKNOWN);
}

static void a_clock_that_was_set_back_leaves_no_key_in_progress_for_ever(void **state)
{
  assert_int_equal(verdict(facts(2, -1)), KEY_UNKNOWN);
  assert_int_equal(verdict(facts(3, -1)), KEY_REPLAY);
}

static void answers_that_ask_for_a_repeat_are_not_kept(void **state)
{
  static const int asking[] = {-EAGAIN, -EDQUOT, -ENOBUFS, -ESHUTDOWN}, final[] = {0, -ENOENT, -EINVAL, -EIO, -EPERM};
  for (size_t i = 0; i < ARRAY_LEN(asking); i++)
    assert_false(key_keeps(asking[i]));
  for (size_t i = 0; i < ARRAY_LEN(final); i++)
    assert_true(key_keeps(final[i]));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(an_unknown_key_is_new_whatever_else_is_said),
      cmocka_unit_test(a_key_is_new_again_when_its_time_is_over),
      cmocka_unit_test(another_request_is_refused_in_every_state),
      cmocka_unit_test(the_same_request_gets_the_stored_answer),
      cmocka_unit_test(a_request_at_work_is_joined_however_long_it_takes),
      cmocka_unit_test(what_a_dead_warden_left_is_done_by_the_gates_repeat_alone),
      cmocka_unit_test(a_clock_that_was_set_back_leaves_no_key_in_progress_for_ever),
      cmocka_unit_test(answers_that_ask_for_a_repeat_are_not_kept),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
