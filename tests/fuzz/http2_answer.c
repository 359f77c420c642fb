/* SPDX-License-Identifier: Apache-2.0 */
/* http2_answer.c - bytes of a server against the HTTP/2 client.
 *
 * The first byte of the input chooses: s puts empty settings of a server before the rest, so that mutations get past
 * them; anything else is taken as it is. The real connection code runs over a socket pair, in random cuts, with several
 * calls that send bodies, pause, end and leave as the dice say. Every call that is not freed hears exactly one end or
 * failure, heads are well formed, and no connection stays behind. */
#include "dice.h"
#include "must.h"

#include "net/http2_link.h"

#include <sys/socket.h>

#define CALLS 4

struct client {
  struct http_call *call;
  bool head, over;
};

static uv_loop_t loop;
static bool ready;
static struct client clients[CALLS];
static int links, closes;

static void on_head(struct http_call *c, const struct http_head *head)
{
  struct client *a = http_call_data(c);
  MUST(!a->head && !a->over && head->status >= 200 && head->status < 600);
  a->head = true;
  for (size_t i = 0; i < head->nheaders; i++)
    MUST(h1_token(head->headers[i].name) && h1_value(head->headers[i].value));
  if (roll(8) == 1) {
    a->call = NULL;
    http_call_cut(c);
  }
}

static void on_body(struct http_call *c, struct str chunk)
{
  struct client *a = http_call_data(c);
  MUST(a->head && !a->over && chunk.n > 0);
  if (roll(4) == 1)
    http_call_pause(c);
  if (roll(16) == 1) {
    a->call = NULL;
    http_call_free(c);
  }
}

static void on_end(struct http_call *c)
{
  struct client *a = http_call_data(c);
  const struct http_header *trailers;
  size_t n = http_call_trailers(c, &trailers);
  MUST(a->head && !a->over);
  a->over = true;
  for (size_t i = 0; i < n; i++)
    MUST(h1_token(trailers[i].name) && h1_value(trailers[i].value));
}

static void on_fail(struct http_call *c, int code, const char *why)
{
  struct client *a = http_call_data(c);
  MUST(!a->over && code < 0 && why);
  a->over = true;
  if (roll(2) == 1) {
    a->call = NULL;
    http_call_free(c);
  }
}

static const struct http_call_ops ops = {on_head, on_body, on_end, NULL, on_fail, NULL, NULL};

static void on_closed(struct http_link *l, void *arg)
{
  (void)l, (void)arg;
  closes++;
}

static void ask(struct http_link *l, struct client *a)
{
  static const struct http_header headers[] = {
      {STR("Host"), STR("h")}, {STR("X-A"), STR("b")}, {STR("TE"), STR("trailers")}};
  *a = (struct client){.call = http_link_call(l)};
  if (!a->call)
    return;
  http_call_handle(a->call, &ops, a);
  bool bodied = roll(2) == 1;
  MUST(http_call_start(a->call, bodied ? STR("POST") : STR("GET"), STR("/"), headers, ARRAY_LEN(headers),
                       bodied ? HTTP_CHUNKED : 0) == 0);
  http_call_deadline(a->call, 10000);
}

static void stir(void)
{
  static char block[3000];
  static const struct http_header trailer = {STR("X-T"), STR("1")};
  struct client *a = &clients[roll(CALLS) - 1];
  if (!a->call)
    return;
  http_call_resume(a->call);
  if (roll(3) == 1)
    http_call_send(a->call, str_make(block, sizeof(block)));
  else if (roll(3) == 1)
    http_call_end_with(a->call, &trailer, 1);
  else if (roll(20) == 1)
    http_call_cut(steal(&a->call));
}

static void listen_a_little(int fd)
{
  char sink[65536];
  uv_run(&loop, UV_RUN_NOWAIT);
  while (recv(fd, sink, sizeof(sink), 0) > 0)
    continue;
}

static void say(int fd, struct str in)
{
  while (in.n) {
    struct str part = str_sub(in, 0, roll(200));
    if (send(fd, part.p, part.n, MSG_NOSIGNAL) < 0)
      return;
    in = str_skip(in, part.n);
    listen_a_little(fd);
    stir();
  }
}

static struct http_link *begin(int *fd)
{
  struct http_limits l = http_limits_default;
  int pair[2];
  l.head_max = 2048;
  l.headers_max = 16;
  l.high_water = 4096;
  l.trailers = true;
  MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
  struct http_link *link = link_new(&loop, pair[1], &(struct http_link_plan){.limits = &l, .streams_max = CALLS});
  MUST(link && link_begin(link) == 0);
  http_link_handle(link, on_closed, NULL);
  links++;
  *fd = pair[0];
  return link;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
  static const char settings[] = "\0\0\0\x04\0\0\0\0";
  struct str in = str_make(data, size);
  int fd;
  if (!ready)
    uv_loop_init(&loop);
  ready = true;
  if (in.n < 2 || in.n > 16384)
    return 0;
  dice_set(in);
  struct http_link *link = begin(&fd);
  for (size_t i = 0; i < CALLS; i++)
    ask(link, &clients[i]);
  listen_a_little(fd);
  if (in.p[0] == 's')
    say(fd, str_make(settings, sizeof(settings)));
  say(fd, str_skip(in, 1));
  listen_a_little(fd);
  close(fd);
  for (int i = 0; i < 100; i++) {
    for (size_t k = 0; k < CALLS; k++)
      if (clients[k].call)
        http_call_resume(clients[k].call);
    uv_run(&loop, UV_RUN_NOWAIT);
  }
  for (size_t i = 0; i < CALLS; i++)
    if (clients[i].call) {
      MUST(clients[i].over);
      http_call_free(steal(&clients[i].call));
    }
  for (int i = 0; i < 20 && uv_loop_alive(&loop); i++)
    uv_run(&loop, UV_RUN_NOWAIT);
  MUST(links == closes);
  MUST(!uv_loop_alive(&loop));
  return 0;
}
