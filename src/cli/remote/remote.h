/* SPDX-License-Identifier: Apache-2.0 */
/* remote.h - a command's connection to the server that is meant: its options, then the environment, then a profile of
 * `cloche login`. Errors are printed as "cloche: what: message" with the cause. Exit statuses: 0, 1 when something
 * failed, 2 when the command line is wrong, 130 after Ctrl-C. */
#ifndef CLOCHE_CLI_REMOTE_H
#define CLOCHE_CLI_REMOTE_H

#include "cli/remote/profile.h"
#include "cli/remote/spec.h"
#include "cli/remote/table.h"

#include <cloche.h>

#define EXIT_FAILED      1
#define EXIT_USAGE       2
#define EXIT_INTERRUPTED 130
#define PRINT_MAX        ((size_t)256 << 20) /* bytes of one answer that is printed */

struct remote {
  struct cloche *client;
  struct cloche_error error;
  struct profile profile;
  int signals; /* -1 until remote_signals() */
};

/* Parses, opens nothing: runs the command. */
int remote_main(const struct command_spec *spec, int argc, char **argv);
/* 0 or an exit status, with the reason printed. */
int remote_open(const struct args *args, struct remote *r);
void remote_close(struct remote *r);
/* CLOCHE_KEY or E2B_API_KEY is set. */
bool environment_has_key(void);
/* Prints r->error, empties it and returns EXIT_FAILED. `what` may be NULL. */
int remote_failed(struct remote *r, const char *what);
/* Connects to a sandbox; a paused one is resumed. */
int remote_box(struct remote *r, const char *id, struct cloche_box **box);
/* "cloche: ..." on standard error; returns EXIT_FAILED. Text of others is cleaned. */
int complain(const char *fmt, ...) PRINTF_LIKE(1, 2);
/* Writes a buffer to standard output. 0 or EXIT_FAILED. */
int print_out(struct buf *out);

/* From here on SIGINT, SIGTERM, SIGHUP and SIGWINCH arrive in remote_poll(). */
int remote_signals(struct remote *r);
/* Waits until the client, a signal or `fd` (-1: none) has something; drives the client. Returns a signal or 0. */
int remote_poll(struct remote *r, int fd, bool *readable);
typedef void remote_signal_fn(struct remote *r, struct cloche_op *op, int signal, void *user);
/* Drives until an operation has ended; leaves its error in r->error. `fn` is told of signals. */
enum cloche_code remote_finish(struct remote *r, struct cloche_op *op, remote_signal_fn *fn, void *user);

#endif
