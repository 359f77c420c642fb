/* SPDX-License-Identifier: Apache-2.0 */
/* egress.c - see egress.h. A box's network slot is the number of its id range, so nothing new has to be remembered. */
#include "warden/core/egress.h"

#include "warden/core/box_egress.h"
#include "warden/core/box_state.h"
#include "warden/core/net_log.h"
#include "warden/core/warden_state.h"
#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>

struct egress {
  struct jail_net_config net;
};

/* Two servers on one machine must not use the same addresses: the instance's name picks one of a hundred ranges. */
static uint32_t own_pool(const struct warden *w)
{
  uint8_t digest[SHA256_LEN];
  sha256_of(w->instance, strlen(w->instance), digest);
  return 10u << 24 | (128u + digest[0] % 100u) << 16;
}

/* IPv4 forwarding is the host's own switch: who turned it on turns it off again, unless another server still needs it.
 */
#define FORWARD "/proc/sys/net/ipv4/ip_forward"

static void note_forwarding(struct warden *w)
{
  cleanup_buf struct buf b = BUF_INIT(64);
  if (!file_read(FORWARD, &b) && b.n && b.p[0] == '0')
    store_meta_put(w->store, "forwarding", STR("ours"), NULL);
}

/* Links of boxes, of any server: "c", six hexadecimal digits, "v". */
static bool others_need_it(void)
{
  DIR *d = opendir("/sys/class/net");
  bool found = !d;
  for (struct dirent *e; d && (e = readdir(d));) {
    uint8_t digits[3];
    found |= strlen(e->d_name) > 8 && e->d_name[0] == 'c' && e->d_name[7] == 'v' &&
             !hex_decode(str_make(e->d_name + 1, 6), digits, 3);
  }
  if (d)
    closedir(d);
  return found;
}

static void restore_forwarding(struct warden *w)
{
  cleanup_buf struct buf b = BUF_INIT(64);
  if (store_meta_get(w->store, "forwarding", &b) || !str_is(buf_str(&b), "ours") || others_need_it())
    return;
  cleanup_fd int fd = open(FORWARD, O_WRONLY | O_CLOEXEC);
  if (fd >= 0 && !fd_write_all(fd, "0", 1))
    store_meta_put(w->store, "forwarding", STR(""), NULL);
}

int egress_open(struct warden *w, struct err *err)
{
  struct in_addr pool = {htonl(own_pool(w))}, resolver = {0};
  static char names[600];
  if (!w->config->internet)
    return 0;
  if (w->config->net_pool[0] && inet_pton(AF_INET, w->config->net_pool, &pool) != 1)
    return err_set(err, -EINVAL, "'net_pool' must be an IPv4 address such as 10.213.0.0, not '%s'",
                   w->config->net_pool);
  if (w->config->resolver[0] && inet_pton(AF_INET, w->config->resolver, &resolver) != 1)
    return err_set(err, -EINVAL, "'resolver' must be an IPv4 address, not '%s'", w->config->resolver);
  snprintf(names, sizeof(names), "%s/names", w->config->data);
  path_mkdirs(names, 0700);
  struct egress *e = xcalloc(1, sizeof(*e));
  e->net = (struct jail_net_config){
      .instance = w->instance,
      .pool = ntohl(pool.s_addr),
      .resolver = ntohl(resolver.s_addr),
      .connections = w->config->net_connections,
      .rate = w->config->net_rate,
      .dns_lists = names,
      .egress_port = (uint16_t)w->config->egress_port,
      .egress_uid = w->config->egress_uid,
  };
  note_forwarding(w);
  struct err why = ERR_NONE;
  if (net_log_open(w, &e->net, &why))
    log_warn("no network log: %s", why.msg);
  int r = jail_net_open(&e->net, err);
  if (!r)
    w->egress = steal(&e);
  free(e);
  return r;
}

void egress_close(struct warden *w)
{
  if (!w->egress)
    return;
  jail_net_close(w->instance);
  net_log_close(w);
  restore_forwarding(w);
  free(steal(&w->egress));
}

