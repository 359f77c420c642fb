/* SPDX-License-Identifier: Apache-2.0 */
/* Kernel events become the lines a client reads. */
#include "agent/interpreter/kernel_output.h"
#include "unit.h"

static struct buf seen = {.max = 64 << 20};
static int lines;

static void on_line(void *arg, struct str line)
{
  (void)arg;
  lines++;
  buf_adds(&seen, line);
}

static struct output begun(bool coalesce)
{
  struct output o;
  output_init(&o, on_line, NULL);
  o.coalesce = coalesce;
  output_begin(&o);
  buf_clear(&seen);
  lines = 0;
  return o;
}

/* Time stamps differ from run to run; everything else is compared to the letter. */
static const char *told(void)
{
  static const char mark[] = ",\"timestamp\":\"";
  struct buf b = BUF_INIT(64 << 20);
  struct str s = buf_str(&seen);
  for (ptrdiff_t at; (at = str_search(s, STR(mark))) >= 0;) {
    buf_adds(&b, str_sub(s, 0, (size_t)at));
    s = str_skip(s, (size_t)at + sizeof(mark) - 1 + strlen("2026-01-02T03:04:05.678901+00:00\""));
  }
  buf_adds(&b, s);
  buf_clear(&seen);
  buf_adds(&seen, buf_str(&b));
  buf_free(&b);
  return buf_z(&seen);
}

static void a_result_maps_mime_types_to_fields(void **state)
{
  (void)state;
  struct output o = begun(false);
  output_display(&o, true,
                 STR("{\"text/plain\":\"'x'\",\"image/png\":\"aGk=\",\"application/json\":{\"a\":1.0},\"x/"
                     "y\":[1],\"text/html\":null}"));
  assert_string_equal(
      told(), "{\"type\":\"result\",\"text\":\"x\",\"png\":\"aGk=\",\"json\":{\"a\":1.0},\"extra\":{\"x/y\":[1]},"
              "\"is_main_result\":true}\n");
  output_free(&o);
}

static void a_bare_result_still_has_extra_and_main(void **state)
{
  (void)state;
  struct output o = begun(false);
  output_display(&o, false, STR("{}"));
  assert_string_equal(told(), "{\"type\":\"result\",\"extra\":{},\"is_main_result\":false}\n");
  output_free(&o);
}

static void only_the_first_error_is_told(void **state)
{
  (void)state;
  struct output o = begun(false);
  output_error(&o, STR("\"E\""), STR("\"v\""), STR("[\"a\",\"b\\n\",\"c\"]"));
  output_fault(&o, "Second", "no", "");
  assert_string_equal(told(), "{\"type\":\"error\",\"name\":\"E\",\"value\":\"v\",\"traceback\":\"a\\nb\\nc\"}\n");
  output_free(&o);
}

static void missing_error_fields_are_empty_strings(void **state)
{
  (void)state;
  struct output o = begun(false);
  output_error(&o, STR_NONE, STR("null"), STR("[]"));
  assert_string_equal(told(), "{\"type\":\"error\",\"name\":\"\",\"value\":\"\",\"traceback\":\"\"}\n");
  output_free(&o);
}

static void without_coalescing_each_piece_is_an_event(void **state)
{
  (void)state;
  struct output o = begun(false);
  output_stream(&o, OUTPUT_STDOUT, STR("Hello"), 0);
  output_stream(&o, OUTPUT_STDOUT, STR("\\n"), 0);
  assert_string_equal(told(), "{\"type\":\"stdout\",\"text\":\"Hello\"}\n{\"type\":\"stdout\",\"text\":\"\\n\"}\n");
  output_free(&o);
}

static void coalesced_pieces_join_per_stream_and_flush_in_order(void **state)
{
  (void)state;
  struct output o = begun(true);
  output_stream(&o, OUTPUT_STDERR, STR("e"), 0);
  output_stream(&o, OUTPUT_STDOUT, STR("a"), 0);
  output_stream(&o, OUTPUT_STDERR, STR("f"), 0);
  output_stream(&o, OUTPUT_STDOUT, STR("b"), 0);
  assert_int_equal(lines, 0);
  assert_true(output_waiting(&o));
  output_display(&o, true, STR("{\"text/plain\":\"1\"}"));
  assert_string_equal(told(), "{\"type\":\"stderr\",\"text\":\"ef\"}\n{\"type\":\"stdout\",\"text\":\"ab\"}\n"
                              "{\"type\":\"result\",\"text\":\"1\",\"extra\":{},\"is_main_result\":true}\n");
  output_free(&o);
}

