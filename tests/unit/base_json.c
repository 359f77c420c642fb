/* SPDX-License-Identifier: Apache-2.0 */
/* JSON: what is read, what is refused, and that numbers survive to the letter. */
#include "unit.h"

static char *round_trip(struct arena *a, const char *text, bool ascii)
{
  struct json *v = json_read(a, str_of(text), JSON_ALLOW_NAN | JSON_REPAIR_UTF8, NULL);
  if (!v)
    return NULL;
  struct buf b = BUF_INIT(1 << 20);
  json_put(&b, v, ascii);
  char *z = arena_z(a, buf_str(&b));
  buf_free(&b);
  return z;
}

static void values_come_back_to_the_letter(void **state)
{
  static const char *const same[] = {"{}",
                                     "[]",
                                     "null",
                                     "true",
                                     "100.0",
                                     "1e+22",
                                     "9223372036854775808123",
                                     "-0.0",
                                     "[1,[2,{}]]",
                                     "{\"a\":1,\"a\":2}",
                                     "\"\"",
                                     "\"a\\nb\"",
                                     "\"\\\"\\\\\""};
  for (size_t i = 0; i < ARRAY_LEN(same); i++) {
    cleanup_arena struct arena a = ARENA_INIT(1 << 20);
    assert_string_equal(round_trip(&a, same[i], true), same[i]);
  }
}

static void ascii_mode_escapes_everything_above_127(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  assert_string_equal(round_trip(&a, "\"\xc3\xa9 \xe2\x80\xa8 \xf0\x9f\x98\x80\"", true),
                      "\"\\u00e9 \\u2028 \\ud83d\\ude00\"");
  assert_string_equal(round_trip(&a, "\"\xc3\xa9\"", false), "\"\xc3\xa9\"");
  assert_string_equal(round_trip(&a, "\"\\ud83d\\ude00\"", false), "\"\xf0\x9f\x98\x80\"");
  assert_string_equal(round_trip(&a, "\"\\ud83d\"", true), "\"\\ud83d\"");
  assert_string_equal(round_trip(&a, "\"\\udc00x\"", false), "\"\\udc00x\"");
  assert_string_equal(round_trip(&a, "\"a\xff\"", true), "\"a\\ufffd\"");
}

static void nan_becomes_null_only_when_allowed(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  assert_string_equal(round_trip(&a, "[NaN,Infinity,-Infinity]", true), "[null,null,null]");
  assert_null(json_read(&a, STR("[NaN]"), 0, NULL));
}

static void bad_text_is_refused_with_its_place(void **state)
{
  static const char *const bad[] = {"",      "{",        "[1,]",    "{\"a\"}", "01",       "1.",        "1e",
                                    "+1",    "\"\x01\"", "\"\\x\"", "[1] x",   "tru",      "\"\\u12\"", "{a:1}",
                                    "\"abc", "-",        "[1 2]",   "\xff",    "\"\xff\"", "{\"a\":}"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    cleanup_arena struct arena a = ARENA_INIT(1 << 20);
    struct json_error why = {0};
    assert_null(json_read(&a, str_of(bad[i]), 0, &why));
    assert_non_null(why.what);
    assert_true(why.offset <= strlen(bad[i]));
  }
}

static void depth_and_size_are_bounded(void **state)
{
  char deep[2000];
  memset(deep, '[', sizeof(deep));
  cleanup_arena struct arena a = ARENA_INIT(1 << 20), small = ARENA_INIT(256);
  assert_null(json_read(&a, (struct str){deep, sizeof(deep)}, 0, NULL));
  assert_null(json_read(&small, STR("[1,2,3,4,5,6,7,8,9,10]"), 0, NULL));
}

static void members_are_found_and_converted(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct json *v = json_read(&a, STR("{\"n\":1e3,\"s\":\"7\",\"z\":null,\"d\":1.5,\"k\":1,\"k\":2}"), 0, NULL);
  int64_t i;
  double d;
  assert_int_equal(json_int(json_get(v, "n"), &i), 0);
  assert_int_equal(i, 1000);
  assert_int_equal(json_int(json_get(v, "s"), &i), 0);
  assert_int_equal(i, 7);
  assert_int_equal(json_int(json_get(v, "d"), &i), -EINVAL);
  assert_int_equal(json_double(json_get(v, "d"), &d), 0);
  assert_int_equal(json_int(json_get(v, "k"), &i), 0);
  assert_int_equal(i, 2);
  assert_false(json_given(json_get(v, "z")));
  assert_null(json_get(v, "absent"));
}

static void the_builder_takes_care_of_commas(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(1000);
  struct jw w = JW(&b);
  jw_open(&w, '{');
  jw_key(&w, "a");
  jw_int(&w, -1);
  jw_key(&w, "b");
  jw_open(&w, '[');
  jw_bool(&w, true);
  jw_null(&w);
  jw_double(&w, 1.005, 2);
  jw_close(&w, ']');
  jw_key(&w, "c");
  jw_open(&w, '{');
  jw_close(&w, '}');
  jw_close(&w, '}');
  assert_string_equal(buf_z(&b), "{\"a\":-1,\"b\":[true,null,1.00],\"c\":{}}");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(values_come_back_to_the_letter),     cmocka_unit_test(ascii_mode_escapes_everything_above_127),
      cmocka_unit_test(nan_becomes_null_only_when_allowed), cmocka_unit_test(bad_text_is_refused_with_its_place),
      cmocka_unit_test(depth_and_size_are_bounded),         cmocka_unit_test(members_are_found_and_converted),
      cmocka_unit_test(the_builder_takes_care_of_commas),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