bool egress_on(const struct warden *w)
{
  return w->egress != NULL;
}

uint32_t egress_pool(const struct warden *w)
{
  return w->egress ? w->egress->net.pool : 0;
}

bool egress_wanted(const struct warden *w, unsigned flags, struct str allow)
{
  return w->egress && ((flags & BOX_INTERNET) || allow.n);
}

bool egress_plain(unsigned flags, struct str allow, struct str deny)
{
  return (flags & BOX_INTERNET) && !allow.n && !deny.n;
}

static const char *const *lines(struct arena *a, struct str text, const char *also)
{
  size_t n = 2;
  for (size_t i = 0; i < text.n; i++)
    n += text.p[i] == '\n';
  const char **list = arena_alloc(a, (n + 1) * sizeof(*list));
  size_t k = 0;
  while (text.n) {
    struct str line;
    str_cut(text, '\n', &line, &text);
    if (line.n)
      list[k++] = arena_z(a, line);
  }
  if (also)
    list[k++] = also;
  return list;
}

void egress_plan(const struct warden *w, unsigned slot, unsigned flags, struct str allow, struct str deny,
                 const struct box_egress *gateway, struct arena *a, struct jail_net *net)
{
  bool closed = !(flags & BOX_INTERNET);
  *net = (struct jail_net){
      .config = &w->egress->net,
      .slot = slot,
      .guest = flags & BOX_MICROVM,
      .allow = lines(a, allow, NULL),
      .deny = lines(a, closed ? STR_NONE : deny, closed ? "0.0.0.0/0" : NULL),
  };
  box_egress_turn(gateway, net);
}

void egress_forget(const struct warden *w, unsigned slot)
{
  struct err err = ERR_NONE;
  if (w->egress && slot < JAIL_NET_SLOTS && jail_net_forget(&w->egress->net, slot, &err))
    log_warn("names of network slot %u: %s", slot, err.msg);
}

bool egress_gateway(const struct warden *w)
{
  return w->egress && w->egress->net.egress_port;
}

uint32_t egress_address(const struct warden *w, unsigned slot)
{
  return w->egress ? jail_net_address(&(struct jail_net){.config = &w->egress->net, .slot = slot}) : 0;
}

int egress_listen(const struct warden *w, struct err *err)
{
  return w->egress ? jail_net_listen(&w->egress->net, err) : err_set(err, -ENOTSUP, "outbound networking is off");
}

const char *egress_nameserver(const struct warden *w, struct arena *a)
{
  uint32_t g = jail_net_gateway(&w->egress->net);
  return arena_fmt(a, "%u.%u.%u.%u", g >> 24, g >> 16 & 255, g >> 8 & 255, g & 255);
}

void egress_writing_plan(struct egress_writing *x, const struct box *b, unsigned flags, struct str allow,
                         struct str deny, const struct box_egress *gateway)
{
  struct warden *w = b->warden;
  *x = (struct egress_writing){.arena = ARENA_INIT(1 << 20), .netns = -1};
  x->linked = b->row.flags & BOX_LINKED;
  x->needed = w->egress && (x->linked || egress_wanted(w, flags, allow));
  if (!x->needed)
    return;
  egress_plan(w, b->row.slot, flags, allow, deny, gateway, &x->arena, &x->net);
  x->net.guest = b->row.flags & BOX_MICROVM;
  x->netns = x->linked ? -1 : fcntl(b->jail.netns, F_DUPFD_CLOEXEC, 3);
}

int egress_write(struct egress_writing *x, struct err *err)
{
  if (!x->needed)
    return 0;
  int r = x->linked ? jail_net_update(&x->net, err) : jail_net_attach(&x->net, x->netns, err);
  x->linked |= !r;
  return r;
}

void egress_writing_end(struct egress_writing *x)
{
  if (x->netns >= 0)
    close(x->netns);
  arena_free(&x->arena);
  *x = (struct egress_writing){.netns = -1};
}
