/* SPDX-License-Identifier: Apache-2.0 */
/* The HTTP client: against our server, and against a scripted raw peer that may do anything. */
#include "net_lab.h"

struct seen {
  int heads, ends, fails, drains, losts, code, status;
  bool reusable_at_end, free_at_head, free_at_body, pause_at_head, pause_at_body, again;
  struct buf body;
  char header[64];
};

static struct seen seen;

static void on_head(struct http_call *c, const struct http_head *head)
{
  seen.heads++;
  seen.status = head->status;
  str_copyz(http_header(head, "X-Mark"), seen.header, sizeof(seen.header));
  if (seen.pause_at_head)
    http_call_pause(c);
  if (seen.free_at_head)
    http_call_free(c);
}

static void on_body(struct http_call *c, struct str chunk)
{
  assert_true(chunk.n > 0);
  buf_adds(&seen.body, chunk);
  if (seen.pause_at_body)
    http_call_pause(c);
  if (seen.free_at_body)
    http_call_free(c);
}

static void on_end(struct http_call *c)
{
  seen.ends++;
  seen.reusable_at_end = http_call_reusable(c);
  if (seen.again) {
    seen.again = false;
    assert_int_equal(http_call_start(c, STR("GET"), STR("/again"), NULL, 0, 0), 0);
  }
}

static void on_drain(struct http_call *c)
{
  seen.drains++;
}

static void on_fail(struct http_call *c, int code, const char *why)
{
  assert_true(why && *why);
  seen.fails++;
  seen.code = code;
}

static void on_lost(struct http_call *c, void *arg)
{
  seen.losts++;
}

static const struct http_call_ops ops = {on_head, on_body, on_end, on_drain, on_fail, NULL, NULL};

static void see_nothing(void)
{
  buf_free(&seen.body);
  memset(&seen, 0, sizeof(seen));
  buf_init(&seen.body, 64 << 20);
}

static struct http_call *call_fd(int fd, const struct http_limits *limits)
{
  struct http_call *c = http_call_new(&lab.loop, fd, limits);
  assert_non_null(c);
  http_call_handle(c, &ops, NULL);
  http_call_lost(c, on_lost, NULL);
  return c;
}

/* A call whose other end is *peer. */
static struct http_call *call_pair(int *peer)
{
  int pair[2];
  see_nothing();
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  *peer = pair[0];
  fcntl(*peer, F_SETFL, O_NONBLOCK);
  return call_fd(pair[1], NULL);
}

static void start(struct http_call *c, const char *method, const char *target)
{
  assert_int_equal(http_call_start(c, str_of(method), str_of(target), NULL, 0, 0), 0);
}

static void one_connection_carries_many_calls(void **state)
{
  lab_open(NULL);
  see_nothing();
  struct http_call *c = call_fd(lab_dial(), NULL);
  for (int i = 1; i <= 50; i++) {
    start(c, "GET", "/n");
    assert_int_equal(http_call_start(c, STR("GET"), STR("/n"), NULL, 0, 0), -EBUSY);
    lab_until(seen.ends == i);
    assert_true(seen.reusable_at_end);
  }
  assert_int_equal(seen.body.n, 100);
  assert_int_equal(http_server_conns(lab.server), 1);
  seen.again = true;
  start(c, "GET", "/n");
  lab_until(seen.ends == 52); /* begun from inside `end` */
  http_call_free(c);
  lab_close();
}

static void bodies_go_both_ways_in_pieces(void **state)
{
  lab_open(NULL);
  for (int chunked = 0; chunked < 2; chunked++) {
    see_nothing();
    struct http_call *c = call_fd(lab_dial(), NULL);
    size_t total = 8 << 20, sent = 0;
    assert_int_equal(http_call_start(c, STR("POST"), STR("/echo"), NULL, 0, chunked ? HTTP_CHUNKED : (int64_t)total),
                     0);
    while (sent < total) {
      assert_int_equal(http_call_send(c, str_make(lab.block, sizeof(lab.block))), 0);
      sent += sizeof(lab.block);
      lab_until(!http_call_congested(c));
    }
    http_call_end(c);
    lab_until(seen.ends == 1);
    assert_int_equal(seen.body.n, total);
    assert_true(http_call_reusable(c));
    http_call_free(c);
  }
  lab_close();
}

