/* SPDX-License-Identifier: Apache-2.0 */
/* What peers may not do: switch protocols unasked, answer for ever without an answer, take all of a loop's time, hold
 * all of its memory, or fill a server with connections that ask for nothing. */
#include "net_lab.h"

#include "net/exchange.h"

static struct {
  int heads, ends, fails, code, status;
} seen;

static void on_head(struct http_call *c, const struct http_head *head)
{
  seen.heads++;
  seen.status = head->status;
}

static void on_body(struct http_call *c, struct str chunk)
{
}

static void on_end(struct http_call *c)
{
  seen.ends++;
}

static void on_fail(struct http_call *c, int code, const char *why)
{
  seen.fails++;
  seen.code = code;
}

static const struct http_call_ops ops = {on_head, on_body, on_end, on_end, on_fail, NULL, NULL};

/* A call that was sent with these headers and gets this answer. */
static struct http_call *answered(int *peer, const struct http_header *headers, size_t n, int64_t length,
                                  struct str answer)
{
  int pair[2];
  memset(&seen, 0, sizeof(seen));
  assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
  *peer = pair[0];
  fcntl(*peer, F_SETFL, O_NONBLOCK);
  struct http_call *c = http_call_new(&lab.loop, pair[1], NULL);
  http_call_handle(c, &ops, NULL);
  assert_int_equal(http_call_start(c, length ? STR("POST") : STR("GET"), STR("/"), headers, n, length), 0);
  lab_say(*peer, answer);
  return c;
}

#define SWITCH(to) "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " to "\r\n\r\n"

static void a_101_is_taken_only_as_it_was_asked_for(void **state)
{
  static const struct {
    const char *connection, *upgrade, *answer;
    int64_t length;
    bool taken;
  } cases[] = {
      {"Upgrade", "websocket", SWITCH("websocket"), 0, true},
      {"keep-alive, upgrade", "a, WebSocket", SWITCH("websocket"), 0, true},
      {NULL, NULL, SWITCH("websocket"), 0, false},
      {NULL, "websocket", SWITCH("websocket"), 0, false},
      {"Upgrade", NULL, SWITCH("websocket"), 0, false},
      {"Upgrade", "websocket", SWITCH("other"), 0, false},
      {"Upgrade", "websocket", SWITCH("websocket, other"), 0, false},
      {"Upgrade", "websocket", "HTTP/1.1 101 Switching Protocols\r\n\r\n", 0, false},
      {"Upgrade", "websocket", SWITCH("websocket"), 5, false},
      {"Upgrade", "h2c", SWITCH("h2c"), 0, false},
      {"Upgrade", "TLS/1.0", SWITCH("TLS/1.0"), 0, false},
      {"Upgrade", "websocket, HTTP/2.0", SWITCH("websocket"), 0, false},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    cleanup_fd int peer = -1;
    struct http_header headers[2];
    size_t n = 0;
    if (cases[i].connection)
      headers[n++] = (struct http_header){STR("Connection"), str_of(cases[i].connection)};
    if (cases[i].upgrade)
      headers[n++] = (struct http_header){STR("Upgrade"), str_of(cases[i].upgrade)};
    lab_open(NULL);
    struct http_call *c = answered(&peer, headers, n, cases[i].length, str_of(cases[i].answer));
    lab_until(seen.heads + seen.fails == 1);
    assert_int_equal(seen.heads, cases[i].taken);
    assert_int_equal(seen.code, cases[i].taken ? 0 : -EPROTO);
    assert_false(http_call_reusable(c));
    http_call_free(c);
    lab_close();
  }
}

static void a_handler_can_not_switch_unasked(void **state)
{
  static const struct {
    struct str ask;
    const char *to;
    int code;
  } cases[] = {
      {STR("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n"), "echo", -EPROTO},
      {STR("GET /hold HTTP/1.1\r\nHost: a\r\nUpgrade: echo\r\n\r\n"), "echo", -EPROTO},
      {STR("GET /hold HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n"), "other", -EPROTO},
      {STR("GET /hold HTTP/1.0\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n"), "echo", -EPROTO},
      {STR("POST /hold HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\nContent-Length: 1\r\n\r\n"),
       "echo", -EALREADY},
      {STR("GET /hold HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n"), "echo", 0},
  };
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    struct http_header to = {STR("Upgrade"), str_of(cases[i].to)};
    lab_open(NULL);
    cleanup_fd int fd = lab_dial();
    lab_say(fd, cases[i].ask);
    lab_until(lab.held != NULL);
    assert_int_equal(http_tunnel(lab.held, 101, &to, 1), cases[i].code);
    lab_close();
  }
}

