/* SPDX-License-Identifier: Apache-2.0 */
/* jail_net_test.c - the way out of a box, tried against a small world that the test makes itself.
 *
 * The test moves into a network namespace of its own, which plays the host; a child process in another one plays the
 * rest of the world, with public, private and metadata addresses and a server on each. No packet leaves the two. */
#include "box.h"
#include "jail/net/jail_net.h"
#include "jail/net/rtnl.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <setjmp.h>
#include <cmocka.h>

#define IP(a, b, c, d) ((uint32_t)(a) << 24 | (b) << 16 | (c) << 8 | (d))

static struct test_host test_host;
static struct jail_net_config config;
static struct world {
  pid_t pid;
  int netns;
  int heard; /* datagrams that reached the world's port 9, as text */
} world;

static bool begins(const char *text, const char *part)
{
  return strncmp(text, part, strlen(part)) == 0;
}

/* --- the world ------------------------------------------------------------------------------------------------ */

static int bound(int type, unsigned port)
{
  struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  int s = socket(AF_INET, type | SOCK_CLOEXEC, 0);
  setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &(int){1}, sizeof(int));
  if (s < 0 || bind(s, (struct sockaddr *)&sa, sizeof(sa)) || (type == SOCK_STREAM && listen(s, 4096)))
    _exit(1);
  return s;
}

static void greet(int s)
{
  struct sockaddr_in who;
  socklen_t n = sizeof(who);
  char text[64], name[INET_ADDRSTRLEN];
  int c = accept(s, (struct sockaddr *)&who, &n);
  if (c < 0)
    return;
  int k = snprintf(text, sizeof(text), "world sees %s", inet_ntop(AF_INET, &who.sin_addr, name, sizeof(name)));
  if (write(c, text, (size_t)k) != k)
    _exit(1);
  static int kept[4096];
  static unsigned next; /* connections stay open for a while: the limit counts open ones */
  if (kept[next % 4096])
    close(kept[next % 4096]);
  kept[next++ % 4096] = c;
}

static void swallow(int s)
{
  char text[65536];
  int c = accept(s, NULL, NULL);
  if (c >= 0 && fork() == 0) {
    while (read(c, text, sizeof(text)) > 0)
      ;
    _exit(0);
  }
  close(c);
}

static ssize_t answer_name(uint8_t *m, size_t n)
{
  static const uint8_t record[12] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4};
  bool evil = memmem(m, n, "evil", 4) != NULL;
  m[2] = 0x81;
  m[3] = 0x80;
  m[7] = 1;
  memcpy(m + n, record, sizeof(record));
  memcpy(m + n + sizeof(record), evil ? "\306\63\144\10" : "\306\63\144\7", 4);
  return (ssize_t)(n + sizeof(record) + 4);
}

/* Answers from the address that was asked, as a real name server does: the world has several. */
static void answer_question(int s)
{
  struct sockaddr_in who;
  char text[512], room[CMSG_SPACE(sizeof(struct in_pktinfo))];
  struct iovec io = {text, sizeof(text) / 2};
  struct msghdr m = {.msg_name = &who,
                     .msg_namelen = sizeof(who),
                     .msg_iov = &io,
                     .msg_iovlen = 1,
                     .msg_control = room,
                     .msg_controllen = sizeof(room)};
  ssize_t n = recvmsg(s, &m, 0);
  struct cmsghdr *c = n < 0 ? NULL : CMSG_FIRSTHDR(&m);
  if (!c || c->cmsg_type != IP_PKTINFO)
    return;
  struct in_pktinfo *info = (struct in_pktinfo *)CMSG_DATA(c);
  info->ipi_spec_dst = info->ipi_addr;
  info->ipi_ifindex = 0;
  if (n > 12) /* a question for a name: all of them are 198.51.100.7, but for evil ones */
    n = answer_name((uint8_t *)text, (size_t)n);
  io.iov_len = (size_t)n;
  sendmsg(s, &m, 0);
}

static void note_datagram(int s, int tell)
{
  struct sockaddr_in who;
  socklen_t len = sizeof(who);
  char text[256], line[300], name[INET_ADDRSTRLEN];
  ssize_t n = recvfrom(s, text, sizeof(text) - 1, 0, (struct sockaddr *)&who, &len);
  if (n < 0)
    return;
  text[n] = 0;
  int k = snprintf(line, sizeof(line), "%s %s\n", inet_ntop(AF_INET, &who.sin_addr, name, sizeof(name)), text);
  if (write(tell, line, (size_t)k) != k)
    _exit(1);
}

static _Noreturn void world_run(int ready, int tell)
{
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (unshare(CLONE_NEWNET) || write(ready, "x", 1) != 1)
    _exit(1);
  signal(SIGCHLD, SIG_IGN);
  struct pollfd p[4] = {{.fd = bound(SOCK_STREAM, 80), .events = POLLIN},
                        {.fd = bound(SOCK_DGRAM, 53), .events = POLLIN},
                        {.fd = bound(SOCK_DGRAM, 9), .events = POLLIN},
                        {.fd = bound(SOCK_STREAM, 81), .events = POLLIN}};
  setsockopt(p[1].fd, IPPROTO_IP, IP_PKTINFO, &(int){1}, sizeof(int));
  for (;;) {
    poll(p, 4, -1);
    if (p[0].revents)
      greet(p[0].fd);
    if (p[1].revents)
      answer_question(p[1].fd);
    if (p[2].revents)
      note_datagram(p[2].fd, tell);
    if (p[3].revents)
      swallow(p[3].fd);
  }
}

