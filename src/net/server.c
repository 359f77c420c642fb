/* SPDX-License-Identifier: Apache-2.0 */
/* server.c - listening, admitting, counting.
 *
 * When descriptors run out, accepting rests for ACCEPT_REST_MS instead of spinning on a readable listener. Over
 * conns_max the connection that has been idle longest makes room; when none is idle the newcomer gets 503. So does one
 * from an address that has address_max connections open on which no request was accepted. */
#include "net/exchange.h"

#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>

#define ACCEPT_REST_MS 100
#define ACCEPT_ROUNDS  64

struct listener {
  uv_poll_t poll;
  struct http_server *server;
  struct listener *next;
  admit_fn admit;
  void *arg;
  int fd;
};

/* ---- idle connections, oldest first ---- */

void server_idle_remove(struct http_server *s, struct peer *p)
{
  if (!p->in_idle)
    return;
  p->in_idle = false;
  if (p->idle_prev)
    p->idle_prev->idle_next = p->idle_next;
  else
    s->idle_first = p->idle_next;
  if (p->idle_next)
    p->idle_next->idle_prev = p->idle_prev;
  else
    s->idle_last = p->idle_prev;
}

void server_idle_add(struct http_server *s, struct peer *p)
{
  server_idle_remove(s, p);
  p->in_idle = true;
  p->idle_next = NULL;
  p->idle_prev = s->idle_last;
  if (s->idle_last)
    s->idle_last->idle_next = p;
  else
    s->idle_first = p;
  s->idle_last = p;
}

/* ---- connections without an accepted request, by address ---- */

struct address {
  size_t open;
  uint8_t key[16];
  size_t n;
};

/* An IPv6 network of one customer is one address; an IPv4 address in IPv6 form is itself. */
static size_t address_key(const struct peer *p, uint8_t key[16])
{
  const struct in6_addr *six = &p->address.in6.sin6_addr;
  if (p->address.any.sa_family == AF_INET) {
    memcpy(key, &p->address.in4.sin_addr, 4);
    return 4;
  }
  if (p->address.any.sa_family != AF_INET6)
    return 0;
  bool four = IN6_IS_ADDR_V4MAPPED(six);
  memcpy(key, &six->s6_addr[four ? 12 : 0], four ? 4 : 8);
  return four ? 4 : 8;
}

static bool address_full(struct http_server *s, const struct peer *p)
{
  uint8_t key[16];
  size_t n = s->limits.address_max ? address_key(p, key) : 0;
  const struct address *a = n ? map_get(&s->addresses, str_make(key, n)) : NULL;
  return a && a->open >= s->limits.address_max;
}

static void address_count(struct http_server *s, struct peer *p)
{
  uint8_t key[16];
  size_t n = s->limits.address_max ? address_key(p, key) : 0;
  struct address *a = n ? map_get(&s->addresses, str_make(key, n)) : NULL;
  if (!n)
    return;
  if (!a) {
    a = xcalloc(1, sizeof(*a));
    memcpy(a->key, key, n);
    a->n = n;
    map_put(&s->addresses, str_make(key, n), a);
  }
  a->open++;
  p->unproven = a;
}

void server_known(struct http_server *s, struct peer *p)
{
  struct address *a = steal(&p->unproven);
  if (!a || --a->open)
    return;
  map_del(&s->addresses, str_make(a->key, a->n));
  free(a);
}

/* ---- admitting ---- */

