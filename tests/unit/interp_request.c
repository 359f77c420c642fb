/* SPDX-License-Identifier: Apache-2.0 */
/* Request bodies and the answers to wrong ones. */
#include "agent/interpreter/interp_request.h"
#include "unit.h"

static struct buf wrong = {.max = 1 << 20};

static const char *execute_wrong(const char *body)
{
  struct arena cleanup_arena a = ARENA_INIT(1 << 20);
  struct execute_request r;
  buf_clear(&wrong);
  return execute_request_read(&a, str_of(body), &r, &wrong) < 0 ? buf_z(&wrong) : "fine";
}

static void null_absent_and_empty_mean_not_given(void **state)
{
  (void)state;
  struct arena cleanup_arena a = ARENA_INIT(1 << 20);
  struct execute_request r;
  buf_clear(&wrong);
  assert_int_equal(
      execute_request_read(
          &a, STR("{\"code\":\"\",\"context_id\":null,\"language\":\"\",\"env_vars\":null,\"more\":1}"), &r, &wrong),
      0);
  assert_int_equal(r.code.n, 0);
  assert_null(r.context_id.p);
  assert_null(r.language.p);
  assert_null(r.env);
}

static void a_full_request_is_read(void **state)
{
  (void)state;
  struct arena cleanup_arena a = ARENA_INIT(1 << 20);
  struct execute_request r;
  assert_int_equal(execute_request_read(
                       &a, STR("{\"code\":\"\\u00e9\",\"context_id\":\"i\",\"env_vars\":{\"A\":\"b\"}}"), &r, &wrong),
                   0);
  assert_true(str_is(r.code, "\xc3\xa9"));
  assert_true(str_is(r.context_id, "i"));
  assert_true(str_is(json_get(r.env, "A")->text, "b"));
}

static void faults_are_told_where_they_are(void **state)
{
  (void)state;
  assert_string_equal(
      execute_wrong("{}"),
      "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\",\"code\"],\"msg\":\"Field required\",\"input\":{}}]}");
  assert_string_equal(execute_wrong("{\"code\":1.0}"),
                      "{\"detail\":[{\"type\":\"string_type\",\"loc\":[\"body\",\"code\"],"
                      "\"msg\":\"Input should be a valid string\",\"input\":1.0}]}");
  assert_string_equal(
      execute_wrong(""),
      "{\"detail\":[{\"type\":\"missing\",\"loc\":[\"body\"],\"msg\":\"Field required\",\"input\":null}]}");
  assert_string_equal(execute_wrong("{\"code\":\"\",\"env_vars\":{\"A\":null}}"),
                      "{\"detail\":[{\"type\":\"string_type\",\"loc\":[\"body\",\"env_vars\",\"A\"],\"msg\":\"Input "
                      "should be a valid string\",\"input\":null}]}");
  assert_string_equal(execute_wrong("{\"code\":\"\",\"env_vars\":[]}"),
                      "{\"detail\":[{\"type\":\"dict_type\",\"loc\":[\"body\",\"env_vars\"],\"msg\":\"Input should be "
                      "a valid dictionary\",\"input\":[]}]}");
}

static void text_that_is_no_json_is_told_with_its_place(void **state)
{
  (void)state;
  const char *answer = execute_wrong("{\"code\": nope}");
  assert_non_null(strstr(answer, "{\"detail\":[{\"type\":\"json_invalid\",\"loc\":[\"body\","));
  assert_non_null(strstr(answer, "\"msg\":\"JSON decode error\",\"input\":{}"));
}

static void a_context_may_be_asked_for_with_nothing(void **state)
{
  (void)state;
  struct arena cleanup_arena a = ARENA_INIT(1 << 20);
  struct context_request r;
  buf_clear(&wrong);
  assert_int_equal(context_request_read(&a, STR("{}"), &r, &wrong), 0);
  assert_null(r.cwd.p);
  assert_true(context_request_read(&a, STR(""), &r, &wrong) < 0);
  assert_int_equal(context_request_read(&a, STR("{\"cwd\":\"/x\",\"language\":\"R\"}"), &r, &wrong), 0);
  assert_true(str_is(r.cwd, "/x"));
  assert_true(str_is(r.language, "R"));
}

static void an_interrupt_may_name_its_cell_or_nothing(void **state)
{
  (void)state;
  struct arena cleanup_arena a = ARENA_INIT(1 << 20);
  struct interrupt_request r;
  buf_clear(&wrong);
  assert_int_equal(interrupt_request_read(&a, STR(" \r\n"), &r, &wrong), 0);
  assert_true(!r.context_id.p && !r.language.p && !r.execution_id.p);
  assert_int_equal(interrupt_request_read(&a, STR("{\"execution_id\":\"x\",\"language\":null}"), &r, &wrong), 0);
  assert_true(str_is(r.execution_id, "x"));
  assert_null(r.language.p);
  assert_true(interrupt_request_read(&a, STR("{\"execution_id\":1}"), &r, &wrong) < 0);
  assert_non_null(strstr(buf_z(&wrong), "[\"body\",\"execution_id\"]"));
}

static int free_wrong(void **state)
{
  (void)state;
  buf_free(&wrong);
  return 0;
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(null_absent_and_empty_mean_not_given),
      cmocka_unit_test(a_full_request_is_read),
      cmocka_unit_test(faults_are_told_where_they_are),
      cmocka_unit_test(text_that_is_no_json_is_told_with_its_place),
      cmocka_unit_test(a_context_may_be_asked_for_with_nothing),
      cmocka_unit_test(an_interrupt_may_name_its_cell_or_nothing),
  };
  return cmocka_run_group_tests(tests, NULL, free_wrong);
}
