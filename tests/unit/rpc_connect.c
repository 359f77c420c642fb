/* SPDX-License-Identifier: Apache-2.0 */
/* The Connect protocol without a transport: frames, errors, header values, and a schema of our own through both codecs.
 */
#include "unit.h"

#include "rpc/connect.h"

static void the_end_of_a_good_stream_is_seven_bytes(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(100);
  frame_end(&b, RPC_OK, STR(""));
  assert_int_equal(b.n, 7);
  assert_memory_equal(b.p, "\x02\x00\x00\x00\x02{}", 7);
}

static void the_end_of_a_failed_stream_carries_code_and_message(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(200);
  frame_end(&b, RPC_NOT_FOUND, STR("process with pid 999999 not found"));
  assert_memory_equal(b.p, "\x02\x00\x00\x00\x4c", 5);
  assert_string_equal(buf_z(&b) + 5,
                      "{\"error\":{\"code\":\"not_found\",\"message\":\"process with pid 999999 not found\"}}");
}

static void frames_are_found_one_after_another(void **state)
{
  struct str in = str_make("\x00\x00\x00\x00\x02{}\x00\x00\x00\x00\x01x\x00\x00", 15), payload;
  uint8_t flags = 9;
  assert_int_equal(frame_next(in, &flags, &payload), 7);
  assert_int_equal(flags, 0);
  assert_true(str_is(payload, "{}"));
  in = str_skip(in, 7);
  assert_int_equal(frame_next(in, &flags, &payload), 6);
  assert_true(str_is(payload, "x"));
  assert_int_equal(frame_next(str_skip(in, 6), &flags, &payload), 0);
}

static void a_frame_too_long_is_refused_before_it_is_read(void **state)
{
  struct str payload;
  uint8_t flags;
  assert_int_equal(frame_next(str_make("\x00\xff\xff\xff\xff", 5), &flags, &payload), -EMSGSIZE);
}

static void every_code_has_its_name_and_status(void **state)
{
  static const struct {
    const char *name;
    int status;
  } wanted[] = {{"ok", 200},
                {"canceled", 499},
                {"unknown", 500},
                {"invalid_argument", 400},
                {"deadline_exceeded", 504},
                {"not_found", 404},
                {"already_exists", 409},
                {"permission_denied", 403},
                {"resource_exhausted", 429},
                {"failed_precondition", 400},
                {"aborted", 409},
                {"out_of_range", 400},
                {"unimplemented", 501},
                {"internal", 500},
                {"unavailable", 503},
                {"data_loss", 500},
                {"unauthenticated", 401}};
  for (int i = 0; i <= RPC_UNAUTHENTICATED; i++) {
    assert_string_equal(rpc_code_name((enum rpc_code)i), wanted[i].name);
    assert_int_equal(rpc_code_status((enum rpc_code)i), wanted[i].status);
  }
}

static void content_types_are_told_apart(void **state)
{
  enum rpc_codec codec;
  assert_int_equal(rpc_content_type(STR("application/json"), false, &codec), 0);
  assert_int_equal(codec, RPC_JSON);
  assert_int_equal(rpc_content_type(STR("Application/JSON; charset=UTF-8"), false, &codec), 0);
  assert_int_equal(rpc_content_type(STR("application/proto"), false, &codec), 0);
  assert_int_equal(codec, RPC_PROTO);
  assert_int_equal(rpc_content_type(STR("application/connect+json"), true, &codec), 0);
  assert_int_equal(codec, RPC_JSON);
  assert_int_equal(rpc_content_type(STR("application/connect+proto"), true, &codec), 0);
  assert_int_equal(codec, RPC_PROTO);
  assert_int_equal(rpc_content_type(STR("application/json"), true, &codec), -EINVAL);
  assert_int_equal(rpc_content_type(STR("application/connect+json"), false, &codec), -EINVAL);
  assert_int_equal(rpc_content_type(STR("application/grpc"), true, &codec), -EINVAL);
  assert_int_equal(rpc_content_type(STR("text/plain"), false, &codec), -EINVAL);
  assert_int_equal(rpc_content_type(STR_NONE, false, &codec), -EINVAL);
}

