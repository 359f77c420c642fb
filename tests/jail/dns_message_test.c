/* SPDX-License-Identifier: Apache-2.0 */
/* dns_message_test.c - messages of the domain name system, good and bad. */
#include "jail/net/dns_message.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

/* A question for www.Example.com, and an answer: an alias, then two addresses. */
static const uint8_t question[] = "\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00"
                                  "\x03www\x07"
                                  "Example\x03"
                                  "com\x00\x00\x01\x00\x01";
static const uint8_t answer[] = "\x12\x34\x81\x80\x00\x01\x00\x03\x00\x00\x00\x00"
                                "\x03www\x07"
                                "example\x03"
                                "com\x00\x00\x01\x00\x01"
                                "\xc0\x0c\x00\x05\x00\x01\x00\x00\x00\x0a\x00\x02\xc0\x10"
                                "\xc0\x10\x00\x01\x00\x01\x00\x00\x01\x2c\x00\x04\xc6\x33\x64\x07"
                                "\xc0\x10\x00\x01\x00\x01\x00\x00\x00\x3c\x00\x04\xc6\x33\x64\x08";
#define QUESTION_LEN (sizeof(question) - 1)
#define ANSWER_LEN   (sizeof(answer) - 1)

static void a_question_is_read_in_lower_case(void **state)
{
  struct dns_question q;
  assert_int_equal(dns_question(question, QUESTION_LEN, &q), 0);
  assert_string_equal(q.name, "www.example.com");
  assert_int_equal(q.id, 0x1234);
  assert_int_equal(q.type, 1);
  assert_int_equal(q.end, QUESTION_LEN);
}

static void every_cut_of_a_question_is_refused(void **state)
{
  struct dns_question q;
  for (size_t n = 0; n < QUESTION_LEN; n++)
    assert_int_equal(dns_question(question, n, &q), -EINVAL);
}

static void answers_two_questions_and_odd_names_are_no_questions(void **state)
{
  struct dns_question q;
  uint8_t m[sizeof(question)];
  static const struct {
    size_t at;
    uint8_t value;
  } broken[] = {{2, 0x81}, {5, 2}, {2, 0x29}, {12, 0xc0}, {12, 64}, {14, '.'}, {14, ' '}, {14, 0}, {31, 3}};
  for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
    memcpy(m, question, sizeof(m));
    m[broken[i].at] = broken[i].value;
    assert_int_equal(dns_question(m, QUESTION_LEN, &q), -EINVAL);
  }
}

static void an_answer_gives_its_addresses_and_the_smallest_ttl(void **state)
{
  struct dns_question q;
  struct dns_answer a;
  assert_int_equal(dns_question(question, QUESTION_LEN, &q), 0);
  assert_int_equal(dns_answer(answer, ANSWER_LEN, &q, &a), 0);
  assert_int_equal(a.count, 2);
  assert_int_equal(a.address[0], 0xc6336407);
  assert_int_equal(a.address[1], 0xc6336408);
  assert_int_equal(a.ttl, 60);
}

static void an_answer_to_another_question_is_refused(void **state)
{
  struct dns_question q;
  struct dns_answer a;
  assert_int_equal(dns_question(question, QUESTION_LEN, &q), 0);
  q.id++;
  assert_int_equal(dns_answer(answer, ANSWER_LEN, &q, &a), -EINVAL);
  q.id--;
  q.type = 28;
  assert_int_equal(dns_answer(answer, ANSWER_LEN, &q, &a), -EINVAL);
  q.type = 1;
  q.name[0] = 'x';
  assert_int_equal(dns_answer(answer, ANSWER_LEN, &q, &a), -EINVAL);
}

static void every_cut_of_an_answer_is_refused(void **state)
{
  struct dns_question q;
  struct dns_answer a;
  assert_int_equal(dns_question(question, QUESTION_LEN, &q), 0);
  for (size_t n = 0; n < ANSWER_LEN; n++)
    assert_int_equal(dns_answer(answer, n, &q, &a), -EINVAL);
}

/* Any bytes at all: what counts is that nothing is read or written outside (the sanitizers watch), and that a name
 * that is read is one of plain characters. */
static void random_bytes_do_no_harm(void **state)
{
  uint8_t *m = malloc(sizeof(answer));
  uint32_t seed = 12345;
  for (int i = 0; i < 200000; i++) {
    struct dns_question q;
    struct dns_answer a;
    size_t n = i % (ANSWER_LEN + 1);
    memcpy(m, answer, sizeof(answer));
    for (int k = 0; k < 4; k++) {
      seed = seed * 1664525u + 1013904223u;
      m[(seed >> 16) % ANSWER_LEN] = (uint8_t)(seed >> 8);
    }
    if (dns_question(m, n, &q) == 0)
      assert_true(strspn(q.name, "abcdefghijklmnopqrstuvwxyz0123456789-_.") == strlen(q.name));
    assert_int_equal(dns_question(question, QUESTION_LEN, &q), 0);
    if (dns_answer(m, n, &q, &a) == 0)
      assert_true(a.count <= DNS_ADDRESSES);
  }
  free(m);
}

static void a_refusal_echoes_the_question(void **state)
{
  struct dns_question q;
  uint8_t m[sizeof(question)];
  memcpy(m, question, sizeof(m));
  assert_int_equal(dns_question(m, QUESTION_LEN, &q), 0);
  assert_int_equal(dns_refuse(m, &q), QUESTION_LEN);
  assert_int_equal(m[2], 0x81);
  assert_int_equal(m[3], 0x85);
  assert_memory_equal(m + 12, question + 12, QUESTION_LEN - 12);
}

static void lists_match_names_exactly_or_below(void **state)
{
  struct str list = STR("example.com\n*.Wild.example\n");
  assert_true(dns_listed(list, "example.com"));
  assert_false(dns_listed(list, "www.example.com"));
  assert_false(dns_listed(list, "notexample.com"));
  assert_true(dns_listed(list, "a.wild.example"));
  assert_true(dns_listed(list, "a.b.wild.example"));
  assert_false(dns_listed(list, "wild.example"));
  assert_false(dns_listed(list, "evilwild.example"));
  assert_false(dns_listed(STR(""), "example.com"));
  assert_false(dns_listed(STR("\n\n"), ""));
  assert_true(dns_listed(STR("*\n"), "anything.at.all"));
}

static void patterns_are_names_and_nothing_else(void **state)
{
  static const char *const good[] = {"example.com", "*.example.com", "*", "a-b.example", "_dmarc.example", "localhost"};
  static const char *const bad[] = {"",     "1.2.3.4", "a..b", ".a", "a.",       "a b",
                                    "a\nb", "*.*.a",   "a*",   "*.", "http://a", "a/b"};
  for (size_t i = 0; i < ARRAY_LEN(good); i++)
    assert_true(dns_pattern(good[i]));
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    assert_false(dns_pattern(bad[i]));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_question_is_read_in_lower_case),
      cmocka_unit_test(every_cut_of_a_question_is_refused),
      cmocka_unit_test(answers_two_questions_and_odd_names_are_no_questions),
      cmocka_unit_test(an_answer_gives_its_addresses_and_the_smallest_ttl),
      cmocka_unit_test(an_answer_to_another_question_is_refused),
      cmocka_unit_test(every_cut_of_an_answer_is_refused),
      cmocka_unit_test(random_bytes_do_no_harm),
      cmocka_unit_test(a_refusal_echoes_the_question),
      cmocka_unit_test(lists_match_names_exactly_or_below),
      cmocka_unit_test(patterns_are_names_and_nothing_else),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
