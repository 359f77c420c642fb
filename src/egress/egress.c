/* SPDX-License-Identifier: Apache-2.0 */
/* egress.c - see egress.h: the loop, the supervisor's words, the warden's packets, the listener. */
#include "egress/egress.h"

#include "confine/confine.h"
#include "egress/gateway.h"
#include "net/netloop.h"
#include "wire/box_socket.h"
#include "wire/control.h"
#include <linux/netlink.h>
#include <malloc.h>
#include <openssl/x509.h>
#include <seccomp.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#define SYSTEM_ROOTS "/etc/ssl/certs/ca-certificates.crt"
#define THREAD_STACK ((rlim_t)256 << 10)
#define TICK_MS      250
#define ACCEPTS      64 /* per turn of the loop */
#define FILES_MAX    ((uint64_t)1 << 20)
#define FDS_PER_FLOW 6 /* a socket each way, a pair and a socket for a proxy in TLS, pipes */

/* ---- the listener ---- */

static void handle_closed(uv_handle_t *h)
{
  free(h);
}

/* False: there is nothing more to accept, or no descriptor for it. */
static bool accept_one(struct gateway *g)
{
  int fd = accept4(g->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (fd >= 0)
    flow_accept(g, fd);
  else if (errno == EMFILE || errno == ENFILE)
    log_warn("egress: out of descriptors");
  return fd >= 0 || errno == EINTR || errno == ECONNABORTED;
}

static void connections_wait(uv_poll_t *p, int status, int events)
{
  struct gateway *g = p->data;
  for (int i = 0; i < ACCEPTS && accept_one(g); i++)
    ;
}

/* What waits in the queue is judged by the policies of this moment. */
static void accept_all(struct gateway *g)
{
  for (int i = 0; g->poll && i < 65536 && accept_one(g); i++)
    ;
}

static void stop_listening(struct gateway *g)
{
  if (g->poll)
    uv_close((uv_handle_t *)steal(&g->poll), handle_closed);
  if (g->listener >= 0)
    close(steal_fd(&g->listener));
}

static void start_listening(struct gateway *g)
{
  if (!g->synced || g->listener < 0 || g->poll)
    return;
  g->poll = xcalloc(1, sizeof(*g->poll));
  g->poll->data = g;
  uv_poll_init(g->loop, g->poll, g->listener);
  uv_poll_start(g->poll, UV_READABLE, connections_wait);
}

static void take_listener(struct gateway *g, int fd)
{
  accept_all(g);
  stop_listening(g);
  fd_nonblock(fd);
  g->listener = fd;
  start_listening(g);
}

/* ---- tokens ---- */

int token_request(struct gateway *g, struct egress_box *b, struct str name,
                  void (*answered)(void *arg, int status, struct str token, uint32_t good_for), void *arg, uint64_t *id)
{
  union egress_body body = {.ask = {.id = ++g->last_ask, .address = b->address}};
  cleanup_buf struct buf packet = BUF_INIT(EGRESS_PACKET_MAX);
  str_copyz(str_of(b->id), body.ask.box, sizeof(body.ask.box));
  if (b->asks >= g->config->token_asks)
    return -EBUSY;
  if (!g->link || str_copyz(name, body.ask.name, sizeof(body.ask.name)))
    return -EIO;
  egress_packet(&packet, EGRESS_TOKEN_ASK, &body, STR_NONE);
  if (ipc_send(g->link, buf_str(&packet), -1))
    return -EIO;
  struct token_ask *a = xcalloc(1, sizeof(*a));
  *a = (struct token_ask){g->asks, b, body.ask.id, uv_now(g->loop) + g->config->token_seconds * 1000ull, answered, arg};
  g->asks = a;
  b->asks++;
  *id = a->id;
  return 0;
}

static struct token_ask *ask_take(struct gateway *g, uint64_t id)
{
  for (struct token_ask **at = &g->asks; *at; at = &(*at)->next)
    if ((*at)->id == id) {
      struct token_ask *a = *at;
      *at = a->next;
      a->box->asks--;
      return a;
    }
  return NULL;
}

void token_cancel(struct gateway *g, uint64_t id)
{
  free(ask_take(g, id));
}

static void token_answer(struct gateway *g, uint64_t id, int status, struct str token, uint32_t good_for)
{
  struct token_ask *a = ask_take(g, id);
  if (!a)
    return;
  struct token_ask answered = *a;
  free(a);
  struct net *net = http_gather(g->loop);
  answered.answered(answered.arg, status, token, good_for);
  http_let_go(net);
}

/* now UINT64_MAX: all of them. */
static void asks_expire(struct gateway *g, uint64_t now)
{
  for (bool again = true; again;) {
    again = false;
    for (struct token_ask *a = g->asks; a && !again; a = a->next)
      if (a->due <= now) {
        token_answer(g, a->id, -ETIMEDOUT, STR_NONE, 0);
        again = true;
      }
  }
}

/* ---- records ---- */

/* Cut, and printable; the box chose the bytes. */
static uint16_t put_text(struct buf *b, struct str s)
{
  size_t n = MIN(s.n, (size_t)EGRESS_RECORD_TEXT_MAX);
  for (size_t i = 0; i < n; i++)
    buf_addc(b, s.p[i] >= 0x20 && s.p[i] <= 0x7e ? s.p[i] : '?');
  return (uint16_t)n;
}

/* As many as the firewall tells of a box (jail_net.c), and once a second that there were more. */
static bool may_record(struct gateway *g, struct egress_box *b)
{
  uint64_t now = uv_now(g->loop);
  unsigned rate = g->config->records_rate;
  if (bucket_take(&b->records, now, rate, 4 * rate))
    return true;
  if (b->lost_at && now - b->lost_at < 1000)
    return false;
  b->lost_at = now;
  cleanup_buf struct buf packet = BUF_INIT(EGRESS_PACKET_MAX);
  union egress_body body = {.record = {.wall_us = clock_wall_us(), .address = b->address, .verdict = EGRESS_LOST}};
  str_copyz(str_of(b->id), body.record.box, sizeof(body.record.box));
  egress_packet(&packet, EGRESS_RECORD, &body, STR_NONE);
  ipc_send_bulk(g->link, buf_str(&packet));
  return false;
}

void record_send(struct gateway *g, struct egress_box *b, const struct rules *r, const struct record *record)
{
  if (!g->link || !r || r->policy.log == EGRESS_LOG_OFF || !may_record(g, b))
    return;
  bool full = r->policy.log == EGRESS_LOG_FULL;
  cleanup_buf struct buf packet = BUF_INIT(EGRESS_PACKET_MAX), text = BUF_INIT(4 * EGRESS_RECORD_TEXT_MAX);
  union egress_body body = {.record = {.wall_us = record->began_us,
                                       .in = record->in,
                                       .out = record->out,
                                       .address = b->address,
                                       .to = record->to,
                                       .port = record->port,
                                       .verdict = record->verdict,
                                       .status = full ? record->status : 0,
                                       .proxied = record->proxied}};
  str_copyz(str_of(b->id), body.record.box, sizeof(body.record.box));
  body.record.name = put_text(&text, record->name);
  body.record.rule = put_text(&text, record->rule);
  body.record.method = full ? put_text(&text, record->method) : 0;
  body.record.path = full ? put_text(&text, record->path) : 0;
  egress_packet(&packet, EGRESS_RECORD, &body, buf_str(&text));
  ipc_send_bulk(g->link, buf_str(&packet)); /* a warden that does not read loses records, not connections */
}

/* ---- the warden ---- */

static int read_policy(int fd, size_t n, struct buf *out)
{
  if (fd < 0 || buf_reserve(out, n))
    return -EINVAL;
  while (out->n < n) {
    ssize_t k = pread(fd, out->p + out->n, n - out->n, (off_t)out->n);
    if (k <= 0)
      return -EINVAL;
    out->n += (size_t)k;
  }
  return 0;
}

static void applied(struct gateway *g, const struct egress_set_body *b, int status, const char *why)
{
  union egress_body body = {.applied = {.generation = b->generation, .address = b->address, .status = status}};
  cleanup_buf struct buf packet = BUF_INIT(EGRESS_PACKET_MAX), text = BUF_INIT(EGRESS_MESSAGE_SIZE);
  put_text(&text, status ? str_sub(str_of(why), 0, EGRESS_MESSAGE_SIZE) : STR_NONE);
  egress_packet(&packet, EGRESS_APPLIED, &body, buf_str(&text));
  ipc_send(g->link, buf_str(&packet), -1);
}

static void set_policy(struct gateway *g, const struct egress_set_body *b, int fd)
{
  struct buf packed = BUF_INIT(EGRESS_POLICY_MAX);
  struct err err = ERR_NONE;
  accept_all(g);
  int r = read_policy(fd, b->length, &packed);
  r = r ? err_set(&err, r, "the policy did not come whole") : egress_box_set(g, b, &packed, &err);
  bytes_wipe(&packed);
  if (r)
    log_error("policy of %s refused: %s", b->box, err.msg);
  applied(g, b, r, err.msg);
}

static void warden_packet(struct ipc *l, struct str packet, int fd_in, void *arg)
{
  struct gateway *g = arg;
  cleanup_fd int fd = fd_in;
  enum egress_type type;
  union egress_body body;
  struct str text;
  if (l != g->link)
    return;
  if (egress_packet_read(packet, &type, &body, &text)) {
    log_error("malformed packet of %zu bytes from the warden", packet.n);
    return;
  }
  if (type == EGRESS_LISTEN && fd >= 0) {
    take_listener(g, steal_fd(&fd));
  } else if (type == EGRESS_SET) {
    set_policy(g, &body.set, fd);
  } else if (type == EGRESS_REMOVE) {
    accept_all(g);
    egress_box_remove(g, &body.set);
    applied(g, &body.set, 0, NULL);
  } else if (type == EGRESS_SYNC) {
    egress_box_sweep(g);
    g->synced = true;
    start_listening(g);
  } else if (type == EGRESS_TOKEN) {
    token_answer(g, body.token.id, body.token.status, text, body.token.good_for);
  }
}

static void warden_closed(struct ipc *l, void *arg)
{
  struct gateway *g = arg;
  if (g->link == l) {
    g->link = NULL;
    asks_expire(g, UINT64_MAX);
  }
  ipc_free(l);
}

static const struct ipc_ops warden_ops = {warden_packet, warden_closed};

/* ---- the supervisor ---- */

/* As many connections as there can be descriptors for. */
static unsigned affordable(unsigned wanted)
{
  struct rlimit files_now;
  getrlimit(RLIMIT_NOFILE, &files_now);
  return (unsigned)MIN((rlim_t)wanted, MAX(files_now.rlim_cur / FDS_PER_FLOW, (rlim_t)1));
}

/* The gateway's own copy: what this process can afford may be less than what was wanted. */
static struct egress_config own_config;

static void take_config(struct gateway *g)
{
  own_config = *g->given;
  own_config.connections = affordable(own_config.connections);
  g->config = &own_config;
}

static void control_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct gateway *g = arg;
  if (packet.p[0] == CONTROL_LINK && fd >= 0) {
    struct ipc *old = g->link;
    g->link = ipc_new(g->loop, fd, &warden_ops, g);
    asks_expire(g, UINT64_MAX);
    if (old)
      ipc_free(old);
  } else if (fd >= 0) {
    close(fd);
  }
  if (control_settings(packet))
    take_config(g);
  if (packet.p[0] == CONTROL_STOP)
    uv_stop(g->loop);
}

