/* SPDX-License-Identifier: Apache-2.0 */
/* ipc.c - see ipc.h. */
#include "wire/ipc.h"

#include "wire/box_socket.h"
#include "wire/wire.h"
#include <fcntl.h>
#include <sys/socket.h>

struct waiting {
  char *p;
  size_t n;
  int fd;
};

struct ipc {
  uv_poll_t poll;
  int fd;
  const struct ipc_ops *ops;
  void *arg;
  VEC(struct waiting) queue;
  size_t queued;
  uint64_t serial;
  void (*drain)(struct ipc *l, void *arg);
  bool paced, guarded, dead;
};

static void ipc_interest(struct ipc *l);

static void ipc_down(struct ipc *l)
{
  if (l->dead)
    return;
  l->dead = true;
  uv_poll_stop(&l->poll);
  l->ops->closed(l, l->arg);
}

/* The kernel has no room for it now: no buffer, or too many descriptors on their way already. */
static bool try_later(ssize_t k)
{
  return k == -EAGAIN || k == -ENOBUFS || k == -ENOMEM || k == -ETOOMANYREFS;
}

static void waiting_free(struct waiting *w)
{
  explicit_bzero(w->p, w->n); /* it may hold a secret's value */
  free(w->p);
  if (w->fd >= 0)
    close(w->fd);
}

static void ipc_flush(struct ipc *l)
{
  bool was_busy = ipc_busy(l);
  size_t sent = 0;
  ssize_t k = 0;
  for (; sent < l->queue.n; sent++) {
    struct waiting *w = &l->queue.p[sent];
    k = fd_send(l->fd, w->p, w->n, &w->fd, w->fd >= 0 ? 1 : 0, MSG_DONTWAIT);
    if (k < 0)
      break;
    l->queued -= w->n;
    waiting_free(w);
  }
  memmove(l->queue.p, l->queue.p + sent, (l->queue.n - sent) * sizeof(*l->queue.p));
  l->queue.n -= sent;
  if (k < 0 && !try_later(k)) {
    ipc_down(l);
    return;
  }
  ipc_interest(l);
  if (l->drain && was_busy && !ipc_busy(l))
    l->drain(l, l->arg);
}

/* A bounded number of packets per wake-up, so that one busy peer does not starve the others. */
static void ipc_read(struct ipc *l)
{
  static _Alignas(8) char packet[WIRE_MAX];
  for (int i = 0; i < 64 && !l->dead && !(l->paced && ipc_busy(l)); i++) {
    int fd = -1;
    size_t nfds = 1;
    ssize_t k = l->guarded ? box_socket_recv(l->fd, packet, sizeof(packet))
                           : fd_recv(l->fd, packet, sizeof(packet), &fd, &nfds, MSG_DONTWAIT);
    if (k == -EAGAIN)
      return;
    if (k <= 0) {
      ipc_down(l);
      return;
    }
    l->ops->packet(l, (struct str){packet, (size_t)k}, fd, l->arg);
  }
}

static void ipc_event(uv_poll_t *poll, int status, int events)
{
  struct ipc *l = poll->data;
  if (status < 0) {
    ipc_down(l);
    return;
  }
  if (events & UV_WRITABLE)
    ipc_flush(l);
  if (!l->dead && (events & UV_DISCONNECT))
    l->paced = false; /* nobody is left to wait for: the rest is read up to its end */
  if (!l->dead && (events & (UV_READABLE | UV_DISCONNECT)))
    ipc_read(l);
}

static void ipc_interest(struct ipc *l)
{
  int reading = l->paced && ipc_busy(l) ? 0 : UV_READABLE;
  if (!l->dead)
    uv_poll_start(&l->poll, reading | UV_DISCONNECT | (l->queue.n ? UV_WRITABLE : 0), ipc_event);
}

struct ipc *ipc_new(uv_loop_t *loop, int fd, const struct ipc_ops *ops, void *arg)
{
  struct ipc *l = xcalloc(1, sizeof(*l));
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
  ipc_interest(l);
  return l;
}

uint64_t ipc_serial(const struct ipc *l)
{
  return l->serial;
}

bool ipc_busy(const struct ipc *l)
{
  return l->queued >= LINK_PACE;
}

size_t ipc_queued(const struct ipc *l)
{
  return l->queued;
}

void ipc_pace(struct ipc *l)
{
  l->paced = true;
}

void ipc_guard(struct ipc *l)
{
  l->guarded = true;
  box_socket_guard(l->fd);
}

void ipc_on_drain(struct ipc *l, void (*drain)(struct ipc *l, void *arg))
{
  l->drain = drain;
}

static int enqueue(struct ipc *l, struct str packet, int fd, size_t most)
{
  if (l->dead)
    return -EPIPE;
  if (!l->queue.n) {
    ssize_t k = fd_send(l->fd, packet.p, packet.n, &fd, fd >= 0 ? 1 : 0, MSG_DONTWAIT);
    if (k >= 0)
      return 0;
    if (!try_later(k))
      return (int)k;
  }
  if (l->queued + packet.n > most)
    return -ENOBUFS;
  int copy = fd >= 0 ? fcntl(fd, F_DUPFD_CLOEXEC, 3) : -1;
  if (fd >= 0 && copy < 0)
    return -errno;
  struct waiting w = {xmalloc(packet.n), packet.n, copy};
  memcpy(w.p, packet.p, packet.n);
  l->queued += packet.n;
  vec_push(&l->queue, w);
  ipc_interest(l);
  return 0;
}

int ipc_send(struct ipc *l, struct str packet, int fd)
{
  return enqueue(l, packet, fd, LINK_QUEUE_MAX);
}

int ipc_send_bulk(struct ipc *l, struct str packet)
{
  return enqueue(l, packet, -1, LINK_BULK_MAX);
}

static void ipc_closed(uv_handle_t *h)
{
  struct ipc *l = h->data;
  if (l->guarded)
    box_socket_close(l->fd);
  else
    close(l->fd);
  for (size_t i = 0; i < l->queue.n; i++)
    waiting_free(&l->queue.p[i]);
  vec_free(&l->queue);
  free(l);
}

void ipc_free(struct ipc *l)
{
  if (!l || uv_is_closing((uv_handle_t *)&l->poll))
    return;
  l->dead = true;
  uv_poll_stop(&l->poll);
  uv_close((uv_handle_t *)&l->poll, ipc_closed);
}
