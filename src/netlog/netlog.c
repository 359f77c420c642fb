/* SPDX-License-Identifier: Apache-2.0 */
/* netlog.c - see netlog.h. */
#include "netlog/netlog.h"

#include "jail/net/net_process.h"
#include "netlog/net_lines.h"
#include "wire/logring.h"
#include <arpa/inet.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_conntrack.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#define GROUP_FIRST  20000u
#define GROUPS       40000u
#define COPY_BYTES   1280    /* of a packet: an answer of a name server over UDP */
#define FLUSH_CS     10      /* hundredths of a second that the kernel may gather messages for */
#define QUIET_US     1000000 /* after a box has left: messages of it may still come */
#define RECEIVE      (4 << 20)
#define READS        64                       /* datagrams of a socket, one after the other */
#define CLOSED_MAX   8192                     /* connections that are over and wait for CLOSED_US */
#define CLOSED_US    (2 * FLUSH_CS * 10000ll) /* by then the log has told that they were opened */
#define CLOSED_LOOKS 5                        /* for one whose beginning is not known */

unsigned netlog_group(const char *instance)
{
  uint8_t sum[SHA256_LEN];
  sha256_of(instance, strlen(instance), sum);
  return GROUP_FIRST + ((unsigned)sum[0] << 8 | sum[1]) % GROUPS;
}

/* --- slots ---------------------------------------------------------------------------------------------------- */

struct flow {
  struct net_flow of;
  uint64_t connection; /* 0 = free */
  bool asked;          /* for its bytes: once */
};

struct named {
  uint32_t address;
  char *name;
};

/* What is known of the box that has a slot. */
struct place {
  int ring; /* -1 = nobody has it */
  struct logring_head head;
  uint32_t link, last_link;  /* of its box, once it was seen; of the box before */
  int64_t quiet_us, left_us; /* monotonic: until when messages without a link are dropped; when the last box left */
  struct named *names;       /* as many as the limits say, once there is a box */
  struct flow *flows;
  size_t next_name, next_flow;
};

static struct watcher {
  uint32_t pool; /* first address of the boxes' /16 */
  struct netlog_limits limits;
  bool full;
  int orders, log, ends;
  int asks; /* to the keeper: a net_flow whose bytes are to be told */
  uint64_t connections;
  struct closed {
    struct net_flow of;
    int64_t due_us; /* monotonic */
    unsigned looks;
  } closed[CLOSED_MAX];
  size_t closed_first, closed_n;
  struct place *places[JAIL_NET_SLOTS];
} watcher;

static struct place *place_of(uint32_t slot)
{
  struct place **p = &watcher.places[slot];
  if (!*p) {
    *p = xcalloc(1, sizeof(**p));
    (*p)->ring = -1;
  }
  return *p;
}

static void place_empty(struct place *p)
{
  if (p->ring >= 0) {
    close(p->ring);
    p->left_us = clock_mono_us();
    p->last_link = p->link ? p->link : p->last_link;
  }
  p->ring = -1;
  p->link = 0;
  for (size_t i = 0; p->names && i < watcher.limits.names; i++)
    free(p->names[i].name);
  free(steal(&p->names));
  free(steal(&p->flows));
  p->next_name = p->next_flow = 0;
}