static void control_closed(struct ipc *l, void *arg)
{
  struct gateway *g = arg;
  uv_stop(g->loop);
}

static const struct ipc_ops control_ops = {control_packet, control_closed};

/* ---- time ---- */

static void tick(uv_timer_t *t)
{
  struct gateway *g = t->data;
  uint64_t now = uv_now(g->loop);
  void *value;
  g->full = false;
  asks_expire(g, now);
  for (size_t i = 0; map_next(&g->boxes, &i, NULL, &value);) {
    struct egress_box *b = value;
    upstreams_tick(b, now);
    for (struct flow *f = b->flows, *next; f; f = next) {
      next = f->next;
      flow_tick(f, now);
    }
  }
}

/* ---- start ---- */

static void clean_environment(void)
{
  clearenv();
  setenv("RES_OPTIONS", "timeout:2 attempts:2", 1);
}

/* Secrets are not written to swap. Where that can't be had the host's administrator has said so. */
static void lock_memory(void)
{
#ifndef __SANITIZE_ADDRESS__
  struct rlimit all = {RLIM_INFINITY, RLIM_INFINITY}, stack;
  mallopt(M_ARENA_MAX, 2);
  getrlimit(RLIMIT_STACK, &stack);
  stack.rlim_cur = MIN(stack.rlim_max, THREAD_STACK);
  setrlimit(RLIMIT_STACK, &stack);
  if (setrlimit(RLIMIT_MEMLOCK, &all) || mlockall(MCL_CURRENT | MCL_FUTURE | MCL_ONFAULT))
    log_info("egress: its memory may be swapped out (%s)", strerrordesc_np(errno));
#endif
}

