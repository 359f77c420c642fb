/* SPDX-License-Identifier: Apache-2.0 */
/* dial.c - see dial.h. TLS to a proxy is a relay of its own between the proxy and one end of a socket pair: what is
 * said to the proxy, and the tunnel after it, use the other end and know nothing of it. */
#include "egress/dial.h"

#include "egress/proxy_talk.h"
#include "egress/relay.h"
#include "jail/net/never.h"
#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>

struct dial {
  struct lookup lookup; /* first */
  struct gateway *gateway;
  struct rules *rules;
  char name[DOMAIN_SIZE];
  uint32_t address;
  uint16_t port;
  dial_fn *fn;
  void *arg;
  int fd;
  uv_poll_t *poll;
  uv_timer_t *timer;
  bool resolving, connecting, cancelled;
  struct proxy_talk talk;
  struct link *link; /* to the proxy in TLS */
  char got[PROXY_ANSWER_MAX];
  size_t ngot;
  char why[200];
};

/* Outlives the dial: it is the tunnel's. */
struct link {
  struct dial *dial; /* NULL once that is over */
  struct relay *relay;
};

static void handle_closed(uv_handle_t *h)
{
  free(h);
}

static void drop_handles(struct dial *d)
{
  if (d->poll)
    uv_close((uv_handle_t *)steal(&d->poll), handle_closed);
  if (d->timer)
    uv_close((uv_handle_t *)steal(&d->timer), handle_closed);
}

static void dial_free(struct dial *d)
{
  drop_handles(d);
  if (d->link)
    d->link->dial = NULL;
  if (d->link && d->fd >= 0)
    relay_cut(d->link->relay); /* nobody has got its other end */
  if (d->fd >= 0)
    close(d->fd);
  rules_unref(d->rules);
  free(d);
}

void dial_cancel(struct dial *d)
{
  if (!d)
    return;
  d->cancelled = true;
  drop_handles(d);
  if (!d->resolving || lookup_cancel(&d->gateway->lookups, &d->lookup))
    dial_free(d); /* else a thread holds it, one of the few that its team may have */
}

static void finish(struct dial *d, int r, const char *why)
{
  dial_fn *fn = d->fn;
  void *arg = d->arg;
  char text[sizeof(d->why)];
  drop_handles(d);
  if (d->cancelled) {
    dial_free(d);
    return;
  }
  int fd = r ? r : steal_fd(&d->fd);
  snprintf(text, sizeof(text), "%s", d->why[0] ? d->why : why ? why : "");
  dial_free(d);
  fn(arg, fd, text);
}

static void fail(struct dial *d, int code, const char *why)
{
  finish(d, code < 0 ? code : -EIO, why);
}

/* ---- words with the proxy ---- */

static void watch(struct dial *d, int events, uv_poll_cb cb);

static void send_words(struct dial *d, const struct buf *out)
{
  if (out->n && send(d->fd, out->p, out->n, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)out->n)
    snprintf(d->why, sizeof(d->why), "the proxy takes no bytes");
}

/* Never a byte more than is wanted: what follows is the server's. */
static ssize_t read_words(struct dial *d)
{
  size_t most = d->talk.want ? d->talk.want - d->ngot : 1;
  ssize_t n = recv(d->fd, d->got + d->ngot, most, MSG_DONTWAIT);
  d->ngot += n > 0 ? (size_t)n : 0;
  return n < 0 ? -errno : n;
}

/* 0: more must come; 1: the tunnel stands. */
static int hear_words(struct dial *d, const char **why)
{
  cleanup_buf struct buf out = BUF_INIT(4096);
  if (d->talk.want && d->ngot < d->talk.want)
    return 0;
  bool whole = d->talk.want;
  int r = proxy_talk_next(&d->talk, str_make(d->got, d->ngot), &out, why);
  if (whole)
    d->ngot = 0;
  send_words(d, &out);
  if (out.p)
    explicit_bzero(out.p, out.n);
  return d->why[0] ? -EIO : r;
}

static void proxy_says(uv_poll_t *p, int status, int events)
{
  struct dial *d = p->data;
  const char *why = "it broke the connection";
  int r = 0;
  ssize_t n = 1;
  while (r == 0 && (n = read_words(d)) > 0)
    r = hear_words(d, &why);
  if (r == 1) {
    finish(d, 0, NULL);
  } else if (r < 0) {
    fail(d, r, why);
  } else if (n == -EAGAIN || n == -EINTR) {
    return;
  } else if (d->link) {
    uv_poll_stop(d->poll); /* link_done knows why */
  } else {
    fail(d, -ECONNRESET, why);
  }
}

static void begin_talk(struct dial *d)
{
  cleanup_buf struct buf out = BUF_INIT(4096);
  d->talk = (struct proxy_talk){
      .proxy = &d->rules->policy.proxy, .name = str_of(d->name), .address = d->address, .port = d->port};
  proxy_talk_begin(&d->talk, &out);
  send_words(d, &out);
  if (out.p)
    explicit_bzero(out.p, out.n);
  watch(d, UV_READABLE, proxy_says);
}

/* ---- TLS to the proxy ---- */

static void link_done(void *arg, uint64_t in, uint64_t out, const char *refusal)
{
  struct link *l = arg;
  struct dial *d = l->dial;
  free(l);
  if (!d)
    return;
  d->link = NULL;
  if (refusal)
    snprintf(d->why, sizeof(d->why), "TLS: %s", refusal);
  fail(d, -ECONNRESET, "it broke the connection");
}

