/* SPDX-License-Identifier: Apache-2.0 */
/* Text and codecs: str, buf, codec, clock, path's lexical half, sha256. */
#include "unit.h"

#include <time.h>

static void numbers_are_read_whole_or_refused(void **state)
{
  uint64_t u;
  int64_t i;
  assert_int_equal(str_u64(STR("18446744073709551615"), &u), 0);
  assert_true(u == UINT64_MAX);
  assert_int_equal(str_u64(STR("18446744073709551616"), &u), -ERANGE);
  assert_int_equal(str_u64(STR("12x"), &u), -EINVAL);
  assert_int_equal(str_u64(STR(""), &u), -EINVAL);
  assert_int_equal(str_u64(STR("+1"), &u), -EINVAL);
  assert_int_equal(str_i64(STR("-9223372036854775808"), &i), 0);
  assert_true(i == INT64_MIN);
  assert_int_equal(str_i64(STR("9223372036854775808"), &i), -ERANGE);
}

static void a_buffer_stops_at_its_maximum_and_keeps_what_it_had(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(8);
  assert_int_equal(buf_addz(&b, "12345678"), 0);
  assert_int_equal(buf_addc(&b, '9'), -ENOBUFS);
  assert_int_equal(buf_failed(&b), -ENOBUFS);
  assert_string_equal(buf_z(&b), "12345678");
  buf_drop(&b, 3);
  assert_string_equal(buf_z(&b), "45678");
}

static void formatted_text_fits_exactly(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(100);
  buf_addf(&b, "%s-%d", "a", 42);
  buf_addu(&b, 0);
  buf_addu(&b, 18446744073709551615u);
  assert_string_equal(buf_z(&b), "a-42018446744073709551615");
}

static void text_is_cut_searched_and_trimmed(void **state)
{
  struct str head, rest;
  assert_true(str_cut(STR("a=b=c"), '=', &head, &rest));
  assert_true(str_is(head, "a") && str_is(rest, "b=c"));
  assert_false(str_cut(STR("abc"), '=', &head, &rest));
  assert_true(str_is(head, "abc") && rest.n == 0);
  assert_true(str_ieq(STR("Content-Type"), STR("content-TYPE")));
  assert_int_equal(str_search(STR("hello"), STR("llo")), 2);
  assert_true(str_is(str_trim(STR(" \t x \r\n")), "x"));
  assert_true(str_eq_secret(STR("abc"), STR("abc")));
  assert_false(str_eq_secret(STR("abc"), STR("abd")));
  assert_false(str_eq_secret(STR("abc"), STR("abcd")));
}

static void base64_round_trips_and_takes_both_alphabets(void **state)
{
  static const char *const pairs[][2] = {
      {"", ""}, {"f", "Zg=="}, {"fo", "Zm8="}, {"foo", "Zm9v"}, {"foob", "Zm9vYg=="}};
  for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
    cleanup_buf struct buf e = BUF_INIT(100), d = BUF_INIT(100);
    base64_add(&e, pairs[i][0], strlen(pairs[i][0]), true);
    assert_string_equal(buf_z(&e), pairs[i][1]);
    assert_int_equal(base64_decode(buf_str(&e), &d), 0);
    assert_string_equal(buf_z(&d), pairs[i][0]);
  }
  cleanup_buf struct buf a = BUF_INIT(100), b = BUF_INIT(100), c = BUF_INIT(100);
  assert_int_equal(base64_decode(STR("+/+/"), &a), 0);
  assert_int_equal(base64_decode(STR("-_-_"), &b), 0);
  assert_true(str_eq(buf_str(&a), buf_str(&b)));
  assert_int_equal(base64_decode(STR("Zg"), &c), 0);
  assert_int_equal(base64_decode(STR("Z"), &c), -EINVAL);
  assert_int_equal(base64_decode(STR("Zg=!"), &c), -EINVAL);
}