static void turn_away(struct net *net, int fd)
{
  static const char body[] = "{\"code\":503,\"message\":\"too many connections\"}";
  char answer[320];
  int n = snprintf(answer, sizeof(answer),
                   "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nRetry-After: 1\r\n"
                   "Content-Length: %zu\r\nConnection: close\r\n\r\n%s",
                   sizeof(body) - 1, body);
  send(fd, answer, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
  shutdown(fd, SHUT_WR);
  /* Unread bytes would make the close a reset that takes the answer with it. */
  while (recv(fd, net->in, NET_IN_SIZE, MSG_DONTWAIT) == (ssize_t)NET_IN_SIZE)
    continue;
  close(fd);
}

static void note_address(struct peer *p, int fd)
{
  struct sockaddr_storage a = {0};
  socklen_t n = sizeof(a);
  if (getpeername(fd, (struct sockaddr *)&a, &n) == 0 && (a.ss_family == AF_INET || a.ss_family == AF_INET6))
    memcpy(&p->address, &a, sizeof(p->address));
}

bool peer_is_near(const struct peer *p)
{
  const struct sockaddr_in6 *six = &p->address.in6;
  if (p->address.any.sa_family == AF_INET)
    return ntohl(p->address.in4.sin_addr.s_addr) >> 24 == 127;
  return p->address.any.sa_family == AF_INET6 &&
         (IN6_IS_ADDR_LOOPBACK(&six->sin6_addr) ||
          (IN6_IS_ADDR_V4MAPPED(&six->sin6_addr) && six->sin6_addr.s6_addr[12] == 127));
}

/* A host may have a congestion control made for long ways, as bbr is: it paces, and on the loopback that is nothing but
 * timers, half of the processor time of a large body. The plainest one is always there and allowed to everybody. */
static void unpace(const struct peer *p, int fd)
{
  if (peer_is_near(p))
    setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno", 4);
}

void http_server_owned(struct http_server *s, void (*left)(void *owner))
{
  s->left = left;
}

void *http_x_owner(const struct http_x *x)
{
  return x->peer->owner;
}

void server_left(struct peer *p)
{
  if (p->owner && p->server->left)
    p->server->left(p->owner);
}

int server_admit(struct http_server *s, int fd, bool plain, struct peer **out)
{
  struct peer *p = xcalloc(1, sizeof(*p));
  p->server = s;
  p->body.done = true;
  note_address(p, fd);
  bool full = address_full(s, p);
  if (!full && s->nconns >= s->limits.conns_max && s->idle_first)
    peer_end(s->idle_first, HTTP_DONE, false);
  if (full || s->nconns >= s->limits.conns_max) {
    free(p);
    if (plain)
      turn_away(s->net, fd);
    else
      close(fd);
    return -EMFILE;
  }
  unpace(p, fd);
  int rc = conn_start(&p->conn, s->net, fd, &peer_ops, s->limits.head_max);
  if (rc < 0) {
    free(p);
    return rc;
  }
  p->conn.group = s;
  p->conn.stall_ms = s->limits.linger_ms;
  s->nconns++;
  s->refs++;
  address_count(s, p);
  server_idle_add(s, p);
  conn_deadline(&p->conn, s->limits.idle_ms);
  *out = p;
  return 0;
}

int http_server_adopt(struct http_server *s, int fd)
{
  struct peer *p;
  return server_admit(s, fd, true, &p);
}

static int admit_plain(struct http_server *s, int fd, void *arg)
{
  (void)arg;
  return http_server_adopt(s, fd);
}

/* ---- listening ---- */

static void on_incoming(uv_poll_t *h, int status, int events);

static void on_rested(uv_timer_t *t)
{
  struct http_server *s = t->data;
  for (struct listener *l = s->listeners; l; l = l->next)
    uv_poll_start(&l->poll, UV_READABLE, on_incoming);
}

static void rest(struct http_server *s)
{
  for (struct listener *l = s->listeners; l; l = l->next)
    uv_poll_stop(&l->poll);
  uv_timer_start(&s->pause, on_rested, ACCEPT_REST_MS, 0);
}

static bool is_shortage(int code)
{
  return code == EMFILE || code == ENFILE || code == ENOBUFS || code == ENOMEM;
}

static void on_incoming(uv_poll_t *h, int status, int events)
{
  struct listener *l = h->data;
  struct http_server *s = l->server;
  (void)events;
  for (int i = 0; i < ACCEPT_ROUNDS && !s->stopping; i++) {
    int fd = accept4(l->fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      l->admit(s, fd, l->arg);
    } else if (is_shortage(errno)) {
      log_warn("not accepting connections for %d ms: %s", ACCEPT_REST_MS, strerror(errno));
      rest(s);
      return;
    } else if (errno == EAGAIN) {
      break;
    } /* anything else is the fate of that one connection */
  }
  if (status < 0 && !s->stopping) /* libuv has stopped watching */
    rest(s);
}

int server_listen(struct http_server *s, int fd, admit_fn admit, void *arg)
{
  struct listener *l = xcalloc(1, sizeof(*l));
  int rc = s->stopping ? -ESHUTDOWN : uv_poll_init(s->net->loop, &l->poll, fd);
  if (rc < 0) {
    free(l);
    close(fd);
    return rc;
  }
  /* Accepted sockets inherit these. Keep-alive probes find peers that vanished silently. */
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){1}, sizeof(int));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &(int){120}, sizeof(int));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &(int){30}, sizeof(int));
  setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &(int){UNSENT_MAX}, sizeof(int));
  fd_cloexec(fd);
  l->poll.data = l;
  l->server = s;
  l->admit = admit;
  l->arg = arg;
  l->fd = fd;
  l->next = s->listeners;
  s->listeners = l;
  s->refs++;
  return uv_poll_start(&l->poll, UV_READABLE, on_incoming);
}