static void a_call_knows_when_the_peer_takes_no_more(void **state)
{
  int peer;
  lab_open(NULL);
  struct http_call *c = call_pair(&peer);
  http_call_start(c, STR("POST"), STR("/x"), NULL, 0, HTTP_CHUNKED);
  size_t sent = 0;
  while (!http_call_congested(c) && sent < (64u << 20)) {
    assert_int_equal(http_call_send(c, str_make(lab.block, sizeof(lab.block))), 0);
    sent += sizeof(lab.block);
  }
  assert_true(sent < (2u << 20));
  assert_int_equal(seen.drains, 0);
  cleanup_buf struct buf got = BUF_INIT(16 << 20);
  lab_until((lab_hear(peer, &got), seen.drains == 1));
  assert_false(http_call_congested(c));
  http_call_free(c);
  close(peer);
  lab_close();
}

static void a_paused_answer_waits_in_the_socket(void **state)
{
  lab_open(NULL);
  see_nothing();
  seen.pause_at_body = true;
  lab.feed_max = 32 << 20;
  struct http_call *c = call_fd(lab_dial(), NULL);
  start(c, "GET", "/stream");
  lab_until(seen.body.n > 0);
  size_t had = seen.body.n;
  lab_run_ms(50);
  assert_int_equal(seen.body.n, had);
  assert_true(lab.fed < lab.feed_max); /* the server is held back too */
  seen.pause_at_body = false;
  http_call_resume(c);
  assert_int_equal(seen.body.n, had); /* never from inside the call */
  lab_until(seen.ends == 1);
  assert_int_equal(seen.body.n, lab.feed_max);
  http_call_free(c);
  lab_close();
}

/* What the scripted peer says, and what becomes of the call. */
static void play(struct str answer, bool then_close, const char *method)
{
  int peer;
  struct http_call *c = call_pair(&peer);
  cleanup_buf struct buf ask = BUF_INIT(1 << 16);
  start(c, method, "/x");
  lab_hear_until(peer, &ask, "\r\n\r\n");
  for (size_t i = 0; i < answer.n; i++) {
    lab_say(peer, str_sub(answer, i, 1));
    lab_turn();
  }
  if (then_close)
    close(steal_fd(&peer));
  lab_until(seen.ends + seen.fails == 1);
  http_call_free(c);
  if (peer >= 0)
    close(peer);
  lab_turn();
}

