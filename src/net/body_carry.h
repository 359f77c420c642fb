/* SPDX-License-Identifier: Apache-2.0 */
/* body_carry.h - on a thread: bytes of a body from a socket that was lent (http_x_ops.lend), through a pipe, to a file.
 *
 * The bytes stay in the kernel, and no loop wakes up for them. It goes on as long as they come fast and for a slice of
 * time at most; a sender that is slower has no thread wait for it. An end or an error of the connection is left for who
 * reads from it next. */
#ifndef CLOCHE_NET_BODY_CARRY_H
#define CLOCHE_NET_BODY_CARRY_H

#include "base/base.h"

struct body_carry {
  int pipe[2]; /* kept between slices, empty then; 0: none yet */
  int sock;
  uint64_t most, took;                        /* bytes of the body that are to come; that were taken */
  int (*take)(void *arg, int pipe, size_t n); /* all that the pipe holds; an error ends the slice */
  void *arg;
};

int body_carry(struct body_carry *b);        /* 0, or what `take` returned, or why there is no pipe */
void body_carry_close(struct body_carry *b); /* the pipe */

#endif
