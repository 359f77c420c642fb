/* SPDX-License-Identifier: Apache-2.0 */
/* Bodies that a thread takes from a socket that was lent to it: every byte arrives, and a client that leaves midway is
 * noticed by the loop. */
#include "net_lab.h"

#include "net/body_carry.h"

#define TOTAL ((size_t)6 << 20)

static struct {
  struct http_server *server;
  struct http_x *x;
  uv_work_t work;
  struct body_carry carry;
  bool busy;
  size_t taken, shown;
  int slices, gones, result;
  enum http_end how;
} lender;

static int take(void *arg, int pipe, size_t n)
{
  char bytes[65536];
  while (n) {
    ssize_t k = read(pipe, bytes, MIN(n, sizeof(bytes)));
    if (k <= 0)
      return -EIO;
    n -= (size_t)k;
  }
  return 0;
}

static void act(uv_work_t *w)
{
  lender.result = body_carry(&lender.carry);
}

static void acted(uv_work_t *w, int status)
{
  lender.busy = false;
  lender.slices++;
  close(lender.carry.sock);
  if (!lender.x)
    return;
  http_x_lent(lender.x, lender.carry.took);
  http_x_resume(lender.x);
}

static enum http_lend x_lend(struct http_x *x, int fd, uint64_t most)
{
  lender.carry.sock = fd;
  lender.carry.most = most;
  lender.carry.take = take;
  lender.busy = true;
  http_x_pause(x);
  uv_queue_work(&lab.loop, &lender.work, act, acted);
  return HTTP_LEND_TAKEN;
}

static void x_body(struct http_x *x, struct str chunk)
{
  lender.shown += chunk.n;
}

static void x_passed(struct http_x *x, size_t n)
{
  lender.taken += n;
}

static void x_body_end(struct http_x *x)
{
  http_reply(x, 200, NULL, STR("stored"));
}

static void x_gone(struct http_x *x, enum http_end how)
{
  lender.x = NULL;
  lender.gones++;
  lender.how = how;
}

static const struct http_x_ops ops = {
    .body = x_body, .body_end = x_body_end, .gone = x_gone, .passed = x_passed, .lend = x_lend};

static void on_request(struct http_x *x, void *arg)
{
  lender.x = x;
  http_x_handle(x, &ops, NULL);
  http_x_body_max(x, UINT64_MAX);
  http_x_resume(x);
}

static int begin(void)
{
  lab_open(NULL);
  memset(&lender, 0, sizeof(lender));
  lender.server = http_server_new(&lab.loop, NULL, on_request, NULL);
  assert_int_equal(http_server_listen(lender.server, lab_listener(&lab.port)), 0);
  int fd = lab_dial();
  char head[128];
  int n = snprintf(head, sizeof(head), "PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: %zu\r\n\r\n", TOTAL);
  lab_say(fd, str_make(head, (size_t)n));
  return fd;
}

static void say(int fd, size_t n)
{
  char *bytes = xcalloc(1, n);
  lab_say(fd, str_make(bytes, n));
  free(bytes);
}

static void end(void)
{
  lab_until(!lender.busy);
  body_carry_close(&lender.carry);
  http_server_free(lender.server);
  lab_close();
}

static void a_thread_takes_the_whole_body(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  int fd = begin();
  say(fd, TOTAL);
  lab_hear_until(fd, &out, "stored");
  assert_int_equal(lender.taken + lender.shown, TOTAL);
  assert_true(lender.taken > 0);
  assert_int_equal(lender.result, 0);
  close(fd);
  end();
}

/* Nothing is in the socket then, however often a thread looks. */
static void a_client_that_leaves_midway_is_noticed(void **state)
{
  for (int cut = 0; cut < 2; cut++) {
    int fd = begin();
    say(fd, TOTAL / 2);
    lab_until(lender.taken + lender.shown == TOTAL / 2);
    if (cut)
      setsockopt(fd, SOL_SOCKET, SO_LINGER, &(struct linger){1, 0}, sizeof(struct linger));
    close(fd);
    lab_until(lender.gones == 1);
    assert_true(lender.how == HTTP_PEER_GONE || lender.how == HTTP_PEER_CUT);
    end();
  }
}

/* One byte now and then: the threads are asked, and the body arrives. */
static void a_slow_sender_is_served_by_turns(void **state)
{
  cleanup_buf struct buf out = BUF_INIT(1 << 20);
  int fd = begin();
  say(fd, TOTAL - 3);
  for (size_t left = 3; left; left--) {
    lab_until(lender.taken + lender.shown == TOTAL - left);
    say(fd, 1);
  }
  lab_hear_until(fd, &out, "stored");
  close(fd);
  end();
}

int main(void)
{
  const struct CMUnitTest tests[] = {cmocka_unit_test(a_thread_takes_the_whole_body),
                                     cmocka_unit_test(a_client_that_leaves_midway_is_noticed),
                                     cmocka_unit_test(a_slow_sender_is_served_by_turns)};
  return cmocka_run_group_tests_name("net: sockets that are lent", tests, NULL, NULL);
}