static void answers_of_every_form_are_read(void **state)
{
  lab_open(NULL);
  play(STR("HTTP/1.1 200 OK\r\nX-Mark: m\r\nContent-Length: 3\r\n\r\nabc"), false, "GET");
  assert_true(seen.ends == 1 && seen.reusable_at_end && str_is(buf_str(&seen.body), "abc"));
  assert_string_equal(seen.header, "m");
  play(STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"), false, "GET");
  assert_true(seen.ends == 1 && seen.reusable_at_end && str_is(buf_str(&seen.body), "abc"));
  play(STR("HTTP/1.1 200 OK\r\n\r\nuntil the end"), true, "GET");
  assert_true(seen.ends == 1 && !seen.reusable_at_end && str_is(buf_str(&seen.body), "until the end"));
  play(STR("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nX: y\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"),
       false, "GET");
  assert_true(seen.heads == 1 && seen.status == 204 && seen.reusable_at_end);
  play(STR("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"), false, "HEAD");
  assert_true(seen.ends == 1 && seen.body.n == 0 && seen.reusable_at_end);
  play(STR("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\nx"), false, "GET");
  assert_true(seen.ends == 1 && !seen.reusable_at_end);
  play(STR("HTTP/1.0 200 OK\r\nContent-Length: 1\r\n\r\nx"), false, "GET");
  assert_true(seen.ends == 1 && !seen.reusable_at_end);
  lab_close();
}

static void broken_answers_fail_and_tell_how(void **state)
{
  static const struct {
    struct str answer;
    bool then_close;
    int code;
  } cases[] = {
      {STR(""), true, -ECONNRESET},
      {STR("HTTP/1.1 200"), true, -EPROTO},
      {STR("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nab"), true, -EPROTO},
      {STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"), true, -EPROTO},
      {STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nabcde\r\n"), true, -EPROTO},
      {STR("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz"), false, -EPROTO},
      {STR("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"), false, -EPROTO},
      {STR("SSH-2.0-x\r\n"), false, -EPROTO},
  };
  lab_open(NULL);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    play(cases[i].answer, cases[i].then_close, "GET");
    assert_int_equal(seen.fails, 1);
    assert_int_equal(seen.ends, 0);
    assert_int_equal(seen.code, cases[i].code);
  }
  lab_close();
}

static void stray_bytes_and_a_lost_peer_forbid_reuse(void **state)
{
  int peer;
  lab_open(NULL);
  struct http_call *c = call_pair(&peer);
  start(c, "GET", "/");
  lab_say(peer, STR("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 200 OK\r\n\r\n"));
  lab_until(seen.ends == 1);
  assert_false(seen.reusable_at_end);
  lab_until(seen.losts == 1);
  http_call_free(c);
  close(peer);

  c = call_pair(&peer);
  start(c, "GET", "/");
  lab_say(peer, STR("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx"));
  lab_until(seen.ends == 1);
  assert_true(seen.reusable_at_end);
  close(peer);
  lab_until(seen.losts == 1);
  assert_false(http_call_reusable(c));
  assert_int_equal(http_call_start(c, STR("GET"), STR("/"), NULL, 0, 0), -EPIPE);
  assert_int_equal(seen.fails, 0);
  http_call_free(c);
  lab_close();
}

static void an_early_answer_is_heard_though_the_upload_breaks(void **state)
{
  int peer;
  lab_open(NULL);
  struct http_call *c = call_pair(&peer);
  assert_int_equal(http_call_start(c, STR("POST"), STR("/x"), NULL, 0, 64 << 20), 0);
  lab_say(peer, STR("HTTP/1.1 413 Content Too Large\r\nContent-Length: 2\r\n\r\nno"));
  close(peer); /* unread bytes are waiting there */
  for (int i = 0; i < 100; i++)
    http_call_send(c, str_make(lab.block, sizeof(lab.block)));
  lab_until(seen.ends == 1);
  assert_int_equal(seen.status, 413);
  assert_int_equal(seen.fails, 0);
  assert_false(seen.reusable_at_end);
  http_call_free(c);
  lab_close();
}

static void a_call_may_be_freed_inside_any_callback(void **state)
{
  lab_open(NULL);
  for (int at = 0; at < 2; at++) {
    see_nothing();
    seen.free_at_head = at == 0;
    seen.free_at_body = at == 1;
    start(call_fd(lab_dial(), NULL), "GET", "/some-body");
    lab_until(seen.heads == 1 && (at == 0 || seen.body.n > 0));
    lab_run_ms(5);
    assert_int_equal(seen.ends + seen.fails, 0);
  }
  lab_close();
}

static void a_refused_connection_fails_with_its_own_code(void **state)
{
  lab_open(NULL);
  see_nothing();
  int port;
  close(lab_listener(&port));
  struct sockaddr_in a = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  assert_true(connect(fd, (struct sockaddr *)&a, sizeof(a)) < 0);
  struct http_call *c = call_fd(fd, NULL);
  http_call_start(c, STR("GET"), STR("/"), NULL, 0, 0);
  lab_until(seen.fails + seen.losts == 1);
  assert_int_equal(seen.fails, 1);
  assert_int_equal(seen.code, -ECONNREFUSED);
  http_call_free(c);
  lab_close();
}

static void a_connecting_socket_sends_once_it_is_connected(void **state)
{
  lab_open(NULL);
  see_nothing();
  struct sockaddr_in a = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)lab.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  connect(fd, (struct sockaddr *)&a, sizeof(a));
  struct http_call *c = call_fd(fd, NULL);
  start(c, "GET", "/soon");
  lab_until(seen.ends == 1);
  assert_string_equal(buf_z(&seen.body), "/soon");
  http_call_free(c);
  lab_close();
}

static void a_tunnel_passes_through_both_ends(void **state)
{
  struct http_header up[] = {{STR("Connection"), STR("Upgrade")}, {STR("Upgrade"), STR("echo")}};
  lab_open(NULL);
  see_nothing();
  struct http_call *c = call_fd(lab_dial(), NULL);
  assert_int_equal(http_call_start(c, STR("GET"), STR("/tunnel"), up, 2, 0), 0);
  lab_until(seen.heads == 1);
  assert_int_equal(seen.status, 101);
  for (int i = 0; i < 3; i++)
    assert_int_equal(http_call_send(c, STR("ping")), 0);
  lab_until(seen.body.n == 12);
  assert_string_equal(buf_z(&seen.body), "pingpingping");
  http_call_end(c);
  lab_until(seen.ends == 1 && lab.gones == 1);
  assert_int_equal(lab.how, HTTP_DONE);
  assert_false(http_call_reusable(c));
  http_call_free(c);
  lab_close();
}

static void requests_are_framed_by_their_length(void **state)
{
  static const struct {
    const char *method;
    int64_t length;
    const char *has, *lacks;
  } cases[] = {
      {"GET", 0, "Host: localhost\r\n", "Content-Length"},
      {"POST", 0, "Content-Length: 0\r\n", "Transfer-Encoding"},
      {"POST", 5, "Content-Length: 5\r\n", "Transfer-Encoding"},
      {"POST", HTTP_CHUNKED, "Transfer-Encoding: chunked\r\n", "Content-Length"},
  };
  lab_open(NULL);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    int peer;
    cleanup_buf struct buf ask = BUF_INIT(1 << 16);
    struct http_call *c = call_pair(&peer);
    http_call_start(c, str_of(cases[i].method), STR("/x"), NULL, 0, cases[i].length);
    lab_hear_until(peer, &ask, "\r\n\r\n");
    assert_true(lab_has(&ask, cases[i].has));
    assert_false(lab_has(&ask, cases[i].lacks));
    http_call_free(c);
    close(peer);
  }
  int peer;
  struct http_call *c = call_pair(&peer);
  struct http_header evil = {STR("X"), STR("a\nb")};
  assert_int_equal(http_call_start(c, STR("GET"), STR("/a b"), NULL, 0, 0), -EINVAL);
  assert_int_equal(http_call_start(c, STR("G\r\nT"), STR("/"), NULL, 0, 0), -EINVAL);
  assert_int_equal(http_call_start(c, STR("GET"), STR("/"), &evil, 1, 0), -EINVAL);
  http_call_start(c, STR("PUT"), STR("/"), NULL, 0, 10);
  assert_int_equal(http_call_send(c, STR("12345678901")), -EMSGSIZE);
  http_call_send(c, STR("1234"));
  http_call_end(c); /* short of its promise */
  assert_int_equal(seen.fails, 0);
  lab_until(seen.fails == 1);
  http_call_free(c);
  close(peer);
  lab_close();
}

