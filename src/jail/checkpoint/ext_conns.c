/* SPDX-License-Identifier: Apache-2.0 */
/* ext_conns.c - see ext_conns.h. */
#include "jail/checkpoint/ext_conns.h"
#include "jail/net/jail_net.h"
#include "jail/net/rtnl.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <linux/close_range.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#define ANSWER_MAX  65536
#define NOT_WAITING (~(1u << TCP_LISTEN) & 0xfff)

static bool is_outside(uint32_t address)
{
  return address && address >> 24 != 127;
}

/* --- at a dump ------------------------------------------------------------------------------------------------ */

static void see_address(uint32_t address, void *arg)
{
  struct manifest *m = arg;
  if (is_outside(address))
    vec_push(&m->addresses, address);
}

int ext_conns_collect(int netns, struct manifest *m, struct err *err)
{
  cleanup_fd int sock = jail_net_talk(netns, NETLINK_ROUTE, err);
  int r = sock < 0 ? sock : rtnl_each_address(sock, see_address, m);
  return r && sock >= 0 ? err_set(err, r, "listing a box's addresses: %s", strerrordesc_np(-r)) : r;
}

/* --- at a restore --------------------------------------------------------------------------------------------- */

int ext_conns_keep_addresses(int netns, const struct manifest *m, uint32_t own, struct err *err)
{
  cleanup_fd int sock = m->addresses.n ? jail_net_talk(netns, NETLINK_ROUTE, err) : -1;
  if (sock < 0)
    return m->addresses.n ? sock : 0;
  int index = rtnl_index(sock, "lo"), r = MIN(index, 0);
  for (size_t i = 0; i < m->addresses.n && !r; i++)
    if (m->addresses.p[i] != own)
      r = rtnl_address(sock, index, m->addresses.p[i], 32);
  return r ? err_set(err, r, "adding a box's former address to its loopback: %s", strerrordesc_np(-r)) : 0;
}

struct diag {
  struct nlmsghdr head;
  struct inet_diag_req_v2 body;
};

static int ask(int sock, unsigned type, unsigned flags, unsigned family, const struct inet_diag_sockid *id)
{
  struct diag q = {
      .head = {.nlmsg_len = sizeof(q), .nlmsg_type = (uint16_t)type, .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)},
      .body = {.sdiag_family = (uint8_t)family, .sdiag_protocol = IPPROTO_TCP, .idiag_states = NOT_WAITING},
  };
  if (id)
    q.body.id = *id;
  return send(sock, &q, sizeof(q), 0) < 0 ? -errno : 0;
}

static bool is_external(const struct inet_diag_msg *s)
{
  static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
  if (s->idiag_family == AF_INET)
    return is_outside(ntohl(s->id.idiag_src[0]));
  return !memcmp(s->id.idiag_src, mapped, sizeof(mapped)) && is_outside(ntohl(s->id.idiag_src[3]));
}

struct found {
  unsigned family;
  struct inet_diag_sockid id;
};
typedef VEC(struct found) found_list;

/* True at the end of the list. */
static bool read_list(char *bytes, ssize_t n, found_list *list)
{
  unsigned left = (unsigned)n;
  for (struct nlmsghdr *h = (struct nlmsghdr *)bytes; NLMSG_OK(h, left); h = NLMSG_NEXT(h, left)) {
    const struct inet_diag_msg *s = NLMSG_DATA(h);
    if (h->nlmsg_type == NLMSG_DONE || h->nlmsg_type == NLMSG_ERROR)
      return true;
    if (is_external(s))
      vec_push(list, ((struct found){s->idiag_family, s->id}));
  }
  return false;
}

static int find_all(int sock, unsigned family, found_list *list)
{
  cleanup_free char *bytes = xmalloc(ANSWER_MAX);
  int r = ask(sock, SOCK_DIAG_BY_FAMILY, NLM_F_DUMP, family, NULL);
  for (bool over = false; !r && !over;) {
    ssize_t n = recv(sock, bytes, ANSWER_MAX, 0);
    if (n < 0 && errno == EINTR)
      continue;
    r = n < 0 ? -errno : 0;
    over = !r && read_list(bytes, n, list);
  }
  return r;
}

