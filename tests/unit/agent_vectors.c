/* SPDX-License-Identifier: Apache-2.0 */
/* Byte vectors: what goes over the wire for the messages of both services, in both formats. */
#include "unit.h"

#include "agent/envd/messages.h"
#include "agent/envd/process_end.h"
#include "rpc/connect.h"

static void sends(const struct schema *s, const void *msg, const char *json, struct str proto)
{
  cleanup_buf struct buf text = BUF_INIT(4096), bytes = BUF_INIT(4096);
  json_encode(s, msg, &text);
  assert_string_equal(buf_z(&text), json);
  if (!proto.p)
    return;
  proto_encode(s, msg, &bytes);
  assert_int_equal(bytes.n, proto.n);
  assert_memory_equal(bytes.p, proto.p, proto.n);
}

static void sends_event(struct msg_event event, const char *json, struct str proto)
{
  struct msg_event_response msg = {&event};
  sends(&schema_event, &msg, json, proto);
}

static void a_start_event_tells_the_pid(void **state)
{
  struct msg_started started = {42};
  struct msg_event event = {.which = EVENT_START, .start = &started};
  struct msg_event_response msg = {&event};
  cleanup_buf struct buf frame = BUF_INIT(100);
  frame_message(&frame, RPC_JSON, &schema_event, &msg);
  assert_memory_equal(frame.p, "\x00\x00\x00\x00\x1e", 5);
  assert_string_equal(buf_z(&frame) + 5, "{\"event\":{\"start\":{\"pid\":42}}}");
  sends_event(event, "{\"event\":{\"start\":{\"pid\":42}}}", STR("\x0a\x04\x0a\x02\x08\x2a"));
}

static void data_events_carry_bytes_by_stream(void **state)
{
  struct msg_data out = {.which = DATA_STDOUT, .out = STR("hi\n")}, err = {.which = DATA_STDERR, .err = STR("")},
                  pty = {.which = DATA_PTY, .pty = STR("\xff\x00")};
  sends_event((struct msg_event){.which = EVENT_DATA, .data = &out}, "{\"event\":{\"data\":{\"stdout\":\"aGkK\"}}}",
              STR("\x0a\x07\x12\x05\x0a\x03hi\x0a"));
  sends_event((struct msg_event){.which = EVENT_DATA, .data = &err}, "{\"event\":{\"data\":{\"stderr\":\"\"}}}",
              STR_NONE);
  sends_event((struct msg_event){.which = EVENT_DATA, .data = &pty}, "{\"event\":{\"data\":{\"pty\":\"/wA=\"}}}",
              STR_NONE);
}

static void ends_with(int status, const char *json, struct str proto)
{
  char text[END_TEXT];
  struct msg_end end;
  process_end_describe(status, text, &end);
  sends_event((struct msg_event){.which = EVENT_END, .end = &end}, json, proto);
}

static void end_events_tell_exit_code_or_signal(void **state)
{
  ends_with(0, "{\"event\":{\"end\":{\"exited\":true,\"status\":\"exit status 0\"}}}",
            STR("\x0a\x13\x1a\x11\x10\x01\x1a\x0d"
                "exit status 0"));
  ends_with(
      3 << 8,
      "{\"event\":{\"end\":{\"exitCode\":3,\"exited\":true,\"status\":\"exit status 3\",\"error\":\"exit status 3\"}}}",
      STR_NONE);
  ends_with(9, "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: killed\",\"error\":\"signal: killed\"}}}",
            STR("\x0a\x24\x1a\x22\x08\x01\x1a\x0esignal: killed\x22\x0esignal: killed"));
  ends_with(11 | 0x80,
            "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: segmentation fault (core dumped)\","
            "\"error\":\"signal: segmentation fault (core dumped)\"}}}",
            STR_NONE);
  ends_with(40,
            "{\"event\":{\"end\":{\"exitCode\":-1,\"status\":\"signal: signal 40\",\"error\":\"signal: signal 40\"}}}",
            STR_NONE);
}

static void keepalives_are_empty_messages(void **state)
{
  struct msg_empty nothing = {0};
  struct msg_watch_event watch = {.which = WATCH_KEEPALIVE, .keepalive = &nothing};
  sends_event((struct msg_event){.which = EVENT_KEEPALIVE, .keepalive = &nothing}, "{\"event\":{\"keepalive\":{}}}",
              STR("\x0a\x02\x22\x00"));
  sends(&schema_watch_event, &watch, "{\"keepalive\":{}}", STR("\x1a\x00"));
}

static void watch_events_tell_name_and_kind(void **state)
{
  struct msg_empty nothing = {0};
  struct msg_change change = {.name = STR("a.txt"), .type = CHANGE_WRITE};
  struct msg_watch_event start = {.which = WATCH_START, .start = &nothing},
                         event = {.which = WATCH_CHANGE, .change = &change};
  sends(&schema_watch_event, &start, "{\"start\":{}}", STR("\x0a\x00"));
  sends(&schema_watch_event, &event, "{\"filesystem\":{\"name\":\"a.txt\",\"type\":\"EVENT_TYPE_WRITE\"}}",
        STR("\x12\x09\x0a\x05"
            "a.txt\x10\x02"));
}

