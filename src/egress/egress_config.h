/* SPDX-License-Identifier: Apache-2.0 */
/* egress_config.h - the settings of the egress gateway. The rows of src/cli/config.c write them; the gateway only
 * reads.
 */
#ifndef CLOCHE_EGRESS_CONFIG_H
#define CLOCHE_EGRESS_CONFIG_H

struct egress_config {
  unsigned uid;              /* who it becomes; 0 = stays (tests without root) */
  const char *roots;         /* PEM file of authorities beside the system's; "" = none */
  unsigned box_connections;  /* open at once, of one box */
  unsigned team_connections; /* of one team's boxes together */
  unsigned connections;      /* of all */
  unsigned connect_seconds;  /* to reach a server or proxy, its handshake included */
  unsigned hello_seconds;    /* for a box to say which host it wants, and for its handshake */
  unsigned idle_seconds;     /* silence on a tunnel, between requests, or before an answer */
  unsigned head_kb;          /* of a request or an answer */
  unsigned leaves;           /* certificates kept per box */
  unsigned held_mb;          /* bytes that wait for slow peers, of all connections */
  unsigned token_asks;       /* questions for identity tokens under way at once, of one box */
  unsigned idle_upstreams;   /* connections to servers kept per box */
  unsigned streams;          /* requests at once on one of HTTP/2 */
  unsigned keep_seconds;     /* for which they are kept */
  unsigned replay_kb;        /* of a request's body, kept to be sent again */
  unsigned value_kb;         /* of a header's value with its placeholders filled */
  unsigned quiet_ms;         /* a box that has said nothing by then wants to hear the server first */
  unsigned token_seconds;    /* for the warden to answer with an identity token */
  unsigned leaves_rate;      /* new certificates a second, of one box; bursts of twice as many */
  unsigned lookups;          /* proxies' names of one team that are resolved at once; more wait */
  unsigned buffer_kb;        /* that wait in each direction of a connection until the sender is held back */
  unsigned records_rate;     /* entries of the network log a second, of one box; bursts of four times as many */
  unsigned memory_mb;        /* of the process; beyond it allocations fail */
};

#endif