static void interim_answers_are_counted(void **state)
{
  cleanup_buf struct buf few = BUF_INIT(1 << 20);
  for (int i = 0; i < 16; i++)
    buf_addz(&few, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
  buf_addz(&few, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  cleanup_fd int peer = -1, other = -1;
  lab_open(NULL);
  struct http_call *c = answered(&peer, NULL, 0, 0, buf_str(&few));
  lab_until(seen.ends == 1);
  assert_int_equal(seen.status, 200);
  http_call_free(c);
  cleanup_buf struct buf many = BUF_INIT(1 << 20);
  for (int i = 0; i < 17; i++)
    buf_addz(&many, "HTTP/1.1 100 Continue\r\n\r\n");
  c = answered(&other, NULL, 0, 0, buf_str(&many));
  lab_until(seen.fails == 1);
  assert_int_equal(seen.code, -EPROTO);
  http_call_free(c);
  lab_close();
}

static void bytes_behind_an_answer_end_its_connection(void **state)
{
  static const char *const answers[] = {
      "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok!",
      "HTTP/1.1 204 No Content\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 304 Not Modified\r\nContent-Length: 2\r\n\r\nok",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nHTTP/1.1 200 OK\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n",
  };
  for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
    cleanup_fd int peer = -1;
    lab_open(NULL);
    struct http_call *c = answered(&peer, NULL, 0, 0, str_of(answers[i]));
    lab_until(seen.ends == 1);
    lab_run_ms(20);
    assert_false(http_call_reusable(c));
    assert_int_equal(seen.heads, 1);
    http_call_free(c);
    lab_close();
  }
}

/* ---- time ---- */

static void pipelined_requests_leave_others_their_turn(void **state)
{
  cleanup_buf struct buf asks = BUF_INIT(1 << 20), out = BUF_INIT(16 << 20);
  int most = 0, count = 2000;
  for (int i = 0; i < count; i++)
    buf_addz(&asks, "GET /a HTTP/1.1\r\nHost: a\r\n\r\n");
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  size_t said = 0;
  for (int64_t limit = clock_mono_us() + 20000000; lab.requests < count && clock_mono_us() < limit;) {
    int before = lab.requests;
    ssize_t r = send(fd, asks.p + said, asks.n - said, MSG_NOSIGNAL);
    said += r > 0 ? (size_t)r : 0;
    lab_turn();
    most = MAX(most, lab.requests - before);
    lab_hear(fd, &out);
  }
  assert_int_equal(lab.requests, count);
  lab_until(lab_hear(fd, &out) != 0 && lab_count(&out, "HTTP/1.1 200 OK") == (size_t)count);
  assert_in_range(most, 1, 300); /* an event and two turns of 64 each */
  lab_close();
}

static void small_chunks_leave_others_their_turn(void **state)
{
  cleanup_buf struct buf ask = BUF_INIT(4 << 20), out = BUF_INIT(1 << 20);
  size_t most = 0, count = 100000, said = 0;
  buf_addz(&ask, "POST /collect HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n");
  for (size_t i = 0; i < count; i++)
    buf_addz(&ask, "1\r\nx\r\n");
  buf_addz(&ask, "0\r\n\r\n");
  lab_open(NULL);
  cleanup_fd int fd = lab_dial();
  for (int64_t limit = clock_mono_us() + 20000000; !lab.body_ends && clock_mono_us() < limit;) {
    size_t before = lab.body_bytes;
    ssize_t r = send(fd, ask.p + said, ask.n - said, MSG_NOSIGNAL);
    said += r > 0 ? (size_t)r : 0;
    lab_turn();
    most = MAX(most, lab.body_bytes - before);
  }
  assert_int_equal(lab.body_bytes, count);
  lab_hear_until(fd, &out, "100000");
  assert_in_range(most, 1, 8000);
  lab_close();
}

/* ---- room ---- */

static void an_address_has_so_many_connections_before_one_is_accepted(void **state)
{
  struct http_limits limits = http_limits_default;
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  limits.address_max = 3;
  lab_open(&limits);
  int fds[3];
  for (int i = 0; i < 3; i++)
    fds[i] = lab_dial();
  lab_until(http_server_conns(lab.server) == 3);
  cleanup_fd int over = lab_dial();
  lab_hear_until(over, &out, NULL);
  assert_true(lab_has(&out, "HTTP/1.1 503 "));
  lab_say(fds[0], STR("GET /hold HTTP/1.1\r\nHost: a\r\n\r\n"));
  lab_until(lab.held != NULL);
  http_x_accepted(lab.held);
  http_x_accepted(lab.held); /* counts once */
  __attribute__((unused)) cleanup_fd int next = lab_dial();
  cleanup_fd int last = lab_dial();
  buf_clear(&out);
  lab_hear_until(last, &out, NULL);
  assert_true(lab_has(&out, "HTTP/1.1 503 "));
  assert_int_equal(http_server_conns(lab.server), 4);
  close(fds[1]); /* one that leaves makes room */
  lab_until(http_server_conns(lab.server) == 3);
  __attribute__((unused)) cleanup_fd int again = lab_dial();
  lab_until(http_server_conns(lab.server) == 4);
  close(fds[0]);
  close(fds[2]);
  lab_close();
}

/* Eight clients ask for more than they read, each of which makes about 384 KiB wait. */
static void crowd_open(int fds[8], uint64_t held_max)
{
  struct http_limits limits = http_limits_default;
  limits.held_max = held_max;
  lab_open(&limits);
  lab.feed_max = (size_t)1 << 40;
  for (int i = 0; i < 8; i++) {
    fds[i] = lab_dial();
    lab_say(fds[i], STR("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"));
  }
  lab_until(lab.requests == 8);
}

static void crowd_close(const int fds[8])
{
  for (int i = 0; i < 8; i++)
    close(fds[i]);
  lab_close();
}

static void those_who_stand_still_are_cut_when_too_much_waits(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(64 << 20);
  int fds[8];
  crowd_open(fds, 2 << 20);
  for (int64_t limit = clock_mono_us() + 15000000; clock_mono_us() < limit && lab.gones < 2; usleep(1000)) {
    lab_turn();
    lab_hear(fds[7], &out); /* reads, and stays */
    buf_clear(&out);
  }
  assert_in_range(lab.gones, 2, 5);
  assert_int_equal(lab.how, HTTP_ABORTED);
  lab_until((lab_hear(fds[7], &out), out.n > 0));
  crowd_close(fds);
}

static void when_twice_too_much_waits_nobody_is_waited_for(void **state)
{
  int fds[8];
  int64_t began = clock_mono_us();
  crowd_open(fds, 512 << 10);
  lab_until(lab.gones >= 3);
  assert_true(clock_mono_us() - began < 2900000); /* nobody stood still for long */
  crowd_close(fds);
}

static void what_waits_is_counted_to_the_byte(void **state)
{
  lab_open(NULL);
  struct net *net = net_of(&lab.loop);
  lab.feed_max = 4 << 20;
  cleanup_buf struct buf out = BUF_INIT(16 << 20);
  cleanup_fd int fd = lab_dial(), cut = lab_dial();
  lab_say(fd, STR("GET /stream HTTP/1.1\r\nHost: a\r\n\r\n"));
  lab_until(net->held > 0);
  lab_hear_until(fd, &out, "0\r\n\r\n");
  lab_until(net->held == 0);
  lab.fed = 0;
  lab.feed_max = 64 << 20;
  lab_say(cut, STR("GET /stream HTTP/1.1\r\nHost: a\r\n\r\nGET /half"));
  lab_until(net->held > 0);
  close(steal_fd(&cut));
  lab_until(lab.gones == 2);
  assert_int_equal(net->held, 0);
  net_unref(net);
  lab_close();
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_101_is_taken_only_as_it_was_asked_for),
      cmocka_unit_test(a_handler_can_not_switch_unasked),
      cmocka_unit_test(interim_answers_are_counted),
      cmocka_unit_test(bytes_behind_an_answer_end_its_connection),
      cmocka_unit_test(pipelined_requests_leave_others_their_turn),
      cmocka_unit_test(small_chunks_leave_others_their_turn),
      cmocka_unit_test(an_address_has_so_many_connections_before_one_is_accepted),
      cmocka_unit_test(those_who_stand_still_are_cut_when_too_much_waits),
      cmocka_unit_test(when_twice_too_much_waits_nobody_is_waited_for),
      cmocka_unit_test(what_waits_is_counted_to_the_byte),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