static bool same_file(int a, int b)
{
  struct stat x, y;
  return a >= 0 && !fstat(a, &x) && !fstat(b, &y) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

/* The same ring again is the same box: what is known of it stays. */
static void place_bind(struct place *p, int ring)
{
  int64_t now = clock_mono_us();
  if (same_file(p->ring, ring)) {
    close(ring);
    return;
  }
  place_empty(p);
  p->quiet_us = p->left_us && now - p->left_us < QUIET_US ? p->left_us + QUIET_US : 0;
  if (logring_open(ring, &p->head)) {
    close(ring);
    return;
  }
  p->ring = ring;
  p->names = xcalloc(watcher.limits.names, sizeof(*p->names));
  p->flows = xcalloc(watcher.limits.connections, sizeof(*p->flows));
}

/* The place of the box that a message is about, if its log is kept: not the one that had the address before. Ends have
 * no link; find_end looks closer at them. */
static struct place *place_at(const struct net_flow *f)
{
  uint32_t first = watcher.pool + JAIL_NET_FIRST;
  if (f->box < first || f->box - first >= JAIL_NET_SLOTS)
    return NULL;
  struct place *p = watcher.places[f->box - first];
  if (!p || p->ring < 0)
    return NULL;
  if (!f->link)
    return p;
  if (!p->link && f->link != p->last_link)
    p->link = f->link;
  return p->link == f->link ? p : NULL;
}

static void place_write(struct place *p, const struct buf *line)
{
  if (!buf_failed(line))
    logring_append(p->ring, &p->head, buf_str(line));
}

/* --- names and flows ------------------------------------------------------------------------------------------ */

static void remember_names(struct place *p, const struct net_message *m)
{
  for (size_t i = 0; i < m->answer.count; i++) {
    struct named *n = NULL;
    for (size_t k = 0; k < watcher.limits.names && !n; k++)
      if (p->names[k].name && p->names[k].address == m->answer.address[i])
        n = &p->names[k];
    if (!n)
      n = &p->names[p->next_name++ % watcher.limits.names];
    free(n->name);
    *n = (struct named){m->answer.address[i], xstrdup(m->question.name)};
  }
}

static const char *name_of(const struct place *p, uint32_t address)
{
  for (size_t k = 0; k < watcher.limits.names; k++)
    if (p->names[k].name && p->names[k].address == address)
      return p->names[k].name;
  return NULL;
}

static bool same_flow(const struct net_flow *a, const struct net_flow *b)
{
  return a->to == b->to && a->port == b->port && a->from_port == b->from_port && a->protocol == b->protocol;
}

static struct flow *find_flow(struct place *p, const struct net_flow *f)
{
  for (size_t i = 0; i < watcher.limits.connections; i++)
    if (p->flows[i].connection && same_flow(&p->flows[i].of, f))
      return &p->flows[i];
  return NULL;
}

/* Of a connection that is over: one that this box was seen to open. The zone is its link's own; where the log did not
 * tell it, what comes within a moment of the box before is dropped. */
static struct flow *find_end(struct place *p, const struct net_flow *of)
{
  struct flow *f = find_flow(p, of);
  if (!f || (f->of.zone && f->of.zone != of->zone))
    return NULL;
  return f->of.zone || !p->quiet_us || clock_mono_us() >= p->quiet_us ? f : NULL;
}

/* --- messages ------------------------------------------------------------------------------------------------- */

/* Without an answer each packet of a UDP flow is a first one. */
static void take_opened(struct place *p, const struct net_message *m, struct buf *line)
{
  if (m->flow.protocol != IPPROTO_TCP && find_flow(p, &m->flow))
    return;
  struct flow *f = &p->flows[p->next_flow++ % watcher.limits.connections];
  *f = (struct flow){.of = m->flow, .connection = ++watcher.connections};
  net_line_packet(line, clock_wall_us(), m->mark, &m->flow, f->connection, name_of(p, m->flow.to));
}

static void take_end(struct place *p, const struct net_message *m, struct buf *line)
{
  struct flow *f = find_end(p, &m->flow);
  if (!f)
    return;
  net_line_end(line, clock_wall_us(), f->connection, m->in, m->out);
  f->connection = 0;
}

static void closed_put(const struct net_flow *of, unsigned looks)
{
  if (watcher.closed_n == CLOSED_MAX)
    return;
  watcher.closed[(watcher.closed_first + watcher.closed_n++) % CLOSED_MAX] =
      (struct closed){*of, clock_mono_us() + CLOSED_US, looks};
}

/* The keeper may ask the kernel, this process may not. False: such a connection is not known, or not yet. */
static bool ask_bytes(const struct net_flow *of)
{
  struct place *p = place_at(of);
  struct flow *f = p ? find_end(p, of) : NULL;
  if (!f)
    return !p;
  if (!f->asked)
    send(watcher.asks, of, sizeof(*of), MSG_NOSIGNAL | MSG_DONTWAIT);
  f->asked = true;
  return true;
}

/* The log gathers messages for a moment, connection tracking does not: a short connection is over before it is known to
 * have begun. Those that find no room are told when the kernel forgets them. Milliseconds until the next is due; -1 =
 * none waits. */
static int ask_due(void)
{
  while (watcher.closed_n) {
    struct closed c = watcher.closed[watcher.closed_first];
    int64_t left_us = c.due_us - clock_mono_us();
    if (left_us > 0)
      return (int)(left_us / 1000) + 1;
    watcher.closed_first = (watcher.closed_first + 1) % CLOSED_MAX;
    watcher.closed_n--;
    if (!ask_bytes(&c.of) && c.looks + 1 < CLOSED_LOOKS)
      closed_put(&c.of, c.looks + 1);
  }
  return -1;
}

static void take_message(const struct net_message *m)
{
  cleanup_buf struct buf line = BUF_INIT(NET_LINE_MAX);
  struct place *p = m->kind == NET_NOTHING ? NULL : place_at(&m->flow);
  if (!p)
    return;
  if (m->kind == NET_ANSWERED) {
    remember_names(p, m);
    net_line_name(&line, clock_wall_us(), m);
  } else if (m->kind == NET_CLOSED) {
    closed_put(&m->flow, 0);
  } else if (m->kind == NET_ENDED) {
    take_end(p, m, &line);
  } else if (m->mark == NET_MARK_OPENED) {
    take_opened(p, m, &line);
  } else if (m->mark == NET_MARK_OVER) {
    net_line_lost(&line, clock_wall_us());
  } else {
    net_line_packet(&line, clock_wall_us(), m->mark, &m->flow, 0, name_of(p, m->flow.to));
  }
  if (line.n)
    place_write(p, &line);
}

/* One datagram of a netlink socket has several messages. */
static bool read_messages(int fd)
{
  static uint8_t bytes[1 << 17] __attribute__((aligned(NLMSG_ALIGNTO)));
  static struct net_message m;
  ssize_t n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
  for (size_t at = 0; n > 0 && at + NLMSG_HDRLEN <= (size_t)n;) {
    struct nlmsghdr head;
    memcpy(&head, bytes + at, sizeof(head));
    if (head.nlmsg_len < NLMSG_HDRLEN || head.nlmsg_len > (size_t)n - at)
      break;
    net_message_read(bytes + at, head.nlmsg_len, &m);
    take_message(&m);
    at += NLMSG_ALIGN(head.nlmsg_len);
  }
  return n > 0;
}

/* So many that others have their turn. */
static void read_some(int fd)
{
  for (int i = 0; i < READS && read_messages(fd); i++)
    ;
}

static void take_request(uint32_t slot, struct str bytes)
{
  struct egress_record_body body;
  struct place *p = watcher.places[slot];
  if (!p || p->ring < 0 || bytes.n < sizeof(body))
    return;
  memcpy(&body, bytes.p, sizeof(body));
  struct str text = str_skip(bytes, sizeof(body));
  if ((size_t)body.name + body.rule + body.method + body.path != text.n)
    return;
  cleanup_buf struct buf line = BUF_INIT(4 * NET_LINE_MAX);
  if (body.verdict == EGRESS_LOST)
    net_line_lost(&line, body.wall_us);
  else
    net_line_request(&line, &body, text, watcher.full);
  place_write(p, &line);
}

static void read_order(void)
{
  static char bytes[NETLOG_PACKET_MAX];
  struct netlog_packet order;
  int ring = -1;
  size_t fds = 1;
  ssize_t n = fd_recv(watcher.orders, bytes, sizeof(bytes), &ring, &fds, 0);
  if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN))
    _exit(0); /* the daemon is gone */
  cleanup_fd int given = n > 0 && fds ? ring : -1;
  if (n < (ssize_t)sizeof(order))
    return;
  memcpy(&order, bytes, sizeof(order));
  if (order.slot >= JAIL_NET_SLOTS)
    return;
  if (order.order == NETLOG_BIND && given >= 0)
    place_bind(place_of(order.slot), steal_fd(&given));
  else if (order.order == NETLOG_UNBIND && watcher.places[order.slot])
    place_empty(watcher.places[order.slot]);
  else if (order.order == NETLOG_REQUEST)
    take_request(order.slot, str_make(bytes + sizeof(order), (size_t)n - sizeof(order)));
}