static int rtnl_in(int netns)
{
  int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  assert_int_equal(setns(netns, CLONE_NEWNET), 0);
  int fd = rtnl_open();
  assert_int_equal(setns(home, CLONE_NEWNET), 0);
  close(home);
  return fd;
}

/* The host is 203.0.113.1 and sends all it does not know to the world, 203.0.113.2, which owns a few more. */
static void world_open(void)
{
  static const uint32_t owned[] = {IP(198, 51, 100, 7), IP(198, 51, 100, 8), IP(10, 9, 9, 9),  IP(169, 254, 169, 254),
                                   IP(192, 168, 5, 5),  IP(172, 20, 1, 1),   IP(100, 64, 1, 1)};
  int ready[2], heard[2];
  char byte, path[64];
  assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
  assert_int_equal(pipe2(heard, O_CLOEXEC), 0);
  world.pid = fork();
  if (world.pid == 0)
    world_run(ready[1], heard[1]);
  close(ready[1]);
  close(heard[1]);
  assert_int_equal(read(ready[0], &byte, 1), 1);
  close(ready[0]);
  world.heard = heard[0];
  snprintf(path, sizeof(path), "/proc/%d/ns/net", world.pid);
  world.netns = open(path, O_RDONLY | O_CLOEXEC);
  cleanup_fd int here = rtnl_open(), there = rtnl_in(world.netns);
  assert_int_equal(rtnl_veth(here, "up0", world.netns), 0);
  int up = rtnl_index(here, "up0"), eth = rtnl_index(there, "eth0");
  assert_int_equal(rtnl_up(here, up, false), 0);
  assert_int_equal(rtnl_up(there, eth, false), 0);
  assert_int_equal(rtnl_address(here, up, IP(203, 0, 113, 1), 24), 0);
  assert_int_equal(rtnl_route(here, up, 0, 0, IP(203, 0, 113, 2)), 0);
  assert_int_equal(rtnl_address(there, eth, IP(203, 0, 113, 2), 24), 0);
  for (size_t i = 0; i < ARRAY_LEN(owned); i++)
    assert_int_equal(rtnl_address(there, eth, owned[i], 32), 0);
}

static void world_close(void)
{
  kill(world.pid, SIGKILL);
  waitpid(world.pid, NULL, 0);
  close(world.netns);
  close(world.heard);
}

static bool world_heard(const char *word)
{
  char text[4096];
  struct pollfd p = {.fd = world.heard, .events = POLLIN};
  if (poll(&p, 1, 300) != 1)
    return false;
  ssize_t n = read(world.heard, text, sizeof(text) - 1);
  text[n > 0 ? n : 0] = 0;
  return strstr(text, word) != NULL;
}

/* --- boxes ---------------------------------------------------------------------------------------------------- */

static void open_with_net(struct box *b, const char *id, struct jail_net *net)
{
  struct jail_spec spec = test_spec(&test_host, b, id);
  spec.limits = (struct jail_limits){.cpus = 1, .memory = 64u << 20, .pids = 64, .open_files = 4096};
  spec.net = net;
  net->config = &config;
  box_start(b, &spec);
}

#define OPEN "ok world sees 203.0.113.1"

static void a_box_reaches_the_world_under_the_hosts_address(void **state)
{
  struct box b;
  struct jail_net net = {.slot = 1};
  open_with_net(&b, "out", &net);
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), OPEN);
  assert_string_equal(box_ask(&b, "read /sys/class/net/eth0/operstate"), "ok up\n");
  box_close(&b);
}

static void a_box_without_network_has_only_lo(void **state)
{
  struct box b;
  box_open(&test_host, &b, "alone");
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), "errno ENETUNREACH");
  box_close(&b);
}

static void private_and_metadata_addresses_are_refused_even_when_allowed(void **state)
{
  static const char *const never[] = {"10.9.9.9", "169.254.169.254", "192.168.5.5", "172.20.1.1", "100.64.1.1", NULL};
  struct box b;
  struct jail_net net = {.slot = 2, .allow = never};
  open_with_net(&b, "private", &net);
  for (size_t i = 0; never[i]; i++)
    assert_true(begins(box_ask(&b, "connect %s 80", never[i]), "errno E"));
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), OPEN);
  box_close(&b);
}

static void the_host_itself_is_out_of_reach(void **state)
{
  struct box b;
  struct jail_net net = {.slot = 3};
  struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(8080)};
  cleanup_fd int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(s, (struct sockaddr *)&sa, sizeof(sa)), 0);
  assert_int_equal(listen(s, 8), 0);
  open_with_net(&b, "host", &net);
  assert_string_equal(box_ask(&b, "connect 10.213.0.1 8080"), "errno ECONNREFUSED");
  assert_string_equal(box_ask(&b, "connect 203.0.113.1 8080"), "errno ECONNREFUSED");
  assert_string_equal(box_ask(&b, "connect 127.0.0.1 8080"), "errno ECONNREFUSED");
  assert_int_equal(poll(&(struct pollfd){.fd = s, .events = POLLIN}, 1, 0), 0);
  box_close(&b);
}