static void long_text_comes_in_bounded_pieces(void **state)
{
  (void)state;
  struct output o = begun(true);
  struct buf text = BUF_INIT(4 << 20);
  for (int i = 0; i < 50000; i++)
    buf_addz(&text, "\\u00e9");
  output_stream(&o, OUTPUT_STDOUT, buf_str(&text), 0);
  output_end(&o);
  size_t whole = 0;
  struct str rest = buf_str(&seen), line;
  while (str_cut(rest, '\n', &line, &rest)) {
    struct str body = str_skip(line, strlen("{\"type\":\"stdout\",\"text\":\""));
    ptrdiff_t end = str_find(body, '"');
    assert_in_range(end, 1, OUTPUT_PIECE);
    assert_int_equal(end % 6, 0);
    whole += (size_t)end;
  }
  assert_int_equal(whole, text.n);
  assert_int_equal(lines, (int)((text.n + OUTPUT_PIECE - OUTPUT_PIECE % 6 - 1) / (OUTPUT_PIECE - OUTPUT_PIECE % 6)));
  buf_free(&text);
  output_free(&o);
}

static void bytes_of_a_pipe_may_be_cut_anywhere(void **state)
{
  (void)state;
  const char *text = "a\xe2\x82\xac\xf0\x9f\x98\x80z";
  for (size_t step = 1; step <= strlen(text); step++) {
    struct output o = begun(true);
    for (size_t i = 0; i < strlen(text); i += step)
      output_bytes(&o, OUTPUT_STDOUT, str_sub(str_of(text), i, step));
    output_end(&o);
    assert_string_equal(told(), "{\"type\":\"stdout\",\"text\":\"a\\u20ac\\ud83d\\ude00z\"}\n");
    output_free(&o);
  }
}

static void half_a_character_at_the_end_is_replaced(void **state)
{
  (void)state;
  struct output o = begun(false);
  output_bytes(&o, OUTPUT_STDERR, STR("\xe2\x82"));
  assert_int_equal(lines, 0);
  output_end(&o);
  assert_string_equal(told(), "{\"type\":\"stderr\",\"text\":\"\\ufffd\\ufffd\"}\n");
  output_free(&o);
}

static void nothing_is_told_outside_a_run(void **state)
{
  (void)state;
  struct output o = begun(false);
  output_end(&o);
  output_stream(&o, OUTPUT_STDOUT, STR("late"), 0);
  output_bytes(&o, OUTPUT_STDOUT, STR("late"));
  output_display(&o, true, STR("{}"));
  output_count(&o, 3);
  output_fault(&o, "E", "v", "");
  assert_int_equal(lines, 0);
  output_free(&o);
}

static void the_limit_of_a_run_is_said_once(void **state)
{
  (void)state;
  struct output o = begun(false);
  o.limit = 10;
  output_stream(&o, OUTPUT_STDOUT, STR("123456"), 0);
  output_stream(&o, OUTPUT_STDOUT, STR("123456"), 0);
  output_stream(&o, OUTPUT_STDOUT, STR("1"), 0);
  assert_string_equal(
      told(), "{\"type\":\"stdout\",\"text\":\"123456\"}\n{\"type\":\"error\",\"name\":\"OutputLimitExceeded\","
              "\"value\":\"The execution produced more than 10 bytes; the rest was dropped\",\"traceback\":\"\"}\n");
  output_free(&o);
}

static void stamps_are_utc_with_an_offset(void **state)
{
  (void)state;
  struct output o = begun(false);
  output_stream(&o, OUTPUT_STDOUT, STR("x"), 1767323045678901);
  assert_string_equal(buf_z(&seen),
                      "{\"type\":\"stdout\",\"text\":\"x\",\"timestamp\":\"2026-01-02T03:04:05.678901+00:00\"}\n");
  output_free(&o);
}

int main(void)
{
  setenv("CLOCHE_LOG_BYTES", "0", 1); /* no book of what kernels print */
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_result_maps_mime_types_to_fields),
      cmocka_unit_test(a_bare_result_still_has_extra_and_main),
      cmocka_unit_test(only_the_first_error_is_told),
      cmocka_unit_test(missing_error_fields_are_empty_strings),
      cmocka_unit_test(without_coalescing_each_piece_is_an_event),
      cmocka_unit_test(coalesced_pieces_join_per_stream_and_flush_in_order),
      cmocka_unit_test(long_text_comes_in_bounded_pieces),
      cmocka_unit_test(bytes_of_a_pipe_may_be_cut_anywhere),
      cmocka_unit_test(half_a_character_at_the_end_is_replaced),
      cmocka_unit_test(nothing_is_told_outside_a_run),
      cmocka_unit_test(the_limit_of_a_run_is_said_once),
      cmocka_unit_test(stamps_are_utc_with_an_offset),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
