/* SPDX-License-Identifier: Apache-2.0 */
/* warden_transition.c - which step of a transition follows which: every operation, step and outcome. */
#include "unit.h"

#include "warden/box/transition_table.h"

static const struct transition_facts plain = {.jail = true};

static enum transition_next next(enum transition_op op, enum transition_step step, enum transition_outcome outcome)
{
  return transition_next(op, step, outcome, plain);
}

/* What follows where the box has a jail and a client asked. What is not here is NEXT_NEVER. */
static const struct row {
  enum transition_op op;
  enum transition_step step;
  enum transition_outcome outcome;
  enum transition_next next;
} rows[] = {
    {TRANSITION_FREEZE, STEP_ACT, OUTCOME_OK, END_DONE},
    {TRANSITION_FREEZE, STEP_ACT, OUTCOME_FAILED, END_FAILED},
    {TRANSITION_FREEZE, STEP_ACT, OUTCOME_UNCOMMITTED, END_FAILED},
    {TRANSITION_FREEZE, STEP_ACT, OUTCOME_ORPHAN, END_ORPHAN},

    {TRANSITION_DUMP, STEP_ACT, OUTCOME_OK, NEXT_HARDEN},
    {TRANSITION_DUMP, STEP_ACT, OUTCOME_FAILED, END_FAILED},
    {TRANSITION_DUMP, STEP_ACT, OUTCOME_UNCOMMITTED, END_FAILED},
    {TRANSITION_DUMP, STEP_ACT, OUTCOME_ORPHAN, END_ORPHAN},
    {TRANSITION_DUMP, STEP_HARDEN, OUTCOME_OK, NEXT_REMOVE},
    {TRANSITION_DUMP, STEP_HARDEN, OUTCOME_ORPHAN, NEXT_REMOVE},
    {TRANSITION_DUMP, STEP_REMOVE, OUTCOME_OK, END_DONE},
    {TRANSITION_DUMP, STEP_REMOVE, OUTCOME_ORPHAN, END_ORPHAN},

    {TRANSITION_STOP, STEP_ACT, OUTCOME_OK, NEXT_HARDEN},
    {TRANSITION_STOP, STEP_ACT, OUTCOME_FAILED, END_FAILED},
    {TRANSITION_STOP, STEP_ACT, OUTCOME_UNCOMMITTED, END_FAILED},
    {TRANSITION_STOP, STEP_ACT, OUTCOME_ORPHAN, END_ORPHAN},
    {TRANSITION_STOP, STEP_HARDEN, OUTCOME_OK, NEXT_REMOVE},
    {TRANSITION_STOP, STEP_HARDEN, OUTCOME_ORPHAN, NEXT_REMOVE},
    {TRANSITION_STOP, STEP_REMOVE, OUTCOME_OK, END_DONE},
    {TRANSITION_STOP, STEP_REMOVE, OUTCOME_ORPHAN, END_ORPHAN},

    {TRANSITION_THAW, STEP_ACT, OUTCOME_OK, END_DONE},
    {TRANSITION_THAW, STEP_ACT, OUTCOME_FAILED, END_FAILED},
    {TRANSITION_THAW, STEP_ACT, OUTCOME_UNCOMMITTED, END_DONE},
    {TRANSITION_THAW, STEP_ACT, OUTCOME_ORPHAN, END_ORPHAN},

    {TRANSITION_RESTORE, STEP_ACT, OUTCOME_OK, NEXT_UNLINK},
    {TRANSITION_RESTORE, STEP_ACT, OUTCOME_FAILED, END_FAILED},
    {TRANSITION_RESTORE, STEP_ACT, OUTCOME_UNCOMMITTED, NEXT_REMOVE},
    {TRANSITION_RESTORE, STEP_ACT, OUTCOME_ORPHAN, END_ORPHAN},
    {TRANSITION_RESTORE, STEP_UNLINK, OUTCOME_OK, END_DONE},
    {TRANSITION_RESTORE, STEP_UNLINK, OUTCOME_ORPHAN, END_ORPHAN},
    {TRANSITION_RESTORE, STEP_REMOVE, OUTCOME_UNCOMMITTED, END_FAILED},
    {TRANSITION_RESTORE, STEP_REMOVE, OUTCOME_ORPHAN, END_ORPHAN},

    {TRANSITION_COLD, STEP_ACT, OUTCOME_OK, NEXT_HARDEN},
    {TRANSITION_COLD, STEP_ACT, OUTCOME_UNCOMMITTED, END_FAILED},
    {TRANSITION_COLD, STEP_HARDEN, OUTCOME_OK, NEXT_REMOVE},
    {TRANSITION_COLD, STEP_HARDEN, OUTCOME_ORPHAN, NEXT_REMOVE},
    {TRANSITION_COLD, STEP_REMOVE, OUTCOME_OK, NEXT_LAUNCH},
    {TRANSITION_COLD, STEP_REMOVE, OUTCOME_FAILED, END_FAILED},
    {TRANSITION_COLD, STEP_REMOVE, OUTCOME_ORPHAN, END_ORPHAN},
    {TRANSITION_COLD, STEP_LAUNCH, OUTCOME_OK, END_DONE},
    {TRANSITION_COLD, STEP_LAUNCH, OUTCOME_FAILED, NEXT_REMOVE},
    {TRANSITION_COLD, STEP_LAUNCH, OUTCOME_UNCOMMITTED, END_DONE},
    {TRANSITION_COLD, STEP_LAUNCH, OUTCOME_ORPHAN, END_ORPHAN},

    {TRANSITION_COPY, STEP_ACT, OUTCOME_OK, END_DONE},
    {TRANSITION_COPY, STEP_ACT, OUTCOME_FAILED, END_DONE},
    {TRANSITION_COPY, STEP_ACT, OUTCOME_ORPHAN, END_ORPHAN},

    {TRANSITION_COMPRESS, STEP_ACT, OUTCOME_OK, END_DONE},
    {TRANSITION_COMPRESS, STEP_ACT, OUTCOME_FAILED, END_DONE},
    {TRANSITION_COMPRESS, STEP_ACT, OUTCOME_ORPHAN, END_ORPHAN},
};