static void boxes_do_not_reach_each_other(void **state)
{
  struct box a, b;
  struct jail_net first = {.slot = 4}, second = {.slot = 5};
  open_with_net(&a, "one", &first);
  open_with_net(&b, "two", &second);
  assert_true(begins(box_ask(&b, "listen 8080"), "ok"));
  assert_true(begins(box_ask(&a, "connect 10.213.0.21 8080"), "errno E"));
  box_close(&a);
  box_close(&b);
}

static void allow_beats_deny_and_deny_all_closes_the_rest(void **state)
{
  struct box b;
  struct jail_net net = {.slot = 6,
                         .allow = (const char *const[]){"198.51.100.7", NULL},
                         .deny = (const char *const[]){"0.0.0.0/0", NULL}};
  open_with_net(&b, "listed", &net);
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), OPEN);
  assert_string_equal(box_ask(&b, "connect 198.51.100.8 80"), "errno ECONNREFUSED");
  assert_true(begins(box_ask(&b, "udp 198.51.100.8 53 hi"), "errno E"));
  box_close(&b);
}

static void lists_change_while_the_box_runs(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  struct jail_net net = {.slot = 7};
  open_with_net(&b, "change", &net);
  assert_string_equal(box_ask(&b, "connect 198.51.100.8 80"), OPEN);
  net.deny = (const char *const[]){"198.51.100.0/24", NULL};
  assert_int_equal(jail_net_update(&net, &err), 0);
  assert_string_equal(box_ask(&b, "connect 198.51.100.8 80"), "errno ECONNREFUSED");
  net.allow = (const char *const[]){"198.51.100.8/32", "203.0.113.0/25", NULL};
  assert_int_equal(jail_net_update(&net, &err), 0);
  assert_string_equal(box_ask(&b, "connect 198.51.100.8 80"), OPEN);
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), "errno ECONNREFUSED");
  net.allow = net.deny = NULL;
  assert_int_equal(jail_net_update(&net, &err), 0);
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), OPEN);
  box_close(&b);
}

static void a_slot_taken_anew_has_none_of_the_old_lists(void **state)
{
  struct box b;
  struct jail_net net = {.slot = 8, .deny = (const char *const[]){"0.0.0.0/0", NULL}};
  open_with_net(&b, "former", &net);
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), "errno ECONNREFUSED");
  box_close(&b);
  net.deny = NULL;
  open_with_net(&b, "later", &net);
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), OPEN);
  box_close(&b);
}

static void lists_outlive_a_restart_of_the_daemon(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  struct jail_net net = {.slot = 9, .deny = (const char *const[]){"198.51.100.8", NULL}};
  open_with_net(&b, "kept", &net);
  assert_int_equal(jail_net_open(&config, &err), 0);
  assert_string_equal(box_ask(&b, "connect 198.51.100.8 80"), "errno ECONNREFUSED");
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), OPEN);
  box_close(&b);
}

static void entries_that_are_no_addresses_are_named(void **state)
{
  static const char *const bad[] = {"example.com", "1.2.3", "1.2.3.4/33", "1.2.3.4; drop",
                                    "::1/129",     ":::1",  "",           "1.2.3.4/"};
  struct err err;
  for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
    assert_int_equal(jail_net_check(bad[i], &err), -EINVAL);
    assert_non_null(strstr(err.msg, bad[i]));
  }
  assert_int_equal(jail_net_check("1.2.3.4", &err), 0);
  assert_int_equal(jail_net_check("1.2.0.0/16", &err), 0);
  assert_int_equal(jail_net_check("2001:db8::/32", &err), 0);
}

static void name_questions_go_to_the_resolver(void **state)
{
  struct box b;
  struct jail_net net = {.slot = 10};
  open_with_net(&b, "names", &net);
  assert_string_equal(box_ask(&b, "read /etc/resolv.conf"), "ok nameserver 10.213.0.1\noptions edns0\n");
  assert_string_equal(box_ask(&b, "udp 10.213.0.1 53 question"), "ok question");
  box_close(&b);
}

static void an_allowed_name_opens_its_addresses_and_no_others(void **state)
{
  struct box b;
  struct jail_net net = {.slot = 20,
                         .allow = (const char *const[]){"good.example", "*.wild.example", NULL},
                         .deny = (const char *const[]){"0.0.0.0/0", NULL}};
  open_with_net(&b, "named", &net);
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), "errno ECONNREFUSED");
  assert_string_equal(box_ask(&b, "resolve 10.213.0.1 evil.example"), "ok rcode 5");
  assert_string_equal(box_ask(&b, "resolve 10.213.0.1 sub.good.example"), "ok rcode 5");
  assert_string_equal(box_ask(&b, "resolve 10.213.0.1 wild.example"), "ok rcode 5");
  assert_string_equal(box_ask(&b, "resolve 10.213.0.1 Good.Example"), "ok 198.51.100.7");
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), OPEN);
  assert_string_equal(box_ask(&b, "connect 198.51.100.8 80"), "errno ECONNREFUSED");
  assert_string_equal(box_ask(&b, "resolve 10.213.0.1 evil.wild.example"), "ok 198.51.100.8");
  assert_string_equal(box_ask(&b, "connect 198.51.100.8 80"), OPEN);
  /* Another name server, were it open, could be the box's own accomplice: questions to it end here, too. */
  assert_string_equal(box_ask(&b, "resolve 203.0.113.2 evil.example"), "ok rcode 5");
  box_close(&b);
}