static int begin_tls(struct dial *d)
{
  const struct egress_proxy *x = &d->rules->policy.proxy;
  int pair[2];
  char name[DOMAIN_SIZE];
  str_copyz(x->server_name.n ? x->server_name : x->host, name, sizeof(name));
  if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair))
    return -errno;
  d->link = xcalloc(1, sizeof(*d->link));
  d->link->dial = d;
  struct relay_plan plan = {.loop = d->gateway->loop,
                            .high_water = (size_t)d->gateway->config->buffer_kb << 10,
                            .near = pair[1],
                            .far = steal_fd(&d->fd),
                            .idle_ms = d->gateway->config->idle_seconds * 1000,
                            .pair = true,
                            .tls = d->rules->proxy_tls ? d->rules->proxy_tls : d->gateway->client,
                            .name = name,
                            .done = link_done,
                            .arg = d->link};
  d->fd = pair[0];
  d->link->relay = relay_start(&plan);
  if (d->link->relay)
    return 0;
  free(steal(&d->link));
  return -ENOMEM;
}

/* ---- connecting ---- */

static void connected(uv_poll_t *p, int status, int events)
{
  struct dial *d = p->data;
  int code = 0;
  socklen_t n = sizeof(code);
  if (getsockopt(d->fd, SOL_SOCKET, SO_ERROR, &code, &n) || code) {
    fail(d, code ? -code : -EIO, strerrordesc_np(code ? code : EIO));
    return;
  }
  uv_close((uv_handle_t *)steal(&d->poll), handle_closed);
  const struct egress_proxy *x = &d->rules->policy.proxy;
  int r = x->kind && x->tls ? begin_tls(d) : 0;
  if (r)
    fail(d, r, "out of memory or descriptors");
  else if (x->kind)
    begin_talk(d);
  else
    finish(d, 0, NULL);
}

static void watch(struct dial *d, int events, uv_poll_cb cb)
{
  if (!d->poll) {
    d->poll = xcalloc(1, sizeof(*d->poll));
    uv_poll_init(d->gateway->loop, d->poll, d->fd);
    d->poll->data = d;
  }
  uv_poll_start(d->poll, events, cb);
}

static void too_late(uv_timer_t *t)
{
  struct dial *d = t->data;
  if (d->resolving) { /* a thread may still hold it */
    dial_fn *fn = d->fn;
    void *arg = d->arg;
    dial_cancel(d);
    fn(arg, -ETIMEDOUT, "its name was not resolved in time");
    return;
  }
  fail(d, -ETIMEDOUT, "it did not answer in time");
}

static int reach(struct dial *d, uint32_t address, uint16_t port)
{
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(address)}};
  if (never_reached(address)) {
    snprintf(d->why, sizeof(d->why), "its address %u.%u.%u.%u is in a private or reserved range", address >> 24,
             address >> 16 & 255, address >> 8 & 255, address & 255);
    return -EACCES;
  }
  d->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (d->fd < 0)
    return -errno;
  if (connect(d->fd, (struct sockaddr *)&a, sizeof(a)) && errno != EINPROGRESS)
    return -errno;
  watch(d, UV_WRITABLE, connected);
  return 0;
}

/* ---- names ---- */

static void resolved(struct lookup *l, int status, struct addrinfo *list)
{
  struct dial *d = (struct dial *)l;
  d->resolving = false;
  if (d->cancelled) {
    if (list)
      freeaddrinfo(list);
    dial_free(d);
    return;
  }
  int r = -EHOSTUNREACH;
  const char *why = status ? gai_strerror(status) : "its name has no address";
  if (!status && list && list->ai_family == AF_INET) {
    r = reach(d, ntohl(((struct sockaddr_in *)list->ai_addr)->sin_addr.s_addr), d->rules->policy.proxy.port);
    why = strerrordesc_np(-r);
  }
  if (list)
    freeaddrinfo(list);
  if (r)
    fail(d, r, why);
}

static int resolve(struct dial *d)
{
  const struct egress_proxy *x = &d->rules->policy.proxy;
  struct in_addr a;
  if (str_copyz(x->host, d->lookup.name, sizeof(d->lookup.name)))
    return -EINVAL;
  if (inet_pton(AF_INET, d->lookup.name, &a) == 1)
    return reach(d, ntohl(a.s_addr), x->port);
  snprintf(d->lookup.port, sizeof(d->lookup.port), "%u", x->port);
  d->lookup.family = AF_INET;
  d->lookup.done = resolved;
  d->resolving = true;
  lookup_start(&d->gateway->lookups, str_of(d->rules->policy.team), &d->lookup);
  return 0;
}

static void begin(uv_timer_t *t)
{
  struct dial *d = t->data;
  uv_timer_start(t, too_late, d->gateway->config->connect_seconds * 1000ull, 0);
  int r = d->rules->policy.proxy.kind ? resolve(d) : reach(d, d->address, d->port);
  if (r)
    fail(d, r, strerrordesc_np(-r));
}

struct dial *dial_start(struct gateway *g, struct rules *rules, struct str name, uint32_t address, uint16_t port,
                        dial_fn *fn, void *arg)
{
  struct dial *d = xcalloc(1, sizeof(*d));
  d->gateway = g;
  d->rules = rules_ref(rules);
  d->fd = -1;
  d->address = address;
  d->port = port;
  d->fn = fn;
  d->arg = arg;
  str_copyz(name, d->name, sizeof(d->name));
  d->timer = xcalloc(1, sizeof(*d->timer));
  uv_timer_init(g->loop, d->timer);
  d->timer->data = d;
  uv_timer_start(d->timer, begin, 0, 0);
  return d;
}
