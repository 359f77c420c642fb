/* SPDX-License-Identifier: Apache-2.0 */
/* webhook_store.h - webhooks, and every attempt to deliver an event to one: those that wait, those under way and those
 * that are over. The table is the queue: what is not over when the server dies is found in it by the next one.
 *
 * Secrets of webhooks lie here in the clear, because signing needs them; the database is for its owner's eyes only
 * (0600), and no answer, log or setting shows one. */
#ifndef CLOCHE_WARDEN_DB_WEBHOOK_STORE_H
#define CLOCHE_WARDEN_DB_WEBHOOK_STORE_H

#include "warden/db/store.h"
#include "wire/wire.h"

struct row_webhook {
  char id[UUID_SIZE], team[UUID_SIZE];
  char *name, *url, *origin, *events; /* owned; events: types joined by commas */
  struct buf secret;
  bool enabled;
  int64_t created_us;
};

void row_webhook_free(struct row_webhook *r);
int store_webhook_put(struct store *s, const struct row_webhook *r, struct err *err);
/* What waits for it and what is recorded of it goes with the next trims. */
int store_webhook_delete(struct store *s, const char *id, struct err *err);
int store_webhooks(struct store *s, int (*fn)(const struct row_webhook *, void *), void *arg);
bool webhook_takes(const char *events, const char *type); /* is the type among them? */

enum attempt_state { ATTEMPT_WAITING, ATTEMPT_UNDER_WAY, ATTEMPT_SUCCESS, ATTEMPT_FAILED };

struct row_attempt {
  int64_t seq;   /* order of insertion */
  int64_t first; /* seq of the first attempt to deliver this event to this webhook */
  char id[UUID_SIZE], webhook[UUID_SIZE], team[UUID_SIZE], event[UUID_SIZE], sandbox[BOX_ID_SIZE], type[64];
  unsigned number;      /* 1 = the first that counts */
  unsigned interrupted; /* attempts before this one that the server's end cut off, and which do not count */
  enum attempt_state state;
  int64_t due_us; /* not before */
  size_t bytes;   /* of the body */
};

/* An event for webhooks is one row, whatever their number, until it is fanned out. */
struct webhook_event {
  const char *id, *team, *sandbox, *type;
  int64_t at_us;
};
/* The enabled webhooks of the team that take the type: their ids, joined by commas. */
int webhook_targets(struct store *s, const struct webhook_event *e, struct buf *ids);
/* Inside the transaction that records the event; `body` is what will be posted, each time. An event of a team whose
 * events have no room (webhook_rules) is not queued. */
int webhook_enqueue(struct store *s, const struct webhook_event *e, struct str ids, struct str body, struct err *err);

struct row_fanout {
  int64_t seq; /* order of insertion */
  char event[UUID_SIZE], team[UUID_SIZE], sandbox[BOX_ID_SIZE], type[64];
  char *targets; /* borrowed: ids of webhooks */
  int64_t at_us;
  size_t bytes; /* of the body */
};
/* Events that are not fanned out, in the order of insertion, above this seq. */
int store_fanouts(struct store *s, int64_t above, int (*fn)(const struct row_fanout *, void *), void *arg);
/* It becomes an attempt per webhook that is still there, due now, in one transaction. *made: how many. */
int store_fan_out(struct store *s, const struct row_fanout *f, size_t *made, struct err *err);

void store_webhook_rules(struct store *s, const struct webhook_rules *rules);

/* Attempts that are not over, in the order of insertion, above this seq. */
int store_attempts_open(struct store *s, int64_t above, int (*fn)(const struct row_attempt *, void *), void *arg);
uint64_t store_attempts_added(const struct store *s); /* changes when there may be more of them, or of fan-outs */
int store_attempt_body(struct store *s, const char *event, struct buf *out); /* -ENOENT */

/* It goes out now. headers: JSON, the signature redacted. */
int store_attempt_begin(struct store *s, int64_t seq, int64_t when_us, const char *url, const char *headers,
                        struct err *err);
int store_attempt_again(struct store *s, int64_t seq, struct err *err); /* it did not go out after all: it waits */

struct attempt_end {
  enum delivery_class class;
  uint64_t duration_ms, http_status;
  struct str headers, body, message;
};
/* It is over. next: NULL, or the attempt that follows, whose seq is set: in one transaction. */
int store_attempt_end(struct store *s, int64_t seq, const struct attempt_end *end, struct row_attempt *next,
                      struct err *err);

/* ---- reading ---- */

struct delivery_query {
  const char *webhook, *team; /* of which it is: another's deliveries may still be there under the same id */
  int64_t cursor;             /* 0 = from the beginning of the order */
  bool ascending;
  unsigned groups;        /* at most */
  int64_t from_us, to_us; /* of the attempt's beginning; to_us excluded */
  unsigned states;        /* bits: 1 success, 2 failed */
  struct str types;       /* joined by commas; empty = all */
};
struct delivery_view {
  const struct row_attempt *attempt;
  int64_t started_us;
  uint64_t duration_ms, http_status;
  enum delivery_class class;
  struct str url, request_headers, request_body, headers, body, message;
};
/* Groups with an attempt that is over and fits, with all their attempts that are over. *more: the cursor of the next
 * page, 0 = there is none. A negative return of fn stops with it; a positive one ends the page after this group. */
int store_deliveries(struct store *s, const struct delivery_query *q, int (*fn)(const struct delivery_view *, void *),
                     void *arg, int64_t *more);
int store_delivery_stats(struct store *s, const char *team, const char *webhook, int64_t from_us, int64_t to_us,
                         int64_t width_us, int (*fn)(const struct wire_webhook_bucket *, void *), void *arg);

/* Up to `most` attempts go: the oldest ones, if they are over and began before before_us, and those of webhooks that
 * are gone. *removed: how many. */
int store_deliveries_trim(struct store *s, int64_t before_us, unsigned most, size_t *removed);
/* What is kept of a team. */
void store_deliveries_usage(struct store *s, const char *team, uint64_t *rows, uint64_t *bytes);

#endif
