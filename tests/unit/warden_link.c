/* SPDX-License-Identifier: Apache-2.0 */
/* warden_link.c - packets to a peer that reads slowly: none is lost without its sender being told, and none is in
 * another's way. */
#include "unit.h"

#include "wire/ipc.h"
#include "wire/wire.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>

struct lab {
  uv_loop_t loop;
  struct ipc *ipc;
  int far;
  size_t came, drained;
  bool closed;
};

static void lab_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct lab *lab = arg;
  lab->came++;
  if (fd >= 0)
    close(fd);
}

static void lab_closed(struct ipc *l, void *arg)
{
  ((struct lab *)arg)->closed = true;
}

static void lab_drain(struct ipc *l, void *arg)
{
  ((struct lab *)arg)->drained++;
}

static const struct ipc_ops ops = {lab_packet, lab_closed};

static void lab_open(struct lab *lab)
{
  int pair[2];
  *lab = (struct lab){0};
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  uv_loop_init(&lab->loop);
  lab->ipc = ipc_new(&lab->loop, pair[0], &ops, lab);
  lab->far = pair[1];
  fd_nonblock(lab->far);
}

static void lab_close(struct lab *lab)
{
  ipc_free(lab->ipc);
  close(lab->far);
  uv_run(&lab->loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&lab->loop), 0);
}

static int send_numbered(struct lab *lab, uint32_t number, size_t size, bool bulk)
{
  char *p = calloc(1, size);
  memcpy(p, &number, sizeof(number));
  int r = bulk ? ipc_send_bulk(lab->ipc, (struct str){p, size}) : ipc_send(lab->ipc, (struct str){p, size}, -1);
  free(p);
  return r;
}

/* -1: nothing there. */
static int64_t read_number(struct lab *lab)
{
  static char p[WIRE_MAX];
  uint32_t number;
  ssize_t k = recv(lab->far, p, sizeof(p), 0);
  if (k < (ssize_t)sizeof(number))
    return -1;
  memcpy(&number, p, sizeof(number));
  return number;
}

static void a_slow_reader_gets_every_packet_in_order(void **state)
{
  struct lab lab;
  lab_open(&lab);
  for (uint32_t i = 0; i < 300; i++)
    assert_int_equal(send_numbered(&lab, i, 100000, i % 2), 0);
  assert_true(ipc_queued(lab.ipc) > 0);
  uint32_t next = 0;
  for (int turns = 0; next < 300 && turns < 10000; turns++) {
    for (int64_t n; (n = read_number(&lab)) >= 0; next++)
      assert_int_equal(n, next);
    uv_run(&lab.loop, UV_RUN_NOWAIT);
  }
  assert_int_equal(next, 300);
  assert_int_equal(ipc_queued(lab.ipc), 0);
  lab_close(&lab);
}

/* Who sends too much hears of it; the reply to somebody else still fits. */
static void an_overflow_is_an_error_of_its_own_sender(void **state)
{
  struct lab lab;
  lab_open(&lab);
  uint32_t sent = 0;
  int r = 0;
  while (!(r = send_numbered(&lab, sent, 150000, true)))
    sent++;
  assert_int_equal(r, -ENOBUFS);
  assert_true(ipc_queued(lab.ipc) <= LINK_BULK_MAX);
  assert_int_equal(send_numbered(&lab, 1000000, 1000, false), 0);
  uint32_t next = 0;
  bool reply = false;
  for (int turns = 0; !reply && turns < 100000; turns++) {
    for (int64_t n; (n = read_number(&lab)) >= 0;) {
      reply = n == 1000000;
      assert_true(reply || n == next++);
    }
    uv_run(&lab.loop, UV_RUN_NOWAIT);
  }
  assert_true(reply);
  assert_int_equal(next, sent);
  lab_close(&lab);
}

static void the_bound_of_the_queue_holds_for_replies_too(void **state)
{
  struct lab lab;
  lab_open(&lab);
  int r = 0;
  for (uint32_t i = 0; !r && i < 2000; i++)
    r = send_numbered(&lab, i, 150000, false);
  assert_int_equal(r, -ENOBUFS);
  assert_true(ipc_queued(lab.ipc) <= LINK_QUEUE_MAX);
  lab_close(&lab);
}

