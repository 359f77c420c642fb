/* SPDX-License-Identifier: Apache-2.0 */
/* net_lab.h - a server on loopback, a raw peer to talk to it, and a handler whose routes are behaviours. */
#ifndef CLOCHE_NET_LAB_H
#define CLOCHE_NET_LAB_H

#include "unit.h"

#include "net/http.h"
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

struct lab {
  uv_loop_t loop;
  struct http_server *server;
  int port;
  struct http_x *held; /* the exchange of /hold, /stream or /tunnel */
  int requests, gones, drains, body_ends;
  enum http_end how; /* of the last `gone` */
  size_t body_bytes;
  struct buf body;      /* what /collect and /hold got */
  bool in_call;         /* inside http_abort or http_end: `gone` must not come */
  size_t fed, feed_max; /* /stream: bytes handed to http_send */
  char block[16384];
};

static struct lab lab;

static void lab_gone(struct http_x *x, enum http_end how)
{
  assert_false(lab.in_call);
  lab.gones++;
  lab.how = how;
  if (lab.held == x)
    lab.held = NULL;
}

static void lab_collect(struct http_x *x, struct str chunk)
{
  assert_true(chunk.n > 0);
  lab.body_bytes += chunk.n;
  buf_adds(&lab.body, chunk);
}

static void lab_collected(struct http_x *x)
{
  char text[32];
  lab.body_ends++;
  int n = snprintf(text, sizeof(text), "%zu", lab.body_bytes);
  lab.in_call = true;
  assert_int_equal(http_reply(x, 200, "text/plain", str_make(text, (size_t)n)), 0);
  lab.in_call = false;
}

static void lab_echo(struct http_x *x, struct str chunk)
{
  lab.body_bytes += chunk.n;
  http_send(x, chunk);
  if (http_congested(x))
    http_x_pause(x);
}

static void lab_echo_end(struct http_x *x)
{
  lab.body_ends++;
  http_end(x);
}

static void lab_resume(struct http_x *x)
{
  lab.drains++;
  http_x_resume(x);
}

/* As much as the peer takes, up to feed_max. */
static void lab_feed(struct http_x *x)
{
  while (lab.fed < lab.feed_max && !http_congested(x)) {
    size_t n = MIN(sizeof(lab.block), lab.feed_max - lab.fed);
    if (http_send(x, str_make(lab.block, n)) < 0)
      return;
    lab.fed += n;
  }
  if (lab.fed == lab.feed_max)
    http_end(x);
}

static void lab_drained(struct http_x *x)
{
  lab.drains++;
  lab_feed(x);
}

static void lab_count_end(struct http_x *x)
{
  lab.body_ends++;
}

static const struct http_x_ops lab_gone_only = {.gone = lab_gone};
static const struct http_x_ops lab_collect_ops = {lab_collect, lab_collected, NULL, lab_gone, NULL, NULL, NULL};
static const struct http_x_ops lab_hold_ops = {lab_collect, lab_count_end, NULL, lab_gone, NULL, NULL, NULL};
static const struct http_x_ops lab_echo_ops = {lab_echo, lab_echo_end, lab_resume, lab_gone, NULL, NULL, NULL};
static const struct http_x_ops lab_stream_ops = {NULL, NULL, lab_drained, lab_gone, NULL, NULL, NULL};

static void lab_request(struct http_x *x, void *arg)
{
  struct str path = http_x_head(x)->path;
  struct http_header upgrade = {STR("Upgrade"), STR("echo")};
  lab.requests++;
  http_x_handle(x, &lab_gone_only, NULL);
  if (str_is(path, "/collect")) {
    http_x_handle(x, &lab_collect_ops, NULL);
    http_x_resume(x);
  } else if (str_is(path, "/echo")) {
    http_x_handle(x, &lab_echo_ops, NULL);
    http_x_body_max(x, UINT64_MAX);
    http_x_resume(x);
    http_respond(x, 200, NULL, 0, HTTP_CHUNKED);
  } else if (str_is(path, "/untimed")) {
    http_x_handle(x, &lab_collect_ops, NULL);
    http_x_body_untimed(x);
    http_x_resume(x);
  } else if (str_is(path, "/hold")) {
    http_x_handle(x, &lab_hold_ops, NULL);
    lab.held = x;
  } else if (str_is(path, "/stream")) {
    http_x_handle(x, &lab_stream_ops, NULL);
    http_respond(x, 200, NULL, 0, HTTP_CHUNKED);
    lab.held = x;
    lab_feed(x);
  } else if (str_is(path, "/tunnel")) {
    http_x_handle(x, &lab_echo_ops, NULL);
    http_tunnel(x, 101, &upgrade, 1);
    lab.held = x;
  } else if (str_is(path, "/three")) {
    http_respond(x, 200, NULL, 0, HTTP_CHUNKED);
    http_send(x, STR("one"));
    http_send(x, STR("two"));
    http_send(x, STR("three"));
    http_end(x);
  } else if (str_is(path, "/abort")) {
    http_respond(x, 200, NULL, 0, HTTP_CHUNKED);
    http_send(x, STR("partial"));
    lab.in_call = true;
    http_abort(x);
    assert_int_equal(http_send(x, STR("more")), -EPIPE);
    lab.in_call = false;
  } else {
    http_reply_with(x, 200, NULL, 0, path);
  }
}

