/* SPDX-License-Identifier: Apache-2.0 */
/* jail_net.c - one veth per box and one nftables table per instance.
 *
 * A box without lists costs no call to nft: the table's general rules know it by the name of its link. Lists become a
 * chain of the box's own, b<slot>, reached through a map from its address; replacing them is one transaction. The
 * source address is safe to judge by: a rule drops every packet whose source is not routed to the link it came from.
 * The link's strict reverse path filter says the same, but a host whose net.ipv4.conf.all.rp_filter is 2 overrides it.
 *
 * Boxes whose traffic goes through the egress gateway are in the sets `web` or `alltcp`. Their connections are turned
 * to the gateway's listener (dnat; it reads SO_ORIGINAL_DST) and judged on the host's input by the original
 * destination: the same ranges, the same count, the same lists, in a chain g<slot>. What would nevertheless be
 * forwarded is refused: there is no plain path for such a box, whoever listens or does not. Boxes without a policy pass
 * no new rule but set lookups for TCP to these ports. */
#include "jail/net/jail_net.h"
#include "jail/net/dns_message.h"
#include "jail/net/dns_proxy.h"
#include "jail/net/never.h"
#include "jail/net/rtnl.h"
#include "wire/guest_frame.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#define CONNECTIONS_DEFAULT 1024u
#define LIST_MAX            1000  /* entries of one list */
#define NFT_MS              10000 /* then it is killed */
#define DNS_ENTRY           "dns:"
/* Both ends of a link that leads to a guest: fixed, so that neither is asked for. Each link is a segment of its own. */
#define GATEWAY_MAC         "\x02\x63\x6c\x6f\x01\x01"
#define LINK_MAC            "\x02\x63\x6c\x6f\x01\x02"

/* Where questions to the gateway go; 0 = nowhere. Written by jail_net_open. */
static _Atomic uint32_t resolver_used;

/* Slots whose chain may exist. All may after a restart; none does when the table is new. */
static _Atomic uint8_t has_chain[JAIL_NET_SLOTS];

/* --- names ---------------------------------------------------------------------------------------------------- */

/* Links are named by 6 hex digits of the instance's fingerprint: 15 characters must hold them and a counter. */
void jail_net_prefix(const char *instance, char out[JAIL_NET_PREFIX])
{
  uint8_t sum[SHA256_LEN];
  char hex[7];
  sha256_of(instance, strlen(instance), sum);
  hex_encode(sum, 3, hex);
  snprintf(out, JAIL_NET_PREFIX, "c%s", hex);
}

void jail_net_table(const char *instance, char out[JAIL_NET_TABLE])
{
  snprintf(out, JAIL_NET_TABLE, "cloche_%s", instance);
  for (char *p = out; *p; p++)
    if (*p == '-')
      *p = '_';
}

uint32_t jail_net_address(const struct jail_net *net)
{
  return net->config->pool + JAIL_NET_FIRST + net->slot;
}

static const char *dotted(uint32_t address, char out[INET_ADDRSTRLEN])
{
  return inet_ntop(AF_INET, &(struct in_addr){htonl(address)}, out, INET_ADDRSTRLEN);
}

/* --- nft ------------------------------------------------------------------------------------------------------ */

static int spawn_nft(int input, int output, pid_t *pid)
{
  static const char *const argv[] = {"nft", "-f", "-", NULL};
  static const char *const env[] = {"PATH=/usr/sbin:/usr/bin:/sbin:/bin", NULL};
  posix_spawn_file_actions_t fa;
  posix_spawn_file_actions_init(&fa);
  posix_spawn_file_actions_adddup2(&fa, input, 0);
  posix_spawn_file_actions_adddup2(&fa, output, 1);
  posix_spawn_file_actions_adddup2(&fa, output, 2);
  int r = posix_spawnp(pid, argv[0], &fa, NULL, (char *const *)argv, (char *const *)env);
  posix_spawn_file_actions_destroy(&fa);
  return -r;
}

static struct str first_line(int fd, char *text, size_t size)
{
  struct str line, rest;
  ssize_t n = pread(fd, text, size, 0);
  str_cut(str_make(text, n > 0 ? (size_t)n : 0), '\n', &line, &rest);
  return line;
}

static bool ends_in_time(pid_t pid)
{
  cleanup_fd int fd = (int)syscall(SYS_pidfd_open, pid, 0);
  struct pollfd p = {.fd = fd, .events = POLLIN};
  int r = 1;
  int64_t until_us = clock_mono_us() + NFT_MS * 1000ll;
  while (fd >= 0 && (r = poll(&p, 1, (int)MAX((until_us - clock_mono_us()) / 1000, 0ll))) < 0 && errno == EINTR)
    ;
  return r != 0;
}

