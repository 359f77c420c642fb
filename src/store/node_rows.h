/* SPDX-License-Identifier: Apache-2.0 */
/* node_rows.h - the machines of a cluster, in PostgreSQL: who has which name, under which epoch, for how long.
 *
 * A name belongs to the data directory (`machine`) that holds its lease. Taking a lease raises the epoch, and a machine
 * that comes back with another epoch than the row's is refused until the lease of whoever is there has run out: so two
 * copies of a data directory never hold a name at once. Times are PostgreSQL's; machines' clocks don't matter. */
#ifndef CLOCHE_STORE_NODE_ROWS_H
#define CLOCHE_STORE_NODE_ROWS_H

#include "warden/db/store.h"
#include "wire/node_record.h"

#define NODES_MAX 2000 /* of a list */

struct node_lease {
  int64_t us;      /* how long it is */
  int64_t keep_us; /* rows of machines whose lease ended so long ago are removed when another one begins */
};

/* The machine has just started and last held r->n.epoch (0: none that it knows of). Sets the new epoch. -EEXIST:
 * another machine has the name, err says which; *wanted as below. */
int node_begin(struct store *s, struct node_record *r, const struct node_lease *lease, uint64_t *wanted,
               struct err *err);
/* Its figures, and its lease from now on. *wanted: what somebody told it to become (enum node_status), 0 = nothing.
 * -ESTALE: another one has taken the name since. */
int node_renew(struct store *s, const struct node_record *r, const struct node_lease *lease, uint64_t *wanted,
               struct err *err);
int node_leave(struct store *s, const char *name, uint64_t epoch, struct err *err); /* its lease ends now */
/* What a machine is to become; it hears of that with its next lease. -ENOENT. */
int node_order(struct store *s, struct str name, enum node_status status, struct err *err);
/* By name; `one` empty: all of them. */
typedef void (*node_fn)(const struct node_record *r, void *arg);
int node_each(struct store *s, struct str one, node_fn fn, void *arg, struct err *err);

#endif
