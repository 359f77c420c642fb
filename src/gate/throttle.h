/* SPDX-License-Identifier: Apache-2.0 */
/* throttle.h - clients that show wrong keys, tokens or signatures. Each address has a bucket of failures that fills up
 * again with time; who has emptied it is refused before its next guess is looked at, and told when to come back. Keys
 * that were found good lately, and tokens that are right, pass all the same: a guesser behind the same address costs
 * its neighbours nothing they have already. Failures are logged with the address, one line per second and some at once;
 * what was shown never is. Per gate, in memory. */
#ifndef CLOCHE_THROTTLE_H
#define CLOCHE_THROTTLE_H

#include "base/base.h"
#include "net/http.h"

#define CLIENT_LEN     16   /* an IPv6 address, IPv4 mapped; of other IPv6 addresses the network of 64 bits */
#define THROTTLE_MAX   4096 /* addresses remembered; those that failed least recently go first */
#define THROTTLE_LINES 20   /* of the log, at once; one more per second */

struct throttle {
  struct map clients;  /* address -> struct bucket * */
  unsigned per_minute; /* failures; 0 = no limit */
  double lines;        /* of the log that were used lately */
  int64_t logged_us;
  uint64_t unlogged;
};

void client_of(const struct http_x *x, uint8_t out[CLIENT_LEN]);
int client_read(const char *text, uint8_t out[CLIENT_LEN]); /* of "1.2.3.4:5", "[::1]:5" or "unix" */

/* 0, or the seconds after which this client may try again. */
unsigned throttle_wait(struct throttle *t, const uint8_t client[CLIENT_LEN], int64_t now_us);
void throttle_count(struct throttle *t, const uint8_t client[CLIENT_LEN], int64_t now_us);
/* A guess that the warden looks at counts when it is sent: who closes the connection before the answer, or guesses many
 * times at once, has guessed all the same. Whoever was right gets the count back. */
void throttle_forgive(struct throttle *t, const uint8_t client[CLIENT_LEN], int64_t now_us);
void throttle_log(struct throttle *t, const struct http_x *x, const char *what, struct str shown);
/* Counts and logs: `what` was wrong ("API key", "access token", ...), shown starts with `shown` (may be empty). */
void throttle_failed(struct throttle *t, const struct http_x *x, const char *what, struct str shown);
void throttle_free(struct throttle *t);

#endif