/* --- the processes -------------------------------------------------------------------------------------------- */

static void drop_rights(void)
{
  struct rlimit size = {LOGRING_MAX + LOGRING_HEAD, LOGRING_MAX + LOGRING_HEAD};
  setrlimit(RLIMIT_FSIZE, &size);
  net_process_drop_rights();
}

static _Noreturn void watcher_run(int asks)
{
  prctl(PR_SET_NAME, "netlog");
  watcher.asks = asks;
  drop_rights();
  prctl(PR_SET_PDEATHSIG, SIGKILL); /* a change of user clears it, so only now */
  watcher.connections = (uint64_t)clock_wall_us();
  send(watcher.orders, "R", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
  for (;;) {
    struct pollfd waits[] = {{watcher.orders, POLLIN, 0}, {watcher.log, POLLIN, 0}, {watcher.ends, POLLIN, 0}};
    if (poll(waits, ARRAY_LEN(waits), ask_due()) < 0)
      continue;
    if (waits[0].revents) /* first: who has a slot */
      read_order();
    if (waits[1].revents)
      read_some(watcher.log);
    if (waits[2].revents)
      read_some(watcher.ends);
  }
}

/* What it takes to ask the kernel about connections, and to start a watcher under another user. */
static void keep_rights(void)
{
  struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
  uint32_t kept = 1u << CAP_NET_ADMIN | 1u << CAP_SETUID | 1u << CAP_SETGID;
  struct __user_cap_data_struct data[2] = {{.effective = kept, .permitted = kept}};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(SYS_capset, &head, data))
    _exit(1);
}

