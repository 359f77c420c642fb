/* SPDX-License-Identifier: Apache-2.0 */
/* Sessions of the Model Context Protocol without a server: messages, refusals, results and their limits. */
#include "unit.h"

#include "mcp/mcp.h"
#include "mcp/result.h"
#include <cloche.h>

struct heard {
  char text[200000];
  unsigned messages, last;
};

static void hear(struct str message, bool last, void *arg)
{
  struct heard *h = arg;
  h->messages += message.n > 0;
  h->last += last;
  assert_int_equal(str_copyz(message, h->text, sizeof(h->text)), 0);
}

static int no_way(void *arg)
{
  return -1;
}

static struct mcp_session *begin(uv_loop_t *loop, unsigned calls)
{
  struct cloche_config config = {
      .size = sizeof(config), .url = "http://127.0.0.1", .key = "e2b_0", .open_socket = no_way, .retries = -1};
  struct mcp_options options = {.id = STR("0123"), .idle_s = 60, .limits = mcp_limits_default};
  struct err err = ERR_NONE;
  options.limits.calls = calls;
  uv_loop_init(loop);
  struct mcp_session *s = mcp_session_new(loop, &config, &options, &err);
  assert_non_null(s);
  return s;
}

static void finish(uv_loop_t *loop, struct mcp_session *s)
{
  mcp_session_end(s, NULL, NULL);
  uv_run(loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(loop), 0);
}

static void say(struct mcp_session *s, const char *text, struct heard *h)
{
  struct err err = ERR_NONE;
  int code = 0;
  assert_int_equal(mcp_session_take(s, str_of(text), hear, h, NULL, &code, &err), 0);
}

static int refused(struct mcp_session *s, const char *text)
{
  struct err err = ERR_NONE;
  int code = 0;
  struct heard h = {.messages = 0};
  assert_true(mcp_session_take(s, str_of(text), hear, &h, NULL, &code, &err) < 0);
  assert_int_equal(h.messages, 0);
  return code;
}

static void a_handshake_agrees_on_the_version_that_both_know(void **state)
{
  static struct heard h;
  uv_loop_t loop;
  struct mcp_session *s = begin(&loop, 8);
  say(s, "{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2025-03-26\"}}",
      &h);
  assert_non_null(strstr(h.text, "\"id\":\"a\""));
  assert_non_null(strstr(h.text, "\"protocolVersion\":\"2025-03-26\""));
  say(s, "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"initialize\",\"params\":{\"protocolVersion\":\"2099-01-01\"}}",
      &h);
  assert_non_null(strstr(h.text, "\"protocolVersion\":\"2025-11-25\""));
  finish(&loop, s);
}

static void what_is_no_message_is_refused_with_its_code(void **state)
{
  uv_loop_t loop;
  struct mcp_session *s = begin(&loop, 8);
  assert_int_equal(refused(s, "{"), MCP_PARSE_ERROR);
  assert_int_equal(refused(s, "[]"), MCP_INVALID_REQUEST);
  assert_int_equal(refused(s, "3"), MCP_INVALID_REQUEST);
  assert_int_equal(refused(s, "{\"id\":1}"), MCP_INVALID_REQUEST);
  assert_int_equal(mcp_session_calls(s), 0);
  finish(&loop, s);
}

static void unknown_methods_and_tools_are_errors_of_the_request(void **state)
{
  static struct heard h;
  uv_loop_t loop;
  struct mcp_session *s = begin(&loop, 8);
  say(s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"server/discover\"}", &h);
  assert_non_null(strstr(h.text, "-32601"));
  say(s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"x\"}}", &h);
  assert_non_null(strstr(h.text, "-32602"));
  say(s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"resources/read\",\"params\":{\"uri\":\"file:///etc/passwd\"}}",
      &h);
  assert_non_null(strstr(h.text, "-32602"));
  assert_int_equal(h.last, 3);
  finish(&loop, s);
}

static void a_list_of_tools_is_json_with_a_schema_each(void **state)
{
  static struct heard h;
  cleanup_arena struct arena a = ARENA_INIT(0);
  struct json_error why;
  uv_loop_t loop;
  struct mcp_session *s = begin(&loop, 8);
  say(s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/list\"}", &h);
  struct json *all = json_read(&a, str_of(h.text), 0, &why);
  struct json *tools = json_get(json_get(all, "result"), "tools");
  assert_int_equal(tools->count, 12);
  for (struct json *t = tools->kids; t; t = t->next)
    assert_true(json_is(json_get(json_get(t, "inputSchema"), "properties"), JSON_OBJECT));
  finish(&loop, s);
}

static void a_server_that_is_away_is_a_result_that_failed(void **state)
{
  static struct heard h;
  uv_loop_t loop;
  struct mcp_session *s = begin(&loop, 8);
  say(s, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"list_sandboxes\"}}", &h);
  for (int i = 0; i < 1000 && !h.last; i++)
    uv_run(&loop, UV_RUN_NOWAIT);
  assert_int_equal(h.last, 1);
  assert_non_null(strstr(h.text, "\"isError\":true"));
  finish(&loop, s);
}

