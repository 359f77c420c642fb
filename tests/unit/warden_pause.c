/* SPDX-License-Identifier: Apache-2.0 */
/* warden_pause.c - what may be asked of a box in which state. */
#include "unit.h"

#include "warden/box/pause_rules.h"

static const enum box_state states[] = {BOX_STARTING, BOX_RUNNING,  BOX_PAUSED, BOX_ENDED,
                                        BOX_PAUSING,  BOX_RESUMING, BOX_COPYING};
static const enum connect_mode modes[] = {CONNECT_CONNECT, CONNECT_RESUME, CONNECT_TRAFFIC, CONNECT_JOIN};
static const struct asked first = {0}, again = {.again = true}, waited = {.waited = true},
                          joined = {.waited = true, .joined = true};

static bool changes(enum box_state s)
{
  return s == BOX_PAUSING || s == BOX_RESUMING || s == BOX_COPYING;
}

/* ---- pause ---- */

static void a_running_box_is_paused_and_one_that_is_paused_refuses(void **state)
{
  static const enum verdict want[] = {
      [BOX_STARTING] = VERDICT_STARTING, [BOX_RUNNING] = VERDICT_BEGIN, [BOX_PAUSED] = VERDICT_ALREADY,
      [BOX_ENDED] = VERDICT_STARTING,    [BOX_PAUSING] = VERDICT_WAIT,  [BOX_RESUMING] = VERDICT_WAIT,
      [BOX_COPYING] = VERDICT_WAIT};
  for (size_t i = 0; i < ARRAY_LEN(states); i++)
    assert_int_equal(pause_verdict(states[i], first), want[states[i]]);
}

static void pauses_that_waited_for_another_pause_are_part_of_it(void **state)
{
  assert_int_equal(pause_verdict(BOX_PAUSED, waited), VERDICT_DONE);
  assert_int_equal(pause_verdict(BOX_RUNNING, waited), VERDICT_BEGIN); /* it waited for a copy or a resume */
  assert_int_equal(pause_verdict(BOX_COPYING, waited), VERDICT_WAIT);
}

static void a_pause_repeated_to_a_new_warden_finds_its_work_done(void **state)
{
  for (size_t i = 0; i < ARRAY_LEN(states); i++)
    assert_int_equal(pause_verdict(states[i], again),
                     states[i] == BOX_PAUSED ? VERDICT_DONE : pause_verdict(states[i], first));
}

static void a_pause_keeps_memory_where_it_may_and_on_disk_where_it_can(void **state)
{
  assert_int_equal(pause_op(false, true), TRANSITION_DUMP);
  assert_int_equal(pause_op(false, false), TRANSITION_FREEZE);
  assert_int_equal(pause_op(true, true), TRANSITION_STOP); /* memory: false */
  assert_int_equal(pause_op(true, false), TRANSITION_STOP);
}

static void at_its_timeout_a_box_ends_unless_it_was_made_to_pause(void **state)
{
  for (size_t i = 0; i < ARRAY_LEN(states); i++) {
    enum verdict want = states[i] == BOX_RUNNING   ? VERDICT_BEGIN
                        : states[i] == BOX_COPYING ? VERDICT_WAIT
                                                   : VERDICT_END;
    assert_int_equal(expire_verdict(states[i], 0), VERDICT_END);
    assert_int_equal(expire_verdict(states[i], BOX_AUTO_RESUME | BOX_AUTO_COLD), VERDICT_END);
    assert_int_equal(expire_verdict(states[i], BOX_AUTO_PAUSE), want);
    assert_int_equal(expire_verdict(states[i], BOX_AUTO_PAUSE | BOX_AUTO_COLD), want);
  }
  assert_false(expire_without_memory(BOX_AUTO_PAUSE));
  assert_true(expire_without_memory(BOX_AUTO_PAUSE | BOX_AUTO_COLD));
}

/* ---- connect and resume ---- */

static enum verdict connect_of(enum box_state s, enum connect_mode mode, struct asked asked)
{
  return connect_verdict((struct connect_facts){.state = s, .tier = TIER_CHECKPOINT, .flags = BOX_AUTO_RESUME}, mode,
                         asked);
}

static void whatever_is_asked_while_a_box_changes_waits(void **state)
{
  const struct asked all[] = {first, again, waited, joined};
  for (size_t i = 0; i < ARRAY_LEN(states); i++)
    for (size_t m = 0; m < ARRAY_LEN(modes); m++)
      for (size_t a = 0; a < ARRAY_LEN(all); a++)
        assert_int_equal(connect_of(states[i], modes[m], all[a]) == VERDICT_WAIT, changes(states[i]));
}