/* Answers go to the socket that the watcher reads. Until the watcher ends. */
static void ask_for_watcher(int asks)
{
  struct net_flow f;
  uint8_t question[NET_QUESTION_MAX];
  ssize_t n;
  while ((n = recv(asks, &f, sizeof(f), 0)) > 0 || (n < 0 && errno == EINTR))
    if (n == (ssize_t)sizeof(f) && watcher.ends >= 0)
      send(watcher.ends, question, net_count_question(&f, question), MSG_NOSIGNAL | MSG_DONTWAIT);
}

static pid_t start_watcher(int *asks)
{
  int pair[2];
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return -1;
  pid_t pid = fork();
  if (pid == 0) {
    close(pair[0]);
    watcher_run(pair[1]);
  }
  close(pair[1]);
  *asks = pair[0];
  return pid;
}

static _Noreturn void keeper_run(void)
{
  prctl(PR_SET_NAME, "netlog-keeper");
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  keep_rights();
  for (;;) {
    int status = 0;
    cleanup_fd int asks = -1;
    pid_t pid = start_watcher(&asks);
    if (pid > 0)
      ask_for_watcher(asks);
    while (pid > 0 && waitpid(pid, &status, 0) < 0 && errno == EINTR)
      ;
    if (pid > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
      _exit(0);
    nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
  }
}

/* --- the daemon's side ---------------------------------------------------------------------------------------- */

struct config_request {
  struct nlmsghdr head;
  struct nfgenmsg group;
  struct nlattr attribute;
  union {
    struct nfulnl_msg_config_cmd command;
    struct nfulnl_msg_config_mode mode;
    uint32_t number;
    uint16_t flags;
    uint8_t bytes[8];
  };
};

/* One setting of the log's group, acknowledged. */
static int configure(int fd, unsigned group, unsigned type, const void *value, size_t n)
{
  struct config_request q = {0};
  size_t attribute = sizeof(q.attribute) + n;
  q.head.nlmsg_len = (uint32_t)(NLMSG_HDRLEN + sizeof(q.group) + NLA_ALIGN(attribute));
  q.head.nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_CONFIG;
  q.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
  q.group.nfgen_family = AF_UNSPEC;
  q.group.version = NFNETLINK_V0;
  q.group.res_id = htobe16((uint16_t)group);
  q.attribute.nla_len = (uint16_t)attribute;
  q.attribute.nla_type = (uint16_t)type;
  memcpy(q.bytes, value, n);
  if (send(fd, &q, q.head.nlmsg_len, 0) < 0)
    return -errno;
  struct {
    struct nlmsghdr head;
    struct nlmsgerr error;
    char rest[512];
  } answer;
  ssize_t got = recv(fd, &answer, sizeof(answer), 0);
  if (got < (ssize_t)(NLMSG_HDRLEN + sizeof(int)))
    return got < 0 ? -errno : -EPROTO;
  return answer.head.nlmsg_type == NLMSG_ERROR ? answer.error.error : -EPROTO;
}

static int netfilter_socket(void)
{
  int size = RECEIVE, fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
  if (fd >= 0)
    setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &size, sizeof(size));
  return fd;
}

