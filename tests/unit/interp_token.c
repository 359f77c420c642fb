/* SPDX-License-Identifier: Apache-2.0 */
/* JSON carried over token by token. */
#include "agent/interpreter/kernel_message.h"
#include "agent/interpreter/json_token.h"
#include "unit.h"

static struct buf out = {.max = 1 << 20};

static const char *copied(const char *text)
{
  struct str in = str_of(text), raw;
  buf_clear(&out);
  if (token_take(&in, &raw) < 0 || str_trim(in).n)
    return "broken";
  assert_int_equal(token_copy(&out, raw), 0);
  return buf_z(&out);
}

static void numbers_keep_their_text(void **state)
{
  (void)state;
  assert_string_equal(copied("[100.0, 1e+22,1234567890123456789 ,-0.0,1E-7]"),
                      "[100.0,1e+22,1234567890123456789,-0.0,1E-7]");
}

static void nan_and_infinity_become_null(void **state)
{
  (void)state;
  assert_string_equal(copied("{\"a\":NaN,\"b\":[Infinity,-Infinity]}"), "{\"a\":null,\"b\":[null,null]}");
}

static void everything_becomes_ascii(void **state)
{
  (void)state;
  assert_string_equal(copied("\"\xc3\xa9 \xf0\x9f\x98\x80 \xe2\x80\xa8\""), "\"\\u00e9 \\ud83d\\ude00 \\u2028\"");
  assert_string_equal(copied("\"\xff\xc3\""), "\"\\ufffd\\ufffd\"");
  assert_string_equal(copied("\"\xed\xa0\x80\""), "\"\\ufffd\\ufffd\\ufffd\"");
  assert_string_equal(copied("\"\\ud800\""), "\"\\ud800\"");
  assert_string_equal(copied("\"a\tb\x01\""), "\"a\\tb\\u0001\"");
}

static void broken_text_is_refused(void **state)
{
  (void)state;
  static const char *const bad[] = {
      "",        "{",         "[1,]",   "{\"a\":}", "{\"a\" 1}",  "{a:1}", "01",   "1.", "-",  "1e",
      "\"\\x\"", "\"\\u12\"", "\"open", "[1 2]",    "{\"a\":1,}", "tru",   "[1]]", "+1", ".5", "{\"a\":1 \"b\":2}"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_string_equal(copied(bad[i]), "broken");
}

static void depth_is_bounded(void **state)
{
  (void)state;
  char text[2 * TOKEN_MAX_DEPTH + 3];
  memset(text, '[', TOKEN_MAX_DEPTH);
  memset(text + TOKEN_MAX_DEPTH, ']', TOKEN_MAX_DEPTH);
  text[2 * TOKEN_MAX_DEPTH] = 0;
  assert_string_equal(copied(text), text);
  memset(text, '[', TOKEN_MAX_DEPTH + 1);
  text[TOKEN_MAX_DEPTH + 1] = '1';
  memset(text + TOKEN_MAX_DEPTH + 2, ']', TOKEN_MAX_DEPTH);
  text[2 * TOKEN_MAX_DEPTH + 2] = 0;
  assert_string_equal(copied(text), "broken");
}

static const char *unquoted(const char *body)
{
  struct str s = token_unquote(str_of(body));
  buf_clear(&out);
  buf_adds(&out, s);
  return buf_z(&out);
}

static void one_pair_of_quotes_is_stripped(void **state)
{
  (void)state;
  assert_string_equal(unquoted("'a'"), "a");
  assert_string_equal(unquoted("\\\"a\\\""), "a");
  assert_string_equal(unquoted("\\u0027a'"), "a");
  assert_string_equal(unquoted("'a\\\\nb'"), "a\\\\nb");
  assert_string_equal(unquoted("''"), "");
  assert_string_equal(unquoted("'"), "");
  assert_string_equal(unquoted("\\\""), "");
  assert_string_equal(unquoted("'a\\\""), "'a\\\"");
  assert_string_equal(unquoted("'a\\\\'"), "a\\\\");
  assert_string_equal(unquoted("\\\\\\\""), "\\\\\\\"");
  assert_string_equal(unquoted("[1] 'a'"), "[1] 'a'");
  assert_string_equal(unquoted(""), "");
}

static void a_prefix_ends_between_characters(void **state)
{
  (void)state;
  struct str s = STR("ab\\u00e9\\ud83d\\ude00\\n");
  assert_int_equal(token_prefix(s, 1), 1);
  assert_int_equal(token_prefix(s, 5), 2);
  assert_int_equal(token_prefix(s, 8), 8);
  assert_int_equal(token_prefix(s, 15), 8);
  assert_int_equal(token_prefix(s, 20), 20);
  assert_int_equal(token_prefix(s, 21), 20);
  assert_int_equal(token_prefix(s, 99), s.n);
}

static void bodies_are_compared_decoded(void **state)
{
  (void)state;
  assert_true(token_is(STR("text\\/plain"), "text/plain"));
  assert_true(token_is(STR("\\u0074ext/plain"), "text/plain"));
  assert_false(token_is(STR("text/plain2"), "text/plain"));
  assert_false(token_is(STR("text/plai"), "text/plain"));
}

static void a_message_is_taken_apart(void **state)
{
  (void)state;
  struct message m;
  char text[8];
  assert_int_equal(message_read(STR(" {\"ev\":\"stream\", \"x\":[1,{}], \"id\" : 7,\"text\":\"\\u00e9bc\"} "), &m), 0);
  assert_true(message_is(&m, "stream"));
  int64_t id = 0;
  assert_int_equal(token_int(m.id, &id), 0);
  assert_int_equal(id, 7);
  assert_int_equal(message_text(m.text, text, sizeof(text)), 0);
  assert_int_equal(m.name.n, 0);
  assert_true(message_read(STR("{\"ev\":\"x\"} y"), &m) < 0);
  assert_true(message_read(STR("[]"), &m) < 0);
}

static void a_run_carries_code_and_variables_in_ascii(void **state)
{
  (void)state;
  struct arena cleanup_arena a = ARENA_INIT(4096);
  struct json_error why;
  struct json *env = json_read(&a, STR("{\"K\":\"v\\\"\xc3\xa9\",\"N\":1}"), 0, &why);
  assert_non_null(env);
  buf_clear(&out);
  message_run(&out, 7, STR("x = '\xe2\x82\xac'\n"), env);
  assert_string_equal(buf_z(&out),
                      "{\"op\":\"run\",\"id\":7,\"code\":\"x = '\\u20ac'\\n\",\"env\":{\"K\":\"v\\\"\\u00e9\"}}\n");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_keep_their_text),
      cmocka_unit_test(nan_and_infinity_become_null),
      cmocka_unit_test(everything_becomes_ascii),
      cmocka_unit_test(broken_text_is_refused),
      cmocka_unit_test(depth_is_bounded),
      cmocka_unit_test(one_pair_of_quotes_is_stripped),
      cmocka_unit_test(a_prefix_ends_between_characters),
      cmocka_unit_test(bodies_are_compared_decoded),
      cmocka_unit_test(a_message_is_taken_apart),
      cmocka_unit_test(a_run_carries_code_and_variables_in_ascii),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
