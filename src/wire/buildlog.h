/* SPDX-License-Identifier: Apache-2.0 */
/* buildlog.h - the log of a template's build: a file of records that the builder appends to and gates read through a
 * descriptor. A record is a head and its message. Both sides include this. */
#ifndef CLOCHE_WIRE_BUILDLOG_H
#define CLOCHE_WIRE_BUILDLOG_H

#include "base/base.h"

#define BUILDLOG_MESSAGE 4096 /* bytes; the rest of a longer line is cut */
#define BUILDLOG_PIECE   (64u << 10)

struct buildlog_head {
  int64_t wall_us;
  uint32_t len;
  uint8_t level; /* enum log_level */
  char step[11]; /* "base", "finalize", a number, or "" */
};

struct buildlog {
  int fd;
  uint64_t size, most; /* bytes; past `most` one last line says so */
};

int buildlog_open(struct buildlog *l, const char *path, uint64_t most, struct err *err); /* makes it anew */
void buildlog_add(struct buildlog *l, enum log_level level, const char *step, struct str message);
void buildlog_close(struct buildlog *l);

/* Calls fn for the whole records of the next BUILDLOG_PIECE bytes from *at, and moves it behind them. 1: there may be
 * more; 0: that was the end, or fn said non-zero. */
int buildlog_step(int fd, uint64_t *at, int (*fn)(const struct buildlog_head *h, struct str message, void *arg),
                  void *arg);
/* Calls fn for each whole record from the beginning until it says non-zero. */
int buildlog_each(int fd, int (*fn)(const struct buildlog_head *h, struct str message, void *arg), void *arg);

#endif
