/* SPDX-License-Identifier: Apache-2.0 */
/* jupyter_channel.c - a socket that feeds a zmtp and sends what it says; see jupyter_channel.h. */
#include "agent/interpreter/jupyter_channel.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

static char read_buf[(size_t)256 << 10]; /* shared: one loop, and nothing is kept in it */

static void poll_set(struct channel *c);

void channel_init(struct channel *c, uv_loop_t *loop, uint16_t port, bool subscriber, const char *identity,
                  void (*message)(void *arg, const struct str *frames, size_t n), void *arg)
{
  *c = (struct channel){.loop = loop, .fd = -1, .port = port};
  zmtp_init(&c->zmtp, subscriber, identity, message, arg);
}

static void on_closed(uv_handle_t *h)
{
  free(h);
}

static void disconnect(struct channel *c)
{
  if (c->poll)
    uv_close((uv_handle_t *)c->poll, on_closed);
  c->poll = NULL;
  cleanup_fd_p(&c->fd);
  c->fd = -1;
}

void channel_free(struct channel *c)
{
  disconnect(c);
  zmtp_free(&c->zmtp);
}

bool channel_open(const struct channel *c)
{
  return c->fd >= 0 && c->zmtp.state == ZMTP_OPEN;
}

static void flush(struct channel *c)
{
  struct buf *out = &c->zmtp.out;
  while (out->n) {
    ssize_t sent = send(c->fd, out->p, out->n, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0)
      break;
    buf_drop(out, (size_t)sent);
  }
}

/* A connection that failed before the handshake begins anew with a fresh greeting; a later loss is the kernel's end,
 * which its exit shows. */
static void lost(struct channel *c)
{
  bool again = c->zmtp.state == ZMTP_GREETING || c->zmtp.state == ZMTP_HANDSHAKE;
  struct zmtp old = c->zmtp;
  disconnect(c);
  if (!again)
    return;
  zmtp_free(&c->zmtp);
  zmtp_init(&c->zmtp, old.subscriber, old.identity, old.message, old.arg);
}

bool channel_read(struct channel *c)
{
  if (c->fd < 0)
    return false;
  ssize_t got = recv(c->fd, read_buf, sizeof(read_buf), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR))
    return false;
  if (got <= 0 || zmtp_feed(&c->zmtp, str_make(read_buf, (size_t)got)) < 0) {
    lost(c);
    return false;
  }
  if (c->zmtp.out.n && c->fd >= 0) {
    flush(c);
    poll_set(c);
  }
  return true;
}

static void on_poll(uv_poll_t *p, int status, int events)
{
  struct channel *c = p->data;
  if (status < 0) {
    lost(c);
    return;
  }
  if (events & UV_WRITABLE) {
    flush(c);
    poll_set(c);
  }
  if (events & UV_READABLE)
    channel_read(c);
}

static void poll_set(struct channel *c)
{
  if (!c->poll)
    return;
  uv_poll_start(c->poll, UV_READABLE | (c->zmtp.out.n ? UV_WRITABLE : 0), on_poll);
}

void channel_connect(struct channel *c)
{
  struct sockaddr_in at = {
      .sin_family = AF_INET, .sin_port = htons(c->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
  int yes = 1;
  if (c->fd >= 0)
    return;
  int cleanup_fd fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0 || (connect(fd, (struct sockaddr *)&at, sizeof(at)) != 0 && errno != EINPROGRESS))
    return;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof(yes));
  c->fd = steal_fd(&fd);
  c->poll = xcalloc(1, sizeof(*c->poll));
  uv_poll_init(c->loop, c->poll, c->fd);
  c->poll->data = c;
  poll_set(c);
}

int channel_send(struct channel *c, const struct str *frames, size_t n)
{
  int rc = c->fd < 0 ? -ENOTCONN : zmtp_send(&c->zmtp, frames, n);
  if (rc < 0)
    return rc;
  flush(c);
  if (c->zmtp.out.n)
    poll_set(c);
  return 0;
}