/* One transaction: all of the script or nothing. */
static int nft(struct buf *script, struct err *err)
{
  char said[256];
  pid_t pid;
  int status = 0;
  if (buf_failed(script))
    return err_set(err, -ENOBUFS, "too many network rules");
  cleanup_fd int in = memfd_create("rules", MFD_CLOEXEC), out = memfd_create("answer", MFD_CLOEXEC);
  if (in < 0 || out < 0 || fd_write_all(in, script->p, script->n) || lseek(in, 0, SEEK_SET) < 0)
    return err_errno(err, "handing rules to nft");
  int r = spawn_nft(in, out, &pid);
  if (r)
    return err_set(err, r, "running nft: %s", strerrordesc_np(-r));
  bool late = !ends_in_time(pid);
  if (late)
    kill(pid, SIGKILL);
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
  if (late)
    return err_set(err, -ETIMEDOUT, "nft did not take the rules within %d s", NFT_MS / 1000);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
    return 0;
  return err_set(err, -EIO, "nft refused the rules: " STR_FMT, STR_ARG(first_line(out, said, sizeof(said))));
}

static bool table_exists(const char *table)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  buf_addf(&b, "list table inet %s\n", table);
  return nft(&b, NULL) == 0;
}

/* --- the table ------------------------------------------------------------------------------------------------ */

/* An address serves one box after the other, while the kernel remembers its connections for minutes, some for days.
 * Each link therefore has a zone of its own, told by its name, which is never used again soon: what was open for the
 * last box is a new connection for the next one. Only the box's direction needs it. The seed is fixed, so that a
 * restart of the daemon, which writes this anew, finds the same zones. */
static void write_zones(struct buf *b, const char *links, bool fib)
{
  buf_addz(b, "  chain zones { type filter hook prerouting priority raw; policy accept;\n");
  if (fib)
    buf_addf(b, "    iifname \"%s*\" fib saddr . iif oif missing drop\n", links);
  buf_addf(b, "    iifname \"%s*\" ct original zone set jhash iifname mod 65534 seed 0x636c6f63 offset 1\n  }\n",
           links);
}

/* What a box of the gateway's sets has opened, its first packet on the host's input. */
static void write_egress_chains(struct buf *b, unsigned connections)
{
  buf_addf(b,
           "  chain gated {\n"
           "    ct original ip daddr @never goto refuse\n"
           "    ct state new add @links { iifname ct count over %u } goto limited\n"
           "    ip saddr vmap @gates\n"
           "    accept\n  }\n",
           connections);
}

/* Only what was turned there reaches the listener: not a box that asks for it by its address, nor anybody else. */
static void write_egress_input(struct buf *b, const struct jail_net_config *c, const char *links, const char *gateway)
{
  if (!c->egress_port)
    return;
  buf_addf(b,
           "    ip daddr %s tcp dport %u iifname != \"%s*\" drop\n"
           "    ip daddr %s tcp dport %u ct state new ct status dnat ip saddr @alltcp goto gated\n"
           "    ip daddr %s tcp dport %u ct state new ct status dnat ip saddr @web goto gated\n",
           gateway, c->egress_port, links, gateway, c->egress_port, gateway, c->egress_port);
}

/* The name servers of the host's resolver, which the gateway has a copy of; as the elements of a set. Without one the
 * resolver asks this host. */
static void put_name_servers(struct buf *b, int family)
{
  cleanup_buf struct buf file = BUF_INIT(65536);
  file_read("/etc/resolv.conf", &file);
  struct str rest = buf_str(&file), line;
  bool any = false;
  while (rest.n > 0) {
    char word[INET6_ADDRSTRLEN + 1];
    unsigned char a[16];
    str_cut(rest, '\n', &line, &rest);
    struct str given = str_trim(str_skip(line, MIN(line.n, (size_t)10)));
    if (!str_starts(line, STR("nameserver")) || line.n < 11 || !strchr(" \t", line.p[10]))
      continue;
    str_cut(given, '%', &given, &line); /* the zone of a link-local address */
    if (str_copyz(given, word, sizeof(word)) || inet_pton(family, word, a) != 1)
      continue;
    buf_addf(b, "%s%s", any ? ", " : "", word);
    any = true;
  }
  if (!any)
    buf_addz(b, family == AF_INET ? "127.0.0.1" : "::1");
}

/* The second wall around the gateway, which refuses these addresses itself: name servers, the internet, and answers to
 * boxes; no connection to a box, the host or its networks. */
static void write_egress_output(struct buf *b, const struct jail_net_config *c, const char *links)
{
  cleanup_buf struct buf v4 = BUF_INIT(65536), v6 = BUF_INIT(65536);
  if (!c->egress_uid)
    return;
  put_name_servers(&v4, AF_INET);
  put_name_servers(&v6, AF_INET6);
  buf_addf(b,
           "  chain sending {\n"
           "    ct state established,related accept\n"
           "    ip daddr { %s } th dport 53 meta l4proto { tcp, udp } accept\n"
           "    ip6 daddr { %s } th dport 53 meta l4proto { tcp, udp } accept\n"
           "    meta nfproto ipv6 goto refuse\n"
           "    oifname \"%s*\" goto refuse\n"
           "    ip daddr @never goto refuse\n"
           "    fib daddr type local goto refuse\n  }\n"
           "  chain output { type filter hook output priority filter - 10; policy accept;\n"
           "    meta skuid %u goto sending\n  }\n",
           buf_z(&v4), buf_z(&v6), links, c->egress_uid);
}

/* What the watcher is told (netlog/netlog.h): so many packets a second of each box, and once a second that there were
 * more. The letter says what it is. `ends`: shorten_ends has a rule for what was not logged. */
