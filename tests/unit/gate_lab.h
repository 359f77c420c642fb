/* SPDX-License-Identifier: Apache-2.0 */
/* gate_lab.h - a gate on a loop of the test's own: requests come in as bytes of a client, and the test holds the
 * warden's end of the link, so that it decides what the warden replies. */
#ifndef CLOCHE_GATE_LAB_H
#define CLOCHE_GATE_LAB_H

#include "unit.h"

#include "gate/api/api.h"
#include "gate/dispatch.h"
#include "gate/edge/edge.h"
#include "gate/metrics_shm.h"
#include "wire/api_key.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

#define LAB_TEAM "11111111-1111-4111-8111-111111111111"

struct lab {
  struct gate *gate; /* one per test, as long as the loop: its handles stay in it */
  struct gate_config config;
  struct metrics_slot slot;
  int warden; /* the warden's end */
  char key[KEY_TEXT];
  /* what the warden replies to everything but a key */
  int status;
  const char *message, *cause;
  uint64_t retry_s;
  struct buf fields; /* of a reply that is no error: whole fields as wire_put writes them */
  int fd;            /* goes with the reply; -1 = none */
  unsigned requests; /* that came to the warden, keys not counted */
  unsigned last_type;
  struct buf last;    /* the latest of them */
  const char *team;   /* of every key that is looked up */
  bool holds;         /* replies wait for lab_release */
  VEC(uint64_t) held; /* requests that wait so, by their ids */
};

static struct lab lab;
static uv_loop_t lab_loop;

static const struct warden_events lab_events = {edge_recheck, edge_box_held, edge_box_ended, auth_forget};

static void lab_send(struct buf *b)
{
  assert_int_equal(send(lab.warden, b->p, b->n, 0), (ssize_t)b->n);
}

static int lab_setup(void **state)
{
  int pair[2];
  uint8_t hash[SHA256_LEN];
  char mask[64];
  lab = (struct lab){.config = {.lists_max = 4,
                                .log_reads_max = 8,
                                .api_body_max = 65536,
                                .team_connections_max = 100,
                                .box_connections_max = 3},
                     .message = "no reason",
                     .team = LAB_TEAM,
                     .fd = -1,
                     .fields = BUF_INIT(WIRE_MAX),
                     .last = BUF_INIT(WIRE_MAX)};
  static bool begun;
  if (!begun)
    uv_loop_init(&lab_loop);
  begun = true;
  lab.gate = xcalloc(1, sizeof(*lab.gate));
  lab.gate->config = &lab.config;
  lab.gate->loop = &lab_loop;
  lab.gate->metrics_slot = lab.gate->slots = &lab.slot;
  lab.gate->nslots = 1;
  uv_timer_init(&lab_loop, &lab.gate->unsent_timer);
  lab.gate->unsent_timer.data = lab.gate;
  lab.gate->server = http_server_new(&lab_loop, &http_limits_default, dispatch_request, lab.gate);
  key_make(lab.key, hash, mask);
  assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair), 0);
  lab.warden = pair[0];
  warden_attach(lab.gate, pair[1], &lab_events);
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_HELLO, 0, 0);
  wire_putz(&b, W_DOMAIN, "box.test");
  lab_send(&b);
  return 0;
}

static int lab_teardown(void **state)
{
  void *route;
  http_server_free(lab.gate->server);
  for (size_t i = 0; map_next(&lab.gate->routes, &i, NULL, &route); i = 0) {
    cleanup_buf struct buf b = BUF_INIT(1024);
    wire_begin(&b, WIRE_BOX_ENDED, 0, 0);
    wire_putz(&b, W_ID, ((struct route *)route)->id);
    edge_box_ended(lab.gate, buf_str(&b));
  }
  ipc_free(lab.gate->warden);
  for (int i = 0; i < 20; i++)
    uv_run(&lab_loop, UV_RUN_NOWAIT);
  close(lab.warden);
  buf_free(&lab.fields);
  buf_free(&lab.last);
  vec_free(&lab.held);
  return 0;
}

