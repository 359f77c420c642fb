/* link.h - packets with descriptors over a unix socket, on a libuv loop. Used by the warden, the gates and the
 * supervisor; the one who owns the loop gets whole packets and never blocks. */
#ifndef CLOCHE_LINK_H
#define CLOCHE_LINK_H

#include "base/base.h"
#include <uv.h>

struct link;

struct link_ops {
  /* fd is -1 or a descriptor that came with the packet, owned by the callee. */
  void (*packet)(struct link *l, struct str packet, int fd, void *arg);
  void (*closed)(struct link *l, void *arg); /* the other side left; call link_free when convenient */
};

#define LINK_QUEUE_MAX ((size_t)64 << 20) /* bytes waiting for a slow reader before it is given up */

struct link *link_new(uv_loop_t *loop, int fd, const struct link_ops *ops, void *arg); /* takes the descriptor */
uint64_t link_serial(const struct link *l);                                            /* never the same for two links of a process */
int link_send(struct link *l, struct str packet, int fd);                              /* fd borrowed (it is duplicated when it must wait) */
void link_free(struct link *l);                                                        /* deferred; safe in callbacks */

#endif