static void a_paced_link_reads_nothing_from_who_does_not_read(void **state)
{
  struct lab lab;
  lab_open(&lab);
  ipc_pace(lab.ipc);
  ipc_on_drain(lab.ipc, lab_drain);
  for (uint32_t i = 0; !ipc_busy(lab.ipc); i++)
    assert_int_equal(send_numbered(&lab, i, 150000, false), 0);
  for (int i = 0; i < 10; i++)
    assert_int_equal(send(lab.far, "question", 8, 0), 8);
  for (int i = 0; i < 20; i++)
    uv_run(&lab.loop, UV_RUN_NOWAIT);
  assert_int_equal(lab.came, 0);
  for (int turns = 0; lab.came < 10 && turns < 10000; turns++) {
    while (read_number(&lab) >= 0)
      ;
    uv_run(&lab.loop, UV_RUN_NOWAIT);
  }
  assert_int_equal(lab.came, 10);
  assert_int_equal(lab.drained, 1);
  lab_close(&lab);
}

static void a_paced_link_notices_that_its_peer_left(void **state)
{
  struct lab lab;
  lab_open(&lab);
  ipc_pace(lab.ipc);
  for (uint32_t i = 0; !ipc_busy(lab.ipc); i++)
    assert_int_equal(send_numbered(&lab, i, 150000, false), 0);
  close(lab.far);
  for (int turns = 0; !lab.closed && turns < 1000; turns++)
    uv_run(&lab.loop, UV_RUN_NOWAIT);
  assert_true(lab.closed);
  lab.far = open("/dev/null", O_RDONLY | O_CLOEXEC);
  lab_close(&lab);
}

static void a_waiting_descriptor_arrives(void **state)
{
  struct lab lab;
  lab_open(&lab);
  while (!ipc_queued(lab.ipc))
    assert_int_equal(send_numbered(&lab, 1, 150000, false), 0);
  int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
  assert_int_equal(ipc_send(lab.ipc, STR("listener"), fd), 0);
  close(fd);
  int got = -1;
  for (int turns = 0; got < 0 && turns < 10000; turns++) {
    static char p[WIRE_MAX];
    size_t n = 1;
    ssize_t k = fd_recv(lab.far, p, sizeof(p), &got, &n, MSG_DONTWAIT);
    if (k == -EAGAIN)
      uv_run(&lab.loop, UV_RUN_NOWAIT);
  }
  assert_true(got >= 0);
  assert_true(fcntl(got, F_GETFD) >= 0);
  close(got);
  lab_close(&lab);
}

/* A TCP connection whose close waits: its peer takes nothing, and it lingers. */
static int lingering(int *peer)
{
  struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t len = sizeof(at);
  static char bytes[65536];
  int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
      client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)) | listen(listener, 1), 0);
  assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
  assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof(at)), 0);
  *peer = accept(listener, NULL, NULL);
  close(listener);
  while (send(client, bytes, sizeof(bytes), MSG_DONTWAIT) > 0)
    ;
  assert_int_equal(setsockopt(client, SOL_SOCKET, SO_LINGER, &(struct linger){1, 20}, sizeof(struct linger)), 0);
  return client;
}

/* A gate that was taken over sends the warden sockets whose close would stop its loop: one with a packet, more that
 * stay unread. */
static void a_guarded_link_never_waits_for_a_descriptor(void **state)
{
  struct lab lab;
  int peers[3], client, sent = 0;
  lab_open(&lab);
  ipc_guard(lab.ipc);
  for (size_t i = 0; i < ARRAY_LEN(peers); i++) {
    client = lingering(&peers[i]);
    if (fd_send(lab.far, "word", 4, &client, 1, MSG_DONTWAIT) >= 0)
      sent++;
    else /* the kernel refuses it */
      setsockopt(client, SOL_SOCKET, SO_LINGER, &(struct linger){0}, sizeof(struct linger));
    close(client);
  }
  int64_t begun = clock_mono_us();
  for (int turns = 0; !lab.closed && turns < 20; turns++)
    uv_run(&lab.loop, UV_RUN_NOWAIT);
  assert_int_equal(lab.came, 0);
  assert_int_equal(lab.closed, sent > 0);
  lab_close(&lab);
  assert_true(clock_mono_us() - begun < 2000000);
  for (size_t i = 0; i < ARRAY_LEN(peers); i++)
    close(peers[i]);
}

int main(void)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_slow_reader_gets_every_packet_in_order),
      cmocka_unit_test(an_overflow_is_an_error_of_its_own_sender),
      cmocka_unit_test(the_bound_of_the_queue_holds_for_replies_too),
      cmocka_unit_test(a_paced_link_reads_nothing_from_who_does_not_read),
      cmocka_unit_test(a_paced_link_notices_that_its_peer_left),
      cmocka_unit_test(a_waiting_descriptor_arrives),
      cmocka_unit_test(a_guarded_link_never_waits_for_a_descriptor),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
