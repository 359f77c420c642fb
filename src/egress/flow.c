/* SPDX-License-Identifier: Apache-2.0 */
/* flow.c - one connection of a box: whose it is, where it wanted to go, which host it names, and what becomes of it.
 *
 * The hello is looked at in the socket and stays there, so that a tunnel carries it on and an inspected connection's
 * TLS reads it itself. A peer that says nothing for a moment wants to hear the server first: it becomes a tunnel
 * without a name. Ports other than 80 and 443 (of boxes with a proxy) are never looked at. */
#include "egress/gateway.h"

#include "egress/dial.h"
#include "egress/peek.h"
#include "egress/relay.h"
#include "jail/net/never.h"
#include <netinet/in.h>
#include <sys/socket.h>

#define ORIGINAL_DST 80 /* SO_ORIGINAL_DST; the kernel's header for it does not go with the C library's */
#define PORT_HTTP    80
#define PORT_HTTPS   443

/* ---- life ---- */

static void handle_closed(uv_handle_t *h)
{
  free(h);
}

static void stop_looking(struct flow *f)
{
  if (f->poll)
    uv_close((uv_handle_t *)steal(&f->poll), handle_closed);
  f->due = f->quiet = 0;
}

static void reset_fd(int fd)
{
  struct linger now = {1, 0};
  setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
  close(fd);
}

void flow_end(struct flow *f)
{
  struct egress_box *b = f->box;
  stop_looking(f);
  if (f->fd >= 0)
    reset_fd(f->fd);
  *f->at = f->next;
  if (f->next)
    f->next->at = f->at;
  b->open--;
  b->team->open--;
  b->gateway->open--;
  rules_unref(f->rules);
  free(f);
  egress_box_unref(b);
}

static void tell(struct flow *f, enum egress_verdict verdict, uint64_t in, uint64_t out)
{
  record_send(f->box->gateway, f->box, f->rules,
              &(struct record){.began_us = f->began_us,
                               .in = in,
                               .out = out,
                               .to = f->to,
                               .port = f->port,
                               .proxied = f->rules->policy.proxy.kind != EGRESS_DIRECT,
                               .verdict = verdict,
                               .name = str_of(f->name)});
}

static void refuse(struct flow *f, enum egress_verdict verdict)
{
  tell(f, verdict, 0, 0);
  flow_end(f);
}

void flow_cut(struct flow *f)
{
  if (f->relay) {
    relay_cut(f->relay);
  } else if (f->dial || f->poll) {
    dial_cancel(steal(&f->dial));
    flow_end(f);
  } /* else: an inspected one, whose server is freed with the box */
}

/* ---- tunnels ---- */

static void tunnel_done(void *arg, uint64_t in, uint64_t out, const char *refusal)
{
  struct flow *f = arg;
  f->relay = NULL;
  tell(f, EGRESS_PASSED, in, out);
  flow_end(f);
}

static void tunnel_opened(void *arg, int fd, const char *why)
{
  struct flow *f = arg;
  f->dial = NULL;
  if (fd < 0) {
    log_debug("egress of %s: %s", f->box->id, why);
    refuse(f, EGRESS_UNREACHABLE);
    return;
  }
  struct relay_plan plan = {.loop = f->box->gateway->loop,
                            .near = steal_fd(&f->fd),
                            .far = fd,
                            .high_water = (size_t)f->box->gateway->config->buffer_kb << 10,
                            .idle_ms = f->box->gateway->config->idle_seconds * 1000,
                            .done = tunnel_done,
                            .arg = f};
  f->relay = relay_start(&plan);
  if (!f->relay)
    flow_end(f);
}

static bool listed(struct str lines, struct str name)
{
  struct str line;
  while (lines.n) {
    str_cut(lines, '\n', &line, &lines);
    if (line.n && (str_is(line, "*") || egress_pattern_matches(line, name)))
      return true;
  }
  return false;
}

bool flow_name_listed(const struct flow *f, const struct egress_policy *p)
{
  return f->name[0] && listed(p->allow_names, str_of(f->name));
}

static struct str name_for_proxy(const struct flow *f)
{
  const struct egress_policy *p = &f->rules->policy;
  return p->proxy.kind && f->name[0] && (!p->restricted || flow_name_listed(f, p)) ? str_of(f->name) : STR_NONE;
}

static void tunnel(struct flow *f)
{
  f->dial = dial_start(f->box->gateway, f->rules, name_for_proxy(f), f->to, f->port, tunnel_opened, f);
}

/* ---- looking ---- */