static int add_roots(X509_STORE *roots, const char *path, struct err *err)
{
  cleanup_buf struct buf b = BUF_INIT((size_t)16 << 20);
  int r = file_read(path, &b);
  if (r)
    return err_set(err, r, "authorities of %s: %s", path, strerrordesc_np(-r));
  return tls_roots_add(roots, buf_str(&b)) ? 0 : err_set(err, -EINVAL, "%s holds no certificate", path);
}

/* A host without public roots has a gateway all the same; servers then need egress_roots. */
static int open_trust(struct gateway *g, struct err *err)
{
  struct err system = ERR_NONE;
  tls_prepare();
  X509_STORE *roots = X509_STORE_new();
  if (add_roots(roots, SYSTEM_ROOTS, &system))
    log_warn("egress: %s; servers of network.rules can't be verified by public authorities", system.msg);
  int r = g->config->roots[0] ? add_roots(roots, g->config->roots, err) : 0;
  g->client = tls_client_verified(roots);
  X509_STORE_free(roots);
  return r;
}

static const int calls[] = {
    SCMP_SYS(openat), /* of a root with three files */
    SCMP_SYS(newfstatat), SCMP_SYS(statx),      SCMP_SYS(sendmmsg), SCMP_SYS(connect), SCMP_SYS(bind),
    SCMP_SYS(accept4),    SCMP_SYS(socketpair), SCMP_SYS(splice),   SCMP_SYS(uname),   SCMP_SYS(sched_getaffinity),
};
static const struct confine_socket sockets[] = {
    {AF_INET, SOCK_STREAM, -1},
    {AF_INET, SOCK_DGRAM, -1},
    {AF_INET6, SOCK_DGRAM, -1}, /* name servers may have such addresses */
    {AF_NETLINK, 0, NETLINK_ROUTE},
};
static const struct confine_file files[] = {
    {"/etc/nsswitch.conf", "hosts: files dns\n"}, {"/etc/resolv.conf", NULL}, {"/etc/hosts", NULL}};