int http_server_listen(struct http_server *s, int fd)
{
  return server_listen(s, fd, admit_plain, NULL);
}

static void on_listener_closed(uv_handle_t *h)
{
  struct listener *l = h->data;
  struct http_server *s = l->server;
  free(l);
  server_unref(s);
}

void http_server_stop_listening(struct http_server *s)
{
  s->stopping = true;
  uv_timer_stop(&s->pause);
  for (struct listener *l = steal(&s->listeners), *next; l; l = next) {
    next = l->next;
    uv_close((uv_handle_t *)&l->poll, on_listener_closed);
    close(l->fd);
  }
}

/* ---- life ---- */

void http_server_limits(struct http_server *s, const struct http_limits *limits)
{
  s->limits = *limits;
  s->net->held_max = limits->held_max;
}

struct http_server *http_server_new(uv_loop_t *loop, const struct http_limits *limits, http_request_fn fn, void *arg)
{
  struct http_server *s = xcalloc(1, sizeof(*s));
  s->net = net_of(loop);
  s->limits = limits ? *limits : http_limits_default;
  if (s->limits.held_max)
    s->net->held_max = s->limits.held_max;
  s->fn = fn;
  s->arg = arg;
  s->refs = 1;
  uv_timer_init(loop, &s->pause);
  s->pause.data = s;
  return s;
}

size_t http_server_conns(const struct http_server *s)
{
  return s->nconns;
}

void server_unref(struct http_server *s)
{
  if (--s->refs)
    return;
  while (s->store) {
    struct http_x *x = s->store;
    s->store = x->next;
    free(x);
  }
  map_free(&s->addresses);
  net_unref(s->net);
  free(s);
}

static void on_pause_closed(uv_handle_t *h)
{
  server_unref(h->data);
}

/* The first connection of s that is still open; `gone` may have changed the list in any way. */
static struct peer *first_of(const struct http_server *s)
{
  for (struct net_member *m = s->net->members; m; m = m->next) {
    struct conn *c = container_of(m, struct conn, node);
    if (c->group == s)
      return container_of(c, struct peer, conn);
  }
  return NULL;
}

void http_server_free(struct http_server *s)
{
  if (!s || s->freed)
    return;
  s->freed = true;
  http_server_stop_listening(s);
  for (struct peer *p = first_of(s); p; p = first_of(s))
    peer_drop(p);
  uv_close((uv_handle_t *)&s->pause, on_pause_closed);
}