static void calls_over_the_limit_are_refused_and_others_end_with_the_session(void **state)
{
  static struct heard one, two;
  uv_loop_t loop;
  struct mcp_session *s = begin(&loop, 1);
  const char *call = "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{\"name\":\"run_code\","
                     "\"arguments\":{\"code\":\"1\"}}}";
  say(s, call, &one);
  say(s, call, &two);
  assert_int_equal(two.last, 1);
  assert_non_null(strstr(two.text, "as many as it may"));
  assert_int_equal(one.last, 0);
  finish(&loop, s);
  assert_int_equal(one.last, 1);
}

static void a_cancelled_call_is_not_answered(void **state)
{
  static struct heard h;
  uv_loop_t loop;
  struct mcp_session *s = begin(&loop, 8);
  say(s, "{\"jsonrpc\":\"2.0\",\"id\":\"7\",\"method\":\"tools/call\",\"params\":{\"name\":\"list_sandboxes\"}}", &h);
  say(s, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":7}}", &h);
  assert_int_equal(mcp_session_calls(s), 1); /* the number 7 is another id than the text */
  say(s, "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":{\"requestId\":\"7\"}}", &h);
  assert_int_equal(mcp_session_calls(s), 0);
  assert_int_equal(h.last, 1); /* who carries the request does not wait for ever */
  finish(&loop, s);
  assert_int_equal(h.messages, 0);
  assert_int_equal(h.last, 1);
}

/* "1," is two bytes of text and tens of memory, for as long as the call takes. */
static void a_message_of_many_values_is_refused(void **state)
{
  uv_loop_t loop;
  struct mcp_session *s = begin(&loop, 8);
  cleanup_buf struct buf b = BUF_INIT(8 << 20);
  buf_addz(&b, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":[1");
  for (int i = 0; i < 1000000; i++)
    buf_addz(&b, ",1");
  buf_addz(&b, "]}");
  assert_int_equal(refused(s, buf_z(&b)), MCP_PARSE_ERROR);
  finish(&loop, s);
}

static void a_long_text_in_a_message_is_taken(void **state)
{
  static struct heard h;
  uv_loop_t loop;
  struct mcp_session *s = begin(&loop, 8);
  cleanup_buf struct buf b = BUF_INIT(8 << 20);
  buf_addz(&b, "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\",\"params\":{\"a\":\"\\n");
  for (int i = 0; i < 1000000; i++)
    buf_addz(&b, "text");
  buf_addz(&b, "\"}}");
  say(s, buf_z(&b), &h);
  assert_string_equal(h.text, "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}");
  finish(&loop, s);
}

static void what_a_sandbox_wrote_ends_no_line_of_a_message(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct mcp_result r;
  result_begin(&r, 1000, 1000);
  result_put_json(&r, &r.data, "json", "[1,\r\r{\"jsonrpc\":\"2.0\"}\n,\"\xff\"]");
  result_put_json(&r, &r.data, "data", "[1");
  result_write(&r, &out);
  assert_null(strpbrk(buf_z(&out), "\r\n"));
  assert_true(utf8_valid(buf_str(&out)));
  assert_non_null(strstr(buf_z(&out), "\"structuredContent\":{\"json\":[1,{\"jsonrpc\":\"2.0\"},"));
  assert_non_null(strstr(buf_z(&out), "it can't be read"));
  result_free(&r);
}

static void a_long_text_loses_its_middle_and_no_character(void **state)
{
  cleanup_buf struct buf in = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
  for (int i = 0; i < 10000; i++)
    buf_addz(&in, "é");
  text_shorten(&out, buf_str(&in), 101);
  assert_true(utf8_valid(buf_str(&out)));
  assert_non_null(strstr(buf_z(&out), "bytes left out"));
  assert_true(out.n < 200);
  buf_clear(&out);
  text_shorten(&out, STR("short"), 5);
  assert_string_equal(buf_z(&out), "short");
}

static void pictures_and_data_share_what_a_result_may_hold(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct mcp_result r;
  result_begin(&r, 1000, 8);
  result_image(&r, "image/png", STR("QUJD"));
  result_put_json(&r, &r.data, "chart", "[1]");
  result_image(&r, "image/png", STR("QUJD"));
  result_put_json(&r, &r.data, "data", "[12]");
  result_write(&r, &out);
  assert_non_null(strstr(buf_z(&out), "\"data\":\"QUJD\""));
  assert_non_null(strstr(buf_z(&out), "\"structuredContent\":{\"chart\":[1]}"));
  assert_non_null(strstr(buf_z(&out), "picture (image/png) of 3 bytes is left out"));
  assert_non_null(strstr(buf_z(&out), "[data of 4 bytes is left out"));
  result_free(&r);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_handshake_agrees_on_the_version_that_both_know),
      cmocka_unit_test(what_is_no_message_is_refused_with_its_code),
      cmocka_unit_test(unknown_methods_and_tools_are_errors_of_the_request),
      cmocka_unit_test(a_list_of_tools_is_json_with_a_schema_each),
      cmocka_unit_test(a_server_that_is_away_is_a_result_that_failed),
      cmocka_unit_test(calls_over_the_limit_are_refused_and_others_end_with_the_session),
      cmocka_unit_test(a_cancelled_call_is_not_answered),
      cmocka_unit_test(a_message_of_many_values_is_refused),
      cmocka_unit_test(a_long_text_in_a_message_is_taken),
      cmocka_unit_test(what_a_sandbox_wrote_ends_no_line_of_a_message),
      cmocka_unit_test(a_long_text_loses_its_middle_and_no_character),
      cmocka_unit_test(pictures_and_data_share_what_a_result_may_hold),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