#define LOGGED_RATE "limit rate %u/second burst %u packets"
static void write_note(struct buf *b, const struct jail_net_config *c, const char *chain, char letter, bool ends)
{
  unsigned group = c->log_group;
  buf_addf(
      b,
      "  chain %s {\n"
      "    update @logged_%c { ip saddr " LOGGED_RATE " } log prefix \"%c\" group %u snaplen 1280 return\n%s"
      "    update @over { ip saddr limit rate 1/second burst 1 packets } log prefix \"x\" group %u snaplen 64\n  }\n",
      chain, letter, c->log_rate, 4 * c->log_rate, letter, group, ends ? "    jump unlogged\n" : "", group);
}

/* Behind all that may refuse a packet: a connection that comes here is on its way out. */
static void write_watching(struct buf *b, const struct jail_net_config *c, const char *links)
{
  char pool[INET_ADDRSTRLEN];
  if (!c->log_group)
    return;
  buf_addz(b, "  chain unlogged { }\n");
  write_note(b, c, "note_opened", 'o', c->log_ends);
  write_note(b, c, "note_refused", 'r', false);
  write_note(b, c, "note_limit", 'l', false);
  buf_addf(b,
           "  chain note_answer {\n"
           "    update @logged_d { ip daddr " LOGGED_RATE " } log prefix \"d\" group %u snaplen 1280\n  }\n"
           "  chain watching { type filter hook postrouting priority srcnat - 10; policy accept;\n"
           "    oifname \"%s*\" udp sport 53 goto note_answer\n"
           "    ip saddr %s/16 oifname != \"%s*\" ct state new ct status & dnat != dnat goto note_opened\n  }\n",
           c->log_rate, 4 * c->log_rate, c->log_group, links, dotted(c->pool, pool), links);
}

static void write_refusals(struct buf *b, const struct jail_net_config *c)
{
  static const char how[] = "meta l4proto tcp reject with tcp reset\n    reject with icmpx admin-prohibited\n  }\n";
  buf_addf(b, "  chain refuse { %s\n    %s", c->log_group ? "jump note_refused" : "", how);
  buf_addf(b, "  chain limited { %s\n    %s", c->log_group ? "jump note_limit" : "", how);
}

static void write_chains(struct buf *b, const struct jail_net_config *c, const char *links, const char *gateway)
{
  unsigned connections = c->connections ? c->connections : CONNECTIONS_DEFAULT;
  buf_addf(b,
           "  chain forward { type filter hook forward priority filter - 10; policy accept;\n"
           "    oifname \"%s*\" iifname \"%s*\" goto refuse\n"
           "    oifname \"%s*\" ct state established,related accept\n"
           "    oifname \"%s*\" drop\n"
           "    iifname \"%s*\" goto leave\n  }\n",
           links, links, links, links, links);
  buf_addf(
      b,
      "  chain leave {\n"
      "    meta nfproto ipv6 drop\n"
      "    ct state established,related accept\n"
      "    ct status dnat ct original ip daddr %s meta l4proto { tcp, udp } ct original proto-dst 53 goto resolve\n"
      "    ip daddr @never goto refuse\n"
      "    meta l4proto tcp ip saddr @alltcp goto refuse\n"
      "    tcp dport { 80, 443 } ip saddr @web goto refuse\n"
      "    udp dport 443 ip saddr @noquic goto refuse\n"
      "    ct state new add @links { iifname ct count over %u } goto limited\n"
      "    ip saddr vmap @boxes\n"
      "    accept\n  }\n"
      "  chain resolve { ip saddr @unresolved goto refuse\n    accept\n  }\n",
      gateway, connections);
  write_egress_chains(b, connections);
  write_refusals(b, c);
  buf_addf(b, "  chain input { type filter hook input priority filter - 10; policy accept;\n");
  write_egress_input(b, c, links, gateway);
  buf_addf(b,
           "    iifname \"%s*\" ct state established,related accept\n"
           "    iifname \"%s*\" ip daddr %s icmp type echo-request limit rate 10/second accept\n"
           "    iifname \"%s*\" ip daddr %s ip saddr @named udp dport 53 accept\n"
           "%s%s%s"
           "    iifname \"%s*\" ip protocol tcp reject with tcp reset\n"
           "    iifname \"%s*\" drop\n  }\n",
           links, links, gateway, links, gateway, c->log_group ? "    iifname \"" : "", c->log_group ? links : "",
           c->log_group ? "*\" meta nfproto ipv4 jump note_refused\n" : "", links, links);
}

static void write_nat(struct buf *b, const struct jail_net_config *c, const char *links, const char *gateway,
                      uint32_t resolver)
{
  char to[INET_ADDRSTRLEN], pool[INET_ADDRSTRLEN];
  buf_addf(b,
           "  chain prerouting { type nat hook prerouting priority dstnat; policy accept;\n"
           "    iifname \"%s*\" ip saddr @chosen ip daddr != %s tcp dport 53 accept\n"
           "    iifname \"%s*\" ip saddr @named meta l4proto { tcp, udp } th dport 53 dnat ip to %s\n",
           links, gateway, links, gateway);
  if (resolver)
    buf_addf(b, "    iifname \"%s*\" ip daddr %s meta l4proto { tcp, udp } th dport 53 dnat ip to %s\n", links, gateway,
             dotted(resolver, to));
  if (c->egress_port)
    buf_addf(b,
             "    iifname \"%s*\" ip saddr @alltcp ip daddr != %s meta l4proto tcp dnat ip to %s:%u\n"
             "    iifname \"%s*\" tcp dport { 80, 443 } ip saddr @web ip daddr != %s dnat ip to %s:%u\n",
             links, gateway, gateway, c->egress_port, links, gateway, gateway, c->egress_port);
  buf_addz(b, "  }\n");
  buf_addf(b,
           "  chain postrouting { type nat hook postrouting priority srcnat; policy accept;\n"
           "    ip saddr %s/16 oifname != \"%s*\" masquerade\n  }\n",
           dotted(c->pool, pool), links);
}

