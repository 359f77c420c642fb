/* SPDX-License-Identifier: Apache-2.0 */
/* node_record.h - what a machine says about itself, and what is kept of it: between the warden, the store process,
 * gates and `cloche node list`. Reading promises that every text fits, ends and is printable. */
#ifndef CLOCHE_WIRE_NODE_RECORD_H
#define CLOCHE_WIRE_NODE_RECORD_H

#include "wire/wire.h"

#define NODE_NAME_SIZE 64
#define NODE_LOCAL     "local" /* the name of the only machine, and of the one that answers */
#define NODE_CPU_FULL  1000    /* of load: all of a machine's processors */

/* Numbers, as W_STATUS carries them. */
struct wire_node {
  uint64_t epoch;   /* rises each time that somebody takes the name's lease */
  uint64_t status;  /* enum node_status */
  int64_t since_us; /* wall clock of that machine */
  int64_t left_us;  /* of its lease, by the store's clock; not above 0: it has run out */
  uint64_t running, starting, paused, warm, creates, creates_failed; /* boxes; counts since its start */
  uint64_t cpus, cpus_given, load;                                   /* given: to running boxes; NODE_CPU_FULL */
  uint64_t memory, memory_given, memory_used;                        /* bytes */
};

struct node_record {
  struct wire_node n;
  char name[NODE_NAME_SIZE], machine[40], address[128], version[32], labels[512], tiers[64], hardware[256];
  char templates[2048];
};

void node_record_put(struct buf *b, const struct node_record *r); /* fields of a packet that was begun */
int node_record_read(struct str packet, struct node_record *out); /* 0 or -EPROTO */
bool node_name_valid(struct str name);                            /* letters, digits, . _ - */
bool node_labels_valid(struct str labels);
const char *node_status_word(const struct wire_node *n); /* as the API says it, its lease considered */

#endif
