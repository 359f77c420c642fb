/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A client: libcurl's multi interface on an epoll descriptor. Whoever waits for an operation drives all of them; of
 * several threads that wait one polls the descriptor without the lock, the others sleep until theirs is done or it is
 * their turn to poll.
 */
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include "internal.h"

#define TEXT(x)         TEXT_(x)
#define TEXT_(x)        #x
#define LIBRARY_VERSION TEXT(CLOCHE_VERSION_MAJOR) "." TEXT(CLOCHE_VERSION_MINOR) "." TEXT(CLOCHE_VERSION_PATCH)

static pthread_once_t curl_once = PTHREAD_ONCE_INIT;
static CURLcode curl_ready;

static void init_curl(void)
{
  curl_ready = curl_global_init(CURL_GLOBAL_DEFAULT);
}

const char *cloche_version(void)
{
  return LIBRARY_VERSION;
}

int64_t now_ms(void)
{
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

void options_copy(void *to, const void *given, size_t size)
{
  if (!given)
    return;
  size_t has;
  memcpy(&has, given, sizeof has);
  memcpy(to, given, has < size ? has : size);
}

void client_lock(struct cloche *c)
{
  pthread_mutex_lock(&c->lock);
  c->depth++;
}

void client_unlock(struct cloche *c)
{
  c->depth--;
  pthread_mutex_unlock(&c->lock);
}

void client_wake(struct cloche *c)
{
  uint64_t one = 1;
  ssize_t n = write(c->wakefd, &one, sizeof one);
  (void)n; /* full means that it is readable already */
}

bool client_watch(struct cloche *c, int fd, unsigned events)
{
  struct epoll_event e = {.events = events, .data.fd = fd};
  if (epoll_ctl(c->epfd, EPOLL_CTL_ADD, fd, &e) == 0)
    return true;
  return errno == EEXIST && epoll_ctl(c->epfd, EPOLL_CTL_MOD, fd, &e) == 0;
}

void client_unwatch(struct cloche *c, int fd)
{
  epoll_ctl(c->epfd, EPOLL_CTL_DEL, fd, NULL);
}

static int on_socket(CURL *easy, curl_socket_t fd, int what, void *user, void *of_socket)
{
  struct cloche *c = user;
  if (what == CURL_POLL_REMOVE) {
    client_unwatch(c, fd);
    return 0;
  }
  unsigned events = (what & CURL_POLL_IN ? EPOLLIN : 0u) | (what & CURL_POLL_OUT ? EPOLLOUT : 0u);
  return client_watch(c, fd, events) ? 0 : -1;
}

static int on_timer(CURLM *multi, long ms, void *user)
{
  struct cloche *c = user;
  c->timer_at = ms < 0 ? -1 : now_ms() + ms;
  return 0;
}

CURL *client_handle(struct cloche *c)
{
  return c->idle_count ? c->idle[--c->idle_count] : curl_easy_init();
}

void client_keep(struct cloche *c, CURL *easy)
{
  if (c->idle_count == IDLE_HANDLES) {
    curl_easy_cleanup(easy);
    return;
  }
  curl_easy_reset(easy);
  c->idle[c->idle_count++] = easy;
}

static void take_finished(struct cloche *c)
{
  int left;
  CURLMsg *m;
  while ((m = curl_multi_info_read(c->multi, &left))) {
    if (m->msg != CURLMSG_DONE)
      continue;
    struct cloche_op *op = NULL;
    curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&op);
    op->finished = true;
    op->result = m->data.result;
  }
}

static void source_ready(struct cloche *c, int fd)
{
  for (struct cloche_op *op = c->ops; op; op = op->next) {
    if (op->watch_fd != fd)
      continue;
    client_unwatch(c, fd);
    close(fd);
    op->watch_fd = -1;
    op->source_waits = false;
    op->fresh = true;
    if (op->easy && op->source_fd >= 0)
      curl_easy_pause(op->easy, CURLPAUSE_CONT);
    return;
  }
}

static bool is_source(const struct cloche *c, int fd)
{
  for (const struct cloche_op *op = c->ops; op; op = op->next)
    if (op->watch_fd == fd)
      return true;
  return false;
}

static void run_sockets(struct cloche *c)
{
  struct epoll_event events[64];
  int n = epoll_wait(c->epfd, events, 64, 0), running;
  for (int i = 0; i < n; i++) {
    int fd = events[i].data.fd;
    unsigned e = events[i].events;
    if (fd == c->wakefd) {
      uint64_t count;
      ssize_t got = read(fd, &count, sizeof count);
      (void)got;
    } else if (is_source(c, fd)) {
      source_ready(c, fd);
    } else {
      int bits = (e & EPOLLIN ? CURL_CSELECT_IN : 0) | (e & EPOLLOUT ? CURL_CSELECT_OUT : 0) |
                 (e & (EPOLLERR | EPOLLHUP) ? CURL_CSELECT_ERR : 0);
      curl_multi_socket_action(c->multi, fd, bits, &running);
    }
  }
  if (c->timer_at >= 0 && now_ms() >= c->timer_at) {
    c->timer_at = -1;
    curl_multi_socket_action(c->multi, CURL_SOCKET_TIMEOUT, 0, &running);
  }
  take_finished(c);
}