/* The first name server of the host that a packet can be sent to: one on the loopback is only for the host itself. */
static uint32_t host_resolver(void)
{
  static const char *const files[] = {"/run/systemd/resolve/resolv.conf", "/etc/resolv.conf"};
  for (size_t i = 0; i < ARRAY_LEN(files); i++) {
    cleanup_buf struct buf b = BUF_INIT(65536);
    if (file_read(files[i], &b))
      continue;
    struct str rest = buf_str(&b), line;
    while (rest.n > 0) {
      char word[64];
      struct in_addr a;
      str_cut(rest, '\n', &line, &rest);
      if (!str_starts(line, STR("nameserver ")) || str_copyz(str_trim(str_skip(line, 11)), word, sizeof(word)))
        continue;
      if (inet_pton(AF_INET, word, &a) == 1 && ntohl(a.s_addr) >> 24 != 127)
        return ntohl(a.s_addr);
    }
  }
  return 0;
}

static int put_text(const char *path, const char *text, struct err *err)
{
  cleanup_fd int fd = open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, text, strlen(text)) < 0)
    return err_errno(err, "writing %s to %s", text, path);
  return 0;
}

static void put_addresses(struct buf *b, const struct dns_opening *o, unsigned seconds)
{
  char text[INET_ADDRSTRLEN];
  for (uint32_t i = 0; i < o->count; i++) {
    buf_addf(b, "%s%s", i ? ", " : " { ", dotted(o->address[i], text));
    if (seconds)
      buf_addf(b, " timeout %us", seconds);
  }
  buf_addz(b, " }\n");
}

/* In the keeper of the name server. Taking the old elements out first is what renews their time. */
static int open_answered(const struct jail_net_config *c, const struct dns_opening *list, size_t n)
{
  char table[JAIL_NET_TABLE];
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  jail_net_table(c->instance, table);
  for (size_t i = 0; i < n; i++)
    for (int pass = 0; pass < 3; pass++) {
      buf_addf(&b, "%s element inet %s l%u", pass == 1 ? "delete" : "add", table, list[i].slot);
      put_addresses(&b, &list[i], pass == 1 ? 0 : list[i].seconds);
    }
  return nft(&b, NULL);
}

static pid_t dns_keeper;

static int start_dns_proxy(const struct jail_net_config *c, uint32_t resolver, struct err *err)
{
  dns_proxy_stop(dns_keeper);
  dns_keeper = 0;
  if (!c->dns_lists)
    return 0;
  int pid = dns_proxy_start(c, resolver, open_answered, err);
  if (pid > 0)
    dns_keeper = pid;
  return MIN(pid, 0);
}

static int check_config(const struct jail_net_config *c, struct err *err)
{
  if (!c->instance || !*c->instance || strlen(c->instance) > JAIL_NAME_MAX || c->pool == 0 || (c->pool & 0xffff))
    return err_set(err, -EINVAL, "boxes need an instance name and a /16 of addresses (net_pool)");
  return 0;
}

/* Chains that rules of other chains lead to, those of living boxes too, stay and are only emptied. */
static bool is_jumped_to(const char *chain)
{
  static const char *const chains[] = {"leave",      "refuse",      "resolve", "limited", "note_opened", "note_refused",
                                       "note_limit", "note_answer", "gated",   "sending", "unlogged"};
  for (size_t i = 0; i < ARRAY_LEN(chains); i++)
    if (!strcmp(chain, chains[i]))
      return true;
  return false;
}