static void a_timeout_has_one_to_ten_digits(void **state)
{
  uint64_t ms;
  assert_int_equal(rpc_timeout_parse(STR("60000"), &ms), 0);
  assert_true(ms == 60000);
  assert_int_equal(rpc_timeout_parse(STR("9999999999"), &ms), 0);
  assert_true(rpc_timeout_parse(STR("12345678901"), &ms) < 0);
  assert_true(rpc_timeout_parse(STR(""), &ms) < 0);
  assert_true(rpc_timeout_parse(STR("1s"), &ms) < 0);
  assert_true(rpc_timeout_parse(STR("-1"), &ms) < 0);
}

/* ---- a message that has everything ---- */

struct leaf {
  int64_t big;
};
struct everything {
  struct str text, bytes, maybe;
  bool flag, has_maybe;
  uint32_t number, kind, which, pick_a;
  struct str pick_b;
  int32_t negative;
  struct rpc_time when;
  struct rpc_list kernel_lang, leaves, map;
  struct leaf *leaf;
};

static const struct enum_name kinds[] = {{0, "KIND_NONE"}, {7, "KIND_SEVEN"}, {0, NULL}};
static const struct field leaf_fields[] = {
    {.number = 1, .type = FT_INT64, .offset = offsetof(struct leaf, big), .name = "big", .snake = "big"}};
static const struct schema leaf_schema = {"Leaf", leaf_fields, 1, sizeof(struct leaf)};

#define AT(member) .offset = offsetof(struct everything, member)
static const struct field fields[] = {
    {.number = 1, .type = FT_STRING, AT(text), .name = "text", .snake = "text"},
    {.number = 2, .type = FT_BYTES, AT(bytes), .name = "bytes", .snake = "bytes"},
    {.number = 3,
     .type = FT_STRING,
     .rule = FR_OPTIONAL,
     AT(maybe),
     .mark = offsetof(struct everything, has_maybe),
     .name = "maybeText",
     .snake = "maybe_text"},
    {.number = 4, .type = FT_BOOL, AT(flag), .name = "flag", .snake = "flag"},
    {.number = 5, .type = FT_UINT32, AT(number), .name = "number", .snake = "number"},
    {.number = 6, .type = FT_SINT32, AT(negative), .name = "negative", .snake = "negative"},
    {.number = 7, .type = FT_ENUM, AT(kind), .name = "kind", .snake = "kind", .enums = kinds},
    {.number = 8, .type = FT_TIME, AT(when), .name = "when", .snake = "when"},
    {.number = 9, .type = FT_STRING, .rule = FR_REPEATED, AT(kernel_lang), .name = "words", .snake = "words"},
    {.number = 10,
     .type = FT_MESSAGE,
     .rule = FR_REPEATED,
     AT(leaves),
     .name = "leaves",
     .snake = "leaves",
     .message = &leaf_schema},
    {.number = 11, .type = FT_MAP, AT(map), .name = "map", .snake = "map"},
    {.number = 12, .type = FT_MESSAGE, AT(leaf), .name = "leaf", .snake = "leaf", .message = &leaf_schema},
    {.number = 13,
     .type = FT_UINT32,
     .rule = FR_ONEOF,
     AT(pick_a),
     .mark = offsetof(struct everything, which),
     .name = "pickA",
     .snake = "pick_a"},
    {.number = 14,
     .type = FT_BYTES,
     .rule = FR_ONEOF,
     AT(pick_b),
     .mark = offsetof(struct everything, which),
     .name = "pickB",
     .snake = "pick_b"},
};
static const struct schema schema = {"Everything", fields, ARRAY_LEN(fields), sizeof(struct everything)};