static int64_t op_due(const struct cloche_op *op)
{
  int64_t due = op->deadline;
  if (op->kind == OP_TRANSFER && due >= 0)
    due = op->progress_at + op->timeout_ms;
  if (op->retry_at >= 0 && (due < 0 || op->retry_at < due))
    due = op->retry_at;
  return due;
}

/* The next op that has something to do; busy ones are in a callback further up the stack. */
static struct cloche_op *next_ready(struct cloche *c)
{
  int64_t now = now_ms();
  for (struct cloche_op *op = c->ops; op; op = op->next) {
    if (op->busy)
      continue;
    int64_t due = op_due(op);
    bool fired = op->cancel && atomic_load(&op->cancel->fired);
    bool stuck = op->source_waits && op->sink_fd >= 0;
    if (fired || (due >= 0 && now >= due) || (!stuck && (op->finished || (op->streaming && op->fresh))))
      return op;
  }
  return NULL;
}

void client_run(struct cloche *c)
{
  run_sockets(c);
  struct cloche_op *op;
  while ((op = next_ready(c)))
    op_dispatch(op);
}

static int timeout_of(struct cloche *c)
{
  int64_t due = c->timer_at;
  for (const struct cloche_op *op = c->ops; op; op = op->next) {
    int64_t d = op->busy ? -1 : op_due(op);
    if (d >= 0 && (due < 0 || d < due))
      due = d;
  }
  if (due < 0)
    return -1;
  int64_t left = due - now_ms();
  return left < 0 ? 0 : left > INT_MAX ? INT_MAX : (int)left;
}

void client_wait(struct cloche *c, const bool *until)
{
  for (;;) {
    client_run(c);
    if (*until)
      return;
    struct pollfd p = {.fd = c->epfd, .events = POLLIN};
    if (c->depth > 1) { /* in a callback: the lock stays ours */
      poll(&p, 1, timeout_of(c));
    } else if (c->polling) {
      client_wake(c); /* the thread that polls must know of our deadline */
      c->waiters++;
      c->depth--;
      pthread_cond_wait(&c->turn, &c->lock);
      c->depth++;
      c->waiters--;
    } else {
      int ms = timeout_of(c);
      c->polling = true;
      client_unlock(c);
      poll(&p, 1, ms);
      client_lock(c);
      c->polling = false;
      if (c->waiters)
        pthread_cond_broadcast(&c->turn);
    }
  }
}

int cloche_fd(const struct cloche *client)
{
  return client->epfd;
}

int cloche_timeout(struct cloche *client)
{
  client_lock(client);
  int ms = timeout_of(client);
  client_unlock(client);
  return ms;
}

enum cloche_code cloche_drive(struct cloche *client)
{
  client_lock(client);
  client_run(client);
  client_unlock(client);
  return CLOCHE_OK;
}

static const char *first_of(const char *a, const char *b, const char *c, const char *d)
{
  return a && *a ? a : b && *b ? b : c && *c ? c : d && *d ? d : NULL;
}

static char *url_copy(const char *url, const char *prefix, const char *domain)
{
  struct buf b = {0};
  if (url)
    buf_puts(&b, url);
  else
    buf_printf(&b, "%s%s", prefix, domain);
  while (!b.failed && b.len && b.data[b.len - 1] == '/')
    b.data[--b.len] = 0;
  return buf_steal(&b);
}

static bool is_url(const char *url)
{
  return !url || strncmp(url, "http://", 7) == 0 || strncmp(url, "https://", 8) == 0;
}

