/* SPDX-License-Identifier: Apache-2.0 */
/* checkpoint_box.h - boxes with the checkpoint_guest as their pid 1, which has no connection to the outside and so can
 * be dumped. */
#ifndef CLOCHE_TEST_SLEEPING_H
#define CLOCHE_TEST_SLEEPING_H

#include "box.h"
#include "jail/checkpoint/checkpoint.h"

extern struct test_host test_host;
extern struct jail_criu criu;

void rest_ms(long ms);
const char *ask(struct box *b, const char *fmt, ...) PRINTF_LIKE(2, 3); /* the text lives until the next question */
void open_checkpoint_guest(struct box *b, struct jail_spec *spec, const char *id);
void end_box(struct box *b);   /* its files stay */
void close_box(struct box *b); /* nothing stays */
const char *checkpoint_of(const struct box *b);
void dump(struct box *b, const struct jail_spec *spec);
void restore(struct box *b, const struct jail_spec *spec, const char *checkpoint);
void remove_checkpoint(struct box *b);
void sleep_and_wake(struct box *b, const struct jail_spec *spec);

struct CMUnitTest;
/* Runs `n` tests; where there is no criu they are skipped. What a test program's main returns. */
int run_checkpoint_tests(int argc, char **argv, const struct CMUnitTest *tests, size_t n);

#endif
