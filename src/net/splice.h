/* SPDX-License-Identifier: Apache-2.0 */
/* splice.h - see splice.c; for this folder only. */
#ifndef CLOCHE_NET_SPLICE_H
#define CLOCHE_NET_SPLICE_H

#include "base/base.h"
#include <signal.h>

#define PASS_MIN ((uint64_t)64 << 10) /* what is shorter is as cheap to copy */

/* A pipe of the loop's own, made at first use; 0 stands for none. */
int splice_pipe_open(int pipe[2]);
void splice_pipe_close(int pipe[2]);

/* At most `most` bytes of what has come to a socket, into a pipe. Their number, 0 at end of file, negative errno;
 * -ENOBUFS: the pipe is full; -ENOSYS: not with this socket. */
ssize_t splice_into(int sock, int pipe, uint64_t most);
ssize_t splice_out(int pipe, int sock, size_t n);

/* Calls that have no MSG_NOSIGNAL: the signal is held back for their length, and taken away if it came. */
struct held_sigpipe {
  sigset_t before;
};
struct held_sigpipe sigpipe_hold(void);
void sigpipe_release(const struct held_sigpipe *h, int code);

#endif
