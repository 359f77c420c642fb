/* SPDX-License-Identifier: Apache-2.0 */
/* The native driver against a kernel played by the test: order, joining, limits of patience. */
#include "interp_lab.h"

static const char *text_of(struct client *c)
{
  static char text[65536];
  size_t n = 0;
  struct str rest = buf_str(&c->seen), line;
  while (str_cut(rest, '\n', &line, &rest)) {
    ptrdiff_t at = str_search(line, STR("\"text\":\""));
    if (at < 0)
      continue;
    struct str body = str_skip(line, (size_t)at + 8);
    ptrdiff_t end = str_find(body, '"');
    memcpy(text + n, body.p, (size_t)end);
    n += (size_t)end;
  }
  text[n] = 0;
  return text;
}

static void lab_begin(struct lab *l, struct client *c)
{
  lab_open(l, "/bin/false", 10);
  lab_ready(l);
  assert_int_equal(context_submit(l->context, &c->run), 0);
  assert_non_null(strstr(lab_heard(l), "\"op\":\"run\",\"id\":1,\"code\":\"x\""));
}

static void a_run_is_told_from_count_to_end(void **state)
{
  (void)state;
  struct lab l;
  struct client c = client_new("x");
  lab_begin(&l, &c);
  lab_say(&l,
          "{\"ev\":\"count\",\"id\":1,\"n\":4}\n{\"ev\":\"stream\",\"id\":1,\"name\":\"stdout\",\"text\":\"hi\\n\"}\n"
          "{\"ev\":\"display\",\"id\":1,\"main\":true,\"data\":{\"text/"
          "plain\":\"2\"}}\n{\"ev\":\"done\",\"id\":1,\"status\":\"ok\"}\n");
  lab_turn(&l);
  assert_true(c.ended);
  assert_true(client_saw(
      &c, "{\"type\":\"number_of_executions\",\"execution_count\":4}\n{\"type\":\"stdout\",\"text\":\"hi\\n\""));
  assert_true(client_saw(&c, "{\"type\":\"result\",\"text\":\"2\",\"extra\":{},\"is_main_result\":true}\n"));
  lab_close(&l);
  buf_free(&c.seen);
}

static void neighbouring_pieces_join_and_a_pause_parts_them(void **state)
{
  (void)state;
  struct lab l;
  struct client c = client_new("x");
  lab_begin(&l, &c);
  lab_say(&l, "{\"ev\":\"stream\",\"id\":1,\"name\":\"stdout\",\"text\":\"a\"}\n");
  uv_run(&l.loop, UV_RUN_NOWAIT);
  lab_say(&l, "{\"ev\":\"stream\",\"id\":1,\"name\":\"stdout\",\"text\":\"b\"}\n");
  lab_sleep(&l, 20);
  assert_true(client_saw(&c, "\"text\":\"ab\""));
  lab_say(&l, "{\"ev\":\"stream\",\"id\":1,\"name\":\"stdout\",\"text\":\"c\"}\n");
  lab_sleep(&l, 20);
  assert_true(client_saw(&c, "\"text\":\"c\""));
  lab_close(&l);
  buf_free(&c.seen);
}

static void messages_go_before_pipe_bytes_and_drain_turns_it_round(void **state)
{
  (void)state;
  struct lab l;
  struct client c = client_new("x");
  lab_begin(&l, &c);
  /* Both ready at once: the message is the older one, as the kernel saw an empty pipe when it sent it. */
  assert_int_equal(write(l.out, "2", 1), 1);
  lab_say(&l, "{\"ev\":\"stream\",\"id\":1,\"name\":\"stdout\",\"text\":\"1\"}\n");
  lab_turn(&l);
  /* The kernel saw one byte; the second was written later. */
  assert_int_equal(write(l.out, "35", 2), 2);
  lab_say(&l, "{\"ev\":\"drain\",\"id\":1,\"stdout\":1,\"stderr\":0}\n{\"ev\":\"stream\",\"id\":1,\"name\":\"stdout\","
              "\"text\":\"4\"}\n");
  lab_turn(&l);
  assert_int_equal(write(l.out, "6", 1), 1);
  lab_say(&l, "{\"ev\":\"drain\",\"id\":1}\n{\"ev\":\"stream\",\"id\":1,\"name\":\"stdout\",\"text\":\"7\"}\n");
  lab_turn(&l);
  assert_int_equal(write(l.out, "8", 1), 1);
  lab_say(&l, "{\"ev\":\"done\",\"id\":1,\"status\":\"ok\"}\n");
  lab_turn(&l);
  assert_true(c.ended);
  assert_string_equal(text_of(&c), "12345678");
  lab_close(&l);
  buf_free(&c.seen);
}

