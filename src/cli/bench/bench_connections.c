/* SPDX-License-Identifier: Apache-2.0 */
/* bench_connections.c - thousands of open connections into one box: how many requests per second they get together, and
 * that none of them breaks. A server of the box's own answers on a port of its own, so everything between is the edge.
 * One thread, one request on the way per connection, answers read as they come. */
#include "cli/bench/bench.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define CONNECTIONS  5000u
#define SERVICE_PORT 8099u
#define OPEN_BATCH   100u    /* connections opened before the others get a look */
#define PATIENCE_NS  30e9    /* for an answer */
#define ANSWER       "reply" /* the body every answer ends with */
#define SERVER                                                                                                         \
  "cat > /tmp/connections.js <<'E'\n"                                                                                  \
  "const h = require('http');\n"                                                                                       \
  "const s = h.createServer((q, r) => r.end('" ANSWER "'));\n"                                                         \
  "s.keepAliveTimeout = 600000; s.listen(8099, '127.0.0.1', 8192, () => console.log('up'));\n"                         \
  "E\n"                                                                                                                \
  "setsid node /tmp/connections.js > /tmp/connections.log 2>&1 < /dev/null &\n"                                        \
  "for i in $(seq 100); do grep -q up /tmp/connections.log 2>/dev/null && break; sleep 0.1; done; echo served"

struct connection {
  int fd;
  size_t have; /* of an answer */
  char tail[8];
  int64_t sent_ns; /* of the request on its way; 0 = none */
};

struct connections {
  struct connection *all;
  unsigned n;
  int epoll;
  char request[1200];
  size_t length;
  uint64_t answers, requests; /* requests: answers to come included */
  int64_t longest_ns;         /* wait for an answer */
};

static void connections_free(struct connections *c)
{
  for (unsigned i = 0; i < c->n; i++)
    close(c->all[i].fd);
  free(c->all);
  if (c->epoll >= 0)
    close(c->epoll);
}
#define cleanup_connections __attribute__((cleanup(connections_free)))

static int send_request(struct connections *c, struct connection *l, struct err *err)
{
  l->have = 0;
  memset(l->tail, 0, sizeof(l->tail));
  l->sent_ns = now_ns();
  c->requests++;
  ssize_t n = send(l->fd, c->request, c->length, MSG_NOSIGNAL);
  return n == (ssize_t)c->length ? 0
                                 : err_set(err, n < 0 ? -errno : -EIO, "a request of the benchmark could not be sent");
}

static int open_connection(struct connections *c, const struct addrinfo *to, struct err *err)
{
  cleanup_fd int fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, to->ai_addr, to->ai_addrlen) || fcntl(fd, F_SETFL, O_NONBLOCK))
    return err_errno(err, "connection %u of the benchmark", c->n + 1);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  struct connection *l = &c->all[c->n];
  struct epoll_event e = {.events = EPOLLIN, .data.ptr = l};
  if (epoll_ctl(c->epoll, EPOLL_CTL_ADD, fd, &e))
    return err_errno(err, "watching connection %u of the benchmark", c->n + 1);
  *l = (struct connection){.fd = steal_fd(&fd)};
  c->n++;
  return send_request(c, l, err);
}

/* The last bytes of an answer are its body; only they are kept. */
static int hear(struct connections *c, struct connection *l, bool again, struct err *err)
{
  char in[4096];
  const size_t want = sizeof(ANSWER) - 1;
  ssize_t n = recv(l->fd, in, sizeof(in), 0);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return 0;
  if (n <= 0)
    return err_set(err, n < 0 ? -errno : -ECONNRESET, "a connection of the benchmark was broken");
  if (l->have == 0 && (n < 12 || memcmp(in + 9, "200", 3)))
    return err_set(err, -EREMOTEIO, "a connection of the benchmark got an unexpected response: %.*s",
                   (int)MIN(n, (ssize_t)60), in);
  size_t keep = MIN((size_t)n, want);
  memmove(l->tail, l->tail + keep, want - keep);
  memcpy(l->tail + want - keep, in + n - keep, keep);
  l->have += (size_t)n;
  if (memcmp(l->tail, ANSWER, want))
    return 0;
  c->answers++;
  c->longest_ns = MAX(c->longest_ns, now_ns() - l->sent_ns);
  l->sent_ns = 0;
  return again ? send_request(c, l, err) : 0;
}