static void a_box_with_name_servers_of_its_own_asks_those_alone(void **state)
{
  struct box b;
  struct jail_net net = {
      .slot = 28,
      .allow = (const char *const[]){"good.example", "dns:198.51.100.9", "dns:10.0.0.9", "dns:198.51.100.8", NULL},
      .deny = (const char *const[]){"0.0.0.0/0", NULL}};
  open_with_net(&b, "chosen", &net);
  /* The first of them is nobody: the next one answers after a second. */
  assert_string_equal(box_ask(&b, "resolve 10.213.0.1 good.example"), "ok 198.51.100.7");
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), OPEN);
  assert_string_equal(box_ask(&b, "connect 198.51.100.8 80"), OPEN);
  assert_string_equal(box_ask(&b, "connect 203.0.113.2 80"), "errno ECONNREFUSED");
  box_close(&b);
}

static void other_names_are_answered_by_the_boxs_own_servers_and_open_nothing(void **state)
{
  struct box b;
  struct jail_net net = {.slot = 29,
                         .allow = (const char *const[]){"good.example", "dns:203.0.113.2", NULL},
                         .deny = (const char *const[]){"0.0.0.0/0", NULL}};
  open_with_net(&b, "asks", &net);
  assert_string_equal(box_ask(&b, "resolve 203.0.113.2 evil.example"), "ok 198.51.100.8");
  assert_string_equal(box_ask(&b, "connect 198.51.100.8 80"), "errno ECONNREFUSED");
  assert_string_equal(box_ask(&b, "resolve 203.0.113.2 good.example"), "ok 198.51.100.7");
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), OPEN);
  box_close(&b);
}

/* The host and what no box reaches would be asked in the box's stead by a process that reaches them. */
static void name_servers_that_no_box_reaches_are_not_asked(void **state)
{
  static const char *const servers[] = {"dns:127.0.0.1", "dns:10.213.0.1", "dns:203.0.113.1", "dns:169.254.169.254"};
  struct box b;
  struct err err = ERR_NONE;
  struct jail_net net = {.slot = 30, .deny = (const char *const[]){"0.0.0.0/0", NULL}};
  open_with_net(&b, "unasked", &net);
  for (size_t i = 0; i < ARRAY_LEN(servers); i++) {
    net.allow = (const char *const[]){"good.example", servers[i], NULL};
    assert_int_equal(jail_net_update(&net, &err), 0);
    if (begins(box_ask(&b, "resolve 10.213.0.1 good.example"), "ok 198"))
      fail_msg("%s answers", servers[i]);
  }
  box_close(&b);
}

static void a_box_without_name_server_reaches_allowed_names_whose_address_it_knows(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  struct jail_net net = {.slot = 31,
                         .allow = (const char *const[]){"good.example", "*.wild.example", "dns:none", NULL},
                         .deny = (const char *const[]){"0.0.0.0/0", NULL}};
  open_with_net(&b, "deaf", &net);
  assert_string_equal(box_ask(&b, "resolve 10.213.0.1 good.example"), "ok rcode 5");
  const char *seen = "";
  for (int i = 0; i < 100 && strcmp(seen, OPEN); i++) {
    poll(NULL, 0, 50);
    seen = box_ask(&b, "connect 198.51.100.7 80");
  }
  assert_string_equal(seen, OPEN);
  assert_string_equal(box_ask(&b, "connect 198.51.100.8 80"), "errno ECONNREFUSED");
  net.allow = (const char *const[]){"good.example", NULL};
  assert_int_equal(jail_net_update(&net, &err), 0);
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), "errno ECONNREFUSED");
  assert_string_equal(box_ask(&b, "resolve 10.213.0.1 good.example"), "ok 198.51.100.7");
  box_close(&b);
}

static void a_new_list_closes_what_an_old_name_opened(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  struct jail_net net = {.slot = 21,
                         .allow = (const char *const[]){"good.example", NULL},
                         .deny = (const char *const[]){"0.0.0.0/0", NULL}};
  open_with_net(&b, "renamed", &net);
  assert_string_equal(box_ask(&b, "resolve 10.213.0.1 good.example"), "ok 198.51.100.7");
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), OPEN);
  net.allow = (const char *const[]){"other.example", NULL};
  assert_int_equal(jail_net_update(&net, &err), 0);
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), "errno ECONNREFUSED");
  assert_string_equal(box_ask(&b, "resolve 10.213.0.1 good.example"), "ok rcode 5");
  assert_string_equal(box_ask(&b, "resolve 10.213.0.1 other.example"), "ok 198.51.100.7");
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), OPEN);
  box_close(&b);
}

