/* SPDX-License-Identifier: Apache-2.0 */
/* ipc.h - packets with descriptors over a unix socket, on a libuv loop. Used by the warden, the gates and the
 * supervisor; the one who owns the loop gets whole packets and never blocks.
 *
 * What a slow peer does not read waits in a bounded queue. No packet is dropped without an error to its sender: parts
 * of long answers may fill LINK_BULK_MAX and fail with -ENOBUFS above it, single replies have the room up to
 * LINK_QUEUE_MAX for themselves, and a server (ipc_pace) reads no further requests of a peer while more than LINK_PACE
 * bytes wait for it. */
#ifndef CLOCHE_WIRE_IPC_H
#define CLOCHE_WIRE_IPC_H

#include "base/base.h"
#include <uv.h>

struct ipc;

struct ipc_ops {
  /* fd is -1 or a descriptor that came with the packet, owned by the callee. */
  void (*packet)(struct ipc *l, struct str packet, int fd, void *arg);
  void (*closed)(struct ipc *l, void *arg); /* the other side left; call ipc_free when convenient */
};

#define LINK_QUEUE_MAX ((size_t)64 << 20) /* bytes waiting for a slow reader; more: -ENOBUFS */
#define LINK_BULK_MAX  ((size_t)48 << 20) /* of which parts of long answers may take so many */
#define LINK_PACE      ((size_t)4 << 20)  /* a paced link that owes its peer so many bytes reads nothing from it */

struct ipc *ipc_new(uv_loop_t *loop, int fd, const struct ipc_ops *ops, void *arg); /* takes the descriptor */
uint64_t ipc_serial(const struct ipc *l);               /* never the same for two links of a process */
int ipc_send(struct ipc *l, struct str packet, int fd); /* fd borrowed (it is duplicated when it must wait) */
int ipc_send_bulk(struct ipc *l, struct str packet);    /* one part of a long answer */
/* Requests of this peer are read only while it reads its answers. Of a pair only one side may do this: two would wait
 * for each other. */
void ipc_pace(struct ipc *l);
/* No descriptor is taken from this peer (box_socket.h says why): one that sends some is cut off. To be called before it
 * could send. */
void ipc_guard(struct ipc *l);
/* Called each time the queue falls below LINK_PACE; for senders of long answers, who go on then. */
void ipc_on_drain(struct ipc *l, void (*drain)(struct ipc *l, void *arg));
bool ipc_busy(const struct ipc *l);     /* LINK_PACE bytes or more wait */
size_t ipc_queued(const struct ipc *l); /* bytes that wait */
void ipc_free(struct ipc *l);           /* deferred; safe in callbacks */

#endif
