/* SPDX-License-Identifier: Apache-2.0 */
/* logring.h - the file in which an agent keeps what its box printed, and from which everyone else only reads.
 *
 * It is at LOGRING_PATH inside the box, on a tmpfs: a head, then `size` bytes used as a ring of lines, each one JSON
 * object
 *   {"t":<wall microseconds>,"l":"info","g":"process","m":"text","pid":"12","stream":"stdout"}
 * without a raw newline inside. `written` counts all bytes ever written, so the next one goes to written % size. A
 * reader takes the head, the ring, and the head again: what was overwritten in between, and the cut line at the front,
 * are dropped. The box's root can write nonsense there; readers treat it as what it is, the box's own text. */
#ifndef CLOCHE_WIRE_LOGRING_H
#define CLOCHE_WIRE_LOGRING_H

#include "base/base.h"

#define LOGRING_PATH  "dev/shm/.cloche-log" /* below the box's root */
#define LOGRING_MAGIC "CLOCHLOG"
#define LOGRING_HEAD  64
#define LOGRING_MAX   ((uint64_t)64 << 20)

struct logring_head {
  char magic[8]; /* without a closing NUL */
  uint64_t size, written;
};

/* Appends the whole lines of the ring behind `fd` to out, oldest first, `most` bytes of them at most (the newest). 0,
 * or -EINVAL when it is no ring. */
int logring_read(int fd, size_t most, struct buf *out);

/* For those who follow it: appends the whole lines from byte `*at` of everything ever written on, `most` bytes of them
 * at most, and moves `*at` behind them. Bytes that were overwritten before they were read are added to `*lost`. */
int logring_follow(int fd, uint64_t *at, size_t most, struct buf *out, uint64_t *lost);

/* For those who keep a ring themselves. Makes an empty one of `size` bytes in an empty file. */
int logring_make(int fd, uint64_t size);
int logring_open(int fd, struct logring_head *h); /* -EINVAL when it is no ring */
/* Appends whole lines; they are there when the head is written. Longer than the ring: -EMSGSIZE. */
int logring_append(int fd, struct logring_head *h, struct str lines);

#endif
