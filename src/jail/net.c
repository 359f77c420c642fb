/* net.c - one veth per box and one nftables table per instance.
 *
 * A box without lists costs no call to nft: the table's general rules know it by the name of its link. Lists become a
 * chain of the box's own, b<slot>, reached through a map from its address; replacing them is one transaction. The source
 * address is safe to judge by, since the strict reverse path filter of the box's link lets no other one in. */
#include "jail/jail_net.h"
#include "jail/rtnl.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define CONNECTIONS_DEFAULT 1024u
#define LIST_MAX            1000 /* entries of one list */

/* This host, private and carrier ranges, link-local with the metadata addresses, benchmark, multicast, reserved. */
#define NEVER                                                                                                                                        \
  "0.0.0.0/8, 10.0.0.0/8, 100.64.0.0/10, 127.0.0.0/8, 169.254.0.0/16, 172.16.0.0/12, 192.0.0.0/24, 192.168.0.0/16, "                                 \
  "198.18.0.0/15, 224.0.0.0/4, 240.0.0.0/4"

/* Slots whose chain may exist. All may after a restart; none does when the table is new. */
static _Atomic uint8_t has_chain[JAIL_NET_SLOTS];

/* --- names ---------------------------------------------------------------------------------------------------- */

/* Links are named by 6 hex digits of the instance's fingerprint: 15 characters must hold them and a counter. */
void jail_net_prefix(const char *instance, char out[8])
{
  uint8_t sum[SHA256_LEN];
  char hex[7];
  sha256_of(instance, strlen(instance), sum);
  hex_encode(sum, 3, hex);
  snprintf(out, 8, "c%s", hex);
}

void jail_net_table(const char *instance, char out[80])
{
  snprintf(out, 80, "cloche_%s", instance);
  for (char *p = out; *p; p++)
    if (*p == '-')
      *p = '_';
}

uint32_t jail_net_gateway(const struct jail_net_config *config)
{
  return config->pool + 1;
}