static void start_request_in_both_formats(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct err err = ERR_NONE;
  void *msg;
  struct str proto = STR("\x0a\x17\x0a\x09/bin/bash\x12\x02-l\x12\x02-c\x12\x02id\x20\x00");
  struct str json = STR("{\"process\":{\"cmd\":\"/bin/bash\",\"args\":[\"-l\",\"-c\",\"id\"]},\"stdin\":false}");
  for (int codec = RPC_JSON; codec <= RPC_PROTO; codec++) {
    assert_int_equal(rpc_decode((enum rpc_codec)codec, &schema_start, codec == RPC_JSON ? json : proto, &a, &msg, &err),
                     0);
    const struct msg_start *req = msg;
    assert_true(str_is(req->process->cmd, "/bin/bash"));
    assert_int_equal(req->process->args.n, 3);
    assert_true(str_is(((struct str *)req->process->args.p)[2], "id"));
    assert_true(req->has_stdin);
    assert_false(req->stdin_open);
    assert_null(req->pty);
    assert_false(req->process->has_cwd);
    assert_false(req->has_tag);
  }
}

static void input_and_signal_requests(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct err err = ERR_NONE;
  void *msg;
  assert_int_equal(
      json_decode(&schema_signal, STR("{\"process\":{\"pid\":42},\"signal\":\"SIGNAL_SIGKILL\"}"), &a, &msg, &err), 0);
  assert_int_equal(((struct msg_signal *)msg)->signal, 9);
  assert_int_equal(((struct msg_signal *)msg)->process->which, SELECT_PID);
  assert_int_equal(
      json_decode(&schema_send_input, STR("{\"process\":{\"tag\":\"t\"},\"input\":{\"stdin\":\"\"}}"), &a, &msg, &err),
      0);
  assert_int_equal(((struct msg_send_input *)msg)->input->which, INPUT_STDIN);
  assert_int_equal(((struct msg_send_input *)msg)->process->which, SELECT_TAG);
  assert_int_equal(
      json_decode(&schema_send_input, STR("{\"process\":{\"pid\":42},\"input\":{\"stdin\":\"aGkK\"}}"), &a, &msg, &err),
      0);
  assert_true(str_is(((struct msg_send_input *)msg)->input->in, "hi\n"));
  /* field 2, not 1, in the data of a client stream */
  assert_int_equal(proto_decode(&schema_stream_input, STR("\x12\x06\x12\x04\x0a\x02hi"), &a, &msg, &err), 0);
  assert_true(str_is(((struct msg_stream_input *)msg)->data->input->in, "hi"));
}

static void a_stat_answer_tells_the_whole_entry(void **state)
{
  struct msg_entry entry = {.name = STR("a.txt"),
                            .type = ENTRY_FILE,
                            .path = STR("/home/user/a.txt"),
                            .size = 4,
                            .mode = 420,
                            .permissions = STR("-rw-r--r--"),
                            .owner = STR("user"),
                            .group = STR("user"),
                            .modified = {1767323045, 678901234}};
  struct msg_entry_response msg = {&entry};
  sends(&schema_entry_response, &msg,
        "{\"entry\":{\"name\":\"a.txt\",\"type\":\"FILE_TYPE_FILE\",\"path\":\"/home/user/a.txt\",\"size\":\"4\","
        "\"mode\":420,\"permissions\":\"-rw-r--r--\",\"owner\":\"user\",\"group\":\"user\","
        "\"modifiedTime\":\"2026-01-02T03:04:05.678901234Z\"}}",
        STR_NONE);
}

static void empty_answers_are_two_bytes(void **state)
{
  struct msg_empty nothing = {0};
  struct msg_processes none = {0};
  struct msg_changes no_changes = {0};
  sends(&schema_empty, &nothing, "{}", STR(""));
  sends(&schema_processes, &none, "{}", STR(""));
  sends(&schema_changes, &no_changes, "{}", STR(""));
}

static void an_end_is_kept_until_its_name_is_used_again(void **state)
{
  uint32_t pid;
  int status;
  struct msg_selector by_pid = {.which = SELECT_PID, .pid = 77}, by_tag = {.which = SELECT_TAG, .tag = STR("job")};
  process_end_keep(77, STR("job"), true, 5 << 8);
  assert_true(process_end_find(&by_pid, &pid, &status));
  assert_int_equal(status, 5 << 8);
  assert_true(process_end_find(&by_tag, &pid, &status));
  assert_int_equal(pid, 77);
  process_end_forget(78, STR("job"), true);
  assert_false(process_end_find(&by_tag, &pid, &status));
  process_end_keep(77, STR(""), false, 0);
  process_end_forget(77, STR(""), false);
  assert_false(process_end_find(&by_pid, &pid, &status));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_start_event_tells_the_pid),
      cmocka_unit_test(data_events_carry_bytes_by_stream),
      cmocka_unit_test(end_events_tell_exit_code_or_signal),
      cmocka_unit_test(keepalives_are_empty_messages),
      cmocka_unit_test(watch_events_tell_name_and_kind),
      cmocka_unit_test(start_request_in_both_formats),
      cmocka_unit_test(input_and_signal_requests),
      cmocka_unit_test(a_stat_answer_tells_the_whole_entry),
      cmocka_unit_test(empty_answers_are_two_bytes),
      cmocka_unit_test(an_end_is_kept_until_its_name_is_used_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