static void write_table(struct buf *b, const struct jail_net_config *c, uint32_t resolver, bool fib)
{
  char table[JAIL_NET_TABLE], prefix[JAIL_NET_PREFIX], gateway[INET_ADDRSTRLEN];
  jail_net_table(c->instance, table);
  jail_net_prefix(c->instance, prefix);
  dotted(jail_net_gateway(c), gateway);
  buf_addf(b, "add table inet %s\n", table);
  static const char *const chains[] = {"zones",       "forward",    "leave",       "refuse",       "input",
                                       "output",      "prerouting", "postrouting", "resolve",      "gated",
                                       "sending",     "limited",    "note_opened", "note_refused", "note_limit",
                                       "note_answer", "unlogged",   "watching"};
  for (size_t i = 0; i < ARRAY_LEN(chains); i++)
    buf_addf(b, "add chain inet %s %s\nflush chain inet %s %s\n", table, chains[i], table, chains[i]);
  for (size_t i = 0; i < ARRAY_LEN(chains); i++)
    if (!is_jumped_to(chains[i]))
      buf_addf(b, "delete chain inet %s %s\n", table, chains[i]);
  buf_addf(b,
           "table inet %s {\n"
           "  set never { type ipv4_addr; flags interval; elements = { " NEVER_REACHED " } }\n"
           "  set links { type ifname; size 65535; flags dynamic; }\n"
           "  set named { type ipv4_addr; }\n"
           "  set chosen { type ipv4_addr; }\n"
           "  set unresolved { type ipv4_addr; }\n"
           "  set web { type ipv4_addr; }\n"
           "  set alltcp { type ipv4_addr; }\n"
           "  set noquic { type ipv4_addr; }\n"
           "  map boxes { type ipv4_addr : verdict; }\n"
           "  map gates { type ipv4_addr : verdict; }\n",
           table);
  for (const char *letter = "ordlx"; *letter; letter++)
    buf_addf(b, "  set %s%c { type ipv4_addr; size 65535; flags dynamic,timeout; timeout 1m; }\n",
             *letter == 'x' ? "ove" : "logged_", *letter == 'x' ? 'r' : *letter);
  write_zones(b, prefix, fib);
  write_chains(b, c, prefix, gateway);
  write_nat(b, c, prefix, gateway, resolver);
  write_egress_output(b, c, prefix);
  write_watching(b, c, prefix);
  buf_addz(b, "}\n");
}

/* Where the kernel has no fib expression the links' reverse path filter must do, if the host does not loosen it. */
static int write_without_fib(const struct jail_net_config *c, uint32_t resolver, struct err *err)
{
  char mode[8] = "";
  cleanup_fd int fd = open("/proc/sys/net/ipv4/conf/all/rp_filter", O_RDONLY | O_CLOEXEC);
  if (fd < 0 || read(fd, mode, sizeof(mode) - 1) < 1 || mode[0] > '1')
    return err_set(err, -EOPNOTSUPP,
                   "nftables has no fib expression (module nft_fib_inet) and net.ipv4.conf.all.rp_filter is %.1s: "
                   "source addresses of boxes can't be verified; load the module or set the sysctl to 0 or 1",
                   mode);
  cleanup_buf struct buf b = BUF_INIT(65536);
  write_table(&b, c, resolver, false);
  return nft(&b, err);
}

/* Connections of boxes that are over make room in the table after seconds, and connection tracking is silent about
 * those that were not logged: a box that opens thousands takes no room from the ends of others. Both only where the
 * kernel knows how. */
static void shorten_ends(const struct jail_net_config *c)
{
  char table[JAIL_NET_TABLE], prefix[JAIL_NET_PREFIX];
  struct err err = ERR_NONE;
  cleanup_buf struct buf b = BUF_INIT(4096);
  jail_net_table(c->instance, table);
  jail_net_prefix(c->instance, prefix);
  buf_addf(&b, "add chain inet %s ends\nflush chain inet %s ends\ndelete chain inet %s ends\n", table, table, table);
  if (c->log_ends)
    buf_addf(&b,
             "table inet %s {\n"
             "  ct timeout soon { protocol tcp; l3proto ip; policy = { close: 1, time_wait: 2, last_ack: 5 }; }\n"
             "  chain ends { type filter hook prerouting priority mangle; policy accept;\n"
             "    iifname \"%s*\" ip protocol tcp ct state new ct timeout set \"soon\"\n  }\n"
             "  chain unlogged { ct status & confirmed != confirmed ct event set 0\n  }\n}\n",
             table, prefix);
  if (nft(&b, &err) && c->log_ends)
    log_warn("a box with many connections may delay the ends of others in the network log: %s", err.msg);
}

/* The general chains are written anew, so that a changed configuration holds; the boxes' own chains and the map to them
 * are added to, never flushed, so that boxes found again keep their lists. */
int jail_net_open(const struct jail_net_config *c, struct err *err)
{
  char table[JAIL_NET_TABLE];
  int r = check_config(c, err);
  if (r)
    return r;
  jail_net_table(c->instance, table);
  memset((void *)has_chain, table_exists(table), sizeof(has_chain));
  uint32_t resolver = c->resolver ? c->resolver : host_resolver();
  atomic_store(&resolver_used, resolver);
  cleanup_buf struct buf b = BUF_INIT(65536);
  write_table(&b, c, resolver, true);
  r = nft(&b, err);
  if (r)
    r = write_without_fib(c, resolver, err);
  if (!r)
    shorten_ends(c);
  if (!r)
    r = put_text("/proc/sys/net/ipv4/ip_forward", "1", err);
  if (!r)
    r = start_dns_proxy(c, resolver, err);
  return r;
}

void jail_net_close(const char *instance)
{
  char table[JAIL_NET_TABLE];
  cleanup_buf struct buf b = BUF_INIT(1024);
  dns_proxy_stop(dns_keeper);
  dns_keeper = 0;
  jail_net_table(instance, table);
  buf_addf(&b, "add table inet %s\ndelete table inet %s\n", table, table);
  nft(&b, NULL);
}

/* --- lists ---------------------------------------------------------------------------------------------------- */