static void every_operation_step_and_outcome_has_its_next_step(void **state)
{
  for (int op = 0; op < TRANSITION_OPS; op++)
    for (int step = 0; step < TRANSITION_STEPS; step++)
      for (int outcome = 0; outcome < TRANSITION_OUTCOMES; outcome++) {
        enum transition_next want = NEXT_NEVER;
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
          if ((int)rows[i].op == op && (int)rows[i].step == step && (int)rows[i].outcome == outcome)
            want = rows[i].next;
        if (next(op, step, outcome) != want)
          fail_msg("operation %d, step %d, outcome %d: %d instead of %d", op, step, outcome, next(op, step, outcome),
                   want);
      }
}

/* ---- walks: everything that can happen from the first step to an end ---- */

struct walk {
  bool seen[TRANSITION_OPS][TRANSITION_STEPS][TRANSITION_OUTCOMES];
  size_t ends[END_ORPHAN + 1];
};

static enum transition_step step_of(enum transition_next n)
{
  return n == NEXT_UNLINK ? STEP_UNLINK : n == NEXT_HARDEN ? STEP_HARDEN : n == NEXT_REMOVE ? STEP_REMOVE : STEP_LAUNCH;
}

static void walk(struct walk *w, enum transition_op op, enum transition_step step, struct transition_facts facts,
                 enum transition_outcome before, int depth);

/* What a step that was decided on can turn into: steps that only clear up can't fail, and a failure or an end of the
 * box stays one. */
static void walk_all(struct walk *w, enum transition_op op, enum transition_step step, struct transition_facts facts,
                     enum transition_outcome before, int depth)
{
  bool clears = step == STEP_UNLINK || step == STEP_HARDEN || step == STEP_REMOVE;
  bool works = !clears && !(op == TRANSITION_COLD && step == STEP_ACT);
  bool commits = !clears && op != TRANSITION_COPY && op != TRANSITION_COMPRESS;
  bool waits = !(op == TRANSITION_COLD && step == STEP_ACT); /* the box can end only while the loop goes on */
  if (before == OUTCOME_ORPHAN) {
    walk(w, op, step, facts, OUTCOME_ORPHAN, depth);
    return;
  }
  walk(w, op, step, facts, before, depth);
  if (waits)
    walk(w, op, step, facts, OUTCOME_ORPHAN, depth);
  if (works)
    walk(w, op, step, facts, OUTCOME_FAILED, depth);
  if (commits)
    walk(w, op, step, facts, OUTCOME_UNCOMMITTED, depth);
}