#define WHOLE                                                                                                          \
  "{\"text\":\"h\xC3\xA9\",\"bytes\":\"/+8=\",\"maybeText\":\"\",\"flag\":true,\"number\":4294967295,"                 \
  "\"negative\":-2147483648,\"kind\":\"KIND_SEVEN\",\"when\":\"2026-01-02T03:04:05.678901Z\","                         \
  "\"words\":[\"a\",\"\"],\"leaves\":[{\"big\":\"-9\"},{}],\"map\":{\"k\":\"v\",\"\":\"\"},"                           \
  "\"leaf\":{},\"pickB\":\"\"}"

static void a_message_survives_json_proto_and_back(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  cleanup_buf struct buf proto = BUF_INIT(4096), json = BUF_INIT(4096);
  struct err err = ERR_NONE;
  void *msg, *again;
  assert_int_equal(json_decode(&schema, STR(WHOLE), &a, &msg, &err), 0);
  proto_encode(&schema, msg, &proto);
  assert_int_equal(proto_decode(&schema, buf_str(&proto), &a, &again, &err), 0);
  json_encode(&schema, again, &json);
  assert_string_equal(buf_z(&json), WHOLE);
}

static void refused(const char *text)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct err err = ERR_NONE;
  void *msg;
  assert_true(json_decode(&schema, str_of(text), &a, &msg, &err) < 0);
  assert_true(err.msg[0] != '\0');
}

static void what_does_not_fit_the_schema_is_refused(void **state)
{
  const char *const texts[] = {"",
                               "[]",
                               "{\"text\":1}",
                               "{\"flag\":\"true\"}",
                               "{\"number\":-1}",
                               "{\"number\":4294967296}",
                               "{\"number\":1.5}",
                               "{\"negative\":2147483648}",
                               "{\"bytes\":\"*\"}",
                               "{\"kind\":\"KIND_EIGHT\"}",
                               "{\"words\":\"a\"}",
                               "{\"words\":[null]}",
                               "{\"map\":{\"k\":1}}",
                               "{\"leaf\":[]}",
                               "{\"when\":\"yesterday\"}",
                               "{\"pickA\":1,\"pickB\":\"\"}",
                               "{\"text\":\"\xff\"}",
                               "{\"text\":\"a\"} x"};
  for (size_t i = 0; i < ARRAY_LEN(texts); i++)
    refused(texts[i]);
}

static struct everything *read_json(struct arena *a, const char *text)
{
  struct err err = ERR_NONE;
  void *msg = NULL;
  assert_int_equal(json_decode(&schema, str_of(text), a, &msg, &err), 0);
  return msg;
}

static void json_is_read_generously(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 20);
  struct everything *m =
      read_json(&a, "{\"maybe_text\":null,\"number\":\"12\",\"negative\":-1e3,\"kind\":7,\"unknown\":{\"x\":[1]},"
                    "\"bytes\":\"_-8\",\"text\":\"\\ud83d\\ude00\",\"leaves\":[{\"big\":5}]}");
  assert_false(m->has_maybe);
  assert_int_equal(m->number, 12);
  assert_int_equal(m->negative, -1000);
  assert_int_equal(m->kind, 7);
  assert_true(str_is(m->bytes, "\xff\xef"));
  assert_true(str_is(m->text, "\xF0\x9F\x98\x80"));
  assert_int_equal((*(struct leaf **)m->leaves.p)->big, 5);
  m = read_json(&a, "{\"number\":1.0,\"maybeText\":\"\"}");
  assert_int_equal(m->number, 1);
  assert_true(m->has_maybe);
}