uint32_t jail_net_address(const struct jail_net *net)
{
  return net->config->pool + 16 + net->slot;
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
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
    ;
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

static void write_chains(struct buf *b, const struct jail_net_config *c, const char *links, const char *gateway)
{
  unsigned connections = c->connections ? c->connections : CONNECTIONS_DEFAULT;
  buf_addf(b,
           "  chain forward { type filter hook forward priority filter - 10; policy accept;\n"
           "    oifname \"%s*\" iifname \"%s*\" drop\n"
           "    oifname \"%s*\" ct state established,related accept\n"
           "    oifname \"%s*\" drop\n"
           "    iifname \"%s*\" goto leave\n  }\n",
           links, links, links, links, links);
  buf_addf(b,
           "  chain leave {\n"
           "    meta nfproto ipv6 drop\n"
           "    ct state established,related accept\n"
           "    ct status dnat accept\n"
           "    ip daddr @never goto refuse\n"
           "    ct state new add @open { ip saddr ct count over %u } goto refuse\n"
           "    ip saddr vmap @boxes\n"
           "    accept\n  }\n"
           "  chain refuse { meta l4proto tcp reject with tcp reset\n    reject with icmpx admin-prohibited\n  }\n",
           connections);
  buf_addf(b,
           "  chain input { type filter hook input priority filter - 10; policy accept;\n"
           "    iifname \"%s*\" ct state established,related accept\n"
           "    iifname \"%s*\" ip daddr %s icmp type echo-request limit rate 10/second accept\n"
           "    iifname \"%s*\" ip protocol tcp reject with tcp reset\n"
           "    iifname \"%s*\" drop\n  }\n",
           links, links, gateway, links, links);
}

static void write_nat(struct buf *b, const struct jail_net_config *c, const char *links, const char *gateway, uint32_t resolver)
{
  char to[INET_ADDRSTRLEN], pool[INET_ADDRSTRLEN];
  if (resolver)
    buf_addf(b,
             "  chain prerouting { type nat hook prerouting priority dstnat; policy accept;\n"
             "    iifname \"%s*\" ip daddr %s meta l4proto { tcp, udp } th dport 53 dnat ip to %s\n  }\n",
             links, gateway, dotted(resolver, to));
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

static int check_config(const struct jail_net_config *c, struct err *err)
{
  if (!c->instance || !*c->instance || strlen(c->instance) > 64 || c->pool == 0 || (c->pool & 0xffff))
    return err_set(err, -EINVAL, "the boxes' addresses need an instance and a /16");
  return 0;
}

/* The general chains are written anew, so that a changed configuration holds; the boxes' own chains and the map to them
 * are added to, never flushed, so that boxes found again keep their lists. */
int jail_net_open(const struct jail_net_config *c, struct err *err)
{
  char table[80], prefix[8], gateway[INET_ADDRSTRLEN];
  int r = check_config(c, err);
  if (r)
    return r;
  jail_net_table(c->instance, table);
  jail_net_prefix(c->instance, prefix);
  dotted(jail_net_gateway(c), gateway);
  memset((void *)has_chain, table_exists(table), sizeof(has_chain));
  cleanup_buf struct buf b = BUF_INIT(65536);
  buf_addf(&b, "add table inet %s\n", table);
  static const char *const chains[] = {"forward", "leave", "refuse", "input", "prerouting", "postrouting"};
  for (size_t i = 0; i < ARRAY_LEN(chains); i++)
    buf_addf(&b, "add chain inet %s %s\nflush chain inet %s %s\n", table, chains[i], table, chains[i]);
  for (size_t i = 0; i < ARRAY_LEN(chains); i++)
    if (strcmp(chains[i], "leave") != 0 && strcmp(chains[i], "refuse") != 0)
      buf_addf(&b, "delete chain inet %s %s\n", table, chains[i]);
  buf_addf(&b,
           "table inet %s {\n"
           "  set never { type ipv4_addr; flags interval; elements = { " NEVER " } }\n"
           "  set open { type ipv4_addr; size 65535; flags dynamic; }\n"
           "  map boxes { type ipv4_addr : verdict; }\n",
           table);
  write_chains(&b, c, prefix, gateway);
  write_nat(&b, c, prefix, gateway, c->resolver ? c->resolver : host_resolver());
  buf_addz(&b, "}\n");
  r = nft(&b, err);
  return r ? r : put_text("/proc/sys/net/ipv4/ip_forward", "1", err);
}

void jail_net_close(const char *instance)
{
  char table[80];
  cleanup_buf struct buf b = BUF_INIT(1024);
  jail_net_table(instance, table);
  buf_addf(&b, "add table inet %s\ndelete table inet %s\n", table, table);
  nft(&b, NULL);
}

/* --- lists ---------------------------------------------------------------------------------------------------- */

int jail_net_check(const char *entry, struct err *err)
{
  struct str address, bits;
  char word[INET_ADDRSTRLEN];
  struct in_addr a;
  uint64_t n = 32;
  bool prefix = str_cut(str_of(entry), '/', &address, &bits);
  if (str_copyz(address, word, sizeof(word)) || inet_pton(AF_INET, word, &a) != 1 || (prefix && (str_u64(bits, &n) || n > 32)))
    return err_set(err, -EINVAL, "\"%s\" is not an IPv4 address or prefix", entry);
  return 0;
}

static bool is_everything(const char *entry)
{
  return str_is(str_of(entry), "0.0.0.0/0");
}

/* One rule per entry, so that entries may overlap; a list with everything in it is one rule. */
static int write_list(struct buf *b, const char *const *list, const char *verdict, struct err *err)
{
  size_t n = 0;
  bool everything = false;
  for (; list && list[n]; n++) {
    int r = jail_net_check(list[n], err);
    if (r || n == LIST_MAX)
      return r ? r : err_set(err, -E2BIG, "more than %d entries in a network list", LIST_MAX);
    everything |= is_everything(list[n]);
  }
  if (n == 0)
    return 0;
  if (everything) {
    buf_addf(b, "    %s\n", verdict);
    return 0;
  }
  for (size_t i = 0; i < n; i++)
    buf_addf(b, "    ip daddr %s %s\n", list[i], verdict);
  return 0;
}

static void forget(struct buf *b, const char *table, const struct jail_net *net)
{
  char box[INET_ADDRSTRLEN];
  dotted(jail_net_address(net), box);
  /* Adding first makes the deletion right whether or not there was one. */
  buf_addf(b, "add chain inet %s b%u\nadd element inet %s boxes { %s : jump b%u }\n", table, net->slot, table, box, net->slot);
  buf_addf(b, "delete element inet %s boxes { %s }\nflush chain inet %s b%u\n", table, box, table, net->slot);
}

static int check_net(const struct jail_net *net, struct err *err)
{
  if (!net->config || net->slot >= JAIL_NET_SLOTS)
    return err_set(err, -EINVAL, "no network slot %u", net->slot);
  return check_config(net->config, err);
}

int jail_net_update(const struct jail_net *net, struct err *err)
{
  char table[80], box[INET_ADDRSTRLEN];
  int r = check_net(net, err);
  if (r)
    return r;
  bool lists = (net->allow && net->allow[0]) || (net->deny && net->deny[0]);
  if (!lists && !atomic_load(&has_chain[net->slot]))
    return 0;
  jail_net_table(net->config->instance, table);
  cleanup_buf struct buf b = BUF_INIT(1 << 20);
  forget(&b, table, net);
  if (lists) {
    buf_addf(&b, "table inet %s {\n  chain b%u {\n", table, net->slot);
    r = write_list(&b, net->allow, "accept", err);
    if (!r)
      r = write_list(&b, net->deny, "goto refuse", err);
    buf_addf(&b, "  }\n}\nadd element inet %s boxes { %s : jump b%u }\n", table, dotted(jail_net_address(net), box), net->slot);
  } else {
    buf_addf(&b, "delete chain inet %s b%u\n", table, net->slot);
  }
  if (!r)
    r = nft(&b, err);
  if (!r)
    atomic_store(&has_chain[net->slot], lists);
  return r;
}

/* --- the link ------------------------------------------------------------------------------------------------- */

static int rtnl_inside(int netns, struct err *err)
{
  cleanup_fd int home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
  if (home < 0 || setns(netns, CLONE_NEWNET))
    return err_errno(err, "entering a box's network");
  int fd = rtnl_open();
  if (setns(home, CLONE_NEWNET)) {
    log_error("a thread can't leave a box's network namespace");
    abort();
  }
  return fd < 0 ? err_set(err, fd, "opening a netlink socket: %s", strerrordesc_np(-fd)) : fd;
}

/* The name holds a counter, not the slot: a dead box's link may linger for a moment while its namespace is taken down. */
static int make_link(int sock, const char *instance, int netns, char name[16], struct err *err)
{
  static _Atomic uint32_t counter;
  char prefix[8];
  int r = -EEXIST;
  jail_net_prefix(instance, prefix);
  if (!counter)
    counter = (uint32_t)clock_wall_us();
  for (int i = 0; i < 100 && r == -EEXIST; i++) {
    snprintf(name, 16, "%sv%06" PRIx32, prefix, ++counter & 0xffffff);
    r = rtnl_veth(sock, name, netns);
  }
  return r ? err_set(err, r, "making a veth: %s", strerrordesc_np(-r)) : 0;
}

static int guard_link(const char *name, struct err *err)
{
  char path[96];
  snprintf(path, sizeof(path), "/proc/sys/net/ipv4/conf/%s/rp_filter", name);
  return put_text(path, "1", err);
}

static int set_outside(const struct jail_net *net, int sock, const char *name, struct err *err)
{
  int index = rtnl_index(sock, name);
  int r = index < 0 ? index : rtnl_up(sock, index);
  if (!r)
    r = rtnl_address(sock, index, jail_net_gateway(net->config), 32);
  if (!r)
    r = rtnl_route(sock, index, jail_net_address(net), 32, 0);
  if (!r && net->config->rate)
    r = rtnl_rate(sock, index, net->config->rate);
  return r ? err_set(err, r, "setting up %s: %s", name, strerrordesc_np(-r)) : guard_link(name, err);
}

static int set_inside(const struct jail_net *net, int sock, struct err *err)
{
  int index = rtnl_index(sock, "eth0");
  int r = index < 0 ? index : rtnl_up(sock, index);
  if (!r)
    r = rtnl_address(sock, index, jail_net_address(net), 32);
  if (!r)
    r = rtnl_route(sock, index, 0, 0, jail_net_gateway(net->config));
  if (!r && net->config->rate)
    r = rtnl_rate(sock, index, net->config->rate);
  return r ? err_set(err, r, "setting up eth0 of a box: %s", strerrordesc_np(-r)) : 0;
}

int jail_net_attach(const struct jail_net *net, int netns, struct err *err)
{
  char name[16];
  int r = check_net(net, err);
  if (r)
    return r;
  cleanup_fd int outside = rtnl_open();
  if (outside < 0)
    return err_set(err, outside, "opening a netlink socket: %s", strerrordesc_np(-outside));
  cleanup_fd int inside = rtnl_inside(netns, err);
  if (inside < 0)
    return inside;
  /* Lists before the link: there is no moment with a way out and no rules. */
  r = jail_net_update(net, err);
  if (!r)
    r = make_link(outside, net->config->instance, netns, name, err);
  if (!r)
    r = set_outside(net, outside, name, err);
  if (!r)
    r = set_inside(net, inside, err);
  return r;
}
