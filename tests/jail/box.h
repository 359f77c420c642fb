/* SPDX-License-Identifier: Apache-2.0 */
/* box.h - a real box for tests: a root filesystem of two layers made on the spot, the guest as its pid 1. */
#ifndef CLOCHE_TEST_BOX_H
#define CLOCHE_TEST_BOX_H

#include "jail/jail.h"

struct test_host { /* what the boxes of one test program share */
  char instance[32];
  char top[64]; /* temporary directory, removed by test_host_close */
  char base[96], extra[96];
};

struct box {
  struct test_host *test_host;
  char id[32], dir[128];
  int talk;
  struct jail jail;
};

/* `guest` is the path of the static guest program. Both end the test program with a message when they fail. */
void test_host_open(struct test_host *h, const char *guest);
void test_host_close(struct test_host *h);

struct jail_spec test_spec(struct test_host *h, struct box *b, const char *id);
void box_start(struct box *b, struct jail_spec *spec);             /* spawns; failing is a test failure */
void box_open(struct test_host *h, struct box *b, const char *id); /* test_spec + modest limits + box_start */
void box_close(struct box *b);                                     /* kill, wait, remove */

/* One request, one answer; the text lives until the next one of the same thread. "" when the box is gone. */
const char *box_ask(struct box *b, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
