/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP server against a raw peer: framing, order, back-pressure, endings, limits. */
#include "net_lab.h"

#include <sys/resource.h>

#define GET(path) "GET " path " HTTP/1.1\r\nHost: a\r\n\r\n"

static void a_connection_is_kept_for_the_next_request(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  for (int i = 0; i < 3; i++) {
    buf_clear(&out);
    lab_say(fd, STR(GET("/one")));
    lab_hear_until(fd, &out, "/one");
    assert_true(lab_has(&out, "HTTP/1.1 200 OK\r\n"));
    assert_true(lab_has(&out, "\r\nContent-Length: 4\r\n"));
    assert_true(lab_has(&out, "\r\nDate: "));
    assert_false(lab_has(&out, "Connection:"));
  }
  assert_int_equal(http_server_conns(lab.server), 1);
  assert_int_equal(lab.gones, 3);
  assert_int_equal(lab.how, HTTP_DONE);
  lab_close();
}

static void pipelined_requests_are_answered_in_order_one_at_a_time(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR(GET("/a") GET("/hold") GET("/b") GET("/c")));
  lab_hear_until(fd, &out, "/a");
  lab_run_ms(20);
  assert_int_equal(lab.requests, 2); /* /b waits for the answer to /hold */
  http_reply(lab.held, 200, NULL, STR("held"));
  lab_hear_until(fd, &out, "/c");
  assert_int_equal(lab.requests, 4);
  ptrdiff_t held = str_search(buf_str(&out), STR("held")), b = str_search(buf_str(&out), STR("/b"));
  assert_true(held > 0 && b > held);
  lab_close();
}

/* Bytes of the one read that brings the first of an answer. */
static ssize_t first_read(int fd, struct buf *out)
{
  ssize_t r;
  struct pollfd p = {.fd = fd, .events = POLLIN};
  for (int i = 0; i < 10000 && poll(&p, 1, 1) == 0; i++)
    lab_turn();
  r = lab_hear(fd, out);
  return r;
}

static void an_answer_said_in_one_step_leaves_in_one_piece(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR(GET("/three") GET("/after")));
  assert_true(first_read(fd, &out) > 0);
  assert_true(lab_has(&out, "HTTP/1.1 200 OK\r\n"));
  assert_true(lab_has(&out, "3\r\none\r\n3\r\ntwo\r\n5\r\nthree\r\n0\r\n\r\n"));
  lab_hear_until(fd, &out, "/after"); /* the next request is found although the answer before it waited */
  lab_close();
}

static void what_a_callback_gathers_leaves_when_it_lets_go(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR(GET("/hold")));
  lab_until(lab.held != NULL);
  struct net *net = http_gather(&lab.loop);
  http_respond(lab.held, 200, NULL, 0, HTTP_CHUNKED);
  http_send(lab.held, STR("one"));
  assert_int_equal(lab_hear(fd, &out), -EAGAIN);
  http_send(lab.held, STR("two"));
  http_let_go(net);
  assert_true(lab_hear(fd, &out) > 0); /* without a turn of the loop */
  assert_true(str_ends(buf_str(&out), STR("\r\n\r\n3\r\none\r\n3\r\ntwo\r\n")));
  lab_close();
}

static void an_abort_loses_nothing_that_was_said_before_it(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR(GET("/abort")));
  assert_int_equal(lab_hear_until(fd, &out, NULL), -ECONNRESET);
  assert_true(str_ends(buf_str(&out), STR("7\r\npartial\r\n")));
  lab_close();
}

static void a_chunked_body_split_at_every_byte_arrives_whole(void **state)
{
  struct str in = STR("POST /collect HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
                      "5\r\nhello\r\n6;x=y\r\n world\r\n0\r\nT: v\r\n\r\n");
  lab_open(NULL);
  for (size_t cut = 1; cut < in.n; cut++) {
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    cleanup_fd int fd = lab_dial();
    lab.body_bytes = 0;
    buf_clear(&lab.body);
    lab_say(fd, str_sub(in, 0, cut));
    lab_run_ms(1);
    lab_say(fd, str_skip(in, cut));
    lab_hear_until(fd, &out, "\r\n\r\n11");
    assert_string_equal(buf_z(&lab.body), "hello world");
  }
  assert_int_equal(lab.body_ends, (int)in.n - 1);
  lab_close();
}