static void a_closed_box_gets_no_answer_from_any_name_server(void **state)
{
  struct box b;
  struct jail_net net = {.slot = 22, .deny = (const char *const[]){"0.0.0.0/0", NULL}};
  open_with_net(&b, "mute", &net);
  assert_true(begins(box_ask(&b, "resolve 10.213.0.1 good.example"), "errno E"));
  assert_true(begins(box_ask(&b, "resolve 203.0.113.2 good.example"), "errno E"));
  box_close(&b);
}

static void names_resolve_where_a_list_of_addresses_allows_everything(void **state)
{
  struct box b;
  struct jail_net net = {
      .slot = 25, .allow = (const char *const[]){"0.0.0.0/0", NULL}, .deny = (const char *const[]){"0.0.0.0/0", NULL}};
  open_with_net(&b, "all", &net);
  assert_string_equal(box_ask(&b, "resolve 10.213.0.1 good.example"), "ok 198.51.100.7");
  assert_string_equal(box_ask(&b, "resolve 198.51.100.8 evil.example"), "ok 198.51.100.8");
  assert_string_equal(box_ask(&b, "connect 198.51.100.8 80"), OPEN);
  box_close(&b);
}

static void an_allowed_name_server_answers_itself_and_its_answers_open_nothing(void **state)
{
  struct box b;
  struct jail_net net = {.slot = 26,
                         .allow = (const char *const[]){"198.51.100.8", NULL},
                         .deny = (const char *const[]){"0.0.0.0/0", NULL}};
  open_with_net(&b, "server", &net);
  assert_string_equal(box_ask(&b, "resolve 198.51.100.8 good.example"), "ok 198.51.100.7");
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), "errno ECONNREFUSED");
  assert_true(begins(box_ask(&b, "resolve 10.213.0.1 good.example"), "errno E"));
  assert_true(begins(box_ask(&b, "resolve 203.0.113.2 good.example"), "errno E"));
  box_close(&b);
}

static void the_resolver_behind_the_gateway_is_judged_by_address_lists(void **state)
{
  static const struct {
    const char *allow, *deny;
    bool answers;
  } cases[] = {
      {"203.0.113.2", "0.0.0.0/0", true},  {"203.0.113.0/30", "0.0.0.0/0", true}, {"10.213.0.1", "0.0.0.0/0", true},
      {"203.0.113.3", "0.0.0.0/0", false}, {NULL, "203.0.113.0/24", false},       {NULL, "198.51.100.0/24", true},
      {NULL, "10.0.0.0/8", true},
  };
  struct box b;
  struct err err = ERR_NONE;
  struct jail_net net = {.slot = 27};
  open_with_net(&b, "judged", &net);
  for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
    net.allow = (const char *const[]){cases[i].allow, NULL};
    net.deny = (const char *const[]){cases[i].deny, NULL};
    assert_int_equal(jail_net_update(&net, &err), 0);
    bool answers = begins(box_ask(&b, "resolve 10.213.0.1 good.example"), "ok 198.51.100.7");
    if (answers != cases[i].answers)
      fail_msg("allow %s deny %s: %s", cases[i].allow ? cases[i].allow : "-", cases[i].deny, answers ? "yes" : "no");
  }
  box_close(&b);
}

static void names_are_refused_in_deny_and_nonsense_everywhere(void **state)
{
  struct err err;
  struct jail_net net = {.config = &config, .slot = 23, .deny = (const char *const[]){"good.example", NULL}};
  assert_int_equal(jail_net_update(&net, &err), -EINVAL);
  assert_non_null(strstr(err.msg, "good.example"));
  net = (struct jail_net){.config = &config, .slot = 23, .allow = (const char *const[]){"a b; drop", NULL}};
  assert_int_equal(jail_net_update(&net, &err), -EINVAL);
}

/* A child of `parent`'s first thread with that name, other than `but`; 0 when there is none. */
static pid_t child_named(pid_t parent, const char *name, pid_t but)
{
  char path[64], text[64];
  cleanup_buf struct buf children = BUF_INIT(65536);
  snprintf(text, sizeof(text), "(%s)", name);
  snprintf(path, sizeof(path), "/proc/%d/task/%d/children", parent, parent);
  assert_int_equal(file_read(path, &children), 0);
  const char *at = buf_z(&children);
  for (char *end; *at; at = end) {
    cleanup_buf struct buf b = BUF_INIT(4096);
    pid_t pid = (pid_t)strtol(at, &end, 10);
    if (end == at)
      break;
    snprintf(path, sizeof(path), "/proc/%d/stat", pid);
    if (pid != but && file_read(path, &b) == 0 && strstr(buf_z(&b), text))
      return pid;
  }
  return 0;
}

