/* SPDX-License-Identifier: Apache-2.0 */
/* gate_config.h - the settings of a gate. The rows of src/cli/config.c write them; the gate only reads. */
#ifndef CLOCHE_GATE_CONFIG_H
#define CLOCHE_GATE_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

enum audit_mode { AUDIT_OFF, AUDIT_CHANGES, AUDIT_ALL };

struct gate_config {
  unsigned uid;                 /* who it becomes; 0 = stays (tests without root) */
  uint64_t api_body_max;        /* bytes of an API request body; 16 MiB */
  uint64_t log_bytes;           /* of a box's log ring */
  uint64_t upload_max;          /* bytes of one archive of a template's files */
  unsigned upload_threads;      /* that write archives to the disk; half of them for one team at once */
  unsigned lists_max;           /* listings under way at once; half of them for one team */
  unsigned log_reads_max;       /* logs of builds, and as many of boxes, read at once; half of them for one team */
  unsigned box_connections_max; /* exchanges at once with one box, per gate; 0 = no limit */
  /* slow clients; see struct http_limits */
  unsigned client_head_s, client_idle_s, client_body_s, client_stall_s, connections_max;
  unsigned team_connections_max;     /* exchanges at once of one team, all kinds together, per gate; 0 = no limit */
  unsigned address_connections_max;  /* connections of one address on which nothing was accepted yet, per gate; 0 = no
                                        limit */
  uint64_t buffers_max;              /* bytes that wait for peers that do not read, per gate; 0 = no limit */
  unsigned metrics_teams_max;        /* teams with series of their own */
  unsigned access_log_every;         /* one line per so many requests; 0 = none */
  unsigned auth_failures_per_minute; /* of one client address; 0 = no limit */
  unsigned unknown_boxes_per_minute; /* requests of one client address for boxes that are not there; 0 = no limit */
  unsigned tls_plain;                /* enum tls_plain: who may speak plain http on the https port */
  unsigned secret_value_max;         /* bytes */
  unsigned volume_team_listings;     /* being sent at once */
  bool webhook_private_allowed;      /* as the sender has it */
  bool otlp_traces, otlp_metrics;    /* told to the exporter, where there is one */
  unsigned otlp_sample_percent;      /* of requests without a traceparent that are recorded */
  unsigned otlp_metrics_s;           /* between two tellings of all metrics */
  unsigned audit;                    /* enum audit_mode */
  unsigned audit_refused_rate;       /* records a second of nobody; more are counted */
  unsigned audit_team_rate;          /* the same of each team */
  bool mcp;                          /* /mcp is served */
  bool interpreter_compatible; /* port 49999 of secure boxes made by POST /sandboxes takes requests without a token */
};

#endif