static void a_box_that_is_not_launched_yet_refuses_all(void **state)
{
  for (size_t m = 0; m < ARRAY_LEN(modes); m++) {
    assert_int_equal(connect_of(BOX_STARTING, modes[m], first), VERDICT_STARTING);
    assert_int_equal(connect_of(BOX_ENDED, modes[m], first), VERDICT_STARTING);
  }
}

static void a_running_box_is_extended_by_a_connect_and_refuses_a_resume(void **state)
{
  assert_int_equal(connect_of(BOX_RUNNING, CONNECT_CONNECT, first), VERDICT_EXTEND);
  assert_int_equal(connect_of(BOX_RUNNING, CONNECT_RESUME, first), VERDICT_ALREADY);
  assert_int_equal(connect_of(BOX_RUNNING, CONNECT_TRAFFIC, first), VERDICT_DONE);
  assert_int_equal(connect_of(BOX_RUNNING, CONNECT_JOIN, first), VERDICT_DONE);
  for (size_t m = 0; m < ARRAY_LEN(modes); m++)
    assert_false(connect_resumed(modes[m], first));
}

static void resumes_that_waited_for_another_resume_are_part_of_it(void **state)
{
  assert_int_equal(connect_of(BOX_RUNNING, CONNECT_RESUME, joined), VERDICT_EXTEND);
  assert_true(connect_resumed(CONNECT_RESUME, joined));
  assert_int_equal(connect_of(BOX_RUNNING, CONNECT_CONNECT, joined), VERDICT_EXTEND);
  assert_false(connect_resumed(CONNECT_CONNECT, joined));
  /* One that waited for a copy, or for a pause that failed, finds a box that was running all the time. */
  assert_int_equal(connect_of(BOX_RUNNING, CONNECT_RESUME, waited), VERDICT_ALREADY);
  assert_int_equal(connect_of(BOX_PAUSED, CONNECT_RESUME, waited), VERDICT_BEGIN);
}

static void a_box_paused_with_a_silent_agent_starts_cold_or_not_at_all(void **state)
{
  for (int tier = TIER_FROZEN; tier <= TIER_CHECKPOINT; tier++) {
    struct connect_facts box = {.state = BOX_PAUSED, .tier = tier, .flags = BOX_AGENT_SILENT | BOX_AUTO_RESUME};
    assert_int_equal(connect_verdict(box, CONNECT_CONNECT, first), VERDICT_SILENT);
    assert_int_equal(connect_verdict(box, CONNECT_RESUME, first), VERDICT_SILENT);
    assert_int_equal(connect_verdict(box, CONNECT_TRAFFIC, first), VERDICT_PAUSED);
    box.cold = true;
    assert_int_equal(connect_verdict(box, CONNECT_CONNECT, first), VERDICT_BEGIN);
    assert_int_equal(connect_verdict(box, CONNECT_RESUME, first), VERDICT_BEGIN);
    box.busy = true;
    assert_int_equal(connect_verdict(box, CONNECT_CONNECT, first), VERDICT_WAIT);
  }
}

static void a_resume_repeated_to_a_new_warden_finds_its_work_done(void **state)
{
  assert_int_equal(connect_of(BOX_RUNNING, CONNECT_RESUME, again), VERDICT_DONE);
  assert_true(connect_resumed(CONNECT_RESUME, again));
  assert_int_equal(connect_of(BOX_PAUSED, CONNECT_RESUME, again), VERDICT_BEGIN);
}

static void a_paused_box_is_resumed_by_clients_and_by_traffic_it_was_made_for(void **state)
{
  for (int tier = TIER_FROZEN; tier <= TIER_FILES; tier++)
    for (unsigned flags = 0; flags <= BOX_AUTO_RESUME; flags += BOX_AUTO_RESUME) {
      struct connect_facts box = {.state = BOX_PAUSED, .tier = tier, .flags = flags | BOX_AUTO_PAUSE};
      bool wakes = flags && tier != TIER_FILES; /* no request waits for a cold start */
      assert_int_equal(connect_verdict(box, CONNECT_CONNECT, first), VERDICT_BEGIN);
      assert_int_equal(connect_verdict(box, CONNECT_RESUME, first), VERDICT_BEGIN);
      assert_int_equal(connect_verdict(box, CONNECT_TRAFFIC, first), wakes ? VERDICT_BEGIN : VERDICT_PAUSED);
      assert_int_equal(connect_verdict(box, CONNECT_JOIN, first), VERDICT_PAUSED);
      box.busy = true; /* its jail is being removed, or its checkpoint compressed */
      for (size_t m = 0; m < ARRAY_LEN(modes); m++)
        assert_int_equal(connect_verdict(box, modes[m], first), VERDICT_WAIT);
    }
}