static void body_bytes_wait_until_the_handler_takes_them(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR("POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello" GET("/next")));
  lab_until(lab.held != NULL);
  lab_run_ms(10);
  assert_int_equal(lab.body_bytes, 0);
  http_x_resume(lab.held);
  assert_int_equal(lab.body_bytes, 0); /* never from inside the call */
  lab_until(lab.body_ends == 1);
  assert_string_equal(buf_z(&lab.body), "hello");
  assert_int_equal(http_x_body_length(lab.held), 5);
  http_reply(lab.held, 204, NULL, STR_NONE);
  lab_hear_until(fd, &out, "/next");
  assert_true(lab_has(&out, "HTTP/1.1 204 No Content\r\n"));
  assert_int_equal(lab_count(&out, "Content-Length"), 1); /* of /next only */
  lab_close();
}

static void an_unread_body_is_read_away_to_keep_the_connection(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20), in = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  buf_addz(&in, "POST /x HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n");
  for (int i = 0; i < 100000; i++)
    buf_addc(&in, 'b');
  buf_addz(&in, "POST /y HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n" GET("/after"));
  lab_say(fd, buf_str(&in));
  lab_hear_until(fd, &out, "/after");
  assert_int_equal(lab.requests, 3);
  lab_close();
}

static void a_slow_reader_never_makes_us_buffer_much(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(64 << 20);
  struct http_limits l = http_limits_default;
  l.high_water = 64 << 10;
  lab_open(&l);
  cleanup_fd int fd = lab_dial();
  lab.feed_max = 48 << 20;
  lab_say(fd, STR(GET("/stream")));
  lab_run_ms(100);
  size_t in_socket = 0;
  assert_true(lab.fed < lab.feed_max); /* the handler was stopped */
  assert_true(http_congested(lab.held));
  size_t stopped_at = lab.fed;
  lab_run_ms(50);
  assert_int_equal(lab.fed, stopped_at);
  ssize_t r;
  while ((r = lab_hear(fd, &out)) > 0)
    in_socket += (size_t)r;
  /* What was handed to http_send is in the kernel or in the queue; the queue is the high-water mark and one send. */
  assert_true(stopped_at - MIN(stopped_at, in_socket) < (8u << 20));
  lab_hear_until(fd, &out, "0\r\n\r\n");
  assert_int_equal(lab.fed, lab.feed_max);
  assert_true(lab.drains > 0);
  lab_until(lab.gones == 1);
  assert_int_equal(lab.how, HTTP_DONE);
  lab_close();
}

static void an_upload_waits_while_its_echo_is_not_read(void **state)
{
  struct http_limits l = http_limits_default;
  l.high_water = 64 << 10;
  lab_open(&l);
  cleanup_fd int fd = lab_dial();
  static char block[65536];
  lab_say(fd, STR("POST /echo HTTP/1.1\r\nHost: a\r\nContent-Length: 268435456\r\n\r\n"));
  size_t sent = 0;
  for (int idle = 0; idle < 200 && sent < (256u << 20);) {
    ssize_t r = send(fd, block, sizeof(block), MSG_NOSIGNAL);
    sent += r > 0 ? (size_t)r : 0;
    idle = r > 0 ? 0 : idle + 1;
    lab_turn();
    if (r < 0)
      usleep(200);
  }
  assert_true(sent < (64u << 20)); /* the sender was held back */
  assert_true(sent - lab.body_bytes < (32u << 20));
  close(steal_fd(&fd));
  lab_until(lab.gones == 1);
  assert_int_equal(lab.how, HTTP_PEER_GONE);
  lab_close();
}

static void an_abort_cuts_without_the_final_chunk(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR(GET("/abort")));
  ssize_t r = lab_hear_until(fd, &out, NULL);
  assert_int_equal(r, -ECONNRESET);
  assert_false(lab_has(&out, "0\r\n\r\n"));
  lab_until(lab.gones == 1);
  assert_int_equal(lab.how, HTTP_ABORTED);
  lab_close();
}

static void an_answer_shorter_than_promised_is_an_abort(void **state)
{
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR(GET("/hold")));
  lab_until(lab.held != NULL);
  assert_int_equal(http_respond(lab.held, 200, NULL, 0, 10), 0);
  assert_int_equal(http_respond(lab.held, 200, NULL, 0, 10), -EALREADY);
  assert_int_equal(http_send(lab.held, STR("12345")), 0);
  assert_int_equal(http_send(lab.held, STR("678901")), -EMSGSIZE);
  lab.in_call = true;
  http_end(lab.held);
  lab.in_call = false;
  assert_int_equal(lab.gones, 0);
  lab_until(lab.gones == 1);
  assert_int_equal(lab.how, HTTP_ABORTED);
  lab_close();
}