/* AF_INET, AF_INET6, or 0 for what is no address or prefix. */
static int entry_family(const char *entry)
{
  struct str address, bits;
  char word[INET6_ADDRSTRLEN];
  struct in6_addr a;
  uint64_t n = 0;
  bool prefix = str_cut(str_of(entry), '/', &address, &bits);
  if (str_copyz(address, word, sizeof(word)) || (prefix && str_u64(bits, &n)))
    return 0;
  if (inet_pton(AF_INET, word, &a) == 1)
    return n <= 32 ? AF_INET : 0;
  return inet_pton(AF_INET6, word, &a) == 1 && n <= 128 ? AF_INET6 : 0;
}

int jail_net_check(const char *entry, struct err *err)
{
  return entry_family(entry) ? 0 : err_set(err, -EINVAL, "\"%s\" is not an IP address or prefix", entry);
}

static bool is_everything(const char *entry)
{
  return str_is(str_of(entry), "0.0.0.0/0");
}

static bool has_everything(const char *const *list)
{
  for (; list && *list; list++)
    if (is_everything(*list))
      return true;
  return false;
}

static bool covers(const char *entry, uint32_t address)
{
  struct str text, bits;
  char word[INET_ADDRSTRLEN];
  struct in_addr a;
  uint64_t n = 32;
  bool prefix = str_cut(str_of(entry), '/', &text, &bits);
  if (str_copyz(text, word, sizeof(word)) || inet_pton(AF_INET, word, &a) != 1 || (prefix && str_u64(bits, &n)))
    return false;
  return n <= 32 && address_in(address, ntohl(a.s_addr), (unsigned)n);
}

static bool list_covers(const char *const *list, uint32_t address)
{
  for (; list && *list; list++)
    if (covers(*list, address))
      return true;
  return false;
}

/* Whether address lists leave the box its name server: the gateway is what the box asks, the resolver is who answers,
 * and to allow either is enough. A resolver of the host's own network is not what a list of private prefixes is meant
 * for, which are closed to every box anyway. */
static bool may_resolve(const struct jail_net *net)
{
  uint32_t resolver = atomic_load(&resolver_used), gateway = jail_net_gateway(net->config);
  if (list_covers(net->allow, gateway) || list_covers(net->allow, resolver))
    return true;
  return !has_everything(net->deny) && (never_reached(resolver) || !list_covers(net->deny, resolver));
}

/* How rules name the destination: that of a packet on its way out, or of a connection that was turned to the gateway.
 */
#define FORWARDED "ip daddr"
#define TURNED    "ct original ip daddr"

/* One rule per address entry, so that entries may overlap; a list with everything in it is one rule. Names go to
 * `domains`, one per line; NULL where they are not taken. */
static int write_list(struct buf *b, const char *const *list, const char *to, const char *verdict, struct buf *domains,
                      struct err *err)
{
  if (has_everything(list))
    buf_addf(b, "    %s\n", verdict);
  for (size_t n = 0; list && list[n]; n++) {
    if (n == LIST_MAX)
      return err_set(err, -E2BIG, "more than %d entries in a network list", LIST_MAX);
    if (domains && str_starts(str_of(list[n]), STR(DNS_ENTRY)))
      continue;
    if (domains && dns_pattern(list[n])) {
      buf_addf(domains, "%s\n", list[n]);
      continue;
    }
    int r = jail_net_check(list[n], err);
    if (r)
      return r;
    /* IPv6 is shut as a whole: an entry of it changes nothing. */
    if (entry_family(list[n]) == AF_INET && !is_everything(list[n]))
      buf_addf(b, "    %s %s %s\n", to, list[n], verdict);
  }
  return 0;
}

/* The name servers of a box's own: rules that open them, and the head of its list of names. */
static int write_servers(struct buf *b, const char *const *allow, const char *to, struct buf *domains, bool *chosen,
                         struct err *err)
{
  size_t n = 0;
  for (; allow && *allow; allow++) {
    struct in_addr a;
    const char *server = *allow + strlen(DNS_ENTRY);
    if (!str_starts(str_of(*allow), STR(DNS_ENTRY)))
      continue;
    buf_addz(domains, *chosen ? "" : DNS_PROXY_SERVERS);
    *chosen = true;
    if (!strcmp(server, "none"))
      continue;
    if (inet_pton(AF_INET, server, &a) != 1)
      return err_set(err, -EINVAL, "\"%s\" is not an IPv4 address of a name server", server);
    if (n++ == JAIL_NET_DNS_MAX)
      return err_set(err, -E2BIG, "more than %d name servers", JAIL_NET_DNS_MAX);
    if (!never_reached(ntohl(a.s_addr)))
      buf_addf(domains, " %s", server);
    buf_addf(b, "    %s %s accept\n", to, server);
  }
  buf_addz(domains, *chosen ? "\n" : "");
  return 0;
}

/* Adding first makes the deletions right whether or not there was something. */
static void forget(struct buf *b, const char *table, uint32_t slot, const char *box)
{
  buf_addf(b, "add chain inet %s b%u\nadd set inet %s l%u { type ipv4_addr; flags timeout; }\n", table, slot, table,
           slot);
  buf_addf(b, "add element inet %s boxes { %s : jump b%u }\ndelete element inet %s boxes { %s }\n", table, box, slot,
           table, box);
  static const char *const sets[] = {"named", "chosen", "unresolved", "web", "alltcp", "noquic"};
  for (size_t i = 0; i < ARRAY_LEN(sets); i++)
    buf_addf(b, "add element inet %s %s { %s }\ndelete element inet %s %s { %s }\n", table, sets[i], box, table,
             sets[i], box);
  buf_addf(b,
           "add chain inet %s g%u\nadd element inet %s gates { %s : jump g%u }\ndelete element inet %s gates { %s }\n",
           table, slot, table, box, slot, table, box);
  buf_addf(b, "flush chain inet %s b%u\nflush chain inet %s g%u\nflush set inet %s l%u\n", table, slot, table, slot,
           table, slot);
}

