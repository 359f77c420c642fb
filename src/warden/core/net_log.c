/* SPDX-License-Identifier: Apache-2.0 */
/* net_log.c - see net_log.h. */
#include "warden/core/net_log.h"

#include "netlog/netlog.h"
#include "warden/core/box_state.h"
#include "warden/core/warden_state.h"
#include "wire/logring.h"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#define AGAIN_MS   1000
#define ACCOUNTING "/proc/sys/net/netfilter/nf_conntrack_acct"

struct net_log {
  struct netlog watcher;
  enum netlog_mode mode;
  uv_poll_t *poll;   /* NULL = not listening yet */
  uv_timer_t *again; /* while a watcher must be told who has which slot */
  int dir;
  uint64_t size;
};

bool net_log_full(const struct warden *w)
{
  return w->net_log && w->net_log->mode == NETLOG_FULL;
}

/* Bytes are counted for connections made from now on. The switch is the host's: it goes back when the server stops. */
static void count_bytes(struct warden *w)
{
  cleanup_buf struct buf b = BUF_INIT(64);
  cleanup_fd int fd = open(ACCOUNTING, O_WRONLY | O_CLOEXEC);
  if (file_read(ACCOUNTING, &b) || !b.n || b.p[0] != '0')
    return;
  if (fd < 0 || fd_write_all(fd, "1", 1))
    log_warn("network_log = full: bytes are not counted: %s can't be set: %s", ACCOUNTING, strerrordesc_np(errno));
  else
    store_meta_put(w->store, "accounting", STR("ours"), NULL);
}

static void stop_counting(struct warden *w)
{
  cleanup_buf struct buf b = BUF_INIT(64);
  if (store_meta_get(w->store, "accounting", &b) || !str_is(buf_str(&b), "ours"))
    return;
  cleanup_fd int fd = open(ACCOUNTING, O_WRONLY | O_CLOEXEC);
  if (fd >= 0 && !fd_write_all(fd, "0", 1))
    store_meta_put(w->store, "accounting", STR(""), NULL);
}

int net_log_open(struct warden *w, struct jail_net_config *config, struct err *err)
{
  char path[DATA_DIR_SIZE + 16];
  enum netlog_mode mode = (enum netlog_mode)w->config->network_log;
  if (mode == NETLOG_OFF)
    return 0;
  snprintf(path, sizeof(path), "%s/network", w->config->data);
  path_mkdirs(path, 0700);
  struct net_log *n = xcalloc(1, sizeof(*n));
  n->mode = mode;
  n->size = (uint64_t)w->config->network_log_kb << 10;
  n->dir = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
  struct netlog_limits limits = {w->config->network_log_names, w->config->network_log_connections};
  int r = n->dir < 0 ? err_errno(err, "%s", path) : netlog_start(config, mode, &limits, &n->watcher, err);
  if (r) {
    if (n->dir >= 0)
      close(n->dir);
    free(n);
    return r;
  }
  if (mode == NETLOG_FULL)
    count_bytes(w);
  config->log_group = netlog_group(config->instance);
  config->log_rate = w->config->network_log_rate;
  config->log_ends = mode == NETLOG_FULL;
  w->net_log = n;
  return 0;
}

static void handle_closed(uv_handle_t *h)
{
  free(h);
}

void net_log_close(struct warden *w)
{
  struct net_log *n = steal(&w->net_log);
  if (!n)
    return;
  if (n->poll) {
    uv_close((uv_handle_t *)n->poll, handle_closed);
    uv_close((uv_handle_t *)n->again, handle_closed);
  }
  netlog_stop(&n->watcher);
  close(n->dir);
  stop_counting(w);
  free(n);
}

static void bind_all(uv_timer_t *timer);

/* An order that finds no room is given again in a second, with all others. */
static void tell(struct net_log *n, enum netlog_order order, uint32_t slot, int ring)
{
  struct netlog_packet p = {order, slot};
  if (fd_send(n->watcher.fd, &p, sizeof(p), &ring, ring >= 0, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 && n->again &&
      !uv_is_active((uv_handle_t *)n->again))
    uv_timer_start(n->again, bind_all, AGAIN_MS, 0);
}

/* Every box that runs; a watcher that was started again knows none. At most once a second, whatever a watcher says. */
static void bind_all(uv_timer_t *timer)
{
  struct warden *w = timer->data;
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
    struct box *b = value;
    if (b->watch)
      net_log_bind(b);
  }
}

static void watcher_event(uv_poll_t *poll, int status, int events)
{
  struct warden *w = poll->data;
  char byte;
  (void)events;
  ssize_t n = status < 0 ? 0 : read(w->net_log->watcher.fd, &byte, 1);
  if (n > 0) {
    if (!uv_is_active((uv_handle_t *)w->net_log->again))
      uv_timer_start(w->net_log->again, bind_all, AGAIN_MS, 0);
    return;
  }
  if (n < 0 && (errno == EAGAIN || errno == EINTR))
    return;
  log_error("the watcher of connections is gone; the network log ends here, restart the server to have it again");
  uv_poll_stop(poll);
}