static void a_head_that_stops_midway_times_out(void **state)
{
  struct http_limits l = http_limits_default;
  int pair[2];
  l.head_ms = 60;
  lab_open(NULL);
  see_nothing();
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  struct http_call *c = call_fd(pair[1], &l);
  start(c, "GET", "/");
  lab_run_ms(150);
  assert_int_equal(seen.fails, 0); /* an answer may be long in coming */
  lab_say(pair[0], STR("HTTP/1.1 2"));
  lab_until(seen.fails == 1);
  assert_int_equal(seen.code, -ETIMEDOUT);
  http_call_free(c);
  close(pair[0]);
  lab_close();
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_connection_carries_many_calls),
      cmocka_unit_test(bodies_go_both_ways_in_pieces),
      cmocka_unit_test(a_call_knows_when_the_peer_takes_no_more),
      cmocka_unit_test(a_paused_answer_waits_in_the_socket),
      cmocka_unit_test(answers_of_every_form_are_read),
      cmocka_unit_test(broken_answers_fail_and_tell_how),
      cmocka_unit_test(stray_bytes_and_a_lost_peer_forbid_reuse),
      cmocka_unit_test(an_early_answer_is_heard_though_the_upload_breaks),
      cmocka_unit_test(a_call_may_be_freed_inside_any_callback),
      cmocka_unit_test(a_refused_connection_fails_with_its_own_code),
      cmocka_unit_test(a_connecting_socket_sends_once_it_is_connected),
      cmocka_unit_test(a_tunnel_passes_through_both_ends),
      cmocka_unit_test(requests_are_framed_by_their_length),
      cmocka_unit_test(a_head_that_stops_midway_times_out),
  };
  int rc = cmocka_run_group_tests(tests, NULL, NULL);
  buf_free(&seen.body);
  return rc;
}
