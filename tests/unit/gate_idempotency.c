/* SPDX-License-Identifier: Apache-2.0 */
/* gate_idempotency.c - the header Idempotency-Key: what is a key, what makes two creates the same, and which answers a
 * client gets. */
#include "gate_lab.h"

#include "gate/api/sandbox/idempotency_key.h"

#define BASE "{\"templateID\":\"base\"}"

static int ask(const char *path, const char *keys, const char *body, struct buf *out)
{
  char head[1024];
  snprintf(head, sizeof(head), "X-API-Key: %s\r\n%s", lab.key, keys);
  return lab_ask("POST", path, head, str_of(body), out);
}

/* What the warden is told of a create. */
static void print_of(const char *body, uint8_t out[SHA256_LEN])
{
  cleanup_buf struct buf answer = BUF_INIT(1 << 20);
  lab.status = -ENOENT;
  assert_int_equal(ask("/v2/sandboxes", "Idempotency-Key: k-1\r\n", body, &answer), 404);
  struct str print = wire_get(buf_str(&lab.last), W_FINGERPRINT);
  assert_true(str_is(wire_get(buf_str(&lab.last), W_IDEMPOTENCY_KEY), "k-1"));
  assert_int_equal(print.n, SHA256_LEN);
  memcpy(out, print.p, SHA256_LEN);
}

static bool same(const char *one, const char *other)
{
  uint8_t a[SHA256_LEN], b[SHA256_LEN];
  print_of(one, a);
  print_of(other, b);
  return !memcmp(a, b, sizeof(a));
}

static void what_has_no_effect_does_not_count(void **state)
{
  static const char *const alike[][2] = {
      {BASE, "  { \"templateID\" : \"base\" }  "},
      {BASE, "{\"templateID\":\"ba\\u0073e\"}"},
      {BASE, "{\"unknown\":[1,2],\"mcp\":{\"a\":1},\"templateID\":\"base\"}"},
      {BASE, "{\"templateID\":\"base\",\"metadata\":{},\"envVars\":{}}"},
      {BASE, "{\"templateID\":\"base\",\"timeout\":300,\"autoPause\":false}"},
      {BASE, "{\"templateID\":\"other\",\"templateID\":\"base\"}"},
      {"{\"templateID\":\"base\",\"timeout\":1e2}", "{\"timeout\":100,\"templateID\":\"base\"}"},
      {"{\"templateID\":\"base\",\"metadata\":{\"a\":\"1\",\"b\":\"2\"}}",
       "{\"metadata\":{\"b\":\"2\",\"a\":\"1\"},\"templateID\":\"base\"}"},
      {"{\"templateID\":\"base\",\"metadata\":{\"a\":\"0\",\"a\":\"1\"}}",
       "{\"metadata\":{\"a\":\"1\"},\"templateID\":\"base\"}"},
      {"{\"templateID\":\"base\",\"network\":{\"allowOut\":[\"1.1.1.1\"],\"denyOut\":[\"0.0.0.0/0\"]}}",
       "{\"templateID\":\"base\",\"network\":{\"denyOut\":[\"0.0.0.0/0\"],\"allowOut\":[\"1.1.1.1\"],\"x\":1}}"},
  };
  for (size_t i = 0; i < ARRAY_LEN(alike); i++)
    if (!same(alike[i][0], alike[i][1]))
      fail_msg("counted as different: %s and %s", alike[i][0], alike[i][1]);
}

static void every_field_with_an_effect_counts(void **state)
{
  static const char *const others[] = {
      "{\"templateID\":\"other\"}",
      "{\"templateID\":\"base\",\"timeout\":301}",
      "{\"templateID\":\"base\",\"autoPause\":true}",
      "{\"templateID\":\"base\",\"autoPause\":true,\"autoPauseMemory\":false}",
      "{\"templateID\":\"base\",\"autoResume\":{\"enabled\":true}}",
      "{\"templateID\":\"base\",\"metadata\":{\"a\":\"1\"}}",
      "{\"templateID\":\"base\",\"metadata\":{\"a\":\"2\"}}",
      "{\"templateID\":\"base\",\"envVars\":{\"a\":\"1\"}}",
      "{\"templateID\":\"base\",\"envVars\":{\"a\":\"1\",\"b\":\"\"}}",
      "{\"templateID\":\"base\",\"allow_internet_access\":false}",
      "{\"templateID\":\"base\",\"network\":{\"allowPublicTraffic\":false}}",
      "{\"templateID\":\"base\",\"network\":{\"allowOut\":[\"1.1.1.1\"]}}",
      "{\"templateID\":\"base\",\"network\":{\"allowOut\":[\"1.1.1.2\"]}}",
      "{\"templateID\":\"base\",\"network\":{\"denyOut\":[\"1.1.1.1\"]}}",
  };
  uint8_t prints[ARRAY_LEN(others) + 1][SHA256_LEN];
  print_of(BASE, prints[0]);
  for (size_t i = 0; i < ARRAY_LEN(others); i++) {
    print_of(others[i], prints[i + 1]);
    for (size_t k = 0; k <= i; k++)
      if (!memcmp(prints[k], prints[i + 1], SHA256_LEN))
        fail_msg("counted as the same: %s and %s", k ? others[k - 1] : BASE, others[i]);
  }
}