static void a_dead_name_server_is_replaced(void **state)
{
  struct box b;
  struct jail_net net = {.slot = 24,
                         .allow = (const char *const[]){"good.example", NULL},
                         .deny = (const char *const[]){"0.0.0.0/0", NULL}};
  pid_t keeper = child_named(getpid(), "dns-keeper", 0);
  assert_true(keeper > 0);
  pid_t worker = child_named(keeper, "dns-proxy", 0);
  struct stat st;
  char path[64];
  assert_true(worker > 0);
  snprintf(path, sizeof(path), "/proc/%d", worker);
  assert_int_equal(stat(path, &st), 0);
  assert_int_equal(st.st_uid, 65534); /* it reads strangers' bytes without rights */
  open_with_net(&b, "revived", &net);
  kill(worker, SIGKILL);
  for (int i = 0; i < 3000 && !child_named(keeper, "dns-proxy", worker); i++)
    usleep(10000);
  assert_string_equal(box_ask(&b, "resolve 10.213.0.1 good.example"), "ok 198.51.100.7");
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), OPEN);
  box_close(&b);
}

static void a_false_source_address_does_not_leave(void **state)
{
  struct box b;
  struct jail_net net = {.slot = 11};
  open_with_net(&b, "spoof", &net);
  assert_true(begins(box_ask(&b, "spoof 10.213.0.27 198.51.100.7 9"), "ok"));
  assert_true(world_heard("spoof")); /* its own address: the packet gets through, so the test below can fail */
  assert_true(begins(box_ask(&b, "spoof 10.213.0.99 198.51.100.7 9"), "ok"));
  assert_true(begins(box_ask(&b, "spoof 203.0.113.1 198.51.100.7 9"), "ok"));
  assert_true(begins(box_ask(&b, "spoof 127.0.0.1 198.51.100.7 9"), "ok"));
  assert_false(world_heard("spoof"));
  box_close(&b);
}

/* The kernel takes the looser of the host's setting and the link's own. */
static void a_false_source_address_does_not_leave_a_host_with_a_loose_filter(void **state)
{
  cleanup_fd int filter = open("/proc/sys/net/ipv4/conf/all/rp_filter", O_WRONLY | O_CLOEXEC);
  assert_int_equal(write(filter, "2", 1), 1);
  struct box b;
  struct jail_net net = {.slot = 11};
  open_with_net(&b, "spoof", &net);
  assert_true(begins(box_ask(&b, "spoof 10.213.0.27 198.51.100.7 9"), "ok"));
  assert_true(world_heard("spoof"));
  assert_true(begins(box_ask(&b, "spoof 10.213.0.99 198.51.100.7 9"), "ok"));
  assert_true(begins(box_ask(&b, "spoof 203.0.113.1 198.51.100.7 9"), "ok"));
  assert_false(world_heard("spoof"));
  box_close(&b);
  assert_int_equal(write(filter, "0", 1), 1);
}

static void open_connections_are_counted(void **state)
{
  struct box b;
  struct jail_net net = {.slot = 12};
  open_with_net(&b, "many", &net);
  assert_string_equal(box_ask(&b, "hold 198.51.100.7 80 100"), "ok 50");
  box_close(&b);
}

static void nobody_outside_connects_in(void **state)
{
  struct box b;
  struct jail_net net = {.slot = 13};
  struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(8080), .sin_addr = {htonl(IP(10, 213, 0, 29))}};
  open_with_net(&b, "closed", &net);
  cleanup_fd int there = rtnl_in(world.netns);
  assert_int_equal(rtnl_route(there, rtnl_index(there, "eth0"), IP(10, 213, 0, 0), 16, IP(203, 0, 113, 1)), 0);
  int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  assert_int_equal(setns(world.netns, CLONE_NEWNET), 0);
  cleanup_fd int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(setns(home, CLONE_NEWNET), 0);
  close(home);
  struct timeval limit = {0, 300000};
  setsockopt(s, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
  assert_int_equal(connect(s, (struct sockaddr *)&sa, sizeof(sa)), -1);
  assert_true(errno == EINPROGRESS); /* no answer at all */
  box_close(&b);
}

static uint64_t push_ms(const char *id, uint32_t slot, uint64_t rate)
{
  struct box b;
  struct jail_net_config own = config;
  struct jail_net net = {.config = &own, .slot = slot};
  struct jail_spec spec = test_spec(&test_host, &b, id);
  struct str ok, number;
  uint64_t ms = 0;
  own.rate = rate;
  spec.net = &net;
  box_start(&b, &spec);
  assert_true(str_cut(str_of(box_ask(&b, "push 198.51.100.7 81 400000")), ' ', &ok, &number));
  assert_int_equal(str_u64(number, &ms), 0);
  box_close(&b);
  return ms;
}

static void a_rate_slows_what_comes_out(void **state)
{
  assert_true(push_ms("quick", 14, 0) < 700);
  assert_true(push_ms("slow", 15, 200000) > 1200);
}

/* --- the egress gateway --------------------------------------------------------------------------------------- */

#define SO_ORIGINAL_DST 80 /* the kernel's header for it does not go with the C library's */