static int check_net(const struct jail_net *net, struct err *err)
{
  if (!net->config || net->slot >= JAIL_NET_SLOTS)
    return err_set(err, -EINVAL, "invalid network slot %u", net->slot);
  return check_config(net->config, err);
}

/* The box's lists as one chain, reached through a map from its address. *servers: where in `domains` names begin. */
static int write_box_chain(struct buf *b, const struct jail_net *net, const char *to, struct buf *domains,
                           size_t *servers, bool *chosen, struct err *err)
{
  int r = net->config->dns_lists ? write_servers(b, net->allow, to, domains, chosen, err) : 0;
  *servers = domains->n;
  if (!r)
    r = write_list(b, net->allow, to, "accept", net->config->dns_lists ? domains : NULL, err);
  buf_addf(b, "    %s @l%u accept\n", to, net->slot);
  return r ? r : write_list(b, net->deny, to, "goto refuse", NULL, err);
}

/* A box with domain names on its list asks the proxy that knows the list. Without them, the list judges name servers as
 * it judges any other address. */
static int write_rules(struct buf *b, struct buf *domains, const char *table, const struct jail_net *net,
                       const char *box, struct err *err)
{
  bool chosen = false;
  size_t servers;
  buf_addf(b, "table inet %s {\n  chain b%u {\n", table, net->slot);
  int r = write_box_chain(b, net, FORWARDED, domains, &servers, &chosen, err);
  buf_addf(b, "  }\n}\nadd element inet %s boxes { %s : jump b%u }\n", table, box, net->slot);
  if (domains->n == servers)
    buf_clear(domains); /* without names it does not matter who would be asked for them */
  if (domains->n > 0)
    buf_addf(b, "add element inet %s named { %s }\n", table, box);
  else if (!may_resolve(net))
    buf_addf(b, "add element inet %s unresolved { %s }\n", table, box);
  if (domains->n > 0 && chosen)
    buf_addf(b, "add element inet %s chosen { %s }\n", table, box);
  return r;
}

/* Its connections go to the egress gateway, once the lists have let them. */
static int write_egress(struct buf *b, const char *table, const struct jail_net *net, const char *box, struct err *err)
{
  cleanup_buf struct buf names = BUF_INIT(60000);
  bool chosen = false, all = net->egress == JAIL_EGRESS_TCP;
  size_t servers;
  buf_addf(b, "table inet %s {\n  chain g%u {\n", table, net->slot);
  int r = write_box_chain(b, net, TURNED, &names, &servers, &chosen, err);
  buf_addf(b, "  }\n}\nadd element inet %s gates { %s : jump g%u }\n", table, box, net->slot);
  buf_addf(b, "add element inet %s %s { %s }\n", table, all ? "alltcp" : "web", box);
  if (!all || !net->quic)
    buf_addf(b, "add element inet %s noquic { %s }\n", table, box);
  return r;
}

int jail_net_update(const struct jail_net *net, struct err *err)
{
  char table[JAIL_NET_TABLE], box[INET_ADDRSTRLEN];
  int r = check_net(net, err);
  if (r)
    return r;
  if (net->egress && !net->config->egress_port)
    return err_set(err, -EOPNOTSUPP, "the egress gateway is off (setting egress_port)");
  bool lists = (net->allow && net->allow[0]) || (net->deny && net->deny[0]) || net->egress;
  if (!lists && !atomic_load(&has_chain[net->slot]))
    return 0;
  jail_net_table(net->config->instance, table);
  dotted(jail_net_address(net), box);
  cleanup_buf struct buf b = BUF_INIT(1 << 20), domains = BUF_INIT(60000);
  forget(&b, table, net->slot, box);
  if (lists)
    r = write_rules(&b, &domains, table, net, box, err);
  else
    buf_addf(&b, "delete chain inet %s b%u\n", table, net->slot);
  if (!r && net->egress)
    r = write_egress(&b, table, net, box, err);
  else
    buf_addf(&b, "delete chain inet %s g%u\n", table, net->slot);
  if (!lists)
    buf_addf(&b, "delete set inet %s l%u\n", table, net->slot);
  if (!r && buf_failed(&domains))
    r = err_set(err, -E2BIG, "too many domain names in a network list");
  if (!r)
    r = nft(&b, err);
  if (!r && net->config->dns_lists)
    r = dns_proxy_set(net->config->dns_lists, net->slot, domains.n ? buf_z(&domains) : NULL, err);
  if (!r)
    atomic_store(&has_chain[net->slot], lists);
  return r;
}

int jail_net_forget(const struct jail_net_config *config, uint32_t slot, struct err *err)
{
  return config->dns_lists ? dns_proxy_set(config->dns_lists, slot, NULL, err) : 0;
}