static void expect_continue_is_answered_when_the_body_is_wanted(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR("PUT /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"));
  lab_until(lab.held != NULL);
  lab_run_ms(10);
  assert_int_equal(lab_hear(fd, &out), -EAGAIN);
  http_x_resume(lab.held);
  lab_hear_until(fd, &out, "HTTP/1.1 100 Continue\r\n\r\n");
  lab_say(fd, STR("ok"));
  lab_until(lab.body_ends == 1);
  http_reply(lab.held, 201, NULL, STR("stored"));
  lab_hear_until(fd, &out, "stored");
  assert_int_equal(lab_count(&out, "100 Continue"), 1);
  assert_false(lab_has(&out, "Connection: close"));
  lab_close();
}

static void a_refused_expectation_closes_the_connection(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR("PUT /no HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n"));
  assert_int_equal(lab_hear_until(fd, &out, NULL), 0);
  assert_true(lab_has(&out, "Connection: close\r\n"));
  assert_false(lab_has(&out, "100 Continue"));
  lab_close();
}

static void head_answers_have_a_length_and_no_body(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR("HEAD /twelve-bytes HTTP/1.1\r\nHost: a\r\n\r\n" GET("/end")));
  lab_hear_until(fd, &out, "/end");
  assert_true(lab_has(&out, "Content-Length: 13\r\n"));
  assert_false(lab_has(&out, "/twelve-bytes"));
  lab_close();
}

static void old_clients_get_a_body_that_ends_with_the_connection(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab.feed_max = 20000;
  lab_say(fd, STR("GET /stream HTTP/1.0\r\n\r\n"));
  assert_int_equal(lab_hear_until(fd, &out, NULL), 0);
  assert_false(lab_has(&out, "Transfer-Encoding"));
  assert_true(lab_has(&out, "Connection: close\r\n"));
  assert_true(lab_has(&out, "\r\n\r\nxxxx") && str_ends(buf_str(&out), STR("xxx")));
  cleanup_fd int kept = lab_dial();
  buf_clear(&out);
  lab_say(kept, STR("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET /b HTTP/1.0\r\n\r\n"));
  assert_int_equal(lab_hear_until(kept, &out, NULL), 0);
  assert_int_equal(lab_count(&out, "Connection: keep-alive"), 1);
  assert_int_equal(lab_count(&out, "Connection: close"), 1);
  lab_close();
}

static void each_send_is_one_chunk_and_leaves_at_once(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR(GET("/hold")));
  lab_until(lab.held != NULL);
  http_respond(lab.held, 200, NULL, 0, HTTP_CHUNKED);
  lab_hear_until(fd, &out, "chunked\r\n\r\n"); /* the head does not wait for a body */
  buf_clear(&out);
  http_send(lab.held, STR("first"));
  lab_hear(fd, &out); /* no turn of the loop in between */
  assert_string_equal(buf_z(&out), "5\r\nfirst\r\n");
  http_send(lab.held, STR("0123456789abcdef"));
  http_end(lab.held);
  lab_hear_until(fd, &out, "0\r\n\r\n");
  assert_string_equal(buf_z(&out), "5\r\nfirst\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n");
  lab_close();
}

static void a_tunnel_carries_raw_bytes_and_closes_half_by_half(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR("GET /tunnel HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nearly"));
  lab_hear_until(fd, &out, "early");
  assert_true(lab_has(&out, "HTTP/1.1 101 Switching Protocols\r\n"));
  assert_true(lab_has(&out, "Connection: Upgrade\r\n") && lab_has(&out, "Upgrade: echo\r\n"));
  assert_false(lab_has(&out, "Content-Length") || lab_has(&out, "Transfer-Encoding"));
  lab_say(fd, STR("\r\n\r\nraw"));
  lab_hear_until(fd, &out, "\r\n\r\nraw");
  shutdown(fd, SHUT_WR);
  assert_int_equal(lab_hear_until(fd, &out, NULL), 0);
  lab_until(lab.gones == 1);
  assert_int_equal(lab.body_ends, 1);
  assert_int_equal(lab.how, HTTP_DONE);
  lab_close();
}