/* A kernel that can't end a socket leaves its owner to a timeout: worth a word, not a failure. */
static void end_all(int sock, const found_list *list)
{
  for (size_t i = 0; i < list->n; i++) {
    struct {
      struct nlmsghdr head;
      struct nlmsgerr body;
      char room[256];
    } answer = {0};
    if (ask(sock, SOCK_DESTROY, NLM_F_ACK, list->p[i].family, &list->p[i].id) ||
        recv(sock, &answer, sizeof(answer), 0) < (ssize_t)sizeof(answer.head))
      log_warn("closing a connection of a restored box failed: %s", strerrordesc_np(errno));
    else if (answer.head.nlmsg_type == NLMSG_ERROR && answer.body.error && answer.body.error != -ENOENT)
      log_warn("closing a connection of a restored box failed: %s", strerrordesc_np(-answer.body.error));
  }
}

/* Listing them means to look through all of the host's; a box that had no connection at all is spared that. */
static bool had_any(const struct manifest *m)
{
  for (size_t i = 0; i < m->entries.n; i++)
    if (str_starts(str_of(m->entries.p[i].name), STR("tcp-stream-")))
      return m->addresses.n > 0;
  return false;
}

static int cut_all(int netns, struct err *err)
{
  static const unsigned families[] = {AF_INET, AF_INET6};
  found_list list = {0};
  cleanup_fd int sock = jail_net_talk(netns, NETLINK_SOCK_DIAG, err);
  for (size_t i = 0; sock >= 0 && i < ARRAY_LEN(families); i++)
    if (find_all(sock, families[i], &list))
      log_warn("listing the connections of a restored box failed");
  if (sock >= 0)
    end_all(sock, &list);
  vec_free(&list);
  return MIN(sock, 0);
}

int ext_conns_abort(int netns, const struct manifest *m, struct err *err)
{
  return had_any(m) ? cut_all(netns, err) : 0;
}

/* --- after a killed dump -------------------------------------------------------------------------------------- */

static void mend_socket(int fd)
{
  int protocol = 0, held = 0;
  socklen_t n = sizeof(int);
  if (getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &n) || protocol != IPPROTO_TCP)
    return;
  n = sizeof(int);
  if (!getsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &held, &n) && held &&
      setsockopt(fd, IPPROTO_TCP, TCP_REPAIR, &(int){0}, sizeof(int)))
    log_warn("leaving TCP repair mode failed: %s", strerrordesc_np(errno));
}

/* A box decides how long a close of its sockets waits (SO_LINGER) where ours is the last one, and may drop its own at
 * any moment. A thread that ends lets go of them without waiting: so one with a table of descriptors of its own takes
 * some, and does not close them. */
#define SOCKETS_ONCE 512

struct unrepair {
  pid_t pid;
  int64_t until_us;
  uint64_t next; /* the first descriptor that was not looked at */
  bool more;
};

static void *unrepair_some(void *arg)
{
  struct unrepair *u = arg;
  char path[PROC_PATH], name[32];
  unsigned taken = 0;
  u->more = false;
  if (syscall(SYS_close_range, 3, ~0u, CLOSE_RANGE_UNSHARE))
    return NULL;
  snprintf(path, sizeof(path), "/proc/%d/fd", u->pid);
  int pidfd = (int)syscall(SYS_pidfd_open, u->pid, 0);
  DIR *d = pidfd < 0 ? NULL : opendir(path);
  if (d && u->next)
    seekdir(d, (long)u->next + 2); /* the kernel's positions: "." and "..", then the numbers */
  for (struct dirent *e; d && !u->more && (e = readdir(d));) {
    uint64_t number;
    if (str_u64(str_of(e->d_name), &number) || number < u->next)
      continue;
    ssize_t n = readlinkat(dirfd(d), e->d_name, name, sizeof(name));
    if (clock_mono_us() >= u->until_us)
      break;
    if (n < 8 || memcmp(name, "socket:[", 8))
      continue;
    int fd = (int)syscall(SYS_pidfd_getfd, pidfd, (int)number, 0);
    if (fd >= 0)
      mend_socket(fd);
    u->next = number + 1;
    u->more = ++taken == SOCKETS_ONCE;
  }
  if (d)
    closedir(d);
  return NULL;
}

void ext_conns_unrepair(pid_t pid, int64_t until_us)
{
  struct unrepair u = {.pid = pid, .until_us = until_us, .more = true};
  pthread_t thread;
  while (u.more) {
    if (pthread_create(&thread, NULL, unrepair_some, &u)) {
      log_warn("connections of process %d may stay in TCP repair mode: no thread to restore them", pid);
      return;
    }
    pthread_join(thread, NULL);
  }
}