int jail_net_listen(const struct jail_net_config *c, struct err *err)
{
  struct sockaddr_in a = {
      .sin_family = AF_INET, .sin_port = htons(c->egress_port), .sin_addr = {htonl(jail_net_gateway(c))}};
  char text[INET_ADDRSTRLEN];
  cleanup_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  static const int one = 1;
  if (fd < 0 || setsockopt(fd, IPPROTO_IP, IP_FREEBIND, &one, sizeof(one)) ||
      setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)) ||
      setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one)) || bind(fd, (struct sockaddr *)&a, sizeof(a)) ||
      listen(fd, 4096))
    return err_errno(err, "egress gateway: listen on %s:%u (setting egress_port)", dotted(jail_net_gateway(c), text),
                     c->egress_port);
  return steal_fd(&fd);
}

/* --- the link ------------------------------------------------------------------------------------------------- */

int jail_net_talk(int netns, int protocol, struct err *err)
{
  cleanup_fd int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (home < 0 || setns(netns, CLONE_NEWNET))
    return err_errno(err, "entering a box's network namespace");
  int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, protocol);
  int code = errno;
  if (setns(home, CLONE_NEWNET)) {
    log_error("returning to the host's network namespace failed");
    abort();
  }
  return fd < 0 ? err_set(err, -code, "opening a netlink socket: %s", strerrordesc_np(code)) : fd;
}

/* The name holds a counter, not the slot: a dead box's link may linger for a moment while its namespace is taken down.
 */
static int make_link(int sock, const char *instance, int netns, char name[IFNAMSIZ], struct err *err)
{
  static _Atomic uint32_t counter;
  char prefix[JAIL_NET_PREFIX];
  int r = -EEXIST;
  jail_net_prefix(instance, prefix);
  if (!counter)
    counter = (uint32_t)clock_wall_us();
  for (int i = 0; i < 100 && r == -EEXIST; i++) {
    snprintf(name, IFNAMSIZ, "%sv%06" PRIx32, prefix, ++counter & 0xffffff);
    r = rtnl_veth(sock, name, netns);
  }
  return r ? err_set(err, r, "making a veth: %s", strerrordesc_np(-r)) : 0;
}

static int set_host_end(const struct jail_net *net, int sock, const char *name, struct err *err)
{
  int index = rtnl_index(sock, name);
  int r = index < 0 ? index : rtnl_up(sock, index, true);
  if (!r)
    r = rtnl_address(sock, index, jail_net_gateway(net->config), 32);
  if (!r)
    r = rtnl_route(sock, index, jail_net_address(net), 32, 0);
  if (!r && net->guest)
    r = rtnl_mac(sock, index, GATEWAY_MAC);
  if (!r && net->guest) /* nobody answers for the address of a guest behind the link */
    r = rtnl_neighbour(sock, index, jail_net_address(net), LINK_MAC);
  if (!r && net->config->rate)
    r = rtnl_rate(sock, index, net->config->rate);
  return r ? err_set(err, r, "setting up %s: %s", name, strerrordesc_np(-r)) : 0;
}

static int set_box_end(const struct jail_net *net, int sock, struct err *err)
{
  int index = rtnl_index(sock, "eth0");
  int r = index < 0 ? index : net->guest ? rtnl_mac(sock, index, LINK_MAC) : 0;
  if (!r)
    r = rtnl_up(sock, index, false);
  /* The guest behind it has the box's address. Without any address there is no table of local ones yet, and the kernel
   * takes every gateway for a broadcast. */
  if (!r)
    r = rtnl_address(sock, index, net->guest ? GUEST_HOST : jail_net_address(net), 32);
  if (!r)
    r = rtnl_route(sock, index, 0, 0, jail_net_gateway(net->config));
  if (!r && net->guest)
    r = rtnl_neighbour(sock, index, jail_net_gateway(net->config), GATEWAY_MAC);
  if (!r && net->config->rate)
    r = rtnl_rate(sock, index, net->config->rate);
  return r ? err_set(err, r, "setting up eth0 of a box: %s", strerrordesc_np(-r)) : 0;
}

int jail_net_loopback(int netns, struct err *err)
{
  cleanup_fd int inside = jail_net_talk(netns, NETLINK_ROUTE, err);
  if (inside < 0)
    return inside;
  int index = rtnl_index(inside, "lo");
  int r = index < 0 ? index : rtnl_up(inside, index, false);
  return r ? err_set(err, r, "bringing lo of a box up: %s", strerrordesc_np(-r)) : 0;
}

int jail_net_attach(const struct jail_net *net, int netns, struct err *err)
{
  char name[IFNAMSIZ];
  int r = check_net(net, err);
  if (r)
    return r;
  cleanup_fd int host = rtnl_open();
  if (host < 0)
    return err_set(err, host, "opening a netlink socket: %s", strerrordesc_np(-host));
  cleanup_fd int inside = jail_net_talk(netns, NETLINK_ROUTE, err);
  if (inside < 0)
    return inside;
  /* Lists before the link: there is no moment with outbound networking and no rules. */
  r = jail_net_update(net, err);
  if (!r)
    r = make_link(host, net->config->instance, netns, name, err);
  if (!r)
    r = set_host_end(net, host, name, err);
  if (!r)
    r = set_box_end(net, inside, err);
  return r;
}