static void the_server_may_close_its_half_of_a_tunnel_first(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  struct http_header echo = {STR("Upgrade"), STR("echo")};
  lab_say(fd, STR("GET /hold HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"));
  lab_until(lab.held != NULL);
  assert_int_equal(http_tunnel(lab.held, 101, &echo, 1), 0);
  http_send(lab.held, STR("bye"));
  http_end(lab.held);
  assert_int_equal(lab_hear_until(fd, &out, NULL), 0);
  assert_true(str_ends(buf_str(&out), STR("\r\n\r\nbye")));
  assert_int_equal(lab.gones, 0);
  lab_say(fd, STR("late"));
  lab_until(lab.body_bytes == 4);
  close(steal_fd(&fd));
  lab_until(lab.gones == 1);
  assert_int_equal(lab.how, HTTP_DONE);
  lab_close();
}

static void a_peer_that_leaves_is_noticed_in_every_state(void **state)
{
  static const struct str asks[] = {
      STR(GET("/hold")),
      STR(GET("/hold") GET("/pipelined")),
      STR("POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf"),
      STR("POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nfull"),
      STR("POST /collect HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nhalf"),
  };
  lab_open(NULL);
  for (size_t i = 0; i < ARRAY_LEN(asks); i++)
    for (int reset = 0; reset < 2; reset++) {
      int before = lab.gones;
      int fd = lab_dial();
      lab_say(fd, asks[i]);
      lab_until(lab.requests == before + 1);
      lab_run_ms(5);
      assert_int_equal(lab.gones, before);
      struct linger now = {.l_onoff = 1};
      if (reset)
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
      close(fd);
      lab_until(lab.gones == before + 1);
      assert_int_equal(lab.how, reset ? HTTP_PEER_CUT : HTTP_PEER_GONE);
    }
  lab_close();
}

static void a_finished_answer_still_reaches_a_peer_that_closed_its_half(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(64 << 20);
  struct http_limits l = http_limits_default;
  l.high_water = 32 << 20;
  lab_open(&l);
  cleanup_fd int fd = lab_dial();
  lab.feed_max = 16 << 20; /* more than the sockets hold, and http_end is called at once */
  lab_say(fd, STR(GET("/stream")));
  lab_until(lab.fed == lab.feed_max);
  shutdown(fd, SHUT_WR);
  lab_run_ms(5);
  lab_hear_until(fd, &out, NULL);
  assert_true(str_ends(buf_str(&out), STR("0\r\n\r\n")));
  lab_until(lab.gones == 1);
  assert_int_equal(lab.how, HTTP_DONE);
  lab_close();
}

static void broken_requests_get_a_small_json_answer_and_the_end(void **state)
{
  static const struct {
    struct str ask;
    const char *status, *code;
  } cases[] = {
      {STR("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), "HTTP/1.1 400 ",
       "{\"code\":400,"},
      {STR("nonsense\r\n\r\n"), "HTTP/1.1 400 ", "{\"code\":400,"},
      {STR("GET / HTTP/3.0\r\n\r\n"), "HTTP/1.1 505 ", "{\"code\":505,"},
      {STR("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n"), "HTTP/1.1 501 ", "{\"code\":501,"},
      {STR("POST /collect HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"), "HTTP/1.1 400 ",
       "{\"code\":400,"},
      {STR("POST /collect HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\nabc"), "HTTP/1.1 413 ",
       "{\"code\":413,"},
  };
  lab_open(NULL);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    cleanup_buf struct buf out = BUF_INIT(1 << 20);
    cleanup_fd int fd = lab_dial();
    lab_say(fd, cases[i].ask);
    assert_int_equal(lab_hear_until(fd, &out, NULL), 0);
    assert_true(str_starts(buf_str(&out), str_of(cases[i].status)));
    assert_true(lab_has(&out, cases[i].code) && lab_has(&out, "\"message\":\""));
    assert_true(lab_has(&out, "Connection: close\r\n") && lab_has(&out, "application/json"));
  }
  lab_close();
}

static void a_chunked_body_over_its_limit_is_413(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20), in = BUF_INIT(1 << 20);
  struct http_limits l = http_limits_default;
  l.body_max = 1000;
  lab_open(&l);
  cleanup_fd int fd = lab_dial();
  buf_addz(&in, "POST /collect HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (int i = 0; i < 101; i++)
    buf_addz(&in, "a\r\n0123456789\r\n");
  lab_say(fd, buf_str(&in));
  assert_int_equal(lab_hear_until(fd, &out, NULL), 0);
  assert_true(lab_has(&out, "HTTP/1.1 413 "));
  assert_int_equal(lab.how, HTTP_ABORTED);
  assert_int_equal(lab.body_bytes, 1000);
  lab_close();
}

