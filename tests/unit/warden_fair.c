/* SPDX-License-Identifier: Apache-2.0 */
/* warden_fair.c - places that teams share: by turns, bounded for each, and nobody starves. */
#include "unit.h"

#include "wire/fair_queue.h"
#include <limits.h>

#define MANY 64

static struct fair_queue_item items[4][MANY];

static void push(struct fair_queue *f, const char *team, struct fair_queue_item *list, size_t n)
{
  for (size_t i = 0; i < n; i++)
    fair_queue_push(f, str_of(team), &list[i]);
}

/* Ends what runs and what waits, so that no team is left. */
static void drop(struct fair_queue *f)
{
  f->places = f->share = UINT_MAX;
  while (fair_queue_next(f))
    continue;
  for (size_t i = 0; i < ARRAY_LEN(items); i++)
    for (size_t j = 0; j < MANY; j++)
      if (items[i][j].runs)
        fair_queue_done(f, &items[i][j]);
  assert_int_equal(f->teams.n, 0);
  map_free(&f->teams);
}

static void places_go_to_the_teams_by_turns(void **state)
{
  struct fair_queue f = {.places = 6, .share = 6};
  push(&f, "a", items[0], 10);
  push(&f, "b", items[1], 2);
  push(&f, "c", items[2], 10);
  assert_ptr_equal(fair_queue_next(&f), &items[0][0]);
  assert_ptr_equal(fair_queue_next(&f), &items[1][0]);
  assert_ptr_equal(fair_queue_next(&f), &items[2][0]);
  assert_ptr_equal(fair_queue_next(&f), &items[0][1]);
  assert_ptr_equal(fair_queue_next(&f), &items[1][1]);
  assert_ptr_equal(fair_queue_next(&f), &items[2][1]);
  assert_null(fair_queue_next(&f)); /* all places are taken */
  fair_queue_done(&f, &items[1][0]);
  assert_ptr_equal(fair_queue_next(&f), &items[0][2]); /* b waits for nothing */
  assert_int_equal(f.waiting, 15);
  drop(&f);
}

static void one_team_alone_keeps_its_order(void **state)
{
  struct fair_queue f = {.places = 1, .share = 1};
  push(&f, "", items[0], 5);
  for (size_t i = 0; i < 5; i++) {
    assert_ptr_equal(fair_queue_next(&f), &items[0][i]);
    assert_null(fair_queue_next(&f));
    fair_queue_done(&f, &items[0][i]);
  }
  assert_null(fair_queue_next(&f));
  assert_int_equal(f.running + f.waiting + f.teams.n, 0);
  drop(&f);
}

static void a_team_that_never_ends_keeps_no_other_waiting(void **state)
{
  struct fair_queue f = {.places = 8, .share = 4};
  push(&f, "mute", items[0], MANY);
  for (size_t i = 0; i < 4; i++)
    assert_ptr_equal(fair_queue_next(&f), &items[0][i]);
  assert_null(fair_queue_next(&f)); /* four places are free, but not for it */
  for (size_t i = 0; i < MANY; i++) {
    fair_queue_push(&f, STR("other"), &items[1][i]);
    assert_ptr_equal(fair_queue_next(&f), &items[1][i]);
    fair_queue_done(&f, &items[1][i]);
  }
  fair_queue_done(&f, &items[0][2]);
  assert_ptr_equal(fair_queue_next(&f), &items[0][4]);
  drop(&f);
}

static void who_waits_can_be_taken_back(void **state)
{
  struct fair_queue f = {.places = 1, .share = 1};
  push(&f, "a", items[0], 3);
  push(&f, "b", items[1], 1);
  assert_ptr_equal(fair_queue_next(&f), &items[0][0]);
  assert_false(fair_queue_cancel(&f, &items[0][0])); /* it runs */
  assert_true(fair_queue_cancel(&f, &items[0][2]));  /* the last of a queue */
  assert_false(fair_queue_cancel(&f, &items[0][2]));
  assert_true(fair_queue_cancel(&f, &items[1][0])); /* the only one of its team */
  fair_queue_done(&f, &items[0][0]);
  fair_queue_push(&f, STR("a"), &items[0][3]);
  assert_ptr_equal(fair_queue_next(&f), &items[0][1]);
  fair_queue_done(&f, &items[0][1]);
  assert_true(fair_queue_cancel(&f, &items[0][3]));
  assert_null(fair_queue_next(&f));
  assert_int_equal(f.running + f.waiting + f.teams.n, 0);
  drop(&f);
}

static uint64_t dice = 88172645463325252u;

static unsigned roll(unsigned below)
{
  dice ^= dice << 13;
  dice ^= dice >> 7;
  dice ^= dice << 17;
  return (unsigned)(dice % below);
}

/* Whatever comes and goes: limits hold, nothing is lost, and between two places of a team that waits every other one
 * that may gets one. */
static void limits_hold_through_everything(void **state)
{
  static const char *const names[] = {"a", "b", "c", "d"};
  enum { IDLE, WAITS, RUNS } is[4][MANY] = {0};
  struct fair_queue f = {.places = 7, .share = 3};
  for (int turn = 0; turn < 200000; turn++) {
    unsigned t = roll(4), i = roll(MANY), running[4] = {0};
    struct fair_queue_item *it = &items[t][i];
    if (is[t][i] == IDLE) {
      fair_queue_push(&f, str_of(names[t]), it);
      is[t][i] = WAITS;
    } else if (is[t][i] == WAITS && roll(4) == 0) {
      assert_true(fair_queue_cancel(&f, it));
      is[t][i] = IDLE;
    } else if (is[t][i] == RUNS) {
      fair_queue_done(&f, it);
      is[t][i] = IDLE;
    }
    for (struct fair_queue_item *next; (next = fair_queue_next(&f));) {
      size_t at = (size_t)(next - &items[0][0]);
      assert_int_equal(is[at / MANY][at % MANY], WAITS);
      is[at / MANY][at % MANY] = RUNS;
    }
    unsigned all = 0, waiting[4] = {0};
    for (unsigned k = 0; k < 4 * MANY; k++) {
      running[k / MANY] += is[k / MANY][k % MANY] == RUNS;
      waiting[k / MANY] += is[k / MANY][k % MANY] == WAITS;
    }
    for (unsigned k = 0; k < 4; k++) {
      assert_in_range(running[k], 0, 3);
      all += running[k];
    }
    assert_int_equal(all, f.running);
    assert_in_range(all, 0, 7);
    assert_int_equal(f.waiting, waiting[0] + waiting[1] + waiting[2] + waiting[3]);
    for (unsigned k = 0; k < 4; k++) /* no place is left empty that somebody could have */
      assert_true(all == 7 || running[k] == 3 || !waiting[k]);
  }
  for (unsigned k = 0; k < 4 * MANY; k++) {
    if (is[k / MANY][k % MANY] == RUNS)
      fair_queue_done(&f, &items[k / MANY][k % MANY]);
    else if (is[k / MANY][k % MANY] == WAITS)
      assert_true(fair_queue_cancel(&f, &items[k / MANY][k % MANY]));
  }
  assert_int_equal(f.teams.n, 0); /* who neither waits nor runs is forgotten */
  map_free(&f.teams);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(places_go_to_the_teams_by_turns),
      cmocka_unit_test(one_team_alone_keeps_its_order),
      cmocka_unit_test(a_team_that_never_ends_keeps_no_other_waiting),
      cmocka_unit_test(who_waits_can_be_taken_back),
      cmocka_unit_test(limits_hold_through_everything),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
