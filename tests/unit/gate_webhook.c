/* SPDX-License-Identifier: Apache-2.0 */
/* gate_webhook.c - URLs of webhooks. */
#include "unit.h"

#include "gate/api/webhook_url.h"

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

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(good_urls_have_an_origin),
      cmocka_unit_test(bad_urls_are_refused_with_a_reason),
      cmocka_unit_test(credentials_are_not_repeated),
      cmocka_unit_test(a_long_url_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