/* Stands where the gateway would: says to each connection where it wanted to go and whose it is. */
static pid_t gateway_run(int s)
{
  pid_t pid = fork();
  if (pid)
    return pid;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (;;) {
    struct sockaddr_in to, from;
    socklen_t n = sizeof(to), m = sizeof(from);
    char text[96], a[INET_ADDRSTRLEN], b[INET_ADDRSTRLEN];
    poll(&(struct pollfd){.fd = s, .events = POLLIN}, 1, -1);
    int c = accept(s, (struct sockaddr *)&from, &m);
    if (c < 0 || getsockopt(c, SOL_IP, SO_ORIGINAL_DST, &to, &n))
      _exit(1);
    int k = snprintf(text, sizeof(text), "gateway: %s to %s:%u", inet_ntop(AF_INET, &from.sin_addr, a, sizeof(a)),
                     inet_ntop(AF_INET, &to.sin_addr, b, sizeof(b)), ntohs(to.sin_port));
    if (write(c, text, (size_t)k) != k)
      _exit(1);
    close(c);
  }
}

static void connections_of_a_box_with_a_policy_go_to_the_gateway(void **state)
{
  struct box a, b;
  struct err err = ERR_NONE;
  struct jail_net net = {.slot = 30, .egress = JAIL_EGRESS_WEB}, plain = {.slot = 31};
  cleanup_fd int s = jail_net_listen(&config, &err);
  assert_true(s >= 0);
  pid_t gateway = gateway_run(s);
  open_with_net(&a, "gated", &net);
  open_with_net(&b, "plain", &plain);
  assert_string_equal(box_ask(&a, "connect 198.51.100.7 80"), "ok gateway: 10.213.0.46 to 198.51.100.7:80");
  assert_string_equal(box_ask(&a, "connect 198.51.100.9 443"), "ok gateway: 10.213.0.46 to 198.51.100.9:443");
  assert_true(begins(box_ask(&a, "connect 198.51.100.7 82"), "errno ECONNREFUSED")); /* the world itself */
  assert_true(begins(box_ask(&a, "udp 198.51.100.7 443 quic"), "errno E"));
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), OPEN);
  net.egress = JAIL_EGRESS_TCP;
  assert_int_equal(jail_net_update(&net, &err), 0);
  assert_string_equal(box_ask(&a, "connect 198.51.100.7 82"), "ok gateway: 10.213.0.46 to 198.51.100.7:82");
  net.egress = JAIL_EGRESS_NONE;
  assert_int_equal(jail_net_update(&net, &err), 0);
  assert_string_equal(box_ask(&a, "connect 198.51.100.7 80"), OPEN);
  kill(gateway, SIGKILL);
  waitpid(gateway, NULL, 0);
  box_close(&a);
  box_close(&b);
}

static void lists_and_private_ranges_hold_before_the_gateway(void **state)
{
  struct box b;
  struct err err = ERR_NONE;
  struct jail_net net = {.slot = 32,
                         .egress = JAIL_EGRESS_TCP,
                         .allow = (const char *const[]){"198.51.100.7", "10.9.9.9", NULL},
                         .deny = (const char *const[]){"0.0.0.0/0", NULL}};
  cleanup_fd int s = jail_net_listen(&config, &err);
  pid_t gateway = gateway_run(s);
  open_with_net(&b, "gatedlist", &net);
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), "ok gateway: 10.213.0.48 to 198.51.100.7:80");
  assert_string_equal(box_ask(&b, "connect 198.51.100.8 80"), "errno ECONNREFUSED");
  assert_string_equal(box_ask(&b, "connect 10.9.9.9 80"), "errno ECONNREFUSED");
  assert_string_equal(box_ask(&b, "connect 169.254.169.254 80"), "errno ECONNREFUSED");
  assert_string_equal(box_ask(&b, "connect 10.213.0.1 4701"), "errno ECONNREFUSED");
  assert_int_equal(jail_net_open(&config, &err), 0); /* a restart of the daemon keeps all of it */
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), "ok gateway: 10.213.0.48 to 198.51.100.7:80");
  assert_string_equal(box_ask(&b, "connect 198.51.100.8 80"), "errno ECONNREFUSED");
  kill(gateway, SIGKILL);
  waitpid(gateway, NULL, 0);
  box_close(&b);
}

static void without_a_gateway_there_is_no_plain_path(void **state)
{
  struct box b;
  struct jail_net net = {.slot = 33, .egress = JAIL_EGRESS_WEB};
  open_with_net(&b, "nogate", &net);
  assert_string_equal(box_ask(&b, "connect 198.51.100.7 80"), "errno ECONNREFUSED");
  box_close(&b);
}

static int connect_as(uid_t uid, uint32_t address, unsigned port)
{
  int status = -1;
  pid_t pid = fork();
  if (pid == 0) {
    struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr = {htonl(address)}};
    if (setresuid(uid, uid, uid))
      _exit(255);
    int s = socket(AF_INET, SOCK_STREAM, 0);
    _exit(connect(s, (struct sockaddr *)&sa, sizeof(sa)) ? errno : 0);
  }
  waitpid(pid, &status, 0);
  return WEXITSTATUS(status);
}

