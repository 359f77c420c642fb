/* SPDX-License-Identifier: Apache-2.0 */
/* http2.c - bytes from outside against the HTTP/2 server.
 *
 * The first byte of the input chooses: p puts the client's preface and empty settings before the rest, so that
 * mutations get past them; anything else is taken as it is. The real connection code runs over a socket pair, in random
 * cuts; handlers answer, wait, pause, abort and send files by the path of the request. Every request must end in
 * exactly one `gone`, and nothing may stay behind. */
#include "dice.h"
#include "must.h"

#include "net/http2.h"

#include <fcntl.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

static uv_loop_t loop;
static struct http_server *server;
static struct http_x *held[8];
static int requests, gones, file;

/* ---- handlers ---- */

static void hold(struct http_x *x)
{
  struct http_x **at = &held[roll(ARRAY_LEN(held)) - 1];
  if (!*at)
    *at = x;
  else
    http_abort(x);
}

static void on_gone(struct http_x *x, enum http_end how)
{
  (void)how;
  gones++;
  for (size_t i = 0; i < ARRAY_LEN(held); i++)
    if (held[i] == x)
      held[i] = NULL;
}

static void on_body(struct http_x *x, struct str chunk)
{
  MUST(chunk.n > 0);
  http_send(x, chunk);
  if (roll(4) == 1) {
    http_x_pause(x);
    hold(x);
  }
}

static void on_body_end(struct http_x *x)
{
  if (http_respond(x, 204, NULL, 0, 0) == -EALREADY)
    http_send(x, STR("end"));
  http_end(x);
}

static void on_drain(struct http_x *x)
{
  http_end(x);
}

static const struct http_x_ops x_ops = {.body = on_body, .body_end = on_body_end, .drain = on_drain, .gone = on_gone};

static void look_at(const struct http_head *h)
{
  MUST(h->method.n > 0 && h->target.n > 0 && h->path.n + h->query.n <= h->target.n);
  for (size_t i = 0; i < h->nheaders; i++)
    MUST(h1_token(h->headers[i].name) && h1_value(h->headers[i].value));
}

/* A WebSocket by extended CONNECT: the tunnel begins, echoes and ends as any body. */
static bool take_tunnel(struct http_x *x)
{
  const struct http_head *h = http_x_head(x);
  cleanup_buf struct buf text = BUF_INIT(256), accept = BUF_INIT(64);
  uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned n = 0;
  if (!http_upgrade(h, http_x_body_length(x) != 0).n)
    return false;
  buf_adds(&text, http_header(h, "sec-websocket-key"));
  buf_addz(&text, "258EAFA5-E914-47DA-95CA-C5AB0DC85B11");
  EVP_Digest(text.p, text.n, digest, &n, EVP_sha1(), NULL);
  base64_add(&accept, digest, n, true);
  struct http_header answer[] = {{STR("Connection"), STR("Upgrade")},
                                 {STR("Upgrade"), STR("websocket")},
                                 {STR("Sec-WebSocket-Accept"), buf_str(&accept)}};
  MUST(http_tunnel(x, 101, answer, 2) == -EPROTO);
  MUST(http_respond(x, 200, NULL, 0, HTTP_CHUNKED) == -EPROTO);
  MUST(http_tunnel(x, 101, answer, 3) == 0);
  if (roll(3) == 1)
    http_end(x);
  return true;
}

static void on_request(struct http_x *x, void *arg)
{
  static char block[4000];
  struct http_header mixed[] = {{STR("X-Mixed"), STR(" v ")}, {STR("Connection"), STR("close")}};
  (void)arg;
  requests++;
  look_at(http_x_head(x));
  http_x_handle(x, &x_ops, NULL);
  if (roll(4) != 1 && take_tunnel(x))
    return;
  switch (http_x_head(x)->path.n % 10) {
  case 0:
    http_x_resume(x);
    http_respond(x, 200, mixed, 2, HTTP_CHUNKED);
    break;
  case 1:
    http_reply(x, 200, "text/plain", http_x_head(x)->target);
    break;
  case 2:
    MUST(http_tunnel(x, 101, NULL, 0) < 0);
    http_end(x);
    break;
  case 3:
    http_x_resume(x); /* no answer yet: an oversized body is refused by the server */
    break;
  case 4:
    http_respond(x, 200, NULL, 0, 5);
    http_send(x, STR("short"));
    http_end(x);
    break;
  case 5:
    http_abort(x);
    break;
  case 6:
    http_respond(x, 200, NULL, 0, 8000);
    http_send_file(x, dup(file), roll(200), 8000); /* sometimes more than there is */
    http_end(x);
    break;
  case 7:
    http_respond(x, 200, NULL, 0, HTTP_CHUNKED);
    while (!http_congested(x) && http_send(x, str_make(block, sizeof(block))) == 0)
      continue;
    break;
  default:
    hold(x);
  }
}

static void let_go(void)
{
  struct http_x **at = &held[roll(ARRAY_LEN(held)) - 1], *x = *at;
  *at = NULL;
  if (!x)
    return;
  http_x_resume(x);
  if (roll(2) == 1)
    http_reply(x, 200, NULL, STR("late"));
  else if (roll(2) == 1)
    http_abort(x);
}

/* ---- the connection ---- */

static int begin(void)
{
  int pair[2];
  struct peer *p;
  MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
  MUST(server_admit(server, pair[1], true, &p) == 0);
  http2_begin(p);
  return pair[0];
}

static void listen_a_little(int fd, bool deaf)
{
  char sink[65536];
  uv_run(&loop, UV_RUN_NOWAIT);
  while (!deaf && recv(fd, sink, sizeof(sink), 0) > 0)
    continue;
}

static void say(int fd, struct str in)
{
  bool deaf = roll(4) == 1;
  while (in.n) {
    struct str part = str_sub(in, 0, roll(200));
    if (send(fd, part.p, part.n, MSG_NOSIGNAL) < 0)
      return;
    in = str_skip(in, part.n);
    listen_a_little(fd, deaf);
    let_go();
  }
}

static void setup(void)
{
  struct http_limits l = http_limits_default;
  l.body_max = 512;
  l.head_max = 2048;
  l.headers_max = 16;
  l.high_water = 1024;
  l.connect = true;
  file = memfd_create("file", MFD_CLOEXEC);
  MUST(file >= 0 && ftruncate(file, 8100) == 0);
  uv_loop_init(&loop);
  server = http_server_new(&loop, &l, on_request, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0";
  struct str in = str_make(data, size);
  if (!server)
    setup();
  if (in.n < 2 || in.n > 16384)
    return 0;
  dice_set(in);
  int fd = begin();
  if (in.p[0] == 'p')
    say(fd, str_make(preface, sizeof(preface)));
  say(fd, str_skip(in, 1));
  listen_a_little(fd, false);
  close(fd);
  for (int i = 0; i < 100 && http_server_conns(server); i++)
    uv_run(&loop, UV_RUN_NOWAIT);
  uv_run(&loop, UV_RUN_NOWAIT);
  MUST(http_server_conns(server) == 0);
  MUST(requests == gones);
  return 0;
}
