/* SPDX-License-Identifier: Apache-2.0 */
/* egress_peek.c - what the egress gateway reads of boxes and proxies: names in first bytes, words of proxies. */
#include "unit.h"

#include "egress/peek.h"
#include "egress/proxy_talk.h"

/* A hello with one extension, as a client writes it. */
static size_t hello(unsigned char *out, const char *name, size_t record)
{
  unsigned char h[600] = {1, 0, 0, 0, 3, 3};
  size_t n = 6 + 32, length = strlen(name);
  h[n++] = 0;                                 /* session id */
  memcpy(h + n, "\0\2\x13\1\1\0", 6), n += 6; /* a cipher, no compression */
  size_t all = length ? length + 9 : 0;       /* extensions */
  h[n++] = (unsigned char)(all >> 8), h[n++] = (unsigned char)all;
  if (length) {
    memcpy(h + n, "\0\0\0", 3), n += 3;
    h[n++] = (unsigned char)(length + 5);
    h[n++] = 0, h[n++] = (unsigned char)(length + 3);
    h[n++] = 0, h[n++] = 0, h[n++] = (unsigned char)length;
    memcpy(h + n, name, length), n += length;
  }
  h[3] = (unsigned char)(n - 4), h[2] = (unsigned char)((n - 4) >> 8);
  size_t k = 0;
  for (size_t at = 0; at < n; at += record) {
    size_t part = MIN(record, n - at);
    out[k++] = 22, out[k++] = 3, out[k++] = 1;
    out[k++] = (unsigned char)(part >> 8), out[k++] = (unsigned char)part;
    memcpy(out + k, h + at, part), k += part;
  }
  return k;
}

static void names_are_found_however_the_hello_is_cut(void **state)
{
  unsigned char bytes[8192];
  char name[DOMAIN_SIZE];
  static const size_t records[] = {600, 100, 7, 1};
  for (size_t i = 0; i < ARRAY_LEN(records); i++) {
    size_t n = hello(bytes, "Api.Example.COM", records[i]);
    for (size_t cut = 0; cut < n; cut++) {
      cleanup_free char *copy = malloc(cut ? cut : 1);
      memcpy(copy, bytes, cut);
      assert_int_equal(peek_tls(str_make(copy, cut), name), PEEK_MORE);
    }
    assert_int_equal(peek_tls(str_make(bytes, n), name), PEEK_NAMED);
    assert_string_equal(name, "api.example.com");
    assert_int_equal(peek_tls(str_make(bytes, MIN(n + 5, sizeof(bytes))), name), PEEK_NAMED);
  }
  assert_int_equal(peek_tls(str_make(bytes, hello(bytes, "", 600)), name), PEEK_NONE);
  assert_int_equal(peek_tls(STR("SSH-2.0-x\r\n"), name), PEEK_OTHER);
}

static void names_that_are_none_are_not_taken(void **state)
{
  unsigned char bytes[8192];
  char name[DOMAIN_SIZE];
  static const char *const bad[] = {"a b", "1.2.3.4", "a..b", "a..", ".a", "a/b", "a\n", "a\x80"};
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    assert_int_equal(peek_tls(str_make(bytes, hello(bytes, bad[i], 600)), name), PEEK_BROKEN);
    assert_string_equal(name, "");
  }
  assert_true(peek_name(STR("a.b."), name));
  assert_string_equal(name, "a.b");
}

static void changed_hellos_stay_inside_their_bounds(void **state)
{
  unsigned char bytes[8192];
  char name[DOMAIN_SIZE];
  uint64_t dice = 99;
  size_t n = hello(bytes, "api.example.com", 600);
  for (int i = 0; i < 50000; i++) {
    cleanup_free char *copy = malloc(n);
    memcpy(copy, bytes, n);
    for (int k = 0; k < 2; k++) {
      dice = dice * 6364136223846793005u + 1442695040888963407u;
      copy[(dice >> 33) % n] = (char)(dice >> 17);
    }
    enum peek r = peek_tls(str_make(copy, n), name);
    assert_true(r != PEEK_NAMED || name[0]);
  }
}

static void hosts_of_plain_requests(void **state)
{
  char name[DOMAIN_SIZE];
  assert_int_equal(peek_http(STR("GET / HTTP/1.1\r\nHost: A.example:80\r\n\r\n"), name), PEEK_NAMED);
  assert_string_equal(name, "a.example");
  assert_int_equal(peek_http(STR("GET / HTTP/1.1\r\nHost: A.exa"), name), PEEK_MORE);
  assert_int_equal(peek_http(STR("GET / HTTP/1.1\r\nX: y\r\n\r\n"), name), PEEK_NONE);
  assert_int_equal(peek_http(STR("GET / HTTP/1.1\r\nHost: a.b\r\nHost: c.d\r\n\r\n"), name), PEEK_BROKEN);
  assert_int_equal(peek_http(STR("\x16\x03\x01"), name), PEEK_OTHER);
}