static enum cloche_code configure(struct cloche *c, const struct cloche_config *o, struct cloche_error *error)
{
  const char *all = first_of(o->url, getenv("CLOCHE_URL"), NULL, NULL);
  const char *key = first_of(o->key, getenv("CLOCHE_KEY"), getenv("E2B_API_KEY"), NULL);
  const char *domain = first_of(o->domain, getenv("E2B_DOMAIN"), "e2b.app", NULL);
  const char *api = first_of(o->api_url, all, getenv("E2B_API_URL"), NULL);
  const char *boxes = first_of(o->sandbox_url, all, getenv("E2B_SANDBOX_URL"), NULL);
  const char *volumes = first_of(o->volume_url, all, getenv("E2B_VOLUME_API_URL"), NULL);
  if (!key)
    return error_set(error, CLOCHE_EINVAL, "no API key: set CLOCHE_KEY or E2B_API_KEY, or give one in the config");
  const char *urls[] = {api, boxes, volumes};
  for (int i = 0; i < 3; i++)
    if (!is_url(urls[i]))
      return error_set(error, CLOCHE_EINVAL, "'%s' is no http:// or https:// URL", urls[i]);
  const char *ca = first_of(o->ca_file, getenv("SSL_CERT_FILE"), NULL, NULL);
  struct buf agent = {0};
  buf_printf(&agent, "%s%slibcloche/" LIBRARY_VERSION, o->user_agent ? o->user_agent : "", o->user_agent ? " " : "");
  c->user_agent = buf_steal(&agent);
  c->key = strdup(key);
  c->domain = strdup(domain);
  c->api_url = url_copy(api, "https://api.", domain);
  c->volume_url = volumes ? url_copy(volumes, "", "") : NULL;
  c->sandbox_url = boxes ? url_copy(boxes, "", "") : NULL;
  c->ca_file = ca ? strdup(ca) : NULL;
  c->proxy = o->proxy ? strdup(o->proxy) : NULL;
  if (!c->user_agent || !c->key || !c->domain || !c->api_url || (volumes && !c->volume_url) ||
      (boxes && !c->sandbox_url) || (ca && !c->ca_file) || (o->proxy && !c->proxy))
    return op_no_memory(error);
  c->timeout_ms = o->timeout_ms ? o->timeout_ms : 60000;
  c->retries = o->retries ? o->retries : 3;
  c->max_answer = o->max_answer ? o->max_answer : LINE_BYTES_MAX;
  c->open_socket = o->open_socket;
  c->open_socket_arg = o->open_socket_arg;
  return CLOCHE_OK;
}

static bool prepare(struct cloche *c)
{
  pthread_mutexattr_t attr;
  pthread_mutexattr_init(&attr);
  pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_RECURSIVE);
  pthread_mutex_init(&c->lock, &attr);
  pthread_mutexattr_destroy(&attr);
  pthread_cond_init(&c->turn, NULL);
  c->timer_at = -1;
  c->epfd = epoll_create1(EPOLL_CLOEXEC);
  c->wakefd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  if (c->epfd < 0 || c->wakefd < 0 || !client_watch(c, c->wakefd, EPOLLIN))
    return false;
  c->multi = curl_multi_init();
  if (!c->multi)
    return false;
  curl_multi_setopt(c->multi, CURLMOPT_SOCKETFUNCTION, on_socket);
  curl_multi_setopt(c->multi, CURLMOPT_SOCKETDATA, c);
  curl_multi_setopt(c->multi, CURLMOPT_TIMERFUNCTION, on_timer);
  curl_multi_setopt(c->multi, CURLMOPT_TIMERDATA, c);
  curl_multi_setopt(c->multi, CURLMOPT_MAXCONNECTS, 64L);
  return true;
}

static void client_free(struct cloche *c)
{
  for (int i = 0; i < c->idle_count; i++)
    curl_easy_cleanup(c->idle[i]);
  if (c->multi)
    curl_multi_cleanup(c->multi);
  if (c->epfd >= 0)
    close(c->epfd);
  if (c->wakefd >= 0)
    close(c->wakefd);
  pthread_cond_destroy(&c->turn);
  pthread_mutex_destroy(&c->lock);
  char *texts[] = {c->key, c->api_url, c->sandbox_url, c->volume_url, c->domain, c->ca_file, c->user_agent, c->proxy};
  for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
    free(texts[i]);
  free(c);
}

enum cloche_code cloche_open(const struct cloche_config *config, struct cloche **client, struct cloche_error *error)
{
  OPTIONS(cloche_config, o, config);
  *client = NULL;
  pthread_once(&curl_once, init_curl);
  if (curl_ready != CURLE_OK)
    return error_set(error, CLOCHE_ESYSTEM, "libcurl: %s", curl_easy_strerror(curl_ready));
  struct cloche *c = calloc(1, sizeof *c);
  if (!c)
    return op_no_memory(error);
  enum cloche_code code = prepare(c) ? CLOCHE_OK : error_set(error, CLOCHE_ESYSTEM, "epoll: %s", strerror(errno));
  if (code == CLOCHE_OK)
    code = configure(c, &o, error);
  if (code != CLOCHE_OK) {
    client_free(c);
    return code;
  }
  *client = c;
  return CLOCHE_OK;
}

void cloche_close(struct cloche *client)
{
  if (!client)
    return;
  client_lock(client);
  while (client->ops)
    op_end(client->ops, CLOCHE_ECANCELED);
  client_unlock(client);
  client_free(client);
}

struct cloche_cancel *cloche_cancel_new(struct cloche *client)
{
  struct cloche_cancel *cancel = calloc(1, sizeof *cancel);
  if (cancel)
    cancel->client = client;
  return cancel;
}

void cloche_cancel_fire(struct cloche_cancel *cancel)
{
  int before = errno;
  atomic_store(&cancel->fired, 1);
  client_wake(cancel->client);
  errno = before;
}

void cloche_cancel_reset(struct cloche_cancel *cancel)
{
  atomic_store(&cancel->fired, 0);
}

void cloche_cancel_free(struct cloche_cancel *cancel)
{
  free(cancel);
}