static void lab_warden_replies(struct str packet)
{
  const struct wire_head *h = wire_head(packet);
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX);
  if (h->type == WIRE_AUTH) {
    wire_begin(&b, WIRE_REPLY, h->id, 0);
    wire_putz(&b, W_TEAM, lab.team);
    wire_putz(&b, W_NAME, "lab");
    wire_putz(&b, W_SLUG, "lab");
    wire_put_u64(&b, W_LIMIT_TIMEOUT, 3600);
    lab_send(&b);
    return;
  }
  lab.requests++;
  lab.last_type = h->type;
  buf_clear(&lab.last);
  buf_adds(&lab.last, packet);
  if (lab.holds) {
    vec_push(&lab.held, h->id);
    return;
  }
  wire_begin(&b, WIRE_REPLY, h->id, lab.status);
  if (lab.status && lab.message)
    wire_putz(&b, W_MESSAGE, lab.message);
  if (lab.status && lab.cause)
    wire_putz(&b, W_CAUSE, lab.cause);
  if (lab.retry_s)
    wire_put_u64(&b, W_RETRY, lab.retry_s);
  buf_adds(&b, buf_str(&lab.fields));
  int fd = steal_fd(&lab.fd);
  assert_int_equal(fd_send(lab.warden, b.p, b.n, &fd, fd >= 0 ? 1 : 0, 0), (ssize_t)b.n);
  if (fd >= 0)
    close(fd);
}

/* The oldest request that waits gets an empty reply. */
static inline void lab_release(void)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  assert_true(lab.held.n > 0);
  wire_begin(&b, WIRE_REPLY, lab.held.p[0], 0);
  memmove(lab.held.p, lab.held.p + 1, --lab.held.n * sizeof(*lab.held.p));
  lab_send(&b);
}

/* One turn of everything. */
static void lab_turn(void)
{
  static char packet[WIRE_MAX] __attribute__((aligned(8)));
  uv_run(&lab_loop, UV_RUN_NOWAIT);
  ssize_t n = recv(lab.warden, packet, sizeof(packet), 0);
  if (n > 0)
    lab_warden_replies((struct str){packet, (size_t)n});
}

/* Both ends of a connection over loopback. */
static void lab_pair(int pair[2])
{
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof(a);
  cleanup_fd int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(listener, (struct sockaddr *)&a, n), 0);
  assert_int_equal(listen(listener, 1), 0);
  assert_int_equal(getsockname(listener, (struct sockaddr *)&a, &n), 0);
  pair[0] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(connect(pair[0], (struct sockaddr *)&a, n), 0);
  pair[1] = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  assert_true(pair[1] >= 0);
  assert_int_equal(fcntl(pair[0], F_SETFL, O_NONBLOCK), 0);
}

static int lab_connect(void)
{
  int pair[2];
  lab_pair(pair);
  assert_int_equal(http_server_adopt(lab.gate->server, pair[1]), 0);
  return pair[0];
}

/* Reads one whole answer with a Content-Length, or the end of the connection. Returns its status. */
static int lab_answer(int fd, struct buf *out)
{
  char piece[4096];
  buf_clear(out);
  for (int64_t until = clock_mono_us() + 10000000; clock_mono_us() < until;) {
    lab_turn();
    ssize_t n = recv(fd, piece, sizeof(piece), 0);
    if (n == 0)
      break;
    if (n > 0)
      buf_add(out, piece, (size_t)n);
    ptrdiff_t end = str_search(buf_str(out), STR("\r\n\r\n")), at = str_search(buf_str(out), STR("Content-Length: "));
    uint64_t length = 0;
    if (end > 0 && at > 0 && at < end) {
      struct str number = str_skip(buf_str(out), (size_t)at + 16), rest;
      str_cut(number, '\r', &number, &rest);
      assert_int_equal(str_u64(number, &length), 0);
    }
    if (end > 0 && out->n >= (size_t)end + 4 + length)
      break;
  }
  uint64_t status = 0;
  str_u64(str_sub(buf_str(out), 9, 3), &status);
  return (int)status;
}

static int lab_ask(const char *method, const char *path, const char *headers, struct str body, struct buf *out)
{
  int fd = lab_connect();
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  buf_addf(&b, "%s %s HTTP/1.1\r\nHost: api\r\n%s", method, path, headers ? headers : "");
  if (body.p)
    buf_addf(&b, "Content-Length: %zu\r\n", body.n);
  buf_addz(&b, "\r\n");
  buf_adds(&b, body);
  for (struct str rest = buf_str(&b); rest.n;) {
    ssize_t n = send(fd, rest.p, rest.n, MSG_NOSIGNAL);
    if (n < 0 && errno != EAGAIN)
      break; /* refused before the body ended */
    rest = str_skip(rest, n > 0 ? (size_t)n : 0);
    lab_turn();
  }
  int status = lab_answer(fd, out);
  close(fd);
  lab_turn();
  return status;
}

static inline int lab_keyed(const char *method, const char *path, struct str body, struct buf *out)
{
  char header[128];
  snprintf(header, sizeof(header), "X-API-Key: %s\r\n", lab.key);
  return lab_ask(method, path, header, body, out);
}

static bool lab_says(const struct buf *b, const char *text)
{
  return str_search(buf_str(b), str_of(text)) >= 0;
}

#endif