/* Rings of boxes that are not known any more. */
static void sweep(struct warden *w)
{
  cleanup_fd int fd = openat(w->net_log->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  cleanup_dir DIR *d = fd < 0 ? NULL : fdopendir(fd);
  if (!d)
    return;
  steal_fd(&fd);
  for (struct dirent *e; (e = readdir(d));)
    if (e->d_name[0] != '.' && !map_get(&w->boxes, str_of(e->d_name)))
      unlinkat(w->net_log->dir, e->d_name, 0);
}

void net_log_listen(struct warden *w)
{
  struct net_log *n = w->net_log;
  if (!n)
    return;
  sweep(w);
  n->again = xcalloc(1, sizeof(*n->again));
  uv_timer_init(w->loop, n->again);
  n->again->data = w;
  n->poll = xcalloc(1, sizeof(*n->poll));
  uv_poll_init(w->loop, n->poll, n->watcher.fd);
  n->poll->data = w;
  uv_poll_start(n->poll, UV_READABLE, watcher_event);
}

static int open_ring(const struct net_log *n, const char *id, int flags)
{
  cleanup_fd int fd = openat(n->dir, id, flags | O_NOFOLLOW | O_CLOEXEC, 0600);
  struct stat st;
  if (fd < 0)
    return -errno;
  if ((flags & O_CREAT) && !fstat(fd, &st) && st.st_size == 0 && logring_make(fd, n->size))
    return -EIO;
  return steal_fd(&fd);
}

void net_log_bind(struct box *b)
{
  struct net_log *n = b->warden->net_log;
  if (!n || b->row.slot >= JAIL_NET_SLOTS)
    return;
  cleanup_fd int fd = open_ring(n, b->row.id, O_RDWR | O_CREAT);
  if (fd >= 0)
    tell(n, NETLOG_BIND, b->row.slot, fd);
  else
    log_warn("box %s: no network log: %s", b->row.id, strerrordesc_np(-fd));
}

void net_log_unbind(struct box *b)
{
  struct net_log *n = b->warden->net_log;
  if (n && b->row.slot < JAIL_NET_SLOTS)
    tell(n, NETLOG_UNBIND, b->row.slot, -1);
}

/* The store's key of an ended box's lines, beside those that it printed. */
static void kept_key(char out[BOX_ID_SIZE + 16], const char *id)
{
  snprintf(out, BOX_ID_SIZE + 16, "%s/network", id);
}

void net_log_keep(struct box *b)
{
  struct net_log *n = b->warden->net_log;
  char key[BOX_ID_SIZE + 16];
  if (!n)
    return;
  cleanup_buf struct buf lines = BUF_INIT(NET_LOG_KEEP);
  struct err err = ERR_NONE;
  cleanup_fd int fd = open_ring(n, b->row.id, O_RDONLY);
  if (fd < 0)
    return;
  kept_key(key, b->row.id);
  if (!logring_read(fd, NET_LOG_KEEP, &lines) && lines.n &&
      store_log_put(b->warden->store, key, b->row.team, clock_wall_us(), buf_str(&lines), &err))
    log_warn("box %s: network log not saved: %s", b->row.id, err.msg);
  unlinkat(n->dir, b->row.id, 0);
}

void net_log_request(struct box *b, const struct egress_record_body *r, struct str text)
{
  struct net_log *n = b->warden->net_log;
  if (!n || b->row.slot >= JAIL_NET_SLOTS || text.n > (size_t)4 * EGRESS_RECORD_TEXT_MAX)
    return;
  cleanup_buf struct buf p = BUF_INIT(NETLOG_PACKET_MAX);
  buf_add(&p, &(struct netlog_packet){NETLOG_REQUEST, b->row.slot}, sizeof(struct netlog_packet));
  buf_add(&p, r, sizeof(*r));
  buf_adds(&p, text);
  if (!buf_failed(&p))
    send(n->watcher.fd, p.p, p.n, MSG_NOSIGNAL | MSG_DONTWAIT);
}

/* The kept lines as a ring of their own. */
static int kept_ring(struct warden *w, struct str id, struct str team)
{
  char key[BOX_ID_SIZE + 16], name[BOX_ID_SIZE];
  cleanup_buf struct buf lines = BUF_INIT(NET_LOG_KEEP);
  if (str_copyz(id, name, sizeof(name)))
    return -ENOENT;
  kept_key(key, name);
  int r = store_log_get(w->store, str_of(key), team, &lines);
  cleanup_fd int fd = r ? -1 : memfd_create("cloche-network-log", MFD_CLOEXEC);
  if (fd < 0)
    return r ? r : -errno;
  struct logring_head h;
  r = logring_make(fd, NET_LOG_KEEP);
  r = r ? r : logring_open(fd, &h);
  r = r ? r : logring_append(fd, &h, buf_str(&lines));
  return r ? r : steal_fd(&fd);
}

int net_log_read(struct warden *w, struct str id, struct str team, const struct box *b)
{
  if (!w->net_log)
    return -EOPNOTSUPP;
  return b ? open_ring(w->net_log, b->row.id, O_RDONLY) : kept_ring(w, id, team);
}
