/* SPDX-License-Identifier: Apache-2.0 */
/* gate_throttle.c - who guesses waits; who is not the guesser does not. And which requests to the interpreter need a
 * token. */
#include "unit.h"

#include "gate/edge/edge.h"
#include "gate/throttle.h"

static void addresses_become_clients(void **state)
{
  uint8_t a[CLIENT_LEN], b[CLIENT_LEN];
  assert_int_equal(client_read("192.0.2.1:80", a), 0);
  assert_int_equal(client_read("[::ffff:192.0.2.1]:99", b), 0);
  assert_memory_equal(a, b, CLIENT_LEN);
  assert_int_equal(client_read("192.0.2.2:80", b), 0);
  assert_memory_not_equal(a, b, CLIENT_LEN);
  assert_int_equal(client_read("[2001:db8:1:2:3:4:5:6]:1", a), 0);
  assert_int_equal(client_read("[2001:db8:1:2:ffff::9]:2", b), 0);
  assert_memory_equal(a, b, CLIENT_LEN); /* one network of 64 bits is one client */
  assert_int_equal(client_read("[2001:db8:1:3::9]:2", b), 0);
  assert_memory_not_equal(a, b, CLIENT_LEN);
  assert_int_equal(client_read("unix", a), 0);
  static const char *const none[] = {"", "nonsense", "1.2.3:4", "[::1", "[1.2.3.4]:5", "300.1.1.1:1"};
  for (size_t i = 0; i < ARRAY_LEN(none); i++)
    assert_int_equal(client_read(none[i], a), -EINVAL);
}

static void a_guesser_waits_and_is_forgiven_with_time(void **state)
{
  struct throttle t = {.per_minute = 6};
  uint8_t bad[CLIENT_LEN] = {1}, good[CLIENT_LEN] = {2};
  int64_t now = 1000000;
  for (int i = 0; i < 6; i++) {
    assert_int_equal(throttle_wait(&t, bad, now), 0);
    throttle_count(&t, bad, now);
  }
  assert_in_range(throttle_wait(&t, bad, now), 10, 11);
  assert_int_equal(throttle_wait(&t, good, now), 0);
  assert_int_equal(throttle_wait(&t, bad, now + 10100000), 0);
  throttle_count(&t, bad, now + 10100000);
  assert_true(throttle_wait(&t, bad, now + 10200000) > 0);
  assert_int_equal(throttle_wait(&t, bad, now + 120000000), 0);
  throttle_free(&t);
}

/* Whoever asks many times at once is counted before the first answer. */
static void a_guess_counts_when_it_is_sent_and_a_right_one_is_given_back(void **state)
{
  struct throttle t = {.per_minute = 6};
  uint8_t client[CLIENT_LEN] = {1};
  int64_t now = 1000000;
  throttle_forgive(&t, client, now); /* nothing to give back */
  for (int i = 0; i < 6; i++)
    throttle_count(&t, client, now);
  assert_true(throttle_wait(&t, client, now) > 0);
  throttle_forgive(&t, client, now);
  assert_int_equal(throttle_wait(&t, client, now), 0);
  throttle_count(&t, client, now);
  assert_true(throttle_wait(&t, client, now) > 0);
  for (int i = 0; i < 100; i++)
    throttle_forgive(&t, client, now);
  for (int i = 0; i < 6; i++)
    throttle_count(&t, client, now);
  assert_true(throttle_wait(&t, client, now) > 0); /* never more than a minute's */
  throttle_free(&t);
}

static void no_limit_counts_nothing(void **state)
{
  struct throttle t = {.per_minute = 0};
  uint8_t client[CLIENT_LEN] = {1};
  for (int i = 0; i < 1000; i++)
    throttle_count(&t, client, i);
  assert_int_equal(throttle_wait(&t, client, 1000), 0);
  assert_int_equal(t.clients.n, 0);
}

static void a_crowd_of_addresses_takes_bounded_memory(void **state)
{
  struct throttle t = {.per_minute = 1};
  uint8_t client[CLIENT_LEN] = {0}, first[CLIENT_LEN] = {0};
  for (uint32_t i = 0; i < THROTTLE_MAX + 500; i++) {
    memcpy(client, &i, sizeof(i));
    throttle_count(&t, client, 1000 + i);
  }
  assert_int_equal(t.clients.n, THROTTLE_MAX);
  assert_true(throttle_wait(&t, client, 1000 + THROTTLE_MAX + 500) > 0);
  assert_int_equal(throttle_wait(&t, first, 1000 + THROTTLE_MAX + 500), 0);
  throttle_free(&t);
}

static void only_the_paths_of_contexts_go_without_a_token(void **state)
{
  static const char *const yes[] = {"/contexts", "/contexts/", "/contexts/0f-A_9", "/contexts/0f/restart"};
  static const char *const no[] = {"/",
                                   "/execute",
                                   "/contextsx",
                                   "/contexts/../execute",
                                   "/contexts/%2e%2e/execute",
                                   "/contexts/a/execute",
                                   "/contexts/a/restart/",
                                   "/contexts/a/restart/..",
                                   "//contexts",
                                   "/Contexts",
                                   "/contexts/a;b",
                                   "/contexts/a/../../execute",
                                   ""};
  for (size_t i = 0; i < ARRAY_LEN(yes); i++)
    assert_true(token_contexts_path(str_of(yes[i])));
  for (size_t i = 0; i < ARRAY_LEN(no); i++)
    assert_false(token_contexts_path(str_of(no[i])));
}