static void an_endless_upload_to_a_deaf_handler_is_cut(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  static char block[65536];
  lab_say(fd, STR("POST /deaf HTTP/1.1\r\nHost: a\r\nContent-Length: 100000000000\r\n\r\n"));
  bool cut = false;
  for (size_t sent = 0; sent < (1u << 30) && !cut;) {
    ssize_t r = send(fd, block, sizeof(block), MSG_NOSIGNAL);
    cut = r < 0 && errno != EAGAIN;
    sent += r > 0 ? (size_t)r : 0;
    lab_turn();
    lab_hear(fd, &out);
  }
  assert_true(cut);
  assert_true(lab_has(&out, "/deaf") && lab_has(&out, "Connection: close"));
  lab_close();
}

static void times_run_out_where_they_should(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct http_limits l = http_limits_default;
  l.head_ms = 60;
  l.idle_ms = 120;
  l.body_ms = 60;
  lab_open(&l);
  cleanup_fd int head = lab_dial(), idle = lab_dial(), body = lab_dial(), held = lab_dial();
  lab_say(head, STR("GET / HT"));
  lab_say(body, STR("POST /collect HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"));
  lab_say(held, STR(GET("/hold")));
  assert_int_equal(lab_hear_until(head, &out, NULL), 0);
  assert_true(lab_has(&out, "HTTP/1.1 408 ") && lab_has(&out, "{\"code\":408,"));
  buf_clear(&out);
  assert_int_equal(lab_hear_until(body, &out, NULL), 0);
  assert_true(lab_has(&out, "HTTP/1.1 408 "));
  assert_int_equal(lab.how, HTTP_PEER_GONE);
  buf_clear(&out);
  assert_int_equal(lab_hear_until(idle, &out, NULL), 0);
  assert_int_equal(out.n, 0);
  lab_run_ms(200);
  assert_non_null(lab.held); /* an answer may take as long as it likes */
  http_reply(lab.held, 200, NULL, STR("late"));
  lab_hear_until(held, &out, "late");
  lab_close();
}

static void an_untimed_body_may_be_silent_and_the_next_request_may_not(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct http_limits l = http_limits_default;
  l.body_ms = 60;
  lab_open(&l);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR("POST /untimed HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"));
  lab_run_ms(250);
  lab_say(fd, STR("cd"));
  lab_run_ms(250);
  lab_say(fd, STR("e"));
  lab_hear_until(fd, &out, "\r\n\r\n5");
  assert_true(lab_has(&out, "HTTP/1.1 200 "));
  assert_true(str_is(buf_str(&lab.body), "abcde"));
  buf_clear(&out);
  lab_say(fd, STR("POST /collect HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab"));
  assert_int_equal(lab_hear_until(fd, &out, NULL), 0);
  assert_true(lab_has(&out, "HTTP/1.1 408 "));
  lab_close();
}

static void a_busy_connection_is_not_idle(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct http_limits l = http_limits_default;
  l.idle_ms = 800;
  lab_open(&l);
  cleanup_fd int fd = lab_dial();
  for (int i = 0; i < 3; i++) {
    lab_run_ms(300);
    buf_clear(&out);
    lab_say(fd, STR(GET("/tick")));
    lab_hear_until(fd, &out, "/tick");
  }
  assert_int_equal(lab.requests, 3);
  lab_close();
}

static void a_peer_that_takes_nothing_is_cut_after_linger_ms(void **state)
{
  struct http_limits l = http_limits_default;
  l.linger_ms = 80;
  lab_open(&l);
  cleanup_fd int fd = lab_dial();
  lab.feed_max = 256 << 20;
  lab_say(fd, STR(GET("/stream")));
  lab_until(lab.gones == 1);
  assert_int_equal(lab.how, HTTP_PEER_GONE);
  lab_close();
}

static void over_the_limit_the_oldest_idle_connection_makes_room(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct http_limits l = http_limits_default;
  l.conns_max = 3;
  lab_open(&l);
  cleanup_fd int a = lab_dial(), b = lab_dial(), c = lab_dial();
  lab_until(http_server_conns(lab.server) == 3);
  lab_say(a, STR(GET("/used")));
  lab_hear_until(a, &out, "/used"); /* so b is the oldest */
  cleanup_fd int d = lab_dial();
  buf_clear(&out);
  assert_int_equal(lab_hear_until(b, &out, NULL), 0);
  lab_say(a, STR(GET("/hold")));
  lab_say(c, STR(GET("/hold")));
  lab_say(d, STR(GET("/hold")));
  lab_until(lab.requests == 4);
  cleanup_fd int e = lab_dial();
  assert_int_equal(lab_hear_until(e, &out, NULL), 0);
  assert_true(lab_has(&out, "HTTP/1.1 503 ") && lab_has(&out, "{\"code\":503,"));
  assert_int_equal(http_server_conns(lab.server), 3);
  lab_close();
}

