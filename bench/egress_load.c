/* SPDX-License-Identifier: Apache-2.0 */
/* egress_load.c - small requests over TLS, as many as go: what a way to a server costs.
 *
 *   egress_load serve ADDRESS PORT CERT KEY       answers every request with a few bytes
 *   egress_load ask ADDRESS PORT NAME CA SECONDS CONNECTIONS
 *       keeps CONNECTIONS alive with one request under way on each; prints requests per second, and microseconds of the
 *       median and the 99th percentile */
#include "net/http.h"
#include "net/tls.h"

#include <arpa/inet.h>
#include <openssl/x509.h>
#include <stdio.h>
#include <sys/socket.h>

static struct sockaddr_in target(char **argv)
{
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)strtoul(argv[3], NULL, 10))};
  inet_pton(AF_INET, argv[2], &a.sin_addr);
  return a;
}

static void answer(struct http_x *x, void *arg)
{
  static const struct http_x_ops ops;
  http_x_handle(x, &ops, NULL);
  http_x_accepted(x);
  http_reply(x, 200, "text/plain", STR("hello"));
}

static int serve(char **argv)
{
  struct sockaddr_in a = target(argv);
  struct err err = ERR_NONE;
  cleanup_buf struct buf cert = BUF_INIT(1 << 20), key = BUF_INIT(1 << 20);
  int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
  if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 1024) || file_read(argv[4], &cert) ||
      file_read(argv[5], &key))
    return perror(argv[2]), 1;
  struct tls *t = tls_server_new();
  if (tls_server_load(t, buf_str(&cert), buf_str(&key), STR_NONE, &err))
    return fprintf(stderr, "%s\n", err.msg), 1;
  struct http_server *s = http_server_new(uv_default_loop(), &http_limits_default, answer, NULL);
  http_server_listen_tls(s, fd, t);
  puts("ready");
  fflush(stdout);
  return uv_run(uv_default_loop(), UV_RUN_DEFAULT);
}

static struct load {
  const char *name;
  int64_t until_us;
  VEC(uint32_t) took;
  size_t open;
} load;

struct asker {
  struct http_call *call;
  int64_t began_us;
};

static void ask_next(struct asker *a)
{
  struct http_header host = {STR("Host"), str_of(load.name)};
  a->began_us = clock_mono_us();
  if (a->began_us >= load.until_us || http_call_start(a->call, STR("GET"), STR("/"), &host, 1, 0)) {
    http_call_free(a->call);
    if (!--load.open)
      uv_stop(uv_default_loop());
  }
}

static void answered(struct http_call *c)
{
  struct asker *a = http_call_data(c);
  vec_push(&load.took, (uint32_t)(clock_mono_us() - a->began_us));
  ask_next(a);
}

static void failed(struct http_call *c, int code, const char *why)
{
  fprintf(stderr, "request failed: %s\n", why);
  exit(1);
}

static int by_size(const void *a, const void *b)
{
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

static int ask(char **argv)
{
  static const struct http_call_ops ops = {.end = answered, .fail = failed};
  struct sockaddr_in to = target(argv);
  cleanup_buf struct buf ca = BUF_INIT(1 << 20);
  unsigned long seconds = strtoul(argv[6], NULL, 10), n = strtoul(argv[7], NULL, 10);
  file_read(argv[5], &ca);
  X509_STORE *roots = X509_STORE_new();
  tls_roots_add(roots, buf_str(&ca));
  struct tls *t = tls_client_verified(roots);
  load.name = argv[4];
  load.open = n;
  load.until_us = clock_mono_us() + (int64_t)seconds * 1000000;
  for (unsigned long i = 0; i < n; i++) {
    struct asker *a = xcalloc(1, sizeof(*a));
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(fd, (struct sockaddr *)&to, sizeof(to)))
      return perror("connect"), 1;
    fd_nonblock(fd);
    a->call = http_call_new_tls(uv_default_loop(), fd, NULL, t, load.name);
    http_call_handle(a->call, &ops, a);
    ask_next(a);
  }
  uv_run(uv_default_loop(), UV_RUN_DEFAULT);
  if (!load.took.n)
    return 1;
  qsort(load.took.p, load.took.n, sizeof(*load.took.p), by_size);
  printf("%zu %u %u\n", load.took.n / seconds, load.took.p[load.took.n / 2], load.took.p[load.took.n * 99 / 100]);
  return 0;
}

int main(int argc, char **argv)
{
  tls_prepare();
  if (argc == 6 && !strcmp(argv[1], "serve"))
    return serve(argv);
  if (argc == 8 && !strcmp(argv[1], "ask"))
    return ask(argv);
  fprintf(stderr, "usage: egress_load serve ADDRESS PORT CERT KEY | ask ADDRESS PORT NAME CA SECONDS CONNECTIONS\n");
  return 64;
}
