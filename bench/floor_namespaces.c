/* SPDX-License-Identifier: Apache-2.0 */
/* floor_namespaces.c - see floor_namespaces.h. */
#include "floor_namespaces.h"

#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

void must(bool good, const char *what)
{
  if (good)
    return;
  perror(what);
  exit(1);
}

/* ---- control groups ---- */

struct limit {
  const char *controller, *old_file, *old_value, *new_file, *new_value; /* of version 1 and 2 */
};

static const struct limit limits[FLOOR_GROUPS] = {
    {"cpu", "cpu.cfs_quota_us", "200000", "cpu.max", "200000 100000"},
    {"memory", "memory.limit_in_bytes", "536870912", "memory.max", "536870912"},
    {"pids", "pids.max", "512", "pids.max", "512"},
};

static char homes[FLOOR_GROUPS][300];
static unsigned nhomes, made;
static bool unified;
static pid_t owner;

static void put_at(int dir, const char *file, const char *text)
{
  cleanup_fd int fd = openat(dir, file, O_WRONLY | O_CLOEXEC);
  must(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text), file);
}

static void groups_end(void)
{
  char path[400];
  for (unsigned h = 0; getpid() == owner && h < nhomes; h++) {
    for (unsigned i = 0; i < made; i++) {
      snprintf(path, sizeof(path), "%s/%u", homes[h], i);
      rmdir(path);
    }
    rmdir(homes[h]);
  }
}

static void home_make(const char *mount)
{
  snprintf(homes[nhomes], sizeof(homes[nhomes]), "%s/cloche-floor-%d", mount, getpid());
  must(!mkdir(homes[nhomes], 0755), homes[nhomes]);
  nhomes++;
}

void groups_begin(void)
{
  char path[300];
  owner = getpid();
  atexit(groups_end);
  unified = !access("/sys/fs/cgroup/cgroup.controllers", F_OK);
  for (unsigned i = 0; i < (unified ? 1 : FLOOR_GROUPS); i++) {
    snprintf(path, sizeof(path), "/sys/fs/cgroup/%s", unified ? "" : limits[i].controller);
    home_make(path);
  }
  cleanup_fd int home = unified ? open(homes[0], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
  if (unified)
    put_at(home, "cgroup.subtree_control", "+cpu +memory +pids");
}

void groups_make(struct groups *g, unsigned number)
{
  char path[400];
  *g = (struct groups){.n = nhomes};
  made = MAX(made, number + 1);
  for (unsigned h = 0; h < nhomes; h++) {
    snprintf(path, sizeof(path), "%s/%u", homes[h], number);
    must(!mkdir(path, 0755), path);
    cleanup_fd int dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (unsigned i = 0; i < FLOOR_GROUPS; i++)
      if (unified || i == h)
        put_at(dir, unified ? limits[i].new_file : limits[i].old_file,
               unified ? limits[i].new_value : limits[i].old_value);
    g->tasks[h] = openat(dir, unified ? "cgroup.procs" : "tasks", O_WRONLY | O_CLOEXEC);
    must(g->tasks[h] >= 0, path);
  }
}

void groups_enter(struct groups *g)
{
  for (unsigned i = 0; i < g->n; i++)
    must(write(g->tasks[i], "0", 1) == 1, "entering a control group");
}

void groups_close(struct groups *g)
{
  for (unsigned i = 0; i < g->n; i++)
    close(g->tasks[i]);
  g->n = 0;
}

/* ---- veth ---- */

struct question {
  struct nlmsghdr head;
  struct ifinfomsg link;
  char attributes[512];
};

static struct rtattr *attribute(struct question *q, unsigned short type, const void *data, size_t n)
{
  struct rtattr *a = (void *)((char *)q + NLMSG_ALIGN(q->head.nlmsg_len));
  *a = (struct rtattr){.rta_type = type, .rta_len = (unsigned short)RTA_LENGTH(n)};
  if (n)
    memcpy(RTA_DATA(a), data, n);
  q->head.nlmsg_len = NLMSG_ALIGN(q->head.nlmsg_len) + RTA_ALIGN(a->rta_len);
  return a;
}

static void nest_end(struct question *q, struct rtattr *a)
{
  a->rta_len = (unsigned short)((char *)q + q->head.nlmsg_len - (char *)a);
}

static int netlink(void)
{
  static int fd = -1;
  static pid_t of;
  if (fd < 0 || of != getpid()) {
    fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    of = getpid();
  }
  must(fd >= 0, "netlink");
  return fd;
}

void veth_make(pid_t pid, unsigned number)
{
  char name[IFNAMSIZ], in[1024];
  const struct ifinfomsg up = {.ifi_family = AF_UNSPEC, .ifi_flags = IFF_UP, .ifi_change = IFF_UP};
  const struct ifinfomsg down = {.ifi_family = AF_UNSPEC}; /* an end can't be up before it has its other one */
  struct question q = {
      .head = {.nlmsg_type = RTM_NEWLINK, .nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | NLM_F_EXCL | NLM_F_ACK},
      .link = up};
  q.head.nlmsg_len = NLMSG_LENGTH(sizeof(q.link));
  snprintf(name, sizeof(name), "cf%x.%x", (unsigned)getpid(), number);
  attribute(&q, IFLA_IFNAME, name, strlen(name) + 1);
  struct rtattr *info = attribute(&q, IFLA_LINKINFO, NULL, 0);
  attribute(&q, IFLA_INFO_KIND, "veth", 4);
  struct rtattr *data = attribute(&q, IFLA_INFO_DATA, NULL, 0);
  struct rtattr *peer = attribute(&q, VETH_INFO_PEER, &down, sizeof(down));
  attribute(&q, IFLA_IFNAME, "eth0", 5);
  attribute(&q, IFLA_NET_NS_PID, &pid, sizeof(pid));
  nest_end(&q, peer);
  nest_end(&q, data);
  nest_end(&q, info);
  must(send(netlink(), &q, q.head.nlmsg_len, 0) == (ssize_t)q.head.nlmsg_len, "asking for a veth pair");
  ssize_t n = recv(netlink(), in, sizeof(in), 0);
  must(n >= (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)), "the answer about a veth pair");
  errno = -((struct nlmsgerr *)NLMSG_DATA((struct nlmsghdr *)in))->error;
  must(!errno, "a veth pair");
}