static void a_resume_uses_the_memory_there_is_unless_it_is_asked_not_to(void **state)
{
  assert_int_equal(resume_op(false, TIER_FROZEN), TRANSITION_THAW);
  assert_int_equal(resume_op(false, TIER_CHECKPOINT), TRANSITION_RESTORE);
  assert_int_equal(resume_op(false, TIER_FILES), TRANSITION_COLD);
  for (int tier = TIER_FROZEN; tier <= TIER_FILES; tier++)
    assert_int_equal(resume_op(true, tier), TRANSITION_COLD);
}

static void a_box_resumed_by_traffic_runs_as_long_as_it_was_made_for(void **state)
{
  assert_int_equal(resume_timeout(CONNECT_TRAFFIC, 7, 15, 86400), WAKE_LEAST_S);
  assert_int_equal(resume_timeout(CONNECT_TRAFFIC, 7, 4000, 86400), 4000);
  assert_int_equal(resume_timeout(CONNECT_TRAFFIC, 7, 4000, 3600), 3600);
  assert_int_equal(resume_timeout(CONNECT_TRAFFIC, 7, 15, 60), 60); /* the team's limit is the last word */
  assert_int_equal(resume_timeout(CONNECT_CONNECT, 7, 4000, 3600), 7);
  assert_int_equal(resume_timeout(CONNECT_RESUME, 7, 4000, 3600), 7);
}

static void a_connect_never_shortens_and_never_exceeds_the_longest_run(void **state)
{
  const int64_t s = 1000000;
  assert_int_equal(extended_end(100 * s, 60, 0, 3600, 120 * s), 160 * s);
  assert_int_equal(extended_end(100 * s, 10, 0, 3600, 120 * s), 120 * s);
  assert_int_equal(extended_end(3590 * s, 60, 0, 3600, 3595 * s), 3600 * s);
  assert_int_equal(extended_end(3590 * s, 60, 0, 3600, 3700 * s), 3700 * s); /* the limit was lowered meanwhile */
  assert_int_equal(extended_end(0, UINT32_MAX, 0, UINT32_MAX, 0), (int64_t)UINT32_MAX * s);
}

/* ---- copies ---- */

static void copies_are_of_running_boxes_and_wait_their_turn(void **state)
{
  static const struct {
    enum verdict accepted, then;
  } want[] = {
      [BOX_STARTING] = {VERDICT_STARTING, VERDICT_PAUSED}, [BOX_RUNNING] = {VERDICT_BEGIN, VERDICT_BEGIN},
      [BOX_PAUSED] = {VERDICT_PAUSED, VERDICT_PAUSED},     [BOX_ENDED] = {VERDICT_STARTING, VERDICT_PAUSED},
      [BOX_PAUSING] = {VERDICT_PAUSED, VERDICT_WAIT},      [BOX_RESUMING] = {VERDICT_BEGIN, VERDICT_WAIT},
      [BOX_COPYING] = {VERDICT_BEGIN, VERDICT_WAIT},
  };
  for (size_t i = 0; i < ARRAY_LEN(states); i++) {
    assert_int_equal(copy_accepted(states[i]), want[states[i]].accepted);
    assert_int_equal(copy_verdict(states[i]), want[states[i]].then);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_running_box_is_paused_and_one_that_is_paused_refuses),
      cmocka_unit_test(pauses_that_waited_for_another_pause_are_part_of_it),
      cmocka_unit_test(a_pause_repeated_to_a_new_warden_finds_its_work_done),
      cmocka_unit_test(a_pause_keeps_memory_where_it_may_and_on_disk_where_it_can),
      cmocka_unit_test(at_its_timeout_a_box_ends_unless_it_was_made_to_pause),
      cmocka_unit_test(whatever_is_asked_while_a_box_changes_waits),
      cmocka_unit_test(a_box_that_is_not_launched_yet_refuses_all),
      cmocka_unit_test(a_running_box_is_extended_by_a_connect_and_refuses_a_resume),
      cmocka_unit_test(resumes_that_waited_for_another_resume_are_part_of_it),
      cmocka_unit_test(a_box_paused_with_a_silent_agent_starts_cold_or_not_at_all),
      cmocka_unit_test(a_resume_repeated_to_a_new_warden_finds_its_work_done),
      cmocka_unit_test(a_paused_box_is_resumed_by_clients_and_by_traffic_it_was_made_for),
      cmocka_unit_test(a_resume_uses_the_memory_there_is_unless_it_is_asked_not_to),
      cmocka_unit_test(a_box_resumed_by_traffic_runs_as_long_as_it_was_made_for),
      cmocka_unit_test(a_connect_never_shortens_and_never_exceeds_the_longest_run),
      cmocka_unit_test(copies_are_of_running_boxes_and_wait_their_turn),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
