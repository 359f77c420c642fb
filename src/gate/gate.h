/* SPDX-License-Identifier: Apache-2.0 */
/* gate.h - the public face. Unprivileged: it owns sockets and nothing else. Start reading at gate.c (the loop), then
 * dispatch.c (is a request for the API or for a box?), api.c (routes and their answers), edge.c (the way into a box).
 * What it knows of boxes it asks the warden (ask.h). */
#ifndef CLOCHE_GATE_H
#define CLOCHE_GATE_H

#include "base/base.h"
#include "gate/throttle.h"
#include "net/http.h"
#include "wire/api_key.h"
#include "wire/ipc.h"
#include "wire/wire.h"

#define ENVD_VERSION          "0.6.13"
#define ENVD_PORT             49983
#define INTERPRETER_PORT      49999
#define CLIENT_ID             "6532622b"
#define GATE_NETWORK_FEATURES NETWORK_HTTPS /* NETWORK_*: which optional network settings are served */

struct gate_config {
  unsigned uid;                 /* who it becomes; 0 = stays (tests without root) */
  uint64_t api_body_max;        /* bytes of an API request body; 16 MiB */
  uint64_t log_bytes;           /* of a box's log ring */
  uint64_t upload_max;          /* bytes of one archive of a template's files */
  unsigned box_connections_max; /* exchanges at once with one box, per gate; 0 = no limit */
  /* slow clients; see struct http_limits */
  unsigned client_head_s, client_idle_s, client_body_s, client_stall_s, connections_max;
  unsigned team_connections_max;     /* exchanges at once of one team, per gate; 0 = no limit */
  unsigned address_connections_max;  /* connections of one address on which nothing was accepted yet, per gate; 0 = no
                                        limit */
  uint64_t buffers_max;              /* bytes that wait for peers that do not read, per gate; 0 = no limit */
  unsigned access_log_every;         /* one line per so many requests; 0 = none */
  unsigned auth_failures_per_minute; /* of one client address; 0 = no limit */
  bool interpreter_compatible; /* port 49999 of secure boxes made by POST /sandboxes takes requests without a token */
};

/* What kind of machine this is, read before the gate gives up its rights. */
struct machine {
  char family[32], model[32], model_name[128], architecture[32];
  unsigned cpus;
};

struct gate {
  const struct gate_config *config;
  uv_loop_t *loop;
  struct ipc *control, *warden;
  struct http_server *server;
  struct tls *tls, *tls_inward; /* of the https listener; towards services that speak TLS inside a box */
  char domain[256];
  bool admin_on; /* there is an administrator's token; the warden knows it */
  bool greeted;  /* the warden's hello came */

  struct map calls; /* unanswered questions by their id */
  uint64_t next_call;
  struct map teams;       /* key hash -> struct team *, short-lived */
  struct map routes;      /* box id -> struct route * */
  struct map usage;       /* team id -> struct usage *, of teams that have something open */
  struct map signed_urls; /* signature -> box id (owned); what was found once need not be searched again */
  struct throttle throttle;
  VEC(uint64_t) unsent; /* questions the link had no room for; answered with an error by `unsent_timer` */
  uv_timer_t unsent_timer;
  uv_timer_t *calm; /* while connections are kept for a crowd; see upstream_pool.c */

  struct metrics_slot *metrics_slot, *slots; /* this gate's slot, and all; see metrics_shm.h */
  size_t nslots;
  uint64_t logged;
  struct machine machine;
  struct http_server *metrics_server; /* NULL: none was asked for */
};

int gate_main(const struct gate_config *config);

/* dispatch.c: every request comes in here. */
void dispatch_request(struct http_x *x, void *gate);

/* team_usage.c: counts an exchange for its team. -EDQUOT: the team has as many as it may. Both take a pointer that is
 * NULL while nothing is counted; entering twice counts once. */
struct usage;
enum usage_kind { USAGE_API, USAGE_BOX, USAGE_KINDS };
int usage_enter(struct gate *g, const char *team, enum usage_kind kind, struct usage **out);
void usage_leave(struct gate *g, enum usage_kind kind, struct usage **held);

/* certificate.c: what the supervisor sends for https; both take the descriptor. */
void gate_take_certificate(struct gate *g, int fd);
void gate_take_tls_listener(struct gate *g, int fd);

/* What the warden tells without being asked. */
void gate_box_ended(struct gate *g, struct str id); /* edge.c: streams are cut, the route is forgotten */
void gate_box_held(struct gate *g, struct str id);  /* edge.c: nobody new goes in by it */
void gate_keys_changed(struct gate *g);             /* auth.c */

/* ---- asking the warden ---- */

struct answer {
  int status;        /* 0 or negative errno */
  struct str packet; /* fields by wire_get; borrowed */
  int fd;            /* -1, or the callee's */
};
typedef void (*warden_reply_fn)(const struct answer *a, void *arg);

/* Sends the packet built in b (its id is set here). on_item may be NULL. Unanswered questions are asked again when the
 * warden comes back. Returns a number for warden_call_cancel. */
uint64_t warden_call(struct gate *g, struct buf *b, warden_reply_fn on_item, warden_reply_fn on_reply, void *arg);
void warden_call_cancel(struct gate *g, uint64_t id); /* no callback will come; a late descriptor is closed */
extern const struct ipc_ops warden_link_ops;
void warden_attach(struct gate *g, int fd); /* a new link: resend everything */

#endif
