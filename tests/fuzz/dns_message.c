/* SPDX-License-Identifier: Apache-2.0 */
/* dns_message.c - what a box asks the name server and what a resolver answers. The first byte tells how much of the
 * input is the question, the rest is the answer; a question that is accepted also judges an answer made of itself. A
 * name is plain text whatever the bytes were, a refusal is an answer to its question, and no answer opens more
 * addresses than there is room for. */
#include "must.h"

#include "jail/net/dns_message.h"

static void check_name(const struct dns_question *q)
{
  size_t n = strlen(q->name);
  MUST(n < DNS_NAME);
  for (size_t i = 0; i < n; i++) {
    char c = q->name[i];
    MUST((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.');
  }
}

static void check_answer(const uint8_t *m, size_t n, const struct dns_question *q)
{
  struct dns_answer a;
  int r = dns_answer(m, n, q, &a);
  MUST(r == 0 || r == -EINVAL);
  MUST(a.count <= DNS_ADDRESSES && (a.count || !a.ttl));
}

/* A refusal has the question's own bytes, so it must read as an answer to it, without addresses. */
static void check_refusal(const uint8_t *m, size_t n, const struct dns_question *q)
{
  struct dns_answer a;
  cleanup_free uint8_t *copy = xmalloc(n);
  memcpy(copy, m, n);
  size_t length = dns_refuse(copy, q);
  MUST(length == q->end && length <= n);
  MUST(!dns_answer(copy, length, q, &a) && a.count == 0);
  MUST(dns_question(copy, length, &(struct dns_question){.id = 0}) == -EINVAL);
}

/* The bytes as a list of patterns: a name is listed by itself and by "*". */
static void check_lists(struct str lines, const char *name)
{
  dns_listed(lines, name);
  MUST(dns_listed(STR("*\n"), name));
  MUST(!*name || dns_listed(str_of(name), name));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  struct dns_question q = {.id = 0};
  if (!size)
    return 0;
  size_t asked = MIN((size_t)data[0], size - 1), answered = size - 1 - asked;
  /* Copies of their exact length, so that a byte too far is seen. */
  cleanup_free uint8_t *question = xmalloc(asked + 1), *answer = xmalloc(answered + 1);
  memcpy(question, data + 1, asked);
  memcpy(answer, data + 1 + asked, answered);
  question = xrealloc(question, MAX(asked, (size_t)1));
  answer = xrealloc(answer, MAX(answered, (size_t)1));
  cleanup_free char *pattern = xstrndup((const char *)data + 1, size - 1);
  dns_pattern(pattern);
  if (dns_question(question, asked, &q))
    return 0;
  check_name(&q);
  MUST(q.end <= asked);
  check_refusal(question, asked, &q);
  check_answer(answer, answered, &q);
  check_answer(question, asked, &q);
  check_lists(str_make(answer, answered), q.name);
  return 0;
}