static void the_gateways_user_reaches_the_world_and_nothing_inside(void **state)
{
  struct sockaddr_in sa = {.sin_family = AF_INET, .sin_port = htons(8081)};
  cleanup_fd int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(s, (struct sockaddr *)&sa, sizeof(sa)), 0);
  assert_int_equal(listen(s, 8), 0);
  cleanup_fd int here = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
  assert_int_equal(jail_net_loopback(here, NULL), 0); /* a refusal of our own comes back by it */
  assert_int_equal(connect_as(config.egress_uid, IP(198, 51, 100, 7), 80), 0);
  assert_int_equal(connect_as(config.egress_uid, IP(10, 9, 9, 9), 80), ECONNREFUSED);
  assert_int_equal(connect_as(config.egress_uid, IP(169, 254, 169, 254), 80), ECONNREFUSED);
  assert_int_equal(connect_as(config.egress_uid, IP(203, 0, 113, 1), 8081), ECONNREFUSED);
  assert_int_equal(connect_as(0, IP(203, 0, 113, 1), 8081), 0);
  assert_int_equal(connect_as(0, IP(10, 9, 9, 9), 80), 0);
}

static size_t links_left(void)
{
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  char prefix[JAIL_NET_PREFIX];
  size_t n = 0;
  jail_net_prefix(test_host.instance, prefix);
  assert_int_equal(file_read("/proc/self/net/dev", &b), 0);
  for (const char *p = buf_z(&b); (p = strstr(p, prefix)); p++)
    n++;
  return n;
}

static void no_link_stays_behind(void **state)
{
  for (int i = 0; i < 3000 && links_left() > 0; i++)
    usleep(10000);
  assert_int_equal(links_left(), 0);
}

static int open_all(void **state)
{
  struct err err = ERR_NONE;
  static char names[96];
  snprintf(names, sizeof(names), "%s/names", test_host.top);
  config = (struct jail_net_config){.dns_lists = names,
                                    .instance = test_host.instance,
                                    .pool = IP(10, 213, 0, 0),
                                    .resolver = IP(203, 0, 113, 2),
                                    .connections = 50,
                                    .egress_port = 4701,
                                    .egress_uid = 64123};
  world_open();
  if (jail_net_open(&config, &err))
    fail_msg("opening the network: %s", err.msg);
  return 0;
}

static int close_all(void **state)
{
  jail_net_close(test_host.instance);
  world_close();
  return 0;
}

int main(int argc, char **argv)
{
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_box_reaches_the_world_under_the_hosts_address),
      cmocka_unit_test(a_box_without_network_has_only_lo),
      cmocka_unit_test(private_and_metadata_addresses_are_refused_even_when_allowed),
      cmocka_unit_test(the_host_itself_is_out_of_reach),
      cmocka_unit_test(boxes_do_not_reach_each_other),
      cmocka_unit_test(allow_beats_deny_and_deny_all_closes_the_rest),
      cmocka_unit_test(lists_change_while_the_box_runs),
      cmocka_unit_test(a_slot_taken_anew_has_none_of_the_old_lists),
      cmocka_unit_test(lists_outlive_a_restart_of_the_daemon),
      cmocka_unit_test(entries_that_are_no_addresses_are_named),
      cmocka_unit_test(name_questions_go_to_the_resolver),
      cmocka_unit_test(an_allowed_name_opens_its_addresses_and_no_others),
      cmocka_unit_test(a_box_with_name_servers_of_its_own_asks_those_alone),
      cmocka_unit_test(other_names_are_answered_by_the_boxs_own_servers_and_open_nothing),
      cmocka_unit_test(name_servers_that_no_box_reaches_are_not_asked),
      cmocka_unit_test(a_box_without_name_server_reaches_allowed_names_whose_address_it_knows),
      cmocka_unit_test(a_new_list_closes_what_an_old_name_opened),
      cmocka_unit_test(a_closed_box_gets_no_answer_from_any_name_server),
      cmocka_unit_test(names_resolve_where_a_list_of_addresses_allows_everything),
      cmocka_unit_test(an_allowed_name_server_answers_itself_and_its_answers_open_nothing),
      cmocka_unit_test(the_resolver_behind_the_gateway_is_judged_by_address_lists),
      cmocka_unit_test(names_are_refused_in_deny_and_nonsense_everywhere),
      cmocka_unit_test(a_dead_name_server_is_replaced),
      cmocka_unit_test(a_false_source_address_does_not_leave),
      cmocka_unit_test(a_false_source_address_does_not_leave_a_host_with_a_loose_filter),
      cmocka_unit_test(open_connections_are_counted),
      cmocka_unit_test(nobody_outside_connects_in),
      cmocka_unit_test(a_rate_slows_what_comes_out),
      cmocka_unit_test(connections_of_a_box_with_a_policy_go_to_the_gateway),
      cmocka_unit_test(lists_and_private_ranges_hold_before_the_gateway),
      cmocka_unit_test(without_a_gateway_there_is_no_plain_path),
      cmocka_unit_test(the_gateways_user_reaches_the_world_and_nothing_inside),
      cmocka_unit_test(no_link_stays_behind),
  };
  if (argc != 2 || geteuid() != 0) {
    fprintf(stderr, "usage (as root): %s GUEST\n", argv[0]);
    return 2;
  }
  if (unshare(CLONE_NEWNET)) {
    perror("unshare");
    return 2;
  }
  test_host_open(&test_host, argv[1]);
  int failed = cmocka_run_group_tests(tests, open_all, close_all);
  test_host_close(&test_host);
  return failed;
}
