/* SPDX-License-Identifier: Apache-2.0 */
/* gate_state.h - what the parts of one gate share. For files below src/gate only. */
#ifndef CLOCHE_GATE_STATE_H
#define CLOCHE_GATE_STATE_H

#include "base/base.h"
#include "gate/audit_rate.h"
#include "gate/gate_config.h"
#include "gate/throttle.h"
#include "net/http.h"
#include "wire/id_filter.h"
#include "wire/ipc.h"
#include "wire/machine.h"
#include "wire/sizes.h"
#include "wire/wire.h"

#define ENVD_VERSION          "0.6.13"
#define ENVD_PORT             49983
#define INTERPRETER_PORT      49999
#define CLIENT_ID             "6532622b"
#define GATE_NETWORK_FEATURES (NETWORK_HTTPS | NETWORK_RULES | NETWORK_PROXY) /* optional network settings served */

struct gate {
  const struct gate_config *config;
  uv_loop_t *loop;
  struct ipc *control, *warden;
  const struct warden_events *events; /* see warden_client.h */
  struct http_server *server;
  struct tls *tls, *tls_inward; /* of the https listener; towards services that speak TLS inside a box */
  char domain[DOMAIN_SIZE];
  bool admin_on;             /* there is an administrator's token; the warden knows it */
  bool greeted;              /* the warden's hello came */
  bool console_on;           /* it is served, or a page that says why not */
  struct file_pack *console; /* its files; NULL: none */

  struct map calls; /* requests to the warden without a reply yet, by their id */
  uint64_t next_call;
  struct map teams;       /* key hash -> struct team *, short-lived */
  struct map routes;      /* box id -> struct route * */
  struct map usage;       /* team id -> struct usage *, of teams that have something open */
  struct map signed_urls; /* signature -> box id (owned); what was found once need not be searched again */
  struct throttle throttle;
  struct throttle unknown; /* who asks for boxes that are not there */
  struct id_filter *ids;   /* the warden's, of those that are; NULL before its hello */
  VEC(uint64_t) unsent;    /* requests the link had no room for; `unsent_timer` replies to them with an error */
  uv_timer_t unsent_timer;
  uv_timer_t *trim_timer; /* while there are more idle upstream connections than the least; see upstream_pool.c */

  struct metrics_slot *metrics_slot, *slots; /* this gate's slot, and all; see metrics_shm.h */
  struct metrics_team *metrics_teams;        /* NULL: teams are not told apart */
  size_t nslots;
  uint64_t logged;
  struct machine machine;
  struct http_server *metrics_server; /* NULL: none is configured */
  struct ipc *exporter;               /* NULL: there is none now */
  int64_t started_us;                 /* wall clock */
  struct ipc *audit;                  /* to the audit role; NULL: there is none now */
  uint64_t audit_lost;                /* records since the last one that was sent */
  struct audit_rates audit_rates;     /* what came too fast */
  uv_timer_t audit_timer;             /* until its count is told */
  struct mcp_link *mcp;               /* to the MCP role; NULL: it was not asked for yet (api/mcp_proxy.c) */
};

#endif