static void a_file_is_sent_from_its_offset(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(8 << 20);
  char path[] = "/tmp/net_server_XXXXXX";
  lab_open(NULL);
  cleanup_fd int file = mkstemp(path);
  unlink(path);
  for (int i = 0; i < 256; i++)
    assert_int_equal(write(file, lab.block, sizeof(lab.block)), sizeof(lab.block));
  assert_int_equal(pwrite(file, "START", 5, 100), 5);
  for (int chunked = 0; chunked < 2; chunked++) {
    cleanup_fd int fd = lab_dial();
    uint64_t n = 256 * sizeof(lab.block) - 100;
    lab_say(fd, STR(GET("/hold")));
    lab_until(lab.held != NULL);
    http_respond(lab.held, 200, NULL, 0, chunked ? HTTP_CHUNKED : (int64_t)n + 3);
    assert_int_equal(http_send_file(lab.held, dup(file), 100, n), 0);
    assert_int_equal(http_send(lab.held, STR("END")), 0);
    http_end(lab.held);
    buf_clear(&out);
    lab_hear_until(fd, &out, chunked ? "\r\n3\r\nEND\r\n0\r\n\r\n" : "xEND");
    ptrdiff_t at = str_search(buf_str(&out), STR("START"));
    assert_true(at > 0 && out.n - (size_t)at == n + (chunked ? 15 : 3)); /* END and the chunk marks */
    lab_until(lab.held == NULL);
  }
  lab_close();
}

static void a_file_that_shrank_is_an_abort(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(8 << 20);
  char path[] = "/tmp/net_server_XXXXXX";
  lab_open(NULL);
  cleanup_fd int file = mkstemp(path), fd = lab_dial();
  unlink(path);
  assert_int_equal(write(file, "short", 5), 5);
  lab_say(fd, STR(GET("/hold")));
  lab_until(lab.held != NULL);
  http_respond(lab.held, 200, NULL, 0, 100);
  http_send_file(lab.held, steal_fd(&file), 0, 100);
  lab_until(lab.gones == 1);
  assert_int_equal(lab.how, HTTP_ABORTED);
  assert_int_equal(lab_hear_until(fd, &out, NULL), -ECONNRESET);
  lab_close();
}

static void an_answer_can_not_be_split_by_what_a_header_holds(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct http_header evil[] = {{STR("X"), STR("a\r\nSet-Cookie: b")}, {STR("X\r\nY"), STR("a")}, {STR("X:"), STR("a")}};
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR(GET("/hold")));
  lab_until(lab.held != NULL);
  for (size_t i = 0; i < ARRAY_LEN(evil); i++)
    assert_int_equal(http_respond(lab.held, 200, &evil[i], 1, 0), -EINVAL);
  struct http_header framing[] = {{STR("content-length"), STR("99")},
                                  {STR("Transfer-Encoding"), STR("chunked")},
                                  {STR("Connection"), STR("keep-alive")},
                                  {STR("date"), STR("once")}};
  http_reply_with(lab.held, 200, framing, 4, STR("body"));
  lab_hear_until(fd, &out, "body");
  assert_int_equal(lab_count(&out, "ontent-"), 1);
  assert_true(lab_has(&out, "Content-Length: 4\r\n"));
  assert_false(lab_has(&out, "chunked") || lab_has(&out, "onnection"));
  assert_true(lab_has(&out, "date: once\r\n") && !lab_has(&out, "Date:"));
  lab_close();
}

static void freeing_the_server_ends_every_exchange(void **state)
{
  lab_open(NULL);
  cleanup_fd int a = lab_dial(), b = lab_dial(), c = lab_dial();
  lab_say(a, STR(GET("/hold")));
  lab_say(b, STR(GET("/hold")));
  lab_say(c, STR("GET / HT"));
  lab_until(lab.requests == 2);
  lab_close(); /* compares the counts */
  assert_int_equal(lab.gones, 2);
  assert_int_equal(lab.how, HTTP_ABORTED);
}

