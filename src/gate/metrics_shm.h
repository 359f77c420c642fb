/* SPDX-License-Identifier: Apache-2.0 */
/* metrics_shm.h - what the gates count, for Prometheus and OTLP. One shared page range per server, a slot per gate:
 * each gate writes its own slot only, and whoever tells them returns the sum. The slots outlive a gate, so counters
 * never go back.
 *
 * Teams are counted under numbers that the gates give out together, first come, first served: the table of their ids is
 * shared, a number is never given to another team, and who comes when all are taken is counted as "other". That bounds
 * the series however many teams there are. */
#ifndef CLOCHE_GATE_METRICS_SHM_H
#define CLOCHE_GATE_METRICS_SHM_H

#include "base/base.h"
#include "gate/metric_sink.h"
#include "wire/sizes.h"
#include <stdatomic.h>

enum metrics_class {
  CLASS_CREATE,
  CLASS_SANDBOX,
  CLASS_LIST,
  CLASS_TEMPLATE,
  CLASS_ACCOUNT,
  CLASS_OTHER,
  CLASS_AGENT,
  CLASS_INTERPRETER,
  CLASS_PORT,
  CLASSES
};
#define METRICS_REFUSALS 20
#define METRICS_TEAMS    256 /* the setting metrics_teams_max is at most this */
#define METRICS_OTHER    METRICS_TEAMS

struct metrics_team_counts {
  uint64_t requests, creates, creates_failed, cells, client_errors, server_errors;
};

struct metrics_slot {
  uint64_t requests[CLASSES][5];      /* by the status's hundreds */
  struct histogram latency[CLASSES];  /* to the answer's head */
  uint64_t edge_in, edge_out;         /* bytes to and from boxes */
  uint64_t refused[METRICS_REFUSALS]; /* by enum edge_error */
  uint64_t open, connections,
      calls; /* at the moment: exchanges with boxes, clients, requests to the warden without a reply */
  struct metrics_team_counts teams[METRICS_TEAMS + 1];
  /* Behind this nothing is a counter. The latest traced request of each bucket. */
  struct exemplar exemplars[CLASSES][METRICS_BUCKETS + 1];
};

enum { TEAM_FREE, TEAM_CLAIMED, TEAM_SET };
struct metrics_team {
  _Atomic uint32_t state;
  char id[UUID_SIZE + 3];
};

struct metrics_shm {
  struct metrics_team teams[METRICS_TEAMS];
  struct metrics_slot slots[];
};

static inline size_t metrics_shm_size(size_t gates)
{
  return sizeof(struct metrics_shm) + gates * sizeof(struct metrics_slot);
}

/* The number of a team; METRICS_OTHER when `most` teams have one. A new one is given where `claim` is set. */
size_t metrics_team(struct metrics_team *teams, size_t most, const char *id, bool claim);

struct metrics_answer {
  enum metrics_class class;
  const char *box, *team; /* or NULL */
  const uint8_t *trace;   /* 16 bytes of a trace that is recorded, or NULL */
  bool cell;              /* it ran one */
  int status;
  int64_t took_us;
};
void metrics_count(struct metrics_slot *f, const struct metrics_answer *a, size_t team);

/* What a telling is made of. `told` was collected from the warden's answer to WIRE_METRICS. */
struct metrics_told;
void metrics_tell(struct metric_sink *s, const struct metrics_slot *slots, size_t n, struct metrics_team *teams,
                  size_t teams_max, const struct metrics_told *told);
/* Asks: a WIRE_METRICS that names the teams which have numbers. */
void metrics_ask(struct buf *b, struct metrics_team *teams, size_t teams_max);
struct metrics_told *metrics_told_new(void);
void metrics_told_free(struct metrics_told *t);
void metrics_told_item(struct metrics_told *t, struct str packet);
int metrics_told_end(struct metrics_told *t, struct str packet); /* -EINVAL: it is no such answer */

#endif
