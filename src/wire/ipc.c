/* link.c - see link.h. */
#include "wire/ipc.h"

#include "wire/wire.h"
#include <fcntl.h>
#include <sys/socket.h>

struct waiting {
  char *p;
  size_t n;
  int fd;
};

struct link {
  uv_poll_t poll;
  int fd;
  const struct link_ops *ops;
  void *arg;
  VEC(struct waiting) queue;
  size_t queued;
  uint64_t serial;
  bool dead;
};

static void link_interest(struct link *l);

static void link_down(struct link *l)
{
  if (l->dead)
    return;
  l->dead = true;
  uv_poll_stop(&l->poll);
  l->ops->closed(l, l->arg);
}

static void link_flush(struct link *l)
{
  size_t sent = 0;
  for (; sent < l->queue.n; sent++) {
    struct waiting *w = &l->queue.p[sent];
    ssize_t k = fd_send(l->fd, w->p, w->n, &w->fd, w->fd >= 0 ? 1 : 0, MSG_DONTWAIT);
    if (k == -EAGAIN)
      break;
    if (k < 0) {
      link_down(l);
      return;
    }
    l->queued -= w->n;
    free(w->p);
    if (w->fd >= 0)
      close(w->fd);
  }
  memmove(l->queue.p, l->queue.p + sent, (l->queue.n - sent) * sizeof(*l->queue.p));
  l->queue.n -= sent;
  link_interest(l);
}

/* A bounded number of packets per wake-up, so that one busy peer does not starve the others. */
static void link_read(struct link *l)
{
  static _Alignas(8) char packet[WIRE_MAX];
  for (int i = 0; i < 64 && !l->dead; i++) {
    int fd = -1;
    size_t nfds = 1;
    ssize_t k = fd_recv(l->fd, packet, sizeof(packet), &fd, &nfds, MSG_DONTWAIT);
    if (k == -EAGAIN)
      return;
    if (k <= 0) {
      link_down(l);
      return;
    }
    l->ops->packet(l, (struct str){packet, (size_t)k}, nfds ? fd : -1, l->arg);
  }
}

static void link_event(uv_poll_t *poll, int status, int events)
{
  struct link *l = poll->data;
  if (status < 0) {
    link_down(l);
    return;
  }
  if (events & UV_WRITABLE)
    link_flush(l);
  if (!l->dead && (events & (UV_READABLE | UV_DISCONNECT)))
    link_read(l);
}

static void link_interest(struct link *l)
{
  if (!l->dead)
    uv_poll_start(&l->poll, UV_READABLE | UV_DISCONNECT | (l->queue.n ? UV_WRITABLE : 0), link_event);
}

struct link *link_new(uv_loop_t *loop, int fd, const struct link_ops *ops, void *arg)
{
  struct link *l = xcalloc(1, sizeof(*l));
  static uint64_t serials;
  l->serial = ++serials;
  l->fd = fd;
  l->ops = ops;
  l->arg = arg;
  fd_nonblock(fd);
  int size = 4 << 20;
  setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
  uv_poll_init(loop, &l->poll, fd);
  l->poll.data = l;
  link_interest(l);
  return l;
}

uint64_t link_serial(const struct link *l)
{
  return l->serial;
}

int link_send(struct link *l, struct str packet, int fd)
{
  if (l->dead)
    return -EPIPE;
  if (!l->queue.n) {
    ssize_t k = fd_send(l->fd, packet.p, packet.n, &fd, fd >= 0 ? 1 : 0, MSG_DONTWAIT);
    if (k >= 0)
      return 0;
    if (k != -EAGAIN)
      return (int)k;
  }
  if (l->queued + packet.n > LINK_QUEUE_MAX)
    return -ENOBUFS;
  struct waiting w = {xmalloc(packet.n), packet.n, fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1};
  memcpy(w.p, packet.p, packet.n);
  l->queued += packet.n;
  vec_push(&l->queue, w);
  link_interest(l);
  return 0;
}

static void link_closed(uv_handle_t *h)
{
  struct link *l = h->data;
  close(l->fd);
  for (size_t i = 0; i < l->queue.n; i++) {
    free(l->queue.p[i].p);
    if (l->queue.p[i].fd >= 0)
      close(l->queue.p[i].fd);
  }
  vec_free(&l->queue);
  free(l);
}

void link_free(struct link *l)
{
  if (!l || uv_is_closing((uv_handle_t *)&l->poll))
    return;
  l->dead = true;
  uv_poll_stop(&l->poll);
  uv_close((uv_handle_t *)&l->poll, link_closed);
}