static int open_log(unsigned group, struct err *err)
{
  cleanup_fd int fd = netfilter_socket();
  struct nfulnl_msg_config_cmd bind = {NFULNL_CFG_CMD_BIND};
  struct nfulnl_msg_config_mode mode = {.copy_range = htobe32(COPY_BYTES), .copy_mode = NFULNL_COPY_PACKET};
  uint32_t timeout = htobe32(FLUSH_CS);
  uint16_t flags = htobe16(NFULNL_CFG_F_CONNTRACK);
  int r = fd < 0 ? -errno : configure(fd, group, NFULA_CFG_CMD, &bind, sizeof(bind));
  r = r ? r : configure(fd, group, NFULA_CFG_MODE, &mode, sizeof(mode));
  r = r ? r : configure(fd, group, NFULA_CFG_TIMEOUT, &timeout, sizeof(timeout));
  if (!r)
    configure(fd, group, NFULA_CFG_FLAGS, &flags, sizeof(flags)); /* a kernel without it tells fewer addresses */
  if (r)
    return err_set(err, r, "netlink group %u of packet logs: %s", group, strerrordesc_np(-r));
  return steal_fd(&fd);
}

static int open_ends(struct err *err)
{
  cleanup_fd int fd = netfilter_socket();
  int forgotten = NFNLGRP_CONNTRACK_DESTROY, changed = NFNLGRP_CONNTRACK_UPDATE;
  struct sockaddr_nl own = {.nl_family = AF_NETLINK}; /* a socket without a number of its own is told nothing */
  if (fd < 0 || bind(fd, (struct sockaddr *)&own, sizeof(own)) ||
      setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &forgotten, sizeof(forgotten)) ||
      setsockopt(fd, SOL_NETLINK, NETLINK_ADD_MEMBERSHIP, &changed, sizeof(changed)))
    return err_errno(err, "netlink group of ended connections");
  return steal_fd(&fd);
}

static void close_others(const int *keep, size_t n)
{
  unsigned from = 3;
  for (unsigned fd = 3; fd < 1u << 16; fd++) {
    for (size_t i = 0; i < n; i++)
      if (keep[i] == (int)fd) {
        if (fd > from)
          syscall(SYS_close_range, from, fd - 1, 0);
        from = fd + 1;
      }
  }
  syscall(SYS_close_range, from, ~0u, 0);
}

int netlog_start(const struct jail_net_config *config, enum netlog_mode mode, const struct netlog_limits *limits,
                 struct netlog *out, struct err *err)
{
  int pair[2];
  out->fd = -1;
  cleanup_fd int log = open_log(netlog_group(config->instance), err);
  cleanup_fd int ends = -1;
  if (log >= 0 && mode == NETLOG_FULL)
    ends = open_ends(err);
  if (log < 0 || (mode == NETLOG_FULL && ends < 0))
    return err->code;
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair))
    return err_errno(err, "a socket pair");
  watcher = (struct watcher){.pool = config->pool,
                             .limits = *limits,
                             .full = mode == NETLOG_FULL,
                             .orders = pair[1],
                             .log = log,
                             .ends = ends};
  out->keeper = fork();
  if (out->keeper == 0) {
    close_others((int[]){pair[1], log, ends}, 3);
    keeper_run();
  }
  close(pair[1]);
  out->fd = pair[0];
  fd_nonblock(out->fd);
  return out->keeper < 0 ? err_errno(err, "starting the watcher of connections") : 0;
}

void netlog_stop(struct netlog *n)
{
  if (n->keeper > 0) {
    kill(n->keeper, SIGKILL); /* the watcher goes with it */
    while (waitpid(n->keeper, NULL, 0) < 0 && errno == EINTR)
      ;
  }
  if (n->fd > 0)
    close(n->fd);
  *n = (struct netlog){.fd = -1};
}
