/* SPDX-License-Identifier: Apache-2.0 */
/* The strict HTTP/1 reader: what it takes, what it refuses, and that cuts in the input change nothing. */
#include "unit.h"

#include "net/h1parse.h"

static const struct http_limits *limits = &http_limits_default;

struct outcome {
  int code; /* 0 complete, 1 more needed, negative status */
  size_t used;
  struct http_head head;
  struct h1_frame frame;
  struct http_header hv[256];
};

/* Fed in steps of `step` bytes, as a connection would. */
static void parse(struct str in, enum h1_side side, size_t step, struct outcome *o)
{
  struct h1scan scan = {0};
  const char *why = "";
  o->code = 1;
  for (size_t n = MIN(step, in.n); n <= in.n; n += MIN(step, in.n - n)) {
    ptrdiff_t used = h1_scan(&scan, side, str_sub(in, 0, n), limits, &why);
    if (used < 0)
      o->code = (int)used;
    if (used > 0) {
      struct str head = str_sub(in, 0, (size_t)used);
      o->used = (size_t)used;
      o->code = side == H1_REQUEST ? h1_request(head, &o->head, o->hv, scan.lines, &o->frame, &why)
                                   : h1_response(head, false, &o->head, o->hv, scan.lines, &o->frame, &why);
    }
    if (o->code != 1 || n == in.n)
      return;
  }
}

static int request_code(struct str in)
{
  struct outcome whole, bytes;
  parse(in, H1_REQUEST, in.n, &whole);
  parse(in, H1_REQUEST, 1, &bytes);
  assert_int_equal(whole.code, bytes.code);
  return whole.code;
}