static int talk(struct proxy_talk *t, const char *const *answers, const size_t *lengths, struct buf *said)
{
  const char *why = NULL;
  int r = 0;
  proxy_talk_begin(t, said);
  for (size_t i = 0; !r && answers[i]; i++) {
    if (t->want)
      assert_int_equal(t->want, lengths[i]);
    r = proxy_talk_next(t, str_make(answers[i], lengths[i]), said, &why);
    assert_true(r >= 0 || (why && why[0]));
  }
  return r;
}

static void socks_is_spoken_to_the_letter(void **state)
{
  struct egress_proxy proxy = {.kind = EGRESS_SOCKS5, .user = STR("u"), .password = STR("pw")};
  struct proxy_talk t = {.proxy = &proxy, .name = STR("a.b"), .port = 443};
  cleanup_buf struct buf said = BUF_INIT(4096);
  assert_int_equal(talk(&t, (const char *const[]){"\5\2", "\1\0", "\5\0\0\1\0", "\0\0\0\0\0", NULL},
                        (const size_t[]){2, 2, 5, 5}, &said),
                   1);
  assert_true(str_eq(buf_str(&said), STR("\5\1\2\1\1u\2pw\5\1\0\3\3a.b\1\273")));
  buf_clear(&said);
  proxy.user = STR_NONE;
  t = (struct proxy_talk){.proxy = &proxy, .address = 0x01020304, .port = 22};
  assert_int_equal(
      talk(&t, (const char *const[]){"\5\0", "\5\0\0\3\2", "ab\0\0", NULL}, (const size_t[]){2, 5, 4}, &said), 1);
  assert_true(str_eq(buf_str(&said), STR("\5\1\0\5\1\0\1\1\2\3\4\0\26")));
}

static void proxies_that_say_no_are_heard(void **state)
{
  struct egress_proxy proxy = {.kind = EGRESS_SOCKS5, .user = STR("u"), .password = STR("pw")};
  static const struct {
    const char *first, *second;
    size_t n1, n2;
    int r;
  } cases[] = {{"\5\377", NULL, 2, 0, -EPROTO},
               {"HT", NULL, 2, 0, -EPROTO},
               {"\5\0", NULL, 2, 0, -EPROTO}, /* without the password that was set */
               {"\5\2", "\1\1", 2, 2, -EACCES}};
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct proxy_talk t = {.proxy = &proxy, .name = STR("a.b"), .port = 443};
    cleanup_buf struct buf said = BUF_INIT(4096);
    assert_int_equal(talk(&t, (const char *const[]){cases[i].first, cases[i].second, NULL},
                          (const size_t[]){cases[i].n1, cases[i].n2}, &said),
                     cases[i].r);
    assert_true(str_search(buf_str(&said), STR("a.b")) < 0);
  }
}

static void connect_waits_for_the_whole_head(void **state)
{
  struct egress_proxy proxy = {.kind = EGRESS_CONNECT};
  struct proxy_talk t = {.proxy = &proxy, .name = STR("a.b"), .port = 443};
  static const char head[] = "HTTP/1.1 200 OK\r\nVia: x\r\n\r\n";
  cleanup_buf struct buf said = BUF_INIT(4096);
  const char *why;
  proxy_talk_begin(&t, &said);
  assert_true(str_is(buf_str(&said), "CONNECT a.b:443 HTTP/1.1\r\nHost: a.b:443\r\n\r\n"));
  for (size_t i = 1; i < sizeof(head) - 1; i++)
    assert_int_equal(proxy_talk_next(&t, str_make(head, i), &said, &why), 0);
  assert_int_equal(proxy_talk_next(&t, str_of(head), &said, &why), 1);
  assert_true(proxy_talk_next(&t, STR("HTTP/1.1 407 No\r\n\r\n"), &said, &why) < 0);
  assert_true(proxy_talk_next(&t, STR("nonsense\r\n\r\n"), &said, &why) < 0);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(names_are_found_however_the_hello_is_cut),
      cmocka_unit_test(names_that_are_none_are_not_taken),
      cmocka_unit_test(changed_hellos_stay_inside_their_bounds),
      cmocka_unit_test(hosts_of_plain_requests),
      cmocka_unit_test(socks_is_spoken_to_the_letter),
      cmocka_unit_test(proxies_that_say_no_are_heard),
      cmocka_unit_test(connect_waits_for_the_whole_head),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
