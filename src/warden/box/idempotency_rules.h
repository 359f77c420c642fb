/* SPDX-License-Identifier: Apache-2.0 */
/* idempotency_rules.h - what a create with an idempotency key gets: decisions only, without a loop, a jail or a
 * database. box_create_once.c follows them.
 *
 * A key is a team's. It is reserved before anything is executed, and its answer is written with the box's row in one
 * transaction: a reservation without an answer has no box. It is kept for a fixed time from the first request on;
 * repeats don't prolong it, and afterwards it is new again. Answers that ask for a repeat (429 and 503) are not kept.
 */
#ifndef CLOCHE_WARDEN_IDEMPOTENCY_RULES_H
#define CLOCHE_WARDEN_IDEMPOTENCY_RULES_H

#include "base/base.h"

enum key_verdict {
  KEY_NEW,      /* reserve it and execute the request */
  KEY_EXECUTE,  /* reserved for this very request, which a gate repeats after the warden died: execute it */
  KEY_REPLAY,   /* the stored answer once more */
  KEY_JOIN,     /* the first request is at work here: both get its answer */
  KEY_BUSY,     /* -EINPROGRESS: a gate may still repeat the first request */
  KEY_MISMATCH, /* -EKEYREJECTED: it belongs to another request */
  KEY_UNKNOWN,  /* -EOWNERDEAD: the first request was never answered, and no longer will be */
};

/* What is known of the key, and how it compares with the request. */
struct key_facts {
  bool reserved;  /* there is a row; the rest is for such keys */
  bool answered;  /* with an answer */
  bool same;      /* the fingerprint is the request's */
  bool own;       /* the box's id is the request's: gates draw it once per request */
  bool live;      /* its launch is under way in this warden */
  int64_t age_us; /* since the first request; negative when the clock was set back */
};

enum key_verdict key_verdict(const struct key_facts *k, int64_t keep_us, int64_t wait_us);
/* Whether an answer is kept: not those that ask for a repeat. */
bool key_keeps(int status);

#endif