static void a_key_has_few_letters_and_a_bounded_length(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  char longest[300];
  lab.status = -ENOENT;
  memset(longest, 'a', sizeof(longest));
  snprintf(longest, 21, "Idempotency-Key:    ");
  longest[20] = 'a';
  memcpy(longest + 20 + 255, "\r\n", 3);
  assert_int_equal(ask("/v2/sandboxes", longest, BASE, &out), 404);
  memcpy(longest + 20 + 255, "a\r\n", 4);
  assert_int_equal(ask("/v2/sandboxes", longest, BASE, &out), 400);
  assert_true(lab_says(&out, "(256 characters)"));
  static const char *const bad[] = {"Idempotency-Key: \r\n",
                                    "Idempotency-Key: Upper\r\n",
                                    "Idempotency-Key: a_b\r\n",
                                    "Idempotency-Key: a b\r\n",
                                    "Idempotency-Key: a,b\r\n",
                                    "Idempotency-Key: \xc3\xa4\r\n",
                                    "Idempotency-Key: a\r\nIDEMPOTENCY-KEY: a\r\n"};
  unsigned asked = lab.requests;
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    assert_int_equal(ask("/v2/sandboxes", bad[i], BASE, &out), 400);
    assert_true(lab_says(&out, "Idempotency-Key"));
  }
  assert_int_equal(lab.requests, asked);
}

static void the_key_is_read_on_the_newer_create_only(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab.status = -ENOENT;
  assert_int_equal(ask("/sandboxes", "Idempotency-Key: Not good\r\n", BASE, &out), 404);
  assert_null(wire_get(buf_str(&lab.last), W_IDEMPOTENCY_KEY).p);
  assert_int_equal(ask("/v2/sandboxes", "", BASE, &out), 404);
  assert_null(wire_get(buf_str(&lab.last), W_IDEMPOTENCY_KEY).p);
  assert_null(wire_get(buf_str(&lab.last), W_FINGERPRINT).p);
}

static void each_refusal_of_a_key_has_its_status_and_code(void **state)
{
  static const struct {
    int error, status;
    const char *code;
    bool again;
  } table[] = {{-EKEYREJECTED, 409, "\"error_code\":\"idempotency_request_mismatch\"", false},
               {-EINPROGRESS, 409, "\"error_code\":\"idempotency_in_progress\"", true},
               {-EOWNERDEAD, 422, "\"error_code\":\"idempotency_outcome_unknown\"", false},
               {-ENOBUFS, 503, "\"error_code\":\"sandbox_create_failed\"", false}};
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  for (size_t i = 0; i < ARRAY_LEN(table); i++) {
    lab.status = table[i].error;
    assert_int_equal(ask("/v2/sandboxes", "Idempotency-Key: k\r\n", BASE, &out), table[i].status);
    assert_true(lab_says(&out, table[i].code));
    assert_int_equal(lab_says(&out, "Should-Retry: true"), table[i].again);
    assert_int_equal(lab_says(&out, "Retry-After: 1"), table[i].again || table[i].status == 503);
  }
}

#define WHOLE(test) cmocka_unit_test_setup_teardown(test, lab_setup, lab_teardown)

int main(void)
{
  const struct CMUnitTest tests[] = {
      WHOLE(what_has_no_effect_does_not_count),
      WHOLE(every_field_with_an_effect_counts),
      WHOLE(a_key_has_few_letters_and_a_bounded_length),
      WHOLE(the_key_is_read_on_the_newer_create_only),
      WHOLE(each_refusal_of_a_key_has_its_status_and_code),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