bool flow_may_go(const struct flow *f, const struct egress_policy *p)
{
  if (!p->allow_names.n || (f->port != PORT_HTTP && f->port != PORT_HTTPS) || flow_name_listed(f, p))
    return true;
  for (size_t i = 0; i < p->nallow_nets; i++)
    if (address_in(f->to, p->allow_nets[i].address, p->allow_nets[i].bits))
      return true;
  return false;
}

static void decide(struct flow *f)
{
  stop_looking(f);
  setsockopt(f->fd, SOL_SOCKET, SO_RCVLOWAT, &(int){1}, sizeof(int));
  if (!flow_may_go(f, &f->rules->policy)) {
    refuse(f, EGRESS_REFUSED);
    return;
  }
  const struct egress_host *host =
      f->port == PORT_HTTPS && f->name[0] ? egress_host_find(&f->rules->policy, str_of(f->name)) : NULL;
  if (!host)
    tunnel(f);
  else if (inspect_begin(f, host))
    refuse(f, EGRESS_REFUSED);
}

static void has_spoken(uv_poll_t *p, int status, int events)
{
  struct flow *f = p->data;
  char bytes[PEEK_MAX];
  ssize_t n = recv(f->fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  if (n <= 0) {
    flow_end(f);
    return;
  }
  f->quiet = 0;
  struct str in = {bytes, (size_t)n};
  enum peek r = f->port == PORT_HTTPS ? peek_tls(in, f->name) : peek_http(in, f->name);
  if (r == PEEK_MORE && events & UV_DISCONNECT) {
    flow_end(f);
    return;
  }
  if (r != PEEK_NAMED)
    f->name[0] = 0;
  if (r == PEEK_MORE) /* woken again when there is more to see */
    setsockopt(f->fd, SOL_SOCKET, SO_RCVLOWAT, &(int){(int)n + 1}, sizeof(int));
  else
    decide(f);
}

static void look(struct flow *f)
{
  struct gateway *g = f->box->gateway;
  f->poll = xcalloc(1, sizeof(*f->poll));
  f->poll->data = f;
  f->due = uv_now(g->loop) + g->config->hello_seconds * 1000ull;
  f->quiet = uv_now(g->loop) + g->config->quiet_ms;
  if (uv_poll_init(g->loop, f->poll, f->fd)) {
    free(steal(&f->poll));
    flow_end(f);
    return;
  }
  uv_poll_start(f->poll, UV_READABLE | UV_DISCONNECT, has_spoken);
}

void flow_tick(struct flow *f, uint64_t now)
{
  if (f->quiet && f->quiet <= now)
    decide(f);
  else if (f->due && f->due <= now)
    refuse(f, EGRESS_REFUSED);
}

/* ---- arrival ---- */

static bool has_room(const struct gateway *g, const struct egress_box *b)
{
  return g->open < g->config->connections && b->open < g->config->box_connections &&
         b->team->open < g->config->team_connections;
}

static struct flow *flow_new(struct gateway *g, struct egress_box *b, int fd, const struct sockaddr_in *to)
{
  struct flow *f = xcalloc(1, sizeof(*f));
  f->box = b;
  f->rules = rules_ref(b->rules);
  f->fd = fd;
  f->to = ntohl(to->sin_addr.s_addr);
  f->port = ntohs(to->sin_port);
  f->began_us = clock_wall_us();
  f->next = b->flows;
  f->at = &b->flows;
  if (f->next)
    f->next->at = &f->next;
  b->flows = f;
  b->refs++;
  b->open++;
  b->team->open++;
  g->open++;
  return f;
}

void flow_accept(struct gateway *g, int fd)
{
  struct sockaddr_in from, to;
  socklen_t nfrom = sizeof(from), nto = sizeof(to);
  struct egress_box *b = NULL;
  if (!getpeername(fd, (struct sockaddr *)&from, &nfrom) && from.sin_family == AF_INET)
    b = egress_box_find(g, ntohl(from.sin_addr.s_addr));
  if (!b || !b->rules || getsockopt(fd, SOL_IP, ORIGINAL_DST, &to, &nto) || to.sin_family != AF_INET) {
    reset_fd(fd);
    return;
  }
  if (!has_room(g, b)) {
    if (!g->full)
      log_warn("egress: connection of %s refused: %u open, %u of its team, %u in all", b->id, b->open, b->team->open,
               g->open);
    g->full = true;
    reset_fd(fd);
    return;
  }
  struct flow *f = flow_new(g, b, fd, &to);
  if (never_reached(f->to))
    refuse(f, EGRESS_REFUSED);
  else if (f->port == PORT_HTTPS || f->port == PORT_HTTP)
    look(f);
  else
    decide(f);
}
