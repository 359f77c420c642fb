/* SPDX-License-Identifier: Apache-2.0 */
/* event.h - lifecycle events: what happened to which sandbox, kept for a while after it is gone.
 *
 * Every event is written by event_record, inside the transaction that changes the sandbox's row, so that neither is
 * told without the other. What has to happen with each event (webhooks) belongs into that function. Readers use a
 * connection of their own (store_open_reader), because an offset of millions is a client's choice. */
#ifndef CLOCHE_WARDEN_DB_EVENT_H
#define CLOCHE_WARDEN_DB_EVENT_H

#include "warden/db/store.h"
#include "wire/event_type.h"

struct event {
  int64_t seq; /* order of insertion; set by event_record */
  char id[UUID_SIZE];
  int64_t at_us;
  char team[UUID_SIZE], sandbox[BOX_ID_SIZE], execution[UUID_SIZE], template_id[TEMPLATE_ID_SIZE], build[UUID_SIZE];
  enum event_type type;
  const char *data; /* a JSON object, or "" when there is nothing to say */
};

/* What an event says beside its names. */
struct event_data {
  struct str metadata;    /* a flat JSON object of strings (event_metadata), empty = none */
  int64_t set_timeout_us; /* the new end; 0 = it did not move */
  bool network;           /* the lists were replaced by these lines */
  bool no_internet;
  struct str allow, deny;
  bool execution; /* a run is over */
  int64_t started_us, ended_us;
  unsigned cpus, memory_mb;
  const char *kill_reason,
      *kill_cause; /* one of the words of the contract, and our own text; NULL = it was not killed */
};

/* The metadata in a box's config as the gate wrote it: {"metadata":{"key":"value",...},...}. Takes nothing for granted:
 * anything but a flat object of strings is no metadata, nor is an empty one. */
struct str event_metadata(struct str config);
/* The contract's word for why a box ended, from the beginning of our own. */
const char *event_kill_reason(struct str cause);

/* An event about the box as the row says, at this time; data borrowed. */
struct event event_of(const struct row_box *row, enum event_type type, int64_t at_us, const char *data);
void event_data_json(struct buf *out, const struct event_data *d); /* leaves out empty when there is nothing to say */

/* The same event in its two spellings, without a newline. */
void event_rest_json(struct buf *out, const struct event *e); /* camelCase, for GET /events/sandboxes */
void event_body_json(struct buf *out, const struct event *e); /* snake_case, for webhooks */

/* Inside the transaction of the change (store_begin). Sets seq. */
int event_record(struct store *s, struct event *e, struct err *err);
uint64_t event_count(const struct store *s); /* recorded since the store was opened */

struct event_query {
  struct str team, sandbox; /* empty = any */
  unsigned types;           /* EVENT_BITs; 0 = all */
  int64_t since_us;         /* older ones are as good as deleted */
  int64_t after;            /* only seq above it, in the order of insertion; -1 = by time */
  uint64_t offset, limit;
  bool ascending;
};
/* The event is borrowed for the call; a non-zero return of fn stops. */
int events_read(struct store *s, const struct event_query *q, int (*fn)(const struct event *, void *), void *arg);
/* Is there any event of the sandbox that this team may see? */
bool events_know(struct store *s, struct str sandbox, struct str team, int64_t since_us);
int64_t events_last(struct store *s); /* the greatest seq; 0 = none */

struct event_bounds {
  int64_t before_us;    /* older ones go */
  uint64_t team, total; /* events of one team, and of all; a large one counts for several */
};
/* Deletes up to `most` events: old ones; else the oldest ones of the team that has the most, where that is more than a
 * team may have or all of them together are too many. So nobody's history goes for another's that is longer. Returns
 * how many went, negative on failure. The newest one always stays, so that no seq is given twice. */
int events_trim(struct store *s, const struct event_bounds *b, unsigned most);

#endif