static void after_it_stops_listening_answers_say_close(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR(GET("/hold")));
  lab_until(lab.held != NULL);
  http_server_stop_listening(lab.server);
  http_reply(lab.held, 200, NULL, STR("last"));
  assert_int_equal(lab_hear_until(fd, &out, NULL), 0);
  assert_true(lab_has(&out, "Connection: close\r\n") && lab_has(&out, "last"));
  lab_close();
}

static void adopted_sockets_are_served_and_told_apart(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  char where[64];
  int pair[2];
  lab_open(NULL);
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  cleanup_fd int fd = pair[0];
  fcntl(fd, F_SETFL, O_NONBLOCK);
  assert_int_equal(http_server_adopt(lab.server, pair[1]), 0);
  lab_say(fd, STR(GET("/hold")));
  lab_until(lab.held != NULL);
  http_x_peer(lab.held, where, sizeof(where));
  assert_string_equal(where, "unix");
  http_reply(lab.held, 200, NULL, STR("hi"));
  lab_hear_until(fd, &out, "hi");
  cleanup_fd int tcp = lab_dial();
  lab_say(tcp, STR(GET("/hold")));
  lab_until(lab.held != NULL);
  http_x_peer(lab.held, where, sizeof(where));
  assert_true(str_starts(str_of(where), STR("127.0.0.1:")));
  lab_close();
}

static void when_descriptors_run_out_accepting_rests_and_goes_on(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct rlimit before, low;
  lab_open(NULL);
  lab_turn();
  cleanup_fd int fd = lab_dial();
  assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
  low = before;
  cleanup_fd int quiet = open("/dev/null", O_WRONLY | O_CLOEXEC);
  low.rlim_cur = (rlim_t)quiet + 1; /* all numbers up to it are in use */
  log_open("test", quiet);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
  lab_say(fd, STR(GET("/patient")));
  int turns = 0;
  for (int64_t until = clock_mono_us() + 60000; clock_mono_us() < until; turns++)
    uv_run(&lab.loop, UV_RUN_ONCE); /* a listener that spins would turn many thousand times */
  assert_int_equal(lab.requests, 0);
  assert_true(turns < 10);
  assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
  lab_hear_until(fd, &out, "/patient");
  log_open("test", 2);
  lab_close();
}

static void time_that_passed_while_we_were_stopped_does_not_count(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  struct http_limits l = http_limits_default;
  l.head_ms = 200;
  lab_open(&l);
  cleanup_fd int fd = lab_dial();
  lab_say(fd, STR("GET /late HTTP/1.1\r\n"));
  lab_run_ms(20);
  usleep(1400 * 1000); /* the loop does not run */
  send(fd, "Host: a\r\n\r\n", 11, MSG_NOSIGNAL);
  lab_hear_until(fd, &out, "/late");
  assert_true(lab_has(&out, "HTTP/1.1 200 "));
  buf_clear(&out);
  lab_say(fd, STR("GET /late"));
  assert_int_equal(lab_hear_until(fd, &out, NULL), 0); /* and the limit still holds */
  assert_true(lab_has(&out, "HTTP/1.1 408 "));
  lab_close();
}

static int free_at; /* 1: in the request, 2: in the body, 3: in gone */

static void free_in_body(struct http_x *x, struct str chunk)
{
  if (free_at == 2)
    http_server_free(steal(&lab.server));
  else
    http_abort(x);
}

static void free_in_gone(struct http_x *x, enum http_end how)
{
  assert_int_equal(http_reply(x, 200, NULL, STR("too late")), -EPIPE);
  http_end(x);
  http_abort(x);
  http_x_resume(x);
  lab_gone(x, how);
  if (free_at == 3)
    http_server_free(steal(&lab.server));
}

static const struct http_x_ops free_ops = {.body = free_in_body, .gone = free_in_gone};

static void free_in_request(struct http_x *x, void *arg)
{
  lab.requests++;
  http_x_handle(x, &free_ops, NULL);
  http_x_resume(x);
  if (free_at == 1)
    http_server_free(steal(&lab.server));
}

static void the_server_may_be_freed_inside_any_callback(void **state)
{
  for (free_at = 1; free_at <= 3; free_at++) {
    lab_open(NULL);
    http_server_free(lab.server);
    lab.server = http_server_new(&lab.loop, NULL, free_in_request, NULL);
    http_server_listen(lab.server, lab_listener(&lab.port));
    cleanup_fd int a = lab_dial(), b = lab_dial();
    lab_say(a, STR("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"));
    lab_say(b, STR("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"));
    lab_until(lab.server == NULL && lab.gones > 0 && lab.gones == lab.requests);
    lab_close();
  }
}

