/* SPDX-License-Identifier: Apache-2.0 */
/* splice.h - see splice.c; for this folder only. */
#ifndef CLOCHE_NET_SPLICE_H
#define CLOCHE_NET_SPLICE_H

#include "net/conn.h"
#include <signal.h>

#define PASS_MIN ((uint64_t)64 << 10) /* what is shorter is as cheap to copy */

/* At most `most` bytes of what has come, into the other's queue. Their number, 0 at end of file, negative errno;
 * -ENOSYS: not these sockets. */
ssize_t splice_bytes(struct conn *from, struct conn *to, uint64_t most);
/* The same into a pipe; -ENOBUFS when that is full. */
ssize_t splice_into(struct conn *from, int pipe, uint64_t most);
ssize_t splice_out(int pipe, int sock, size_t n);
void splice_close(struct net *n);

/* Calls that have no MSG_NOSIGNAL: the signal is held back for their length, and taken away if it came. */
struct held_sigpipe {
  sigset_t before;
};
struct held_sigpipe sigpipe_hold(void);
void sigpipe_release(const struct held_sigpipe *h, int code);

#endif