static int lab_listener(int *port)
{
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  socklen_t n = sizeof(a);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_true(fd >= 0);
  assert_int_equal(bind(fd, (struct sockaddr *)&a, n), 0);
  assert_int_equal(listen(fd, 128), 0);
  assert_int_equal(getsockname(fd, (struct sockaddr *)&a, &n), 0);
  *port = ntohs(a.sin_port);
  return fd;
}

static void lab_open(const struct http_limits *limits)
{
  memset(&lab, 0, sizeof(lab));
  memset(lab.block, 'x', sizeof(lab.block));
  buf_init(&lab.body, 64 << 20);
  uv_loop_init(&lab.loop);
  lab.server = http_server_new(&lab.loop, limits, lab_request, NULL);
  assert_int_equal(http_server_listen(lab.server, lab_listener(&lab.port)), 0);
}

/* Everything must be gone: a leaked handle leaves the loop busy, a lost `gone` leaves the counts apart. */
static void lab_close(void)
{
  http_server_free(lab.server);
  uv_run(&lab.loop, UV_RUN_DEFAULT);
  assert_int_equal(uv_loop_close(&lab.loop), 0);
  assert_int_equal(lab.gones, lab.requests);
  buf_free(&lab.body);
}

static int lab_dial(void)
{
  struct sockaddr_in a = {
      .sin_family = AF_INET, .sin_port = htons((uint16_t)lab.port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof(a)), 0);
  fcntl(fd, F_SETFL, O_NONBLOCK);
  return fd;
}

static void lab_turn(void)
{
  uv_run(&lab.loop, UV_RUN_NOWAIT);
}

static UNUSED void lab_run_ms(int ms)
{
  for (int64_t until = clock_mono_us() + ms * 1000; clock_mono_us() < until; usleep(200))
    lab_turn();
}

#define lab_until(condition)                                                                                           \
  do {                                                                                                                 \
    int64_t lab_limit = clock_mono_us() + 10000000;                                                                    \
    while (!(condition) && clock_mono_us() < lab_limit) {                                                              \
      lab_turn();                                                                                                      \
      usleep(50);                                                                                                      \
    }                                                                                                                  \
    assert_true(condition);                                                                                            \
  } while (0)

static UNUSED void lab_say(int fd, struct str s)
{
  while (s.n) {
    ssize_t r = send(fd, s.p, s.n, MSG_NOSIGNAL);
    if (r > 0)
      s = str_skip(s, (size_t)r);
    else if (errno != EAGAIN)
      return;
    lab_turn();
  }
}

/* What is there now: bytes read, 0 at the end, negative errno. */
static ssize_t lab_hear(int fd, struct buf *out)
{
  char part[65536];
  ssize_t r = recv(fd, part, sizeof(part), 0);
  if (r > 0)
    buf_add(out, part, (size_t)r);
  return r < 0 ? -errno : r;
}

/* Until `end` has come at the tail, or, when it is NULL, until the connection ends; the last result of recv. */
static UNUSED ssize_t lab_hear_until(int fd, struct buf *out, const char *end)
{
  int64_t limit = clock_mono_us() + 10000000;
  while (clock_mono_us() < limit) {
    ssize_t r = lab_hear(fd, out);
    if (end && str_ends(buf_str(out), str_of(end)))
      return r;
    if (r == 0 || (r < 0 && r != -EAGAIN))
      return r;
    lab_turn();
    if (r < 0)
      usleep(50);
  }
  fail_msg("waited too long; got: %s", buf_z(out));
  return -ETIMEDOUT;
}

static UNUSED bool lab_has(const struct buf *b, const char *text)
{
  return str_search(buf_str(b), str_of(text)) >= 0;
}

static UNUSED size_t lab_count(const struct buf *b, const char *text)
{
  size_t n = 0;
  struct str rest = buf_str(b);
  for (ptrdiff_t at; (at = str_search(rest, str_of(text))) >= 0; n++)
    rest = str_skip(rest, (size_t)at + 1);
  return n;
}

#endif