static void events_of_another_run_and_nonsense_are_ignored(void **state)
{
  (void)state;
  struct lab l;
  struct client c = client_new("x");
  lab_begin(&l, &c);
  lab_say(
      &l,
      "nonsense\n{\"ev\":\"stream\",\"id\":9,\"name\":\"stdout\",\"text\":\"no\"}\n{\"ev\":\"new\",\"id\":1}\n[]\n\n"
      "{\"ev\":\"error\",\"id\":1,\"name\":\"E\",\"value\":1,\"traceback\":[\"a\"]}\n{\"ev\":\"error\",\"id\":1,"
      "\"name\":\"F\"}\n"
      "{\"ev\":\"done\",\"id\":1,\"status\":\"error\"}\n{\"ev\":\"stream\",\"id\":1,\"name\":\"stdout\",\"text\":"
      "\"late\"}\n");
  lab_turn(&l);
  assert_true(c.ended);
  assert_string_equal(buf_z(&c.seen), "{\"type\":\"error\",\"name\":\"E\",\"value\":\"1\",\"traceback\":\"a\"}\n");
  lab_close(&l);
  buf_free(&c.seen);
}

static void an_abort_without_an_error_is_told_as_one(void **state)
{
  (void)state;
  struct lab l;
  struct client c = client_new("x");
  lab_begin(&l, &c);
  lab_say(&l, "{\"ev\":\"done\",\"id\":1,\"status\":\"aborted\"}\n");
  lab_turn(&l);
  assert_true(client_saw(&c, "\"name\":\"ExecutionAborted\",\"value\":\"Execution was aborted\""));
  assert_true(c.ended);
  lab_close(&l);
  buf_free(&c.seen);
}

static void a_slow_client_stops_the_reading_until_it_resumes(void **state)
{
  (void)state;
  struct lab l;
  struct client c = client_new("x");
  lab_begin(&l, &c);
  c.slow = true;
  lab_say(&l, "{\"ev\":\"count\",\"id\":1,\"n\":1}\n{\"ev\":\"display\",\"id\":1,\"data\":{\"text/plain\":\"one\"}}\n"
              "{\"ev\":\"display\",\"id\":1,\"data\":{\"text/"
              "plain\":\"two\"}}\n{\"ev\":\"done\",\"id\":1,\"status\":\"ok\"}\n");
  lab_turn(&l);
  assert_false(client_saw(&c, "one"));
  run_resume(&c.run);
  lab_turn(&l);
  assert_true(client_saw(&c, "one"));
  assert_false(client_saw(&c, "two"));
  c.slow = false;
  run_resume(&c.run);
  lab_turn(&l);
  assert_true(client_saw(&c, "two"));
  assert_true(c.ended);
  lab_close(&l);
  buf_free(&c.seen);
}

/* A message that comes in many pieces, one of them between two of its bytes. */
static void a_message_may_come_in_any_pieces(void **state)
{
  (void)state;
  static const char text[] = "{\"ev\":\"count\",\"id\":1,\"n\":1}\n{\"ev\":\"done\",\"id\":1,\"status\":\"ok\"}\n";
  struct lab l;
  struct client c = client_new("x");
  lab_begin(&l, &c);
  for (size_t i = 0; i < sizeof(text) - 1; i++) {
    assert_int_equal(write(l.sock, text + i, 1), 1);
    uv_run(&l.loop, UV_RUN_NOWAIT);
  }
  lab_turn(&l);
  assert_true(c.ended);
  assert_string_equal(buf_z(&c.seen), "{\"type\":\"number_of_executions\",\"execution_count\":1}\n");
  lab_close(&l);
  buf_free(&c.seen);
}

static void a_message_past_the_limit_is_dropped_and_said(void **state)
{
  (void)state;
  struct lab l;
  struct client c = client_new("x");
  lab_begin(&l, &c);
  char *big = malloc(300000);
  memset(big, 'y', 300000);
  static const char head[] = "{\"ev\":\"display\",\"id\":1,\"data\":{\"text/plain\":\"";
  memcpy(big, head, sizeof(head) - 1);
  for (size_t at = 0; at < 300000;) {
    ssize_t n = send(l.sock, big + at, 300000 - at, MSG_DONTWAIT);
    at += n > 0 ? (size_t)n : 0;
    uv_run(&l.loop, UV_RUN_NOWAIT);
  }
  free(big);
  lab_say(&l, "\"}}\n{\"ev\":\"display\",\"id\":1,\"data\":{\"text/"
              "plain\":\"after\"}}\n{\"ev\":\"done\",\"id\":1,\"status\":\"ok\"}\n");
  lab_turn(&l);
  assert_true(c.ended);
  assert_true(client_saw(&c, "\"name\":\"ResultTooLarge\",\"value\":\"A message of the kernel was larger than 100000 "
                             "bytes and was dropped\""));
  assert_true(client_saw(&c, "\"text\":\"after\""));
  assert_false(client_saw(&c, "yyy"));
  lab_close(&l);
  buf_free(&c.seen);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_run_is_told_from_count_to_end),
      cmocka_unit_test(neighbouring_pieces_join_and_a_pause_parts_them),
      cmocka_unit_test(messages_go_before_pipe_bytes_and_drain_turns_it_round),
      cmocka_unit_test(events_of_another_run_and_nonsense_are_ignored),
      cmocka_unit_test(an_abort_without_an_error_is_told_as_one),
      cmocka_unit_test(a_slow_client_stops_the_reading_until_it_resumes),
      cmocka_unit_test(a_message_may_come_in_any_pieces),
      cmocka_unit_test(a_message_past_the_limit_is_dropped_and_said),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