static void percent_escapes_are_decoded_or_refused(void **state)
{
  cleanup_buf struct buf a = BUF_INIT(100), b = BUF_INIT(100), q = BUF_INIT(100);
  assert_int_equal(percent_decode(STR("a%2Fb+c%00"), true, &a), 0);
  assert_int_equal(a.n, 6);
  assert_memory_equal(a.p, "a/b c\0", 6);
  assert_int_equal(percent_decode(STR("%2"), true, &b), -EINVAL);
  assert_int_equal(percent_decode(STR("%zz"), true, &b), -EINVAL);
  assert_int_equal(query_get(STR("x=1&path=%2Ftmp%2Fa+b&path=2"), "path", &q), 1);
  assert_string_equal(buf_z(&q), "/tmp/a b");
  assert_int_equal(query_get(STR("x=1"), "path", &q), 0);
}

static void a_query_has_a_bounded_number_of_pairs(void **state)
{
  cleanup_buf struct buf many = BUF_INIT(1 << 16), q = BUF_INIT(100);
  for (int i = 0; i < QUERY_PAIRS_MAX - 1; i++)
    buf_addz(&many, i % 2 ? "path%2=0&" : "pathy=0&");
  cleanup_buf struct buf more = BUF_INIT(1 << 16);
  buf_adds(&more, buf_str(&many));
  buf_addz(&many, "p%61th=1");
  assert_int_equal(query_get(buf_str(&many), "path", &q), 1);
  assert_string_equal(buf_z(&q), "1");
  buf_addz(&more, "x=1&path=1");
  assert_int_equal(query_get(buf_str(&more), "path", &q), -E2BIG);
}

static void noise_becomes_replacement_characters(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(100);
  assert_int_equal(utf8_clean(STR("a\xc3\xa9\xff\xe2\x82z\xf0\x9f"), &b), 0);
  assert_true(str_eq(buf_str(&b), STR("a\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdz\xef\xbf\xbd\xef\xbf\xbd")));
  assert_true(utf8_valid(buf_str(&b)));
}