static enum token_verdict verdict(const struct gate *g, const struct route *rt, const char *method, const char *path,
                                  const char *token)
{
  struct http_header headers[] = {{STR("X-Access-Token"), token ? str_of(token) : STR_NONE}};
  struct http_head h = {.method = str_of(method), .path = str_of(path), .headers = headers, .nheaders = token ? 1 : 0};
  return token_interpreter(g, rt, &h, h.path);
}

static void the_interpreter_of_a_secure_box_asks_for_its_token(void **state)
{
  struct gate_config required = {0}, compatible = {.interpreter_compatible = true};
  struct gate strict = {.config = &required}, old = {.config = &compatible};
  struct route rt = {.id = "iabc", .flags = BOX_SECURE};
  sha256_of("token", 5, rt.access);
  assert_int_equal(verdict(&strict, &rt, "POST", "/execute", "token"), TOKEN_GOOD);
  assert_int_equal(verdict(&strict, &rt, "POST", "/execute", "iabc"), TOKEN_WRONG);
  assert_int_equal(verdict(&strict, &rt, "POST", "/execute", NULL), TOKEN_MISSING);
  assert_int_equal(verdict(&strict, &rt, "GET", "/", ""), TOKEN_MISSING);
  assert_int_equal(verdict(&strict, &rt, "GET", "/contexts", NULL), TOKEN_VOUCH);
  assert_int_equal(verdict(&strict, &rt, "GET", "/contexts", "wrong"), TOKEN_WRONG);
  assert_int_equal(verdict(&strict, &rt, "GET", "/health", NULL), TOKEN_GOOD);
  assert_int_equal(verdict(&strict, &rt, "POST", "/health", NULL), TOKEN_MISSING);
  assert_int_equal(verdict(&strict, &rt, "OPTIONS", "/execute", NULL), TOKEN_MISSING);
  assert_int_equal(verdict(&old, &rt, "POST", "/execute", NULL), TOKEN_MISSING); /* made by POST /v2/sandboxes */
  rt.flags |= BOX_FIRST_API;
  assert_int_equal(verdict(&old, &rt, "POST", "/execute", NULL), TOKEN_GOOD);
  assert_int_equal(verdict(&old, &rt, "POST", "/execute", "wrong"), TOKEN_WRONG);
  assert_int_equal(verdict(&strict, &rt, "POST", "/execute", NULL), TOKEN_MISSING);
  rt.flags = 0;
  assert_int_equal(verdict(&strict, &rt, "POST", "/execute", NULL), TOKEN_GOOD);
}

static void a_browser_may_ask_whether_it_may_ask(void **state)
{
  struct gate_config required = {0};
  struct gate strict = {.config = &required};
  struct route rt = {.id = "iabc", .flags = BOX_SECURE};
  struct http_header headers[] = {{STR("Origin"), STR("https://a.b")},
                                  {STR("Access-Control-Request-Method"), STR("POST")},
                                  {STR("Upgrade"), STR("websocket")}};
  struct http_head h = {.method = STR("OPTIONS"), .path = STR("/execute"), .headers = headers, .nheaders = 2};
  assert_int_equal(token_interpreter(&strict, &rt, &h, h.path), TOKEN_GOOD);
  h.method = STR("POST");
  assert_int_equal(token_interpreter(&strict, &rt, &h, h.path), TOKEN_MISSING);
  h.method = STR("OPTIONS");
  h.nheaders = 3;
  assert_int_equal(token_interpreter(&strict, &rt, &h, h.path), TOKEN_MISSING);
}

static void an_empty_token_matches_no_hash(void **state)
{
  uint8_t zeros[SHA256_LEN] = {0}, nothing[SHA256_LEN];
  sha256_of("", 0, nothing);
  assert_false(token_is(STR(""), nothing));
  assert_false(token_is(STR_NONE, zeros));
  assert_false(token_is(STR("x"), zeros));
}

static void a_token_longer_than_any_is_wrong_unhashed(void **state)
{
  char text[TOKEN_GIVEN_MAX + 1];
  uint8_t hash[SHA256_LEN];
  memset(text, 'a', sizeof(text));
  for (size_t n = TOKEN_GIVEN_MAX; n <= sizeof(text); n++) {
    sha256_of(text, n, hash);
    assert_int_equal(token_is(str_make(text, n), hash), n <= TOKEN_GIVEN_MAX);
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(addresses_become_clients),
      cmocka_unit_test(a_guesser_waits_and_is_forgiven_with_time),
      cmocka_unit_test(a_guess_counts_when_it_is_sent_and_a_right_one_is_given_back),
      cmocka_unit_test(no_limit_counts_nothing),
      cmocka_unit_test(a_crowd_of_addresses_takes_bounded_memory),
      cmocka_unit_test(only_the_paths_of_contexts_go_without_a_token),
      cmocka_unit_test(the_interpreter_of_a_secure_box_asks_for_its_token),
      cmocka_unit_test(a_browser_may_ask_whether_it_may_ask),
      cmocka_unit_test(an_empty_token_matches_no_hash),
      cmocka_unit_test(a_token_longer_than_any_is_wrong_unhashed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
