/* SPDX-License-Identifier: Apache-2.0 */
/* tls_load.c - small answers over TLS, for what a gateway between the two adds.
 *
 *   tls_load serve ADDRESS PORT CERT KEY               a server: one thread per connection; prints a line when it
 * listens tls_load ask ADDRESS PORT NAME CA CONNECTIONS SECONDS
 *
 * The client keeps CONNECTIONS busy, each with one request at a time by HTTP/1.1, and prints one line of JSON: the
 * median of a request's time in milliseconds and requests per second. */
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define ANSWER      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Type: text/plain\r\n\r\nok\n"
#define SAMPLES_MAX (1 << 20)

static SSL_CTX *context;
static const char *name;
static struct sockaddr_in place;
static double until;

static double now(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void die(const char *what)
{
  perror(what);
  exit(1);
}

static void set_place(const char *address, const char *port)
{
  place.sin_family = AF_INET;
  place.sin_port = htons((uint16_t)strtoul(port, NULL, 10));
  if (inet_pton(AF_INET, address, &place.sin_addr) != 1)
    die(address);
}

static void *serve_one(void *arg)
{
  int fd = (int)(intptr_t)arg, one = 1;
  char in[16384];
  SSL *s = SSL_new(context);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  SSL_set_fd(s, fd);
  size_t have = 0;
  for (int n = SSL_accept(s); n > 0;) {
    n = SSL_read(s, in + have, (int)(sizeof(in) - 1 - have));
    have += n > 0 ? (size_t)n : 0;
    in[have] = 0;
    if (n > 0 && strstr(in, "\r\n\r\n")) {
      have = 0;
      n = SSL_write(s, ANSWER, sizeof(ANSWER) - 1);
    }
  }
  SSL_free(s);
  close(fd);
  return NULL;
}

static _Noreturn void serve(char **argv)
{
  int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  context = SSL_CTX_new(TLS_server_method());
  set_place(argv[2], argv[3]);
  if (SSL_CTX_use_certificate_chain_file(context, argv[4]) != 1 ||
      SSL_CTX_use_PrivateKey_file(context, argv[5], SSL_FILETYPE_PEM) != 1)
    die("certificate");
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  if (bind(fd, (struct sockaddr *)&place, sizeof(place)) || listen(fd, 1024))
    die("listen");
  puts("listens");
  fflush(stdout);
  for (;;) {
    pthread_t thread;
    int link = accept(fd, NULL, NULL);
    if (link >= 0 && !pthread_create(&thread, NULL, serve_one, (void *)(intptr_t)link))
      pthread_detach(thread);
  }
}

struct client {
  pthread_t thread;
  float *took;
  size_t n;
};

static bool ask_once(SSL *s, const char *request, size_t length)
{
  char in[4096];
  size_t have = 0;
  if (SSL_write(s, request, (int)length) <= 0)
    return false;
  for (;;) {
    int n = SSL_read(s, in + have, (int)(sizeof(in) - 1 - have));
    if (n <= 0)
      return false;
    have += (size_t)n;
    in[have] = 0;
    if (strstr(in, "\r\n\r\nok\n"))
      return true;
  }
}

static void *ask_many(void *arg)
{
  struct client *c = arg;
  char request[512];
  int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
  int length = snprintf(request, sizeof(request), "GET /small HTTP/1.1\r\nHost: %s\r\n\r\n", name);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  SSL *s = SSL_new(context);
  SSL_set_tlsext_host_name(s, name);
  SSL_set1_host(s, name);
  SSL_set_fd(s, fd);
  if (connect(fd, (struct sockaddr *)&place, sizeof(place)) || SSL_connect(s) != 1)
    die("connect");
  for (double at = now(); at < until && c->n < SAMPLES_MAX;) {
    if (!ask_once(s, request, (size_t)length))
      die("request");
    double end = now();
    c->took[c->n++] = (float)((end - at) * 1000);
    at = end;
  }
  SSL_free(s);
  close(fd);
  return NULL;
}

static int compare(const void *a, const void *b)
{
  float x = *(const float *)a, y = *(const float *)b;
  return (x > y) - (x < y);
}

static int ask(char **argv)
{
  unsigned n = (unsigned)strtoul(argv[6], NULL, 10);
  double seconds = strtod(argv[7], NULL);
  struct client *clients = calloc(n, sizeof(*clients));
  float *all = malloc(sizeof(float) * SAMPLES_MAX * n);
  size_t total = 0;
  name = argv[4];
  context = SSL_CTX_new(TLS_client_method());
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  set_place(argv[2], argv[3]);
  if (!clients || !all || SSL_CTX_load_verify_locations(context, argv[5], NULL) != 1)
    die("authorities");
  double began = now();
  until = began + seconds;
  for (unsigned i = 0; i < n; i++) {
    clients[i].took = malloc(sizeof(float) * SAMPLES_MAX);
    if (!clients[i].took || pthread_create(&clients[i].thread, NULL, ask_many, &clients[i]))
      die("thread");
  }
  for (unsigned i = 0; i < n; i++) {
    pthread_join(clients[i].thread, NULL);
    memcpy(all + total, clients[i].took, clients[i].n * sizeof(float));
    total += clients[i].n;
  }
  double took = now() - began;
  qsort(all, total, sizeof(float), compare);
  printf("{\"p50_ms\": %.4f, \"per_second\": %.0f}\n", (double)all[total / 2], (double)total / took);
  return 0;
}

int main(int argc, char **argv)
{
  signal(SIGPIPE, SIG_IGN);
  if (argc == 6 && !strcmp(argv[1], "serve"))
    serve(argv);
  if (argc == 8 && !strcmp(argv[1], "ask"))
    return ask(argv);
  fprintf(stderr, "usage: tls_load serve ADDRESS PORT CERT KEY | ask ADDRESS PORT NAME CA CONNECTIONS SECONDS\n");
  return 64;
}