static void utf8_is_told_from_noise(void **state)
{
  assert_true(utf8_valid(STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80")));
  assert_false(utf8_valid(STR("\xc0\x80")));
  assert_false(utf8_valid(STR("\xed\xa0\x80")));
  assert_false(utf8_valid(STR("\xf4\x90\x80\x80")));
  assert_int_equal(utf8_whole(STR("ab\xe2\x82")), 2);
  assert_int_equal(utf8_whole(STR("ab\xe2\x82\xac")), 5);
  assert_int_equal(utf8_whole(STR("ab\xff")), 3);
  assert_int_equal(utf8_whole(STR("\xf0\x9f\x98")), 0);
}

static void sha256_and_hmac_match_the_published_vectors(void **state)
{
  uint8_t d[SHA256_LEN];
  char hex[2 * SHA256_LEN + 1];
  sha256_of("abc", 3, d);
  hex_encode(d, sizeof(d), hex);
  assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  struct sha256 s;
  sha256_init(&s);
  for (int i = 0; i < 1000000; i += 50)
    sha256_add(&s, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 50);
  sha256_end(&s, d);
  hex_encode(d, sizeof(d), hex);
  assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  hmac_sha256(STR("Jefe"), STR("what do ya want for nothing?"), d);
  hex_encode(d, sizeof(d), hex);
  assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

static void times_are_written_and_read(void **state)
{
  char t[CLOCK_TEXT];
  int64_t us;
  clock_text(1767323045123456, t);
  assert_string_equal(t, "2026-01-02T03:04:05.123456Z");
  assert_int_equal(clock_parse(STR("2026-01-02T05:04:05.123456789+02:00"), &us), 0);
  assert_true(us == 1767323045123456);
  assert_int_equal(clock_parse(STR("2026-01-02T03:04:05Z"), &us), 0);
  assert_int_equal(clock_parse(STR("2026-13-02T03:04:05Z"), &us), -EINVAL);
  assert_int_equal(clock_parse(STR("2026-01-02T03:04:05"), &us), -EINVAL);
  assert_int_equal(clock_parse(STR("2026-01-02T03:04:05.Z"), &us), -EINVAL);
}

static void the_calendar_is_that_of_the_c_library(void **state)
{
  static const int64_t marks[] = {0,          -1,          951782399,    951782400,    951868800, 4107542399,
                                  4107542400, -2203891200, 253402300799, -62135596800, 1709251199};
  for (size_t i = 0; i < ARRAY_LEN(marks) + 4000; i++) {
    int64_t sec = i < ARRAY_LEN(marks) ? marks[i] : ((int64_t)i - 2000) * 7654321;
    struct tm ours, theirs;
    time_t t = (time_t)sec;
    clock_utc(sec, &ours);
    gmtime_r(&t, &theirs);
    assert_int_equal(ours.tm_year, theirs.tm_year);
    assert_int_equal(ours.tm_yday, theirs.tm_yday);
    assert_int_equal(ours.tm_mon, theirs.tm_mon);
    assert_int_equal(ours.tm_mday, theirs.tm_mday);
    assert_int_equal(ours.tm_wday, theirs.tm_wday);
    assert_int_equal(ours.tm_hour * 3600 + ours.tm_min * 60 + ours.tm_sec,
                     theirs.tm_hour * 3600 + theirs.tm_min * 60 + theirs.tm_sec);
  }
  struct tm far;
  clock_utc(INT64_MAX, &far); /* no use, and no loop */
  clock_utc(INT64_MIN, &far);
}

static void paths_are_cleaned_by_text(void **state)
{
  static const char *const pairs[][2] = {{"/a//b/./c/..", "/a/b"}, {"/../..", "/"},        {"a/../..", ".."}, {"", "."},
                                         {"../../x", "../../x"},   {"/a/b/../../c", "/c"}, {"./a/", "a"}};
  for (size_t i = 0; i < ARRAY_LEN(pairs); i++) {
    cleanup_buf struct buf b = BUF_INIT(100);
    assert_int_equal(path_clean(str_of(pairs[i][0]), &b), 0);
    assert_string_equal(buf_z(&b), pairs[i][1]);
  }
  assert_true(str_is(path_base(STR("/a/b/")), "b") && str_is(path_base(STR("/")), "/"));
  assert_true(str_is(path_dir(STR("/a/b/")), "/a") && str_is(path_dir(STR("/a")), "/") &&
              str_is(path_dir(STR("a")), "."));
}

static void ids_have_their_form(void **state)
{
  char id[21], u[UUID_TEXT];
  random_id(id, 20);
  assert_int_equal(strlen(id), 20);
  assert_int_equal(strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789"), 20);
  uuid4(u);
  assert_true(uuid_valid(str_of(u)) && u[14] == '4');
  assert_false(uuid_valid(STR("not-a-uuid")));
}

static void both_ways_of_sha256_give_the_same(void **state)
{
  uint8_t bytes[1500], one[SHA256_LEN], other[SHA256_LEN];
  for (size_t i = 0; i < sizeof(bytes); i++)
    bytes[i] = (uint8_t)(i * 131 + (i >> 3));
  for (size_t n = 0; n < sizeof(bytes); n += 7) {
    sha256_portable(true);
    sha256_of(bytes, n, one);
    sha256_portable(false);
    sha256_of(bytes, n, other);
    assert_memory_equal(one, other, sizeof(one));
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(numbers_are_read_whole_or_refused),
      cmocka_unit_test(a_buffer_stops_at_its_maximum_and_keeps_what_it_had),
      cmocka_unit_test(formatted_text_fits_exactly),
      cmocka_unit_test(text_is_cut_searched_and_trimmed),
      cmocka_unit_test(base64_round_trips_and_takes_both_alphabets),
      cmocka_unit_test(percent_escapes_are_decoded_or_refused),
      cmocka_unit_test(a_query_has_a_bounded_number_of_pairs),
      cmocka_unit_test(utf8_is_told_from_noise),
      cmocka_unit_test(noise_becomes_replacement_characters),
      cmocka_unit_test(sha256_and_hmac_match_the_published_vectors),
      cmocka_unit_test(both_ways_of_sha256_give_the_same),
      cmocka_unit_test(times_are_written_and_read),
      cmocka_unit_test(the_calendar_is_that_of_the_c_library),
      cmocka_unit_test(paths_are_cleaned_by_text),
      cmocka_unit_test(ids_have_their_form),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