static void walk(struct walk *w, enum transition_op op, enum transition_step step, struct transition_facts facts,
                 enum transition_outcome outcome, int depth)
{
  assert_true(depth < 8); /* it comes to an end */
  w->seen[op][step][outcome] = true;
  enum transition_next n = transition_next(op, step, outcome, facts);
  if (n == NEXT_NEVER)
    fail_msg("operation %d comes to step %d with outcome %d", op, step, outcome);
  if (n >= END_DONE) {
    w->ends[n]++;
    if (facts.jail && outcome == OUTCOME_ORPHAN && step == STEP_HARDEN)
      fail_msg("operation %d leaves a jail behind", op);
    assert_true((n == END_ORPHAN) == (outcome == OUTCOME_ORPHAN));
    return;
  }
  if (n == NEXT_FREEZE) {
    walk_all(w, TRANSITION_FREEZE, STEP_ACT, facts, OUTCOME_OK, depth + 1);
    return;
  }
  struct transition_facts then = facts;
  if (op == TRANSITION_COLD && step == STEP_REMOVE)
    then.jail = false;
  walk_all(w, op, step_of(n), then, outcome, depth + 1);
  if (n == NEXT_LAUNCH) { /* an agent that did not answer may be alive */
    then.jail = true;
    walk_all(w, op, STEP_LAUNCH, then, outcome, depth + 1);
  }
}

static void every_way_comes_to_an_end_and_no_step_is_unreachable(void **state)
{
  static struct walk w;
  for (int op = 0; op < TRANSITION_OPS; op++)
    for (int jail = 0; jail < 2; jail++)
      if (jail || op == TRANSITION_COLD) /* others have one, or get one by their act */
        walk_all(&w, op, STEP_ACT, (struct transition_facts){.jail = jail}, OUTCOME_OK, 0);
  for (size_t i = 0; i < ARRAY_LEN(rows); i++)
    if (!w.seen[rows[i].op][rows[i].step][rows[i].outcome])
      fail_msg("row %zu: operation %d never comes to step %d with outcome %d", i, rows[i].op, rows[i].step,
               rows[i].outcome);
  assert_int_equal(w.ends[END_BOX], 0);
}

static void a_pause_at_the_timeout_ends_paused_or_ends_the_box(void **state)
{
  const struct transition_facts expired = {.expired = true, .jail = true};
  for (int op = 0; op < TRANSITION_OPS; op++) {
    static struct walk w;
    if (!transition_pauses(op))
      continue;
    memset(&w, 0, sizeof(w));
    walk_all(&w, op, STEP_ACT, expired, OUTCOME_OK, 0);
    assert_int_equal(w.ends[END_FAILED], 0); /* nobody is there to be told */
    assert_true(w.ends[END_BOX] > 0);
    assert_true(w.ends[END_DONE] > 0);
  }
}

static void an_expired_box_that_can_not_be_dumped_is_frozen_instead(void **state)
{
  const struct transition_facts expired = {.expired = true, .jail = true};
  for (int outcome = OUTCOME_FAILED; outcome <= OUTCOME_UNCOMMITTED; outcome++) {
    assert_int_equal(transition_next(TRANSITION_DUMP, STEP_ACT, outcome, expired), NEXT_FREEZE);
    assert_int_equal(transition_next(TRANSITION_FREEZE, STEP_ACT, outcome, expired), END_BOX);
    assert_int_equal(transition_next(TRANSITION_STOP, STEP_ACT, outcome, expired), END_BOX);
  }
  assert_int_equal(transition_next(TRANSITION_FREEZE, STEP_ACT, OUTCOME_OK, expired), END_DONE);
  assert_int_equal(transition_next(TRANSITION_DUMP, STEP_ACT, OUTCOME_ORPHAN, expired), END_ORPHAN);
}

