/* SPDX-License-Identifier: Apache-2.0 */
/* gate_webhook.c - URLs of webhooks. */
#include "unit.h"

#include "gate/api/event/webhook_url.h"

static void good_urls_have_an_origin(void **state)
{
  static const char *const pairs[][2] = {
      {"http://example.com", "http://example.com:80"},
      {"https://example.com/hook?a=b#c", "https://example.com:443"},
      {"HTTPS://EXAMPLE.com:8443/Hook", "https://example.com:8443"},
      {"http://127.0.0.1:3000/x", "http://127.0.0.1:3000"},
      {"http://[::1]:8080/x", "http://[::1]:8080"},
      {"http://[::1]", "http://[::1]:80"},
      {"http://a_b.example?q", "http://a_b.example:80"},
  };
  for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
    cleanup_buf struct buf b = BUF_INIT(4096);
    struct err err = ERR_NONE;
    if (webhook_url_check(str_of(pairs[i][0]), &b, &err))
      fail_msg("%s: %s", pairs[i][0], err.msg);
    assert_string_equal(buf_z(&b), pairs[i][1]);
  }
}

static void bad_urls_are_refused_with_a_reason(void **state)
{
  static const char *const bad[] = {"",
                                    "example.com",
                                    "/hook",
                                    "ftp://example.com",
                                    "http://",
                                    "http:///x",
                                    "http://user@host/",
                                    "http://u:p@host",
                                    "http://host:0/",
                                    "http://host:65536/",
                                    "http://host:x/",
                                    "http://host:/",
                                    "http://ho st/",
                                    "http://host/a b",
                                    "http://host/\n",
                                    "http://[::1/",
                                    "http://[zz]/",
                                    "http://[::1]x/",
                                    "http://-x/",
                                    "http://.x/",
                                    "http://h\xc3\xb6st/",
                                    "http://host/\xc3\xb6",
                                    "javascript:alert(1)",
                                    "file:///etc/passwd",
                                    "http://a%2f/",
                                    "http://host\\@other/",
                                    "http://[]:80/"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    cleanup_buf struct buf b = BUF_INIT(4096);
    struct err err = ERR_NONE;
    if (!webhook_url_check(str_of(bad[i]), &b, &err))
      fail_msg("'%s' was accepted", bad[i]);
    assert_non_null(strstr(err.msg, "'url'"));
  }
}

static void credentials_are_not_repeated(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct err err = ERR_NONE;
  assert_int_not_equal(webhook_url_check(STR("http://user:hunter2@host/"), &b, &err), 0);
  assert_null(strstr(err.msg, "hunter2"));
}

static void a_long_url_is_refused(void **state)
{
  char text[WEBHOOK_URL_MAX + 2] = "http://host/";
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct err err = ERR_NONE;
  memset(text + strlen(text), 'a', sizeof(text) - 1 - strlen(text));
  text[WEBHOOK_URL_MAX + 1] = 0;
  assert_int_not_equal(webhook_url_check(str_of(text), &b, &err), 0);
  text[WEBHOOK_URL_MAX] = 0;
  assert_int_equal(webhook_url_check(str_of(text), &b, &err), 0);
}

static int address_of(const char *url, bool allowed)
{
  cleanup_buf struct buf b = BUF_INIT(4096);
  struct receiver_rules rules = {.private_allowed = allowed};
  struct err err = ERR_NONE;
  assert_int_equal(webhook_url_check(str_of(url), &b, &err), 0);
  return webhook_address_check(buf_str(&b), &rules, &err);
}

static void addresses_in_urls_are_judged_however_they_are_written(void **state)
{
  static const char *const never[] = {"http://169.254.169.254/x",
                                      "http://2852039166/",
                                      "http://0xa9fea9fe:8080/",
                                      "http://0251.0376.0251.0376",
                                      "http://169.254.43518/",
                                      "http://0.0.0.0:1/",
                                      "http://[fe80::1]/",
                                      "http://[::ffff:a9fe:a9fe]/x",
                                      "http://0/",
                                      "https://[64:ff9b::169.254.169.254]/"};
  static const char *const private[] = {"http://127.0.0.1/",  "http://127.1",     "http://2130706433/",
                                        "http://10.1.2.3:9/", "http://[::1]:80/", "http://[fd12::1]",
                                        "http://192.168.0.1"};
  static const char *const fine[] = {"http://198.51.100.1/", "http://localhost/", "http://10.example.com/",
                                     "https://[2606:4700::1]/", "http://1.2.3.4.5/"};
  for (size_t i = 0; i < ARRAY_LEN(never); i++)
    assert_true(address_of(never[i], false) == -EINVAL && address_of(never[i], true) == -EINVAL);
  for (size_t i = 0; i < ARRAY_LEN(private); i++)
    assert_true(address_of(private[i], false) == -EINVAL && address_of(private[i], true) == 0);
  for (size_t i = 0; i < ARRAY_LEN(fine); i++)
    assert_int_equal(address_of(fine[i], false), 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(addresses_in_urls_are_judged_however_they_are_written),
      cmocka_unit_test(good_urls_have_an_origin),
      cmocka_unit_test(bad_urls_are_refused_with_a_reason),
      cmocka_unit_test(credentials_are_not_repeated),
      cmocka_unit_test(a_long_url_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
