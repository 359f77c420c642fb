/* SPDX-License-Identifier: Apache-2.0 */
/* warden_zygote.c - what a zygote and an unpacker may say to the warden, and how long one that keeps ending is waited
 * for. */
#include "unit.h"

#include "warden/build/unpack_reply.h"
#include "warden/warm/zygote_reply.h"
#include "warden/warm/zygote_retry.h"

static void two_messages_are_understood_and_no_other(void **state)
{
  static const struct {
    const char *packet;
    enum zygote_reply said;
  } table[] = {
      {"{\"ev\":\"ready\"}\n", ZYGOTE_SAYS_READY},
      {"{\"ev\":\"entered\",\"id\":7,\"status\":0}\n", ZYGOTE_SAYS_ENTERED},
      {"{\"ev\":\"entered\",\"id\":7,\"status\":-3}", ZYGOTE_SAYS_FAILED},
      {"{\"ev\":\"entered\"}\n", ZYGOTE_SAYS_FAILED},
      {"{\"ev\":\"ready\"}\n{\"ev\":\"ready\"}\n", ZYGOTE_SAYS_NOTHING},
      {"{\"ev\":[\"ready\"]}", ZYGOTE_SAYS_NOTHING},
      {"{\"op\":\"enter\"}", ZYGOTE_SAYS_NOTHING},
      {"ready", ZYGOTE_SAYS_NOTHING},
      {"\n", ZYGOTE_SAYS_NOTHING},
      {"", ZYGOTE_SAYS_NOTHING},
  };
  for (size_t i = 0; i < ARRAY_LEN(table); i++)
    assert_int_equal(zygote_reply_read(str_of(table[i].packet)), table[i].said);
  char long_one[ZYGOTE_PACKET];
  memset(long_one, ' ', sizeof(long_one));
  memcpy(long_one, "{\"ev\":\"ready\"}", 14);
  assert_int_equal(zygote_reply_read(str_make(long_one, sizeof(long_one))), ZYGOTE_SAYS_NOTHING);
  assert_int_equal(zygote_reply_read(str_make(long_one, sizeof(long_one) - 1)), ZYGOTE_SAYS_READY);
}

/* An hour has at most seven of them, and no number of deaths makes the wait short again. */
static void one_that_keeps_ending_is_waited_for_ever_longer(void **state)
{
  int64_t at = 0;
  unsigned in_an_hour = 0;
  for (unsigned deaths = 0; deaths < 100; deaths++) {
    int64_t wait = zygote_retry_us(deaths);
    assert_true(wait >= ZYGOTE_RETRY_US && wait <= ZYGOTE_RETRY_MAX_US);
    assert_true(!deaths || wait >= zygote_retry_us(deaths - 1));
    at += wait;
    in_an_hour += at <= 3600000000ll;
  }
  assert_true(in_an_hour <= 7);
  assert_int_equal(zygote_retry_us(UINT32_MAX), ZYGOTE_RETRY_MAX_US);
}

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void an_unpacker_says_one_of_a_few_things(void **state)
{
  static const char *const good[] = {"Gindex", "G" HEX, "C" HEX, "Y" HEX HEX, "Lline", "Ewhy", "R12", "R", "L"};
  static const char *const bad[] = {"",
                                    "G",
                                    "Gindexx",
                                    "G../../etc/passwd",
                                    "G" HEX "0",
                                    "C",
                                    "Y" HEX,
                                    "Y" HEX HEX "0",
                                    "X",
                                    "F",
                                    "C"
                                    "0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef"};
  struct unpack_reply r;
  for (size_t i = 0; i < ARRAY_LEN(good); i++)
    assert_int_equal(unpack_reply_read(str_of(good[i]), &r), 0);
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_int_equal(unpack_reply_read(str_of(bad[i]), &r), -EPROTO);
  assert_int_equal(unpack_reply_read(STR("La\nb\033[2J\177"), &r), 0);
  assert_string_equal(r.line, "a b [2J ");
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(two_messages_are_understood_and_no_other),
      cmocka_unit_test(one_that_keeps_ending_is_waited_for_ever_longer),
      cmocka_unit_test(an_unpacker_says_one_of_a_few_things),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
