/* SPDX-License-Identifier: Apache-2.0 */
/* net_reader.c - responses are read the same wherever their bytes are cut, and what is no response is refused. */
#include "unit.h"

#include "net/h1reader.h"

struct heard {
  struct h1_reader answer;
  struct buf body, timing;
  int r;
};

static void on_header(void *arg, struct str name, struct str value)
{
  struct heard *h = arg;
  if (str_ieq(name, STR("server-timing")))
    buf_adds(&h->timing, value);
}

/* Shows `text` in pieces of at most `piece` bytes, then the end of the connection. */
static struct heard hear(const char *text, size_t piece, bool bodiless)
{
  struct heard h = {.body = BUF_INIT(4096), .timing = BUF_INIT(4096)};
  h.answer = (struct h1_reader){.bodyless = bodiless, .header = on_header, .arg = &h};
  cleanup_buf struct buf raw = BUF_INIT(4096);
  for (struct str rest = str_of(text); rest.n && !h.answer.over && !h.r;) {
    struct str some = str_sub(rest, 0, MIN(piece, rest.n)), body;
    rest = str_skip(rest, some.n);
    buf_adds(&raw, some);
    for (size_t used = 1; used && !h.r && !h.answer.over;) {
      h.r = h1_reader_take(&h.answer, buf_str(&raw), &used, &body);
      buf_adds(&h.body, body);
      buf_drop(&raw, used);
    }
  }
  if (!h.r && !h.answer.over)
    h.r = h1_reader_eof(&h.answer);
  h.answer.arg = NULL;
  return h;
}

static void forget(struct heard *h)
{
  buf_free(&h->body);
  buf_free(&h->timing);
}

static void answers_are_whole_wherever_they_are_cut(void **state)
{
  static const struct {
    const char *text, *body;
    int status;
    bool bodiless, closes;
  } cases[] = {
      {"HTTP/1.1 200 OK\r\nServer-Timing: a;dur=1\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, false, false},
      {"HTTP/1.1 200 OK\r\nServer-Timing: a;dur=1\r\nTransfer-Encoding: "
       "chunked\r\n\r\n3\r\nhel\r\n2;x=y\r\nlo\r\n0\r\nT: 1\r\n\r\n",
       "hello", 200, false, false},
      {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201 Created\r\nServer-Timing: a;dur=1\r\nContent-Length: 0\r\n\r\n", "",
       201, false, false},
      {"HTTP/1.0 200 OK\r\nServer-Timing: a;dur=1\r\n\r\nto the end", "to the end", 200, false, true},
      {"HTTP/1.1 204 No Content\r\nServer-Timing: a;dur=1\r\nConnection: close\r\n\r\n", "", 204, false, true},
      {"HTTP/1.1 200 OK\r\nServer-Timing: a;dur=1\r\nContent-Length: 5\r\n\r\n", "", 200, true, false},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++)
    for (size_t piece = 1; piece <= 200; piece++) {
      struct heard h = hear(cases[i].text, piece, cases[i].bodiless);
      assert_int_equal(h.r, 0);
      assert_true(h.answer.over);
      assert_int_equal(h.answer.status, cases[i].status);
      assert_int_equal(h.answer.closes, cases[i].closes);
      assert_string_equal(buf_z(&h.body), cases[i].body);
      assert_string_equal(buf_z(&h.timing), "a;dur=1");
      forget(&h);
    }
}

static void an_early_end_is_told(void **state)
{
  static const char *const cut[] = {"", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell",
                                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n",
                                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n"};
  for (size_t i = 0; i < ARRAY_LEN(cut); i++) {
    struct heard h = hear(cut[i], 7, false);
    assert_int_equal(h.r, -ECONNRESET);
    assert_false(h.answer.over);
    forget(&h);
  }
}

static void what_is_no_answer_is_refused(void **state)
{
  static const char *const wrong[] = {"GET / HTTP/1.1\r\n\r\n",
                                      "HTTP/2 200\r\n\r\n",
                                      "HTTP/1.1 abc OK\r\n\r\n",
                                      "HTTP/1.1 099 OK\r\n\r\n",
                                      "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
                                      "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
                                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
                                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
                                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1g\r\n",
                                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1234567890abcdef\r\n",
                                      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n"};
  for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
    struct heard h = hear(wrong[i], 9, false);
    assert_int_equal(h.r, -EPROTO);
    forget(&h);
  }
}

static void a_head_without_end_is_refused(void **state)
{
  static char endless[(64 << 10) + 2];
  struct h1_reader a = {0};
  struct str body;
  size_t used;
  memset(endless, 'x', sizeof(endless));
  memcpy(endless, "HTTP/1.1 200 OK\r\nX: ", 20);
  assert_int_equal(h1_reader_take(&a, (struct str){endless, sizeof(endless) / 2}, &used, &body), 0);
  assert_int_equal(used, 0);
  assert_int_equal(h1_reader_take(&a, (struct str){endless, sizeof(endless)}, &used, &body), -EPROTO);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(answers_are_whole_wherever_they_are_cut),
      cmocka_unit_test(an_early_end_is_told),
      cmocka_unit_test(what_is_no_answer_is_refused),
      cmocka_unit_test(a_head_without_end_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