static struct confine_role role = {.name = "egress",
                                   .calls = calls,
                                   .ncalls = ARRAY_LEN(calls),
                                   .sockets = sockets,
                                   .nsockets = ARRAY_LEN(sockets),
                                   .files = files,
                                   .nfiles = ARRAY_LEN(files),
                                   .fds_max = FILES_MAX};

static void raise_file_limit(void)
{
  struct rlimit files_now;
  getrlimit(RLIMIT_NOFILE, &files_now);
  files_now.rlim_cur = files_now.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files_now);
}

static int open_all(struct gateway *g, struct err *err)
{
  int r = open_trust(g, err);
  role.memory_max = (uint64_t)g->config->memory_mb << 20;
  r = r ? r : confine_rights(&role, g->config->uid, err);
  if (r)
    return r;
  r = lookups_open(&g->lookups, g->loop, g->config->lookups, err);
  return r ? r : confine_filter(&role, g->config->uid, err);
}

int egress_main(const struct egress_config *given)
{
  static uv_loop_t loop;
  static struct gateway g; /* to the process's end */
  struct err err = ERR_NONE;
  prctl(PR_SET_NAME, "cloche-egress");
  clean_environment();
  lock_memory();
  raise_file_limit();
  uv_loop_init(&loop);
  g = (struct gateway){.loop = &loop, .given = given, .listener = -1};
  take_config(&g);
  g.control = ipc_new(&loop, CONTROL_FD, &control_ops, &g);
  if (open_all(&g, &err))
    return control_failed(g.control, &err);
  net_of(&loop)->held_max = (uint64_t)own_config.held_mb << 20; /* the reference is kept */
  uv_timer_init(&loop, &g.tick);
  g.tick.data = &g;
  uv_timer_start(&g.tick, tick, TICK_MS, TICK_MS);
  ipc_send(g.control, (struct str){(char[]){CONTROL_READY}, 1}, -1);
  uv_run(&loop, UV_RUN_DEFAULT);
  return 0;
}
