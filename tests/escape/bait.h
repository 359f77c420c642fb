/* SPDX-License-Identifier: Apache-2.0 */
/* bait.h - what a box must not reach: a process, a port, a socket, a segment and a file of the host, put there by the
 * test, and a look at the host that shows whether anything of it has changed. */
#ifndef CLOCHE_ESCAPE_BAIT_H
#define CLOCHE_ESCAPE_BAIT_H

#include "box.h"

extern struct bait {
  pid_t pid;
  int port_fd, port, abstract_fd, shm;
  char file[128], abstract[64];
} bait;

void bait_set(const struct test_host *h);
void bait_clear(void);
const char *const *bait_facts(void); /* variables for attempts.c: where the bait is */
/* Switches of the kernel, the bait, the layers and the box's directory, as text. */
void host_look(struct buf *b, const struct test_host *h, const struct box *box);

#endif
