/* SPDX-License-Identifier: Apache-2.0 */
/* delivery.c - see delivery.h. libcurl's own resolver starts a thread per name, which the filter forbids; so the name
 * is looked up here, on the one thread there is, and libcurl is told the address. */
#include "exporter/delivery.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <netdb.h>
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define ATTEMPTS     5
#define PAUSE_MS     1000 /* before the second one; doubled each time */
#define PAUSE_MAX_MS 30000
#define ANSWER_MAX   ((size_t)64 << 10)
#define REQUESTS     64
#define QUEUE_BYTES  ((size_t)256 << 20) /* of all that wait or are being sent; the role's memory is bounded */
#define HEADERS_MAX  ((size_t)64 << 10)
#define COMPLAIN_US  60000000

struct request {
  char path[32];
  struct buf body;
};

struct delivery {
  const struct exporter_config *config;
  char *roots; /* PEM */
  size_t roots_n;
  struct curl_slist *headers;
  char host[256], port[8];
  pthread_t thread;
  pthread_mutex_t mutex;
  pthread_cond_t changed;
  struct request queue[REQUESTS];
  size_t first, n;
  size_t bytes; /* of the queue, and of the request that is being sent */
  bool stopping;
  int64_t stop_us;
  struct delivery_counts counts;
  int64_t complained_us;
};

/* ---- one request ---- */

static size_t swallow(char *p, size_t size, size_t n, void *arg)
{
  size_t *left = arg;
  size_t k = MIN(size * n, *left);
  *left -= k;
  return k == size * n ? k : 0; /* an answer that never ends is none */
}

/* "host:port:address" for libcurl; NULL: it does not resolve. */
static struct curl_slist *resolve(const struct delivery *d)
{
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *list = NULL;
  char address[INET6_ADDRSTRLEN] = "", line[512];
  if (getaddrinfo(d->host, d->port, &hints, &list) || !list)
    return NULL;
  if (list->ai_family == AF_INET6)
    inet_ntop(AF_INET6, &((struct sockaddr_in6 *)(void *)list->ai_addr)->sin6_addr, address, sizeof(address));
  else
    inet_ntop(AF_INET, &((struct sockaddr_in *)(void *)list->ai_addr)->sin_addr, address, sizeof(address));
  snprintf(line, sizeof(line), list->ai_family == AF_INET6 ? "%s:%s:[%s]" : "%s:%s:%s", d->host, d->port, address);
  freeaddrinfo(list);
  return curl_slist_append(NULL, line);
}

/* 0: taken. -EAGAIN: to be tried again. -EINVAL: the collector will not have it. */
static int post(struct delivery *d, CURL *curl, const struct request *q, char why[CURL_ERROR_SIZE])
{
  char url[1024];
  size_t left = ANSWER_MAX;
  long status = 0;
  struct curl_slist *known = resolve(d);
  snprintf(url, sizeof(url), "%s%s", d->config->endpoint, q->path);
  if (!known) {
    snprintf(why, CURL_ERROR_SIZE, "the name %s does not resolve", d->host);
    return -EAGAIN;
  }
  curl_easy_setopt(curl, CURLOPT_URL, url);
  curl_easy_setopt(curl, CURLOPT_RESOLVE, known);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDS, q->body.p);
  curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)q->body.n);
  curl_easy_setopt(curl, CURLOPT_TIMEOUT, (long)d->config->seconds);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &left);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, why);
  why[0] = 0;
  CURLcode r = curl_easy_perform(curl);
  curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  curl_easy_setopt(curl, CURLOPT_RESOLVE, NULL);
  curl_slist_free_all(known);
  if (r == CURLE_OK && status >= 200 && status < 300)
    return 0;
  if (r != CURLE_OK && !why[0])
    snprintf(why, CURL_ERROR_SIZE, "%s", curl_easy_strerror(r));
  if (r == CURLE_OK)
    snprintf(why, CURL_ERROR_SIZE, "it answered %ld", status);
  bool again = r != CURLE_OK || status == 429 || status == 502 || status == 503 || status == 504;
  return again ? -EAGAIN : -EINVAL;
}

