/* SPDX-License-Identifier: Apache-2.0 */
/* listener.c - see listener.h. */
#include "cli/listener.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>

#define PORT_TRIES    50 /* gates of a supervisor that was killed take a moment to leave: 5 s in all */
#define PORT_PAUSE_MS 100

static int split_address(const char *name, const char *text, char host[LISTEN_HOST_SIZE], uint16_t *port,
                         struct err *err)
{
  struct str all = str_of(text);
  ptrdiff_t colon = str_rfind(all, ':');
  struct in_addr a;
  uint64_t n;
  if (colon <= 0 || str_copyz(str_sub(all, 0, (size_t)colon), host, LISTEN_HOST_SIZE) ||
      str_u64(str_skip(all, (size_t)(colon + 1)), &n) || n > 65535)
    return err_set(err, -EINVAL, "'%s' must be ADDRESS:PORT, not '%s'", name, text);
  if (inet_pton(AF_INET, host, &a) != 1)
    return err_set(err, -EINVAL, "'%s' needs an IPv4 address and a port, not '%s'", name, text);
  *port = (uint16_t)n;
  return 0;
}

static struct sockaddr_in address_of(const char *host, uint16_t port)
{
  struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};
  inet_pton(AF_INET, host, &a.sin_addr);
  return a;
}

/* Another server on the port would share it silently (SO_REUSEPORT): ask without it first. */
static int port_free(const char *host, uint16_t port, struct err *err)
{
  struct sockaddr_in a = address_of(host, port);
  int one = 1;
  cleanup_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  for (int i = 0; bind(fd, (struct sockaddr *)&a, sizeof(a)); i++) {
    if (errno != EADDRINUSE || i == PORT_TRIES)
      return err_errno(err, "listen on %s:%u", host, port);
    poll(NULL, 0, PORT_PAUSE_MS);
  }
  return 0;
}

static int bind_one(const char *host, uint16_t port, int *out, struct err *err)
{
  struct sockaddr_in a = address_of(host, port);
  int one = 1;
  cleanup_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
  setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &one, sizeof(one));
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  if (bind(fd, (struct sockaddr *)&a, sizeof(a)) || listen(fd, 4096))
    return err_errno(err, "listen on %s:%u", host, port);
  *out = steal_fd(&fd);
  return 0;
}

/* ---- sockets of the service manager ---- */

static int flag_of(int fd, int option)
{
  int value = 0;
  socklen_t n = sizeof(value);
  return getsockopt(fd, SOL_SOCKET, option, &value, &n) ? -1 : value;
}

/* Where it listens; -EINVAL: it does not, or not by TCP over IPv4. */
static int listens_at(int fd, struct sockaddr_in *a)
{
  socklen_t n = sizeof(*a);
  if (flag_of(fd, SO_TYPE) != SOCK_STREAM || flag_of(fd, SO_ACCEPTCONN) != 1 || flag_of(fd, SO_DOMAIN) != AF_INET)
    return -EINVAL;
  return getsockname(fd, (struct sockaddr *)a, &n) ? -errno : 0;
}

static int prepare(int fd)
{
  int one = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
  return fd_nonblock(fd);
}

static void told(const struct sockaddr_in *a, char host[LISTEN_HOST_SIZE], uint16_t *port)
{
  inet_ntop(AF_INET, &a->sin_addr, host, LISTEN_HOST_SIZE);
  *port = ntohs(a->sin_port);
}

/* Those of a .socket unit. All sockets beyond the number of gates are shared out, too: a socket that nobody accepts on
 * would hold its connections for ever. Returns how many there are. */
static int take_of_unit(struct service_manager *m, const char *setting, size_t n, int *fds, char host[LISTEN_HOST_SIZE],
                        uint16_t *port, struct err *err)
{
  struct sockaddr_in a;
  size_t got = 0;
  for (int fd; (fd = service_take(m, setting)) >= 0; got++) {
    if (listens_at(fd, &a) || prepare(fd))
      return err_set(err, -EINVAL,
                     "descriptor '%s' of the service manager must be a listening TCP socket with an IPv4 address; set "
                     "ListenStream=ADDRESS:PORT in its .socket unit",
                     setting);
    if (got >= n)
      return err_set(err, -EINVAL, "the service manager gives more than %zu sockets named '%s', one for each gate", n,
                     setting);
    fds[got] = fd;
    told(&a, host, port);
  }
  for (size_t i = got; got && i < n; i++)
    fds[i] = fds[i % got];
  return (int)got;
}

static void kept_name(char out[SERVICE_NAME_MAX + 1], const char *setting, size_t i)
{
  snprintf(out, SERVICE_NAME_MAX + 1, "kept-%s-%zu", setting, i);
}

/* One that was kept, if it is for the address that is wanted now; port 0 is any. */
static int take_kept(struct service_manager *m, const char *setting, size_t i, const char *host, uint16_t *port)
{
  char name[SERVICE_NAME_MAX + 1];
  struct sockaddr_in a, want = address_of(host, *port);
  kept_name(name, setting, i);
  cleanup_fd int fd = service_take(m, name);
  if (fd < 0)
    return -1;
  if (listens_at(fd, &a) || a.sin_addr.s_addr != want.sin_addr.s_addr || (*port && a.sin_port != want.sin_port) ||
      prepare(fd)) {
    service_drop(m, name);
    return -1;
  }
  *port = ntohs(a.sin_port);
  return steal_fd(&fd);
}

int listeners_open(struct service_manager *m, const char *setting, const char *address, size_t n, int *fds,
                   char host[LISTEN_HOST_SIZE], uint16_t *port, struct err *err)
{
  int r = take_of_unit(m, setting, n, fds, host, port, err);
  if (r)
    return MIN(r, 0);
  if ((r = split_address(setting, address, host, port, err)))
    return r;
  size_t kept = 0;
  for (size_t i = 0; i < n; i++)
    kept += (fds[i] = take_kept(m, setting, i, host, port)) >= 0;
  r = kept || !*port ? 0 : port_free(host, *port, err);
  for (size_t i = 0; !r && i < n; i++) {
    char name[SERVICE_NAME_MAX + 1];
    struct sockaddr_in a;
    if (fds[i] >= 0 || (r = bind_one(host, *port, &fds[i], err)))
      continue;
    if (!listens_at(fds[i], &a))
      *port = ntohs(a.sin_port);
    kept_name(name, setting, i);
    service_keep(m, name, fds[i]);
  }
  return r;
}