static void requests_that_could_be_read_two_ways_are_refused(void **state)
{
  static const struct {
    int code;
    struct str text;
  } cases[] = {
#define H "Host: a\r\n"
      {-400, STR("GET / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 2\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H "Content-Length: 1\r\nContent-Length: 1\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H "Content-Length: 1, 1\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H "Content-Length: +1\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H "Content-Length: -1\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H "Content-Length: 0x1\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H "Content-Length: 1 2\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H "Content-Length:\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H "Content-Length: 99999999999999999999\r\n\r\n")},
      {-400, STR("POST / HTTP/1.1\r\n" H "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n")},
      {-400, STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n")},
      {-400, STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n")},
      {-400, STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n")},
      {-400, STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked, identity\r\n\r\n")},
      {-400, STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip, chunked\r\n\r\n")},
      {-400, STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked;q=1\r\n\r\n")},
      {-400, STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: \"chunked\"\r\n\r\n")},
      {-400, STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding:\r\n\r\n")},
      {-400, STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: \x0b"
                 "chunked\r\n\r\n")},
      {-501, STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: identity\r\n\r\n")},
      {-501, STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding: gzip\r\n\r\n")},
      {-400, STR("POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n")},
      {-400, STR("POST / HTTP/1.1\r\n" H "Transfer-Encoding : chunked\r\n\r\n")},
      {-400, STR("POST / HTTP/1.1\r\n" H "Content-Length : 3\r\n\r\n")},
      {-400, STR("POST / HTTP/1.1\r\n" H " Content-Length: 3\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H "X: a\r\n b\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H "X: a\r\n\tb\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n X: a\r\n" H "\r\n")},
      {-400, STR("GET / HTTP/1.1\n" H "\r\n")},
      {-400, STR("GET / HTTP/1.1\r\nHost: a\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\nHost: a\r\n\n")},
      {-400, STR("GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H "X: a\0b\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H "X\0: a\r\n\r\n")},
      {-400, STR("GET /\0 HTTP/1.1\r\n" H "\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H "no colon\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H ": nameless\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n" H "X(y): a\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\nHost: a, b\r\n\r\n")},
      {-400, STR("GET / HTTP/1.1\r\nHost: user@a\r\n\r\n")},
      {-400, STR("GET  / HTTP/1.1\r\n" H "\r\n")},
      {-400, STR("GET / HTTP/1.1 \r\n" H "\r\n")},
      {-400, STR("GET /a b HTTP/1.1\r\n" H "\r\n")},
      {-400, STR("GET /#x HTTP/1.1\r\n" H "\r\n")},
      {-400, STR("GET\t/ HTTP/1.1\r\n" H "\r\n")},
      {-400, STR("G(T / HTTP/1.1\r\n" H "\r\n")},
      {-400, STR("GET / http/1.1\r\n" H "\r\n")},
      {-400, STR("GET / HTTP/1.1x\r\n" H "\r\n")},
      {-400, STR("GET / HTTP/11\r\n" H "\r\n")},
      {-400, STR("GET /\r\n" H "\r\n")},
      {-400, STR("GET relative HTTP/1.1\r\n" H "\r\n")},
      {-400, STR("GET http:///x HTTP/1.1\r\n" H "\r\n")},
      {-400, STR("CONNECT /x HTTP/1.1\r\n" H "\r\n")},
      {-400, STR("\r\n\r\nGET / HTTP/1.1\r\n" H "\r\n")},
      {-400, STR("\x16\x03\x01\x02")},
      {-505, STR("PRI * HTTP/2.0\r\n\r\n")},
      {-505, STR("GET / HTTP/0.9\r\n" H "\r\n")},
      {1, STR("GET / HTTP/1.1\r\n" H)},
      {1, STR("GET / HTTP/1.1\r\n" H "\r")},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    int code = request_code(cases[i].text);
    if (code != cases[i].code)
      print_error("case %zu: %.*s", i, STR_ARG(cases[i].text));
    assert_int_equal(code, cases[i].code);
  }
}

static void what_real_clients_send_is_taken(void **state)
{
  static struct outcome o;
  static const struct {
    struct str text, method, path, query;
  } cases[] = {
      {STR("GET /a/b?x=1&y=%2F HTTP/1.1\r\n" H "\r\n"), STR("GET"), STR("/a/b"), STR("x=1&y=%2F")},
      {STR("\r\nGET / HTTP/1.1\r\n" H "\r\n"), STR("GET"), STR("/"), STR("")},
      {STR("M-SEARCH / HTTP/1.1\r\n" H "\r\n"), STR("M-SEARCH"), STR("/"), STR("")},
      {STR("OPTIONS * HTTP/1.1\r\n" H "\r\n"), STR("OPTIONS"), STR("*"), STR("")},
      {STR("GET http://a:80/p?q HTTP/1.1\r\n" H "\r\n"), STR("GET"), STR("/p"), STR("q")},
      {STR("GET http://a?q HTTP/1.1\r\n" H "\r\n"), STR("GET"), STR("/"), STR("q")},
      {STR("GET http://a HTTP/1.1\r\n" H "\r\n"), STR("GET"), STR("/"), STR("")},
      {STR("CONNECT a:443 HTTP/1.1\r\n" H "\r\n"), STR("CONNECT"), STR(""), STR("")},
      {STR("GET /\xc3\xa9 HTTP/1.1\r\n" H "\r\n"), STR("GET"), STR("/\xc3\xa9"), STR("")},
      {STR("GET / HTTP/1.0\r\n\r\n"), STR("GET"), STR("/"), STR("")},
      {STR("GET / HTTP/1.1\r\nHost:\r\n\r\n"), STR("GET"), STR("/"), STR("")},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    parse(cases[i].text, H1_REQUEST, 1, &o);
    assert_int_equal(o.code, 0);
    assert_int_equal(o.used, cases[i].text.n);
    assert_true(str_eq(o.head.method, cases[i].method));
    assert_true(str_eq(o.head.path, cases[i].path));
    assert_true(str_eq(o.head.query, cases[i].query));
  }
}

static void headers_keep_their_spelling_and_are_found_without_case(void **state)
{
  static struct outcome o;
  parse(
      STR("GET / HTTP/1.1\r\nHOST: a\r\nlang_version:  v20 \t\r\nX-Empty:\r\nConnection: Keep-Alive, Upgrade\r\n\r\n"),
      H1_REQUEST, 7, &o);
  assert_int_equal(o.code, 0);
  assert_int_equal(o.head.nheaders, 4);
  assert_true(str_is(o.head.headers[1].name, "lang_version"));
  assert_true(str_is(http_header(&o.head, "Lang_Version"), "v20"));
  assert_non_null(http_header(&o.head, "x-empty").p);
  assert_null(http_header(&o.head, "absent").p);
  assert_true(http_header_has(&o.head, "connection", "upgrade"));
  assert_false(http_header_has(&o.head, "connection", "close"));
}

static void framing_and_persistence_follow_the_head(void **state)
{
  static struct outcome o;
  parse(STR("POST / HTTP/1.1\r\n" H "Content-Length: 007\r\nExpect: 100-Continue\r\n\r\n"), H1_REQUEST, 9, &o);
  assert_true(o.frame.kind == H1_LENGTH && o.frame.length == 7 && o.frame.keep && o.frame.expect);
  parse(STR("POST / HTTP/1.1\r\n" H "transfer-encoding: Chunked\r\nConnection: x, close\r\n\r\n"), H1_REQUEST, 9, &o);
  assert_true(o.frame.kind == H1_CHUNKED && !o.frame.keep);
  parse(STR("POST / HTTP/1.0\r\nContent-Length: 0\r\nExpect: 100-continue\r\n\r\n"), H1_REQUEST, 9, &o);
  assert_true(o.frame.kind == H1_NONE && !o.frame.keep && !o.frame.expect);
  parse(STR("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"), H1_REQUEST, 9, &o);
  assert_true(o.frame.keep);
}

static void answers_are_framed_by_their_status(void **state)
{
  static struct outcome o;
  parse(STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n"), H1_RESPONSE, 1, &o);
  assert_true(o.code == 0 && o.head.status == 200 && o.frame.kind == H1_LENGTH && str_is(o.head.reason, "OK"));
  parse(STR("HTTP/1.1 200\r\n\r\n"), H1_RESPONSE, 1, &o);
  assert_true(o.code == 0 && o.frame.kind == H1_UNTIL_EOF && !o.frame.keep);
  parse(STR("HTTP/1.1 204 \r\nContent-Length: 5\r\n\r\n"), H1_RESPONSE, 1, &o);
  assert_true(o.code == 0 && o.frame.kind == H1_NONE && o.frame.keep);
  static const struct str bad[] = {
      STR("HTTP/1.1 20 OK\r\n\r\n"),
      STR("HTTP/1.1 2000 OK\r\n\r\n"),
      STR("HTTP/1.1 099 x\r\n\r\n"),
      STR("HTTP/1.1 600 x\r\n\r\n"),
      STR("HTTP/2 200\r\n\r\n"),
      STR("HTTP/1.1  200 OK\r\n\r\n"),
      STR("\r\nHTTP/1.1 200 OK\r\n\r\n"),
      STR("ICY 200 OK\r\n\r\n"),
      STR("HTTP/1.1 200 O\0K\r\n\r\n"),
      STR("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n"),
      STR("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n"),
  };
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    parse(bad[i], H1_RESPONSE, 3, &o);
    assert_true(o.code < 0);
  }
}

static void heads_over_their_limits_are_refused_with_the_fitting_status(void **state)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  buf_addz(&b, "GET /");
  while (b.n < limits->head_max)
    buf_addc(&b, 'a');
  assert_int_equal(request_code(buf_str(&b)), -414);
  buf_clear(&b);
  buf_addz(&b, "GET / HTTP/1.1\r\n" H "X: ");
  while (b.n < limits->head_max)
    buf_addc(&b, 'a');
  assert_int_equal(request_code(buf_str(&b)), -431);
  buf_clear(&b);
  buf_addz(&b, "GET / HTTP/1.1\r\n" H);
  for (size_t i = 1; i < limits->headers_max; i++)
    buf_addz(&b, "a: b\r\n");
  size_t full = b.n;
  buf_addz(&b, "\r\n");
  assert_int_equal(request_code(buf_str(&b)), 0);
  b.n = full;
  buf_addz(&b, "a: b\r\n\r\n");
  assert_int_equal(request_code(buf_str(&b)), -431);
}

/* ---- bodies ---- */

/* Fed in steps; the pieces are joined. H1_END, H1_MORE or a negative status. */
static int chunks(struct str in, size_t step, struct buf *out, size_t *left)
{
  struct h1_body body;
  int rc = H1_MORE;
  h1_body_start(&body, &(struct h1_frame){.kind = H1_CHUNKED});
  while (in.n && rc >= 0 && rc != H1_END) {
    struct str part = str_sub(in, 0, step), piece;
    size_t had = part.n;
    while ((rc = h1_body_next(&body, &part, &piece)) == H1_DATA) {
      assert_true(piece.n > 0);
      buf_adds(out, piece);
    }
    in = str_skip(in, had - part.n);
  }
  *left = in.n;
  return rc;
}

static void a_chunked_body_reads_the_same_however_it_is_cut(void **state)
{
  struct str in = STR("5\r\nhello\r\n006;name=\"v\"\r\n world\r\nA\r\n0123456789\r\n0\r\nX-Sum: 1\r\nY:\r\n\r\nGET");
  for (size_t step = 1; step <= in.n; step++) {
    cleanup_buf struct buf out = BUF_INIT(100);
    size_t left;
    assert_int_equal(chunks(in, step, &out, &left), H1_END);
    assert_string_equal(buf_z(&out), "hello world0123456789");
    assert_int_equal(left, 3);
  }
}

static void broken_chunks_are_refused(void **state)
{
  static const struct str bad[] = {
      STR("\r\n"),
      STR("x\r\n"),
      STR("-1\r\n"),
      STR("+1\r\n"),
      STR("0x1\r\na\r\n"),
      STR(" 1\r\na\r\n"),
      STR("1 \r\na\r\n"),
      STR("1\na\n"),
      STR("1\r\na\n"),
      STR("1\r\naX\r\n"),
      STR("1\r\na\rX"),
      STR("1;a\nb\r\n"),
      STR("1;a\0b\r\n"),
      STR("1000000000000000\r\n"),
      STR("0000000000000001\r\n"),
      STR("0\r\nbad trailer\r\n\r\n"),
      STR("0\r\n folded: x\r\n\r\n"),
      STR("0\r\n: x\r\n\r\n"),
      STR("0\r\nX: a\nb\r\n\r\n"),
      STR("0\r\nname\r\n\r\n"),
      STR("0\r\n\rX"),
  };
  for (size_t i = 0; i < ARRAY_LEN(bad); i++)
    for (size_t step = 1; step <= 2; step++) {
      cleanup_buf struct buf out = BUF_INIT(100);
      size_t left;
      int rc = chunks(bad[i], step == 1 ? 1 : bad[i].n, &out, &left);
      if (rc != -400)
        print_error("case %zu: %.*s", i, STR_ARG(bad[i]));
      assert_int_equal(rc, -400);
    }
}

static void extensions_and_trailers_can_not_go_on_for_ever(void **state)
{
  cleanup_buf struct buf in = BUF_INIT(1 << 20), out = BUF_INIT(1 << 20);
  size_t left;
  buf_addz(&in, "1;");
  for (int i = 0; i < 300; i++)
    buf_addc(&in, 'e');
  assert_int_equal(chunks(buf_str(&in), 10, &out, &left), -400);
  buf_clear(&in);
  for (int i = 0; i < 200; i++) {
    buf_addz(&in, "1;");
    for (int k = 0; k < 200; k++)
      buf_addc(&in, 'e');
    buf_addz(&in, "\r\na\r\n");
  }
  assert_int_equal(chunks(buf_str(&in), 10, &out, &left), -400);
  buf_clear(&in);
  buf_addz(&in, "0\r\n");
  for (int i = 0; i < 5000; i++)
    buf_addz(&in, "a: b\r\n");
  assert_int_equal(chunks(buf_str(&in), 10, &out, &left), -400);
}

static void trailers_are_kept_where_somebody_wants_them(void **state)
{
  static const char text[] = "3\r\nabc\r\n0\r\nX-Sum:  42 \r\nempty:\r\nb: c:d\r\n\r\nGET";
  for (size_t step = 1; step < sizeof(text); step += 7) {
    struct arena a = ARENA_INIT(1 << 20);
    cleanup_buf struct buf kept = BUF_INIT(H1_TRAILERS_MAX);
    struct h1_body body;
    struct http_header *got;
    struct str piece;
    int rc = H1_MORE;
    h1_body_start(&body, &(struct h1_frame){.kind = H1_CHUNKED});
    body.kept = &kept;
    for (size_t at = 0; at < sizeof(text) - 1 && rc != H1_END; at += step) {
      struct str in = str_make(text + at, MIN(step, sizeof(text) - 1 - at));
      while ((rc = h1_body_next(&body, &in, &piece)) == H1_DATA)
        continue;
      assert_true(rc >= 0);
    }
    assert_int_equal(h1_trailers(&a, buf_str(&kept), &got), 3);
    assert_true(str_is(got[0].name, "X-Sum") && str_is(got[0].value, "42"));
    assert_true(str_is(got[1].name, "empty") && got[1].value.n == 0);
    assert_true(str_is(got[2].name, "b") && str_is(got[2].value, "c:d"));
    assert_int_equal(h1_trailers(&a, STR_NONE, &got), 0);
    arena_free(&a);
  }
}

static void a_length_ends_exactly_where_it_says(void **state)
{
  struct h1_body body;
  struct str in = STR("abcdeGET"), piece;
  h1_body_start(&body, &(struct h1_frame){.kind = H1_LENGTH, .length = 5});
  assert_int_equal(h1_body_next(&body, &in, &piece), H1_DATA);
  assert_true(str_is(piece, "abcde"));
  assert_int_equal(h1_body_next(&body, &in, &piece), H1_END);
  assert_true(str_is(in, "GET"));
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(requests_that_could_be_read_two_ways_are_refused),
      cmocka_unit_test(what_real_clients_send_is_taken),
      cmocka_unit_test(headers_keep_their_spelling_and_are_found_without_case),
      cmocka_unit_test(framing_and_persistence_follow_the_head),
      cmocka_unit_test(answers_are_framed_by_their_status),
      cmocka_unit_test(heads_over_their_limits_are_refused_with_the_fitting_status),
      cmocka_unit_test(a_chunked_body_reads_the_same_however_it_is_cut),
      cmocka_unit_test(broken_chunks_are_refused),
      cmocka_unit_test(extensions_and_trailers_can_not_go_on_for_ever),
      cmocka_unit_test(trailers_are_kept_where_somebody_wants_them),
      cmocka_unit_test(a_length_ends_exactly_where_it_says),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