static int turn(struct connections *c, int wait_ms, bool again, struct err *err)
{
  struct epoll_event events[256];
  int n = epoll_wait(c->epoll, events, ARRAY_LEN(events), wait_ms), r = 0;
  for (int i = 0; i < n && !r; i++)
    r = hear(c, events[i].data.ptr, again, err);
  return r;
}

static int gather(struct connections *c, const struct origin *o, struct err *err)
{
  struct addrinfo *list = NULL, hints = {.ai_socktype = SOCK_STREAM};
  if (getaddrinfo(o->host, o->port, &hints, &list))
    return err_set(err, -EHOSTUNREACH, "%s is not known", o->host);
  int r = 0;
  while (c->n < CONNECTIONS && !r) {
    r = open_connection(c, list, err);
    if (!r && c->n % OPEN_BATCH == 0)
      r = turn(c, 0, false, err);
  }
  freeaddrinfo(list);
  return r;
}

static int everyone_answered(struct connections *c, struct err *err)
{
  int64_t until = now_ns() + (int64_t)PATIENCE_NS;
  int r = 0;
  while (c->answers < c->requests && !r && now_ns() < until)
    r = turn(c, 100, false, err);
  if (r || c->answers == c->requests)
    return r;
  unsigned long long left = c->requests - c->answers;
  return err_set(err, -ETIMEDOUT, "of %u connections %llu were not answered within %.0f s", c->n, left,
                 PATIENCE_NS / 1e9);
}

/* Everyone asks for some seconds; then nobody asks again, and the last answers are waited for. */
static int measure(struct connections *c, double seconds, struct err *err)
{
  int r = 0;
  c->answers = c->requests = 0;
  c->longest_ns = 0;
  for (unsigned i = 0; i < c->n && !r; i++)
    r = send_request(c, &c->all[i], err);
  int64_t began = now_ns(), until = began + (int64_t)(seconds * 1e9);
  while (!r && now_ns() < until)
    r = turn(c, 100, true, err);
  double rate = (double)c->answers / ((double)(now_ns() - began) / 1e9);
  r = r ? r : everyone_answered(c, err);
  if (!r) {
    sample("connections_rate", rate);
    sample("connections_wait", (double)c->longest_ns / 1e6);
  }
  return r;
}

static int connections_open(struct connections *c, const struct bench_box *g)
{
  char headers[1024];
  struct rlimit files;
  if (!getrlimit(RLIMIT_NOFILE, &files) && files.rlim_cur < CONNECTIONS + 100) {
    files.rlim_cur = MIN(files.rlim_max, (rlim_t)CONNECTIONS + 100);
    setrlimit(RLIMIT_NOFILE, &files);
  }
  bench_box_headers(g, SERVICE_PORT, NULL, headers, sizeof(headers));
  int n = snprintf(c->request, sizeof(c->request), "GET / HTTP/1.1\r\nHost: bench\r\n%s\r\n", headers);
  c->length = (size_t)n;
  c->all = xcalloc(CONNECTIONS, sizeof(*c->all));
  c->epoll = epoll_create1(EPOLL_CLOEXEC);
  return c->epoll < 0 ? -errno : 0;
}

int connections_rate(struct bench *b, struct err *err)
{
  cleanup_client struct client client;
  struct bench_box g;
  client_open(&client, b);
  int r = bench_box_create(&client, &g, err);
  if (r)
    return r;
  if (g.domain[0] || b->edge.tls) {
    samples_note("connections_rate", "only over http and by headers");
  } else {
    cleanup_connections struct connections c = {.epoll = -1};
    r = bench_box_command(&client, &g, SERVER, "\"stdout\"", err);
    r = r ? r : connections_open(&c, &g);
    r = r ? r : gather(&c, &b->edge, err);
    r = r ? r : everyone_answered(&c, err);
    for (unsigned round = 0; round < 3 && !r; round++)
      r = measure(&c, MAX(2 * b->scale, 0.5), err);
  }
  struct err more = ERR_NONE;
  bench_box_kill(&client, &g, &more);
  return r;
}
