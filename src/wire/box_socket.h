/* SPDX-License-Identifier: Apache-2.0 */
/* box_socket.h - unix sockets whose other end is in a box, or was passed to one.
 *
 * A descriptor that comes through such a socket is a trap: closing a TCP socket with SO_LINGER blocks for as long as
 * its sender likes, and the kernel closes what is unread in a queue in the thread that closes the socket, or that
 * reads without asking for control messages. So no descriptor is accepted from a box. Where the kernel can refuse it to
 * the sender (SO_PASSRIGHTS, Linux 6.16) box_socket_guard has it refused; elsewhere what comes is received here and
 * closed by threads that nobody waits for. */
#ifndef CLOCHE_WIRE_BOX_SOCKET_H
#define CLOCHE_WIRE_BOX_SOCKET_H

#include "base/base.h"

/* To be called before the other end is given away. Inherited by connections that a listening socket accepts. */
void box_socket_guard(int fd);
/* recv() that never waits and takes no descriptors: -EPERM when some came, -EAGAIN when nothing did; 0 is the end. */
ssize_t box_socket_recv(int fd, void *p, size_t n);
/* close() that never waits, whatever is in the queue. */
void box_socket_close(int fd);

static inline void cleanup_boxsock_p(int *fd)
{
  if (*fd >= 0)
    box_socket_close(*fd);
}
#define cleanup_boxsock __attribute__((cleanup(cleanup_boxsock_p)))

#endif