static void broken_protobuf_is_refused(void **state)
{
  static const struct str bytes[] = {
      STR("\x0a"),         STR("\x0a\x05hi"),       STR("\x0a\x01\xff"),
      STR("\x28"),         STR("\x00\x01"),         STR("\x0d\x01\x02"),
      STR("\x62\x02\x08"), STR("\x5a\x02\x0a\x09"), STR("\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"),
      STR("\x0c"),         STR("\xf3\x01\x08")};
  for (size_t i = 0; i < ARRAY_LEN(bytes); i++) {
    cleanup_arena struct arena a = ARENA_INIT(1 << 16);
    struct err err = ERR_NONE;
    void *msg;
    assert_true(proto_decode(&schema, bytes[i], &a, &msg, &err) < 0);
  }
}

static void unknown_protobuf_fields_are_skipped(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 16);
  struct err err = ERR_NONE;
  void *msg;
  /* field 30 as varint, 64 bit, length, group with a varint inside, 32 bit; then number = 5 */
  struct str in = STR("\xf0\x01\x01\xf1\x01\x01\x02\x03\x04\x05\x06\x07\x08\xf2\x01\x02xy\xf3\x01\x08\x01\xf4\x01\xf5"
                      "\x01\x01\x02\x03\x04\x28\x05");
  assert_int_equal(proto_decode(&schema, in, &a, &msg, &err), 0);
  assert_int_equal(((struct everything *)msg)->number, 5);
}

static void the_last_member_of_a_group_wins_in_protobuf(void **state)
{
  cleanup_arena struct arena a = ARENA_INIT(1 << 16);
  struct err err = ERR_NONE;
  void *msg;
  assert_int_equal(proto_decode(&schema, STR("\x68\x03\x72\x01z"), &a, &msg, &err), 0);
  assert_int_equal(((struct everything *)msg)->which, 14);
}

static void names_that_are_not_utf8_leave_repaired(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(100), j = BUF_INIT(100);
  struct everything m = {.text = STR("a\xff\xC3\xA9\xE2")};
  proto_encode(&schema, &m, &b);
  assert_memory_equal(b.p,
                      "\x0a\x09"
                      "a\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD",
                      11);
  json_encode(&schema, &m, &j);
  assert_string_equal(buf_z(&j), "{\"text\":\"a\xEF\xBF\xBD\xC3\xA9\xEF\xBF\xBD\"}");
}

static void times_have_as_many_digits_as_they_need(void **state)
{
  static const struct {
    int32_t nsec;
    const char *text;
  } rows[] = {{0, "{\"when\":\"1970-01-01T00:00:01Z\"}"},
              {5000000, "{\"when\":\"1970-01-01T00:00:01.005Z\"}"},
              {5000, "{\"when\":\"1970-01-01T00:00:01.000005Z\"}"},
              {5, "{\"when\":\"1970-01-01T00:00:01.000000005Z\"}"}};
  for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
    cleanup_buf struct buf b = BUF_INIT(100);
    struct everything m = {.when = {1, rows[i].nsec}};
    json_encode(&schema, &m, &b);
    assert_string_equal(buf_z(&b), rows[i].text);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_end_of_a_good_stream_is_seven_bytes),
      cmocka_unit_test(the_end_of_a_failed_stream_carries_code_and_message),
      cmocka_unit_test(frames_are_found_one_after_another),
      cmocka_unit_test(a_frame_too_long_is_refused_before_it_is_read),
      cmocka_unit_test(every_code_has_its_name_and_status),
      cmocka_unit_test(content_types_are_told_apart),
      cmocka_unit_test(a_timeout_has_one_to_ten_digits),
      cmocka_unit_test(a_message_survives_json_proto_and_back),
      cmocka_unit_test(what_does_not_fit_the_schema_is_refused),
      cmocka_unit_test(json_is_read_generously),
      cmocka_unit_test(broken_protobuf_is_refused),
      cmocka_unit_test(unknown_protobuf_fields_are_skipped),
      cmocka_unit_test(the_last_member_of_a_group_wins_in_protobuf),
      cmocka_unit_test(names_that_are_not_utf8_leave_repaired),
      cmocka_unit_test(times_have_as_many_digits_as_they_need),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