static void a_box_whose_memory_is_needed_is_not_frozen_instead(void **state)
{
  const struct transition_facts relief = {.expired = true, .relief = true, .jail = true};
  for (int outcome = OUTCOME_FAILED; outcome <= OUTCOME_UNCOMMITTED; outcome++) {
    assert_int_equal(transition_next(TRANSITION_DUMP, STEP_ACT, outcome, relief), END_BOX);
    assert_int_equal(transition_next(TRANSITION_STOP, STEP_ACT, outcome, relief), END_BOX);
  }
  assert_int_equal(transition_next(TRANSITION_DUMP, STEP_ACT, OUTCOME_OK, relief), NEXT_HARDEN);
  assert_int_equal(transition_next(TRANSITION_DUMP, STEP_ACT, OUTCOME_ORPHAN, relief), END_ORPHAN);
}

static void a_cold_start_removes_processes_only_where_there_are_some(void **state)
{
  const struct transition_facts none = {0};
  assert_int_equal(next(TRANSITION_COLD, STEP_ACT, OUTCOME_OK), NEXT_HARDEN); /* frozen in memory until now */
  assert_int_equal(transition_next(TRANSITION_COLD, STEP_ACT, OUTCOME_OK, none), NEXT_LAUNCH);
  assert_int_equal(next(TRANSITION_COLD, STEP_LAUNCH, OUTCOME_FAILED), NEXT_REMOVE); /* an agent without an answer */
  assert_int_equal(transition_next(TRANSITION_COLD, STEP_LAUNCH, OUTCOME_FAILED, none), END_FAILED);
  assert_int_equal(next(TRANSITION_COLD, STEP_REMOVE, OUTCOME_FAILED), END_FAILED);
  assert_int_equal(transition_next(TRANSITION_COLD, STEP_ACT, OUTCOME_UNCOMMITTED, none), END_FAILED);
}

static void a_copy_or_compression_that_fails_or_is_cancelled_leaves_the_box_as_it_is(void **state)
{
  assert_int_equal(next(TRANSITION_COPY, STEP_ACT, OUTCOME_FAILED), END_DONE);
  assert_int_equal(next(TRANSITION_COMPRESS, STEP_ACT, OUTCOME_FAILED), END_DONE);
  assert_int_equal(transition_next(TRANSITION_COMPRESS, STEP_ACT, OUTCOME_FAILED, (struct transition_facts){0}),
                   END_DONE);
}

static void operations_pause_resume_or_leave_the_box_as_it_is(void **state)
{
  static const struct {
    bool pauses, resumes, queued;
  } want[TRANSITION_OPS] = {
      [TRANSITION_FREEZE] = {.pauses = true},
      [TRANSITION_DUMP] = {.pauses = true, .queued = true},
      [TRANSITION_STOP] = {.pauses = true},
      [TRANSITION_THAW] = {.resumes = true},
      [TRANSITION_RESTORE] = {.resumes = true, .queued = true},
      [TRANSITION_COLD] = {.resumes = true},
      [TRANSITION_COPY] = {.queued = true},
  };
  for (int op = 0; op < TRANSITION_OPS; op++) {
    assert_int_equal(transition_pauses(op), want[op].pauses);
    assert_int_equal(transition_resumes(op), want[op].resumes);
    assert_int_equal(transition_queued(op), want[op].queued);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_operation_step_and_outcome_has_its_next_step),
      cmocka_unit_test(every_way_comes_to_an_end_and_no_step_is_unreachable),
      cmocka_unit_test(a_pause_at_the_timeout_ends_paused_or_ends_the_box),
      cmocka_unit_test(an_expired_box_that_can_not_be_dumped_is_frozen_instead),
      cmocka_unit_test(a_box_whose_memory_is_needed_is_not_frozen_instead),
      cmocka_unit_test(a_cold_start_removes_processes_only_where_there_are_some),
      cmocka_unit_test(a_copy_or_compression_that_fails_or_is_cancelled_leaves_the_box_as_it_is),
      cmocka_unit_test(operations_pause_resume_or_leave_the_box_as_it_is),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