static CURL *make_handle(const struct delivery *d)
{
  CURL *curl = curl_easy_init();
  if (!curl)
    return NULL;
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_PROXY, "");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(curl, CURLOPT_HTTPHEADER, d->headers);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "cloche/" CLOCHE_VERSION);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, swallow);
  curl_easy_setopt(curl, CURLOPT_DNS_CACHE_TIMEOUT, 0L);
  if (d->roots_n) {
    struct curl_blob roots = {.data = d->roots, .len = d->roots_n, .flags = CURL_BLOB_NOCOPY};
    curl_easy_setopt(curl, CURLOPT_CAINFO_BLOB, &roots);
  }
  return curl;
}

/* ---- the thread ---- */

static void wait_ms(struct delivery *d, int64_t ms)
{
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  until.tv_sec += ms / 1000;
  until.tv_nsec += ms % 1000 * 1000000;
  if (until.tv_nsec >= 1000000000)
    until.tv_sec++, until.tv_nsec -= 1000000000;
  pthread_mutex_lock(&d->mutex);
  while (!d->stopping && pthread_cond_timedwait(&d->changed, &d->mutex, &until) == 0)
    ;
  pthread_mutex_unlock(&d->mutex);
}

static void complain(struct delivery *d, const char *why)
{
  int64_t now = clock_mono_us();
  if (d->complained_us && now - d->complained_us < COMPLAIN_US)
    return;
  d->complained_us = now;
  struct delivery_counts c = delivery_counts(d);
  log_warn("telemetry to %s: %s; %llu requests were sent, %llu given up, %llu dropped for want of room",
           d->config->endpoint, why, (unsigned long long)c.sent, (unsigned long long)c.failed,
           (unsigned long long)c.dropped);
}

static bool try_all(struct delivery *d, CURL *curl, const struct request *q)
{
  char why[CURL_ERROR_SIZE];
  int64_t pause = PAUSE_MS;
  for (int i = 0; i < ATTEMPTS; i++, pause = MIN(pause * 2, (int64_t)PAUSE_MAX_MS)) {
    int r = post(d, curl, q, why);
    if (!r)
      return true;
    complain(d, why);
    if (r != -EAGAIN || d->stopping)
      return false;
    wait_ms(d, pause);
  }
  return false;
}

static void *deliver(void *arg)
{
  struct delivery *d = arg;
  CURL *curl = make_handle(d);
  pthread_mutex_lock(&d->mutex);
  while (curl) {
    while (!d->n && !d->stopping)
      pthread_cond_wait(&d->changed, &d->mutex);
    if (!d->n || (d->stopping && clock_mono_us() > d->stop_us))
      break;
    struct request q = d->queue[d->first];
    d->first = (d->first + 1) % REQUESTS;
    d->n--;
    pthread_mutex_unlock(&d->mutex);
    bool sent = try_all(d, curl, &q);
    size_t bytes = q.body.cap;
    buf_free(&q.body);
    pthread_mutex_lock(&d->mutex);
    d->bytes -= bytes;
    d->counts.sent += sent;
    d->counts.failed += !sent;
  }
  pthread_mutex_unlock(&d->mutex);
  if (curl)
    curl_easy_cleanup(curl);
  return NULL;
}

bool delivery_add(struct delivery *d, const char *path, struct buf *body)
{
  pthread_mutex_lock(&d->mutex);
  bool room = d->n < REQUESTS && d->bytes + body->cap <= QUEUE_BYTES && !buf_failed(body);
  if (room) {
    struct request *q = &d->queue[(d->first + d->n++) % REQUESTS];
    snprintf(q->path, sizeof(q->path), "%s", path);
    q->body = *body;
    d->bytes += body->cap;
    *body = BUF_INIT(body->max);
    pthread_cond_signal(&d->changed);
  } else {
    d->counts.dropped++;
  }
  pthread_mutex_unlock(&d->mutex);
  return room;
}

size_t delivery_waiting(struct delivery *d)
{
  pthread_mutex_lock(&d->mutex);
  size_t n = d->n;
  pthread_mutex_unlock(&d->mutex);
  return n;
}

struct delivery_counts delivery_counts(struct delivery *d)
{
  pthread_mutex_lock(&d->mutex);
  struct delivery_counts c = d->counts;
  pthread_mutex_unlock(&d->mutex);
  return c;
}

