/* SPDX-License-Identifier: Apache-2.0 */
/* gate_metrics.c - metrics are told whole, in the formats that scrapers ask for, and teams beyond the limit together.
 */
#include "unit.h"

#include "gate/metrics_shm.h"
#include "wire/wire.h"
#include <stdio.h>

#define TEAM(n) "0000000" #n "-0000-4000-8000-000000000000"

static struct metrics_slot slots[2];
static struct metrics_team teams[METRICS_TEAMS];

static int begin(void **state)
{
  memset(slots, 0, sizeof(slots));
  memset(teams, 0, sizeof(teams));
  return 0;
}

static struct metrics_told *told(void)
{
  struct metrics_told *t = metrics_told_new();
  struct wire_status status = {.running = 3};
  struct wire_team_metrics first = {.running = 2, .storage = 9, .storage_known = 1}, others = {.running = 1};
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  wire_begin(&b, WIRE_ITEM, 0, 0);
  wire_putz(&b, W_TEAM, TEAM(1));
  wire_putz(&b, W_NAME, "the \"first\"\n\xff");
  wire_put(&b, W_SAMPLE, str_make(&first, sizeof(first)));
  metrics_told_item(t, buf_str(&b));
  wire_begin(&b, WIRE_ITEM, 0, 0);
  wire_put(&b, W_SAMPLE, str_make(&others, sizeof(others)));
  metrics_told_item(t, buf_str(&b));
  wire_begin(&b, WIRE_REPLY, 0, 0);
  assert_int_equal(metrics_told_end(t, buf_str(&b)), -EINVAL);
  wire_put(&b, W_STATUS, str_make(&status, sizeof(status)));
  assert_int_equal(metrics_told_end(t, buf_str(&b)), 0);
  return t;
}

static void tell(struct buf *out, bool open)
{
  struct metrics_told *t = told();
  struct text_sink text;
  text_sink_init(&text, out, open);
  metrics_tell(&text.sink, slots, 2, teams, 1, t);
  text_sink_end(&text);
  metrics_told_free(t);
}

static void assert_has(const struct buf *b, const char *line)
{
  cleanup_buf struct buf want = BUF_INIT(1024);
  buf_addf(&want, "\n%s\n", line);
  if (str_search(buf_str(b), buf_str(&want)) < 0)
    fail_msg("no line '%s' in:\n%.*s", line, (int)b->n, b->p);
}

static void numbers_of_teams_are_given_once_and_never_change(void **state)
{
  assert_int_equal(metrics_team(teams, 2, TEAM(1), false), METRICS_OTHER);
  assert_int_equal(metrics_team(teams, 2, TEAM(1), true), 0);
  assert_int_equal(metrics_team(teams, 2, TEAM(2), true), 1);
  assert_int_equal(metrics_team(teams, 2, TEAM(3), true), METRICS_OTHER);
  assert_int_equal(metrics_team(teams, 2, TEAM(1), true), 0);
  assert_int_equal(metrics_team(teams, 3, TEAM(3), true), 2);
  assert_int_equal(metrics_team(NULL, 3, TEAM(3), true), METRICS_OTHER);
}

static void count(size_t slot, const char *team, enum metrics_class class, int status, bool cell)
{
  struct metrics_answer a = {.class = class, .status = status, .cell = cell, .took_us = 700};
  metrics_count(&slots[slot], &a, metrics_team(teams, 1, team, true));
}

static void what_gates_counted_is_added_up_by_team(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  count(0, TEAM(1), CLASS_CREATE, 201, false);
  count(1, TEAM(1), CLASS_CREATE, 429, false);
  count(1, TEAM(1), CLASS_INTERPRETER, 200, true);
  count(0, TEAM(2), CLASS_INTERPRETER, 200, true);
  count(1, TEAM(2), CLASS_SANDBOX, 500, false);
  tell(&b, false);
  assert_has(&b, "cloche_boxes{state=\"running\"} 3");
  assert_has(&b, "cloche_requests_total{class=\"create\",status=\"2xx\"} 1");
  assert_has(&b, "cloche_request_seconds_bucket{class=\"interpreter\",le=\"0.0005\"} 0");
  assert_has(&b, "cloche_request_seconds_bucket{class=\"interpreter\",le=\"0.001\"} 2");
  assert_has(&b, "cloche_team_creates_total{team=\"" TEAM(1) "\"} 1");
  assert_has(&b, "cloche_team_creates_failed_total{team=\"" TEAM(1) "\"} 1");
  assert_has(&b, "cloche_team_cells_total{team=\"" TEAM(1) "\"} 1");
  assert_has(&b, "cloche_team_cells_total{team=\"other\"} 1");
  assert_has(&b, "cloche_team_errors_total{team=\"other\",side=\"server\"} 1");
  assert_has(&b, "cloche_team_boxes{team=\"other\",state=\"running\"} 1");
  assert_has(&b, "cloche_team_storage_bytes{team=\"" TEAM(1) "\"} 9");
  assert_true(str_search(buf_str(&b), STR(TEAM(2))) < 0);
}

static void words_that_a_team_chose_are_escaped_and_cleaned(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  tell(&b, false);
  assert_has(&b, "cloche_team_info{team=\"" TEAM(1) "\",name=\"the \\\"first\\\"\\n\xef\xbf\xbd\"} 1");
}

static void openmetrics_has_the_exemplar_of_a_bucket_and_an_end(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  uint8_t trace[16] = {0xab, [15] = 1};
  struct metrics_answer a = {.class = CLASS_CREATE, .status = 201, .trace = trace, .took_us = 3000};
  metrics_count(&slots[1], &a, METRICS_OTHER);
  tell(&b, true);
  assert_true(
      str_search(buf_str(&b), STR("le=\"0.004\"} 1 # {trace_id=\"ab000000000000000000000000000001\"} 0.003000 ")) > 0);
  assert_has(&b, "# TYPE cloche_requests counter");
  assert_true(str_ends(buf_str(&b), STR("\n# EOF\n")));
  buf_clear(&b);
  tell(&b, false);
  assert_true(str_search(buf_str(&b), STR("trace_id")) < 0);
}

static void openmetrics_is_for_those_who_ask_for_it(void **state)
{
  assert_true(text_sink_wanted(STR("application/openmetrics-text; version=1.0.0; charset=utf-8")));
  assert_true(text_sink_wanted(STR("text/plain;q=0.5, application/openmetrics-text;version=0.0.1;q=0.75")));
  static const char *const no[] = {"",
                                   "*/*",
                                   "text/plain",
                                   "application/openmetrics-text;q=0",
                                   "application/openmetrics-text;version=2.0.0",
                                   "application/openmetrics-texts"};
  for (size_t i = 0; i < ARRAY_LEN(no); i++)
    assert_false(text_sink_wanted(str_of(no[i])));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup(numbers_of_teams_are_given_once_and_never_change, begin),
      cmocka_unit_test_setup(what_gates_counted_is_added_up_by_team, begin),
      cmocka_unit_test_setup(words_that_a_team_chose_are_escaped_and_cleaned, begin),
      cmocka_unit_test_setup(openmetrics_has_the_exemplar_of_a_bucket_and_an_end, begin),
      cmocka_unit_test(openmetrics_is_for_those_who_ask_for_it),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
