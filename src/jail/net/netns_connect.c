/* SPDX-License-Identifier: Apache-2.0 */
/* netns_connect.c - sockets inside a box, for those outside.
 *
 * A socket belongs to the network namespace its maker was in, and the namespace is a property of the thread. So the
 * calling thread steps into the box for the length of one socket() and back: no helper, no lock, a few microseconds. A
 * thread that could not step back would do its next work inside a box; the process ends rather than that. */
#include "jail/jail.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

#define CONNECT_TIMEOUT_MS 2000
#define CONNECT_SYNS       2 /* asked again so often, over 7 s, where nobody waits here */

static int home = -1;

static void open_own_netns(void)
{
  home = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
}

static int socket_inside(int netns, int family, int type)
{
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  pthread_once(&once, open_own_netns);
  if (home < 0)
    return -EBADF;
  if (setns(netns, CLONE_NEWNET))
    return -errno;
  int fd = socket(family, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  int code = errno;
  if (setns(home, CLONE_NEWNET)) {
    log_error("returning to the host's network namespace failed");
    abort();
  }
  return fd < 0 ? -code : fd;
}

/* On loopback the other side has answered when connect() returns, unless its queue is full. */
static int finish(int fd, bool wait)
{
  int code = 0;
  socklen_t len = sizeof(code);
  struct pollfd p = {.fd = fd, .events = POLLOUT};
  int ready;
  while ((ready = poll(&p, 1, wait ? CONNECT_TIMEOUT_MS : 0)) < 0 && errno == EINTR)
    ;
  if (ready <= 0)
    return wait ? -ETIMEDOUT : setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &(int){CONNECT_SYNS}, sizeof(int));
  return getsockopt(fd, SOL_SOCKET, SO_ERROR, &code, &len) ? -errno : -code;
}

static int try_connect(int netns, const struct sockaddr *to, socklen_t len, bool wait)
{
  cleanup_fd int fd = socket_inside(netns, to->sa_family, SOCK_STREAM);
  if (fd < 0)
    return fd;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){1}, sizeof(int));
  setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, "reno",
             4); /* nothing to pace on the way into a box; see src/net/server.c */
  int r = connect(fd, to, len) ? -errno : 0;
  if (r == -EINPROGRESS)
    r = finish(fd, wait);
  return r ? r : steal_fd(&fd);
}

int jail_connect(const struct jail *j, unsigned port, bool wait, struct err *err)
{
  if (port == 0 || port > 65535)
    return err_set(err, -EINVAL, "invalid port %u: a port is 1 to 65535", port);
  struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
  struct sockaddr_in6 v6 = {
      .sin6_family = AF_INET6, .sin6_port = htons((uint16_t)port), .sin6_addr = IN6ADDR_LOOPBACK_INIT};
  v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  int fd = try_connect(j->netns, (struct sockaddr *)&v4, sizeof(v4), wait);
  if (fd == -ECONNREFUSED) {
    int second = try_connect(j->netns, (struct sockaddr *)&v6, sizeof(v6), wait);
    fd = second >= 0 ? second : fd;
  }
  return fd < 0 ? err_set(err, fd, "port %u in the box: %s", port, strerrordesc_np(-fd)) : fd;
}

/* A name without a file belongs to the network namespace it was bound in: no mount, and nothing that a checkpoint
 * meets. */
int jail_listen_unix(const struct jail *j, const char *name, struct err *err)
{
  struct sockaddr_un at = {.sun_family = AF_UNIX};
  if (str_copyz(str_of(name), at.sun_path + 1, sizeof(at.sun_path) - 1))
    return err_set(err, -ENAMETOOLONG, "path too long: %s", name);
  cleanup_fd int fd = socket_inside(j->netns, AF_UNIX, SOCK_STREAM);
  if (fd < 0)
    return err_set(err, fd, "creating a socket in the box: %s", strerrordesc_np(-fd));
  if (bind(fd, (struct sockaddr *)&at, (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + strlen(name))))
    return err_errno(err, "binding a name in the box");
  return steal_fd(&fd);
}