void delivery_stop(struct delivery *d, unsigned ms)
{
  pthread_mutex_lock(&d->mutex);
  d->stopping = true;
  d->stop_us = clock_mono_us() + (int64_t)ms * 1000;
  pthread_cond_broadcast(&d->changed);
  pthread_mutex_unlock(&d->mutex);
  struct timespec until;
  clock_gettime(CLOCK_REALTIME, &until);
  until.tv_sec += ms / 1000 + 1;
  pthread_timedjoin_np(d->thread, NULL, &until);
}

/* ---- start ---- */

static int split_url(struct delivery *d, struct err *err)
{
  struct str url = str_of(d->config->endpoint), rest, host, port = STR_NONE, path;
  bool https = str_starts(url, STR("https://"));
  if (!https && !str_starts(url, STR("http://")))
    return err_set(err, -EINVAL, "otlp_endpoint must be http://HOST:PORT or https://HOST[:PORT], not '%s'",
                   d->config->endpoint);
  str_cut(str_skip(url, https ? 8 : 7), '/', &rest, &path);
  host = rest;
  if (rest.n && rest.p[0] == '[') {
    str_cut(str_skip(rest, 1), ']', &host, &port);
    port = str_skip(port, 1);
  } else {
    str_cut(rest, ':', &host, &port);
  }
  port = port.n ? port : https ? STR("443") : STR("80");
  if (!host.n || str_find(host, '@') >= 0 || str_copyz(host, d->host, sizeof(d->host)) ||
      str_copyz(port, d->port, sizeof(d->port)) || (url.n && url.p[url.n - 1] == '/'))
    return err_set(err, -EINVAL, "otlp_endpoint must be a URL with a host and without a slash at its end, not '%s'",
                   d->config->endpoint);
  return 0;
}

static int read_headers(struct delivery *d, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT(HEADERS_MAX);
  d->headers = curl_slist_append(NULL, "Content-Type: application/json");
  d->headers = curl_slist_append(d->headers, "Expect:");
  int r = d->config->headers_file[0] ? file_read(d->config->headers_file, &b) : 0;
  if (r)
    return err_set(err, r, "otlp_headers_file %s: %s", d->config->headers_file, strerrordesc_np(-r));
  struct str left = buf_str(&b), line;
  while (left.n) {
    char text[4096];
    str_cut(left, '\n', &line, &left);
    line = str_trim(line);
    if (!line.n || line.p[0] == '#')
      continue;
    if (str_find(line, ':') <= 0 || str_copyz(line, text, sizeof(text)))
      return err_set(err, -EINVAL, "otlp_headers_file %s: a line is not 'Name: value'", d->config->headers_file);
    d->headers = curl_slist_append(d->headers, text);
    explicit_bzero(text, sizeof(text));
  }
  if (b.p)
    explicit_bzero(b.p, b.n);
  return 0;
}

static int read_roots(struct delivery *d, struct err *err)
{
  const char *const files[] = {"/etc/ssl/certs/ca-certificates.crt", d->config->ca};
  struct buf b = BUF_INIT((size_t)16 << 20);
  for (size_t i = 0; i < ARRAY_LEN(files); i++) {
    int r = files[i][0] ? file_read(files[i], &b) : 0;
    if (r && i == 1)
      return err_set(err, r, "otlp_ca %s: %s", files[i], strerrordesc_np(-r));
    buf_addc(&b, '\n');
  }
  d->roots = b.p;
  d->roots_n = b.n;
  return 0;
}

struct delivery *delivery_new(const struct exporter_config *config, struct err *err)
{
  struct delivery *d = xcalloc(1, sizeof(*d));
  pthread_condattr_t attr;
  d->config = config;
  pthread_mutex_init(&d->mutex, NULL);
  pthread_condattr_init(&attr);
  pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
  pthread_cond_init(&d->changed, &attr);
  curl_global_init(CURL_GLOBAL_ALL);
  bool bad = split_url(d, err) || read_headers(d, err) || read_roots(d, err);
  return bad ? NULL : d;
}

int delivery_start(struct delivery *d, struct err *err)
{
  int e = pthread_create(&d->thread, NULL, deliver, d);
  return e ? err_set(err, -e, "exporter: thread: %s", strerrordesc_np(e)) : 0;
}