static bool loud;

static void answer_while_draining(struct http_x *x)
{
  lab.drains++;
  if (!loud)
    http_end(x);
  else
    http_abort(x);
}

static const struct http_x_ops drain_ops = {.drain = answer_while_draining, .gone = lab_gone};

static void an_exchange_may_end_inside_drain(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(32 << 20);
  for (int i = 0; i < 2; i++) {
    lab_open(NULL);
    loud = i == 1;
    cleanup_fd int fd = lab_dial();
    lab_say(fd, STR(GET("/hold")));
    lab_until(lab.held != NULL);
    http_x_handle(lab.held, &drain_ops, NULL);
    http_respond(lab.held, 200, NULL, 0, HTTP_CHUNKED);
    while (!http_congested(lab.held))
      http_send(lab.held, str_make(lab.block, sizeof(lab.block)));
    buf_clear(&out);
    ssize_t r = lab_hear_until(fd, &out, loud ? NULL : "0\r\n\r\n");
    assert_true(loud ? r == -ECONNRESET : r > 0);
    lab_until(lab.gones == 1);
    assert_int_equal(lab.how, loud ? HTTP_ABORTED : HTTP_DONE);
    assert_int_equal(lab.drains, 1);
    lab_close();
  }
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_connection_is_kept_for_the_next_request),
      cmocka_unit_test(pipelined_requests_are_answered_in_order_one_at_a_time),
      cmocka_unit_test(an_answer_said_in_one_step_leaves_in_one_piece),
      cmocka_unit_test(what_a_callback_gathers_leaves_when_it_lets_go),
      cmocka_unit_test(an_abort_loses_nothing_that_was_said_before_it),
      cmocka_unit_test(a_chunked_body_split_at_every_byte_arrives_whole),
      cmocka_unit_test(body_bytes_wait_until_the_handler_takes_them),
      cmocka_unit_test(an_unread_body_is_read_away_to_keep_the_connection),
      cmocka_unit_test(a_slow_reader_never_makes_us_buffer_much),
      cmocka_unit_test(an_upload_waits_while_its_echo_is_not_read),
      cmocka_unit_test(an_abort_cuts_without_the_final_chunk),
      cmocka_unit_test(an_answer_shorter_than_promised_is_an_abort),
      cmocka_unit_test(expect_continue_is_answered_when_the_body_is_wanted),
      cmocka_unit_test(a_refused_expectation_closes_the_connection),
      cmocka_unit_test(head_answers_have_a_length_and_no_body),
      cmocka_unit_test(old_clients_get_a_body_that_ends_with_the_connection),
      cmocka_unit_test(each_send_is_one_chunk_and_leaves_at_once),
      cmocka_unit_test(a_tunnel_carries_raw_bytes_and_closes_half_by_half),
      cmocka_unit_test(the_server_may_close_its_half_of_a_tunnel_first),
      cmocka_unit_test(a_peer_that_leaves_is_noticed_in_every_state),
      cmocka_unit_test(a_finished_answer_still_reaches_a_peer_that_closed_its_half),
      cmocka_unit_test(broken_requests_get_a_small_json_answer_and_the_end),
      cmocka_unit_test(a_chunked_body_over_its_limit_is_413),
      cmocka_unit_test(an_endless_upload_to_a_deaf_handler_is_cut),
      cmocka_unit_test(times_run_out_where_they_should),
      cmocka_unit_test(an_untimed_body_may_be_silent_and_the_next_request_may_not),
      cmocka_unit_test(a_busy_connection_is_not_idle),
      cmocka_unit_test(a_peer_that_takes_nothing_is_cut_after_linger_ms),
      cmocka_unit_test(over_the_limit_the_oldest_idle_connection_makes_room),
      cmocka_unit_test(a_file_is_sent_from_its_offset),
      cmocka_unit_test(a_file_that_shrank_is_an_abort),
      cmocka_unit_test(an_answer_can_not_be_split_by_what_a_header_holds),
      cmocka_unit_test(freeing_the_server_ends_every_exchange),
      cmocka_unit_test(after_it_stops_listening_answers_say_close),
      cmocka_unit_test(adopted_sockets_are_served_and_told_apart),
      cmocka_unit_test(when_descriptors_run_out_accepting_rests_and_goes_on),
      cmocka_unit_test(time_that_passed_while_we_were_stopped_does_not_count),
      cmocka_unit_test(the_server_may_be_freed_inside_any_callback),
      cmocka_unit_test(an_exchange_may_end_inside_drain),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
