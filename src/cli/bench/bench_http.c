/* SPDX-License-Identifier: Apache-2.0 */
/* bench_http.c - see bench_http.h. What comes from the server is bounded: heads by the input buffer, answers by
 * CALL_ANSWER_MAX. */
#include "cli/bench/bench_http.h"

#include "net/h1reader.h"
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>

#define IN_MAX    (256u * 1024)
#define SILENCE_S 60 /* longest wait for the next byte */

struct bench_http {
  const struct origin *origin;
  int fd;
  SSL *ssl;
  bool used;  /* an answer came over this connection */
  bool heard; /* a byte came for the request that is on its way */
  size_t at, have;
  char in[IN_MAX];
};

int64_t now_ns(void)
{
  struct timespec ts;
  clock_gettime(CLOCK_MONOTONIC, &ts);
  return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* ---- connections ---- */

int origin_parse(struct origin *o, const char *url, struct err *err)
{
  struct str rest = str_of(url), host, port;
  o->tls = str_istarts(rest, STR("https://"));
  if (!o->tls && !str_istarts(rest, STR("http://")))
    return err_set(err, -EINVAL, "'%s' is not an http or https address", url);
  rest = str_skip(rest, o->tls ? 8 : 7);
  while (rest.n && rest.p[rest.n - 1] == '/')
    rest.n--;
  str_cut(rest, ':', &host, &port);
  if (!host.n || str_find(rest, '/') >= 0 || str_copyz(host, o->host, sizeof(o->host)) ||
      str_copyz(port.n   ? port
                : o->tls ? STR("443")
                         : STR("80"),
                o->port, sizeof(o->port)))
    return err_set(err, -EINVAL, "'%s' must be a host and perhaps a port, no path", url);
  return 0;
}

static SSL_CTX *tls_context(void)
{
  static SSL_CTX *context;
  static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  pthread_mutex_lock(&lock);
  if (!context && (context = SSL_CTX_new(TLS_client_method()))) {
    SSL_CTX_set_default_verify_paths(context);
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
  }
  pthread_mutex_unlock(&lock);
  return context;
}

static int tls_begin(struct bench_http *c, struct err *err)
{
  const char *host = c->origin->host;
  SSL_CTX *context = tls_context();
  c->ssl = context ? SSL_new(context) : NULL;
  if (!c->ssl || !SSL_set_tlsext_host_name(c->ssl, host) || !SSL_set1_host(c->ssl, host) || !SSL_set_fd(c->ssl, c->fd))
    return err_set(err, -ENOMEM, "TLS to %s can't be set up", host);
  if (SSL_connect(c->ssl) == 1)
    return 0;
  long why = SSL_get_verify_result(c->ssl);
  if (why == X509_V_OK)
    return err_set(err, -EPROTO, "TLS to %s: no agreement; is it an http address?", host);
  return err_set(err, -EPROTO, "TLS to %s: %s; name whom to trust in SSL_CERT_FILE", host,
                 X509_verify_cert_error_string(why));
}

static void hang_up(struct bench_http *c)
{
  SSL_free(steal(&c->ssl));
  if (c->fd >= 0)
    close(steal_fd(&c->fd));
  c->at = c->have = 0;
  c->used = false;
}

int bench_http_connect(struct bench_http *c, struct err *err)
{
  struct addrinfo *list = NULL, hints = {.ai_socktype = SOCK_STREAM};
  hang_up(c);
  int r = getaddrinfo(c->origin->host, c->origin->port, &hints, &list);
  if (r)
    return err_set(err, -EHOSTUNREACH, "%s: %s", c->origin->host, gai_strerror(r));
  for (struct addrinfo *a = list; a && c->fd < 0; a = a->ai_next) {
    c->fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (c->fd >= 0 && connect(c->fd, a->ai_addr, a->ai_addrlen)) {
      r = -errno;
      close(steal_fd(&c->fd));
    }
  }
  freeaddrinfo(list);
  if (c->fd < 0)
    return err_set(err, r ? r : -ECONNREFUSED, "%s:%s: %s", c->origin->host, c->origin->port,
                   strerrordesc_np(r ? -r : ECONNREFUSED));
  setsockopt(c->fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  setsockopt(c->fd, SOL_SOCKET, SO_RCVTIMEO, &(struct timeval){.tv_sec = SILENCE_S}, sizeof(struct timeval));
  return c->origin->tls ? tls_begin(c, err) : 0;
}

struct bench_http *bench_http_new(const struct origin *o)
{
  struct bench_http *c = xmalloc(sizeof(*c));
  c->origin = o;
  c->fd = -1;
  c->ssl = NULL;
  c->used = false;
  c->at = c->have = 0;
  return c;
}

void bench_http_free(struct bench_http *c)
{
  if (!c)
    return;
  hang_up(c);
  free(c);
}

/* Servers close connections that were idle for long, and all of them when they end. What they closed before a request
 * goes out is replaced, so that only the moment between this look and the request is left. */
static bool is_closed(const struct bench_http *c)
{
  struct pollfd p = {.fd = c->fd, .events = POLLRDHUP};
  return poll(&p, 1, 0) > 0;
}

/* ---- bytes ---- */

static int put_all(struct bench_http *c, struct str s)
{
  while (s.n) {
    ssize_t n = c->ssl ? SSL_write(c->ssl, s.p, (int)MIN(s.n, (size_t)1 << 20)) : send(c->fd, s.p, s.n, MSG_NOSIGNAL);
    if (n < 0 && !c->ssl && errno == EINTR)
      continue;
    if (n <= 0)
      return c->ssl || n == 0 ? -EPIPE : -errno;
    s = str_skip(s, (size_t)n);
  }
  return 0;
}

/* More bytes behind those that are there; -ECONNRESET at the end. */
static int fill(struct bench_http *c)
{
  if (c->at == c->have)
    c->at = c->have = 0;
  else if (c->have == sizeof(c->in)) {
    memmove(c->in, c->in + c->at, c->have - c->at);
    c->have -= c->at;
    c->at = 0;
  }
  if (c->have == sizeof(c->in))
    return -EMSGSIZE;
  ssize_t n;
  do
    n = c->ssl ? SSL_read(c->ssl, c->in + c->have, (int)(sizeof(c->in) - c->have))
               : recv(c->fd, c->in + c->have, sizeof(c->in) - c->have, 0);
  while (n < 0 && !c->ssl && errno == EINTR);
  if (n <= 0)
    return n < 0 && errno == EAGAIN ? -ETIMEDOUT : -ECONNRESET;
  c->heard = true;
  c->have += (size_t)n;
  return 0;
}

static struct str unread(const struct bench_http *c)
{
  return str_make(c->in + c->at, c->have - c->at);
}

static void look(struct call *k, size_t from)
{
  if (!k->watch || k->seen_ns || k->count_only)
    return;
  size_t n = strlen(k->watch);
  size_t back = from > n ? from - n : 0;
  if (str_search(str_skip(buf_str(&k->answer), back), str_of(k->watch)) >= 0)
    k->seen_ns = now_ns();
}

static int keep(struct call *k, struct str body)
{
  size_t from = k->answer.n;
  if (!k->count_only && buf_adds(&k->answer, body))
    return -EMSGSIZE;
  k->bytes += body.n;
  look(k, from);
  return 0;
}

static void keep_timing(void *arg, struct str name, struct str value)
{
  struct call *k = arg;
  if (str_ieq(name, STR("server-timing")))
    str_copyz(value, k->timing, sizeof(k->timing));
}

/* ---- requests ---- */

static int receive(struct bench_http *c, struct call *k)
{
  struct h1_reader a = {.bodyless = !strcmp(k->method, "HEAD"), .header = keep_timing, .arg = k};
  int r = 0;
  while (!r && !a.over) {
    struct str body;
    size_t used;
    r = h1_reader_take(&a, unread(c), &used, &body);
    k->status = a.status;
    r = r || !body.n ? r : keep(k, body);
    c->at += used;
    if (!r && !used && !a.over)
      r = fill(c);
    if (r == -ECONNRESET)
      r = h1_reader_eof(&a);
  }
  k->ended_ns = now_ns();
  c->used = true;
  if (r || a.closes)
    hang_up(c);
  return r;
}

int bench_http_send(struct bench_http *c, struct call *k, struct err *err)
{
  char head[4096];
  bool body = strcmp(k->method, "GET") != 0;
  int n = snprintf(head, sizeof(head), "%s %s HTTP/1.1\r\nHost: %s:%s\r\n%s", k->method, k->path, c->origin->host,
                   c->origin->port, k->headers ? k->headers : "");
  if (n > 0 && (size_t)n < sizeof(head))
    n += body ? snprintf(head + n, sizeof(head) - (size_t)n, "Content-Length: %zu\r\n\r\n", k->body.n)
              : snprintf(head + n, sizeof(head) - (size_t)n, "\r\n");
  if (n < 0 || (size_t)n >= sizeof(head))
    return err_set(err, -E2BIG, "the head of %s %s is too long", k->method, k->path);
  k->answer.max = CALL_ANSWER_MAX;
  buf_clear(&k->answer);
  k->status = 0;
  k->bytes = 0;
  k->seen_ns = k->ended_ns = 0;
  k->timing[0] = 0;
  c->heard = false;
  int r = c->fd < 0 ? bench_http_connect(c, err) : 0;
  if (r)
    return r;
  /* Small bodies leave with their head, in one packet. */
  bool joined = (size_t)n + k->body.n <= sizeof(head);
  if (joined && body && k->body.n)
    memcpy(head + n, k->body.p, k->body.n);
  k->began_ns = now_ns();
  r = put_all(c, str_make(head, (size_t)n + (joined && body ? k->body.n : 0)));
  if (!r && !joined && body)
    r = put_all(c, k->body);
  return r ? err_set(err, r, "%s %s: %s", k->method, k->path, strerrordesc_np(-r)) : 0;
}

int bench_http_receive(struct bench_http *c, struct call *k, struct err *err)
{
  int r = receive(c, k);
  if (r)
    hang_up(c);
  return r ? err_set(err, r, "%s %s: %s", k->method, k->path, strerrordesc_np(-r)) : 0;
}

static bool is_idempotent(const char *method)
{
  return strcmp(method, "POST") != 0 && strcmp(method, "PATCH") != 0;
}

/* The server closed a reused connection in the moment in which the request was sent. It is sent once more on a new one,
 * unless a byte of an answer came; one that was sent in full may have been carried out, so only an idempotent method is
 * repeated then. */
int bench_http_request(struct bench_http *c, struct call *k, struct err *err)
{
  struct err first = ERR_NONE;
  if (c->used && is_closed(c))
    hang_up(c);
  bool reused = c->used;
  int r = bench_http_send(c, k, &first);
  bool sent = !r;
  r = r ? r : bench_http_receive(c, k, &first);
  if (r && reused && !c->heard && (r == -ECONNRESET || r == -EPIPE) && (!sent || is_idempotent(k->method))) {
    hang_up(c);
    r = bench_http_send(c, k, err);
    return r ? r : bench_http_receive(c, k, err);
  }
  return r ? err_set(err, r, "%s", first.msg) : 0;
}
