/* gate.h - the public face. Unprivileged: it owns sockets and nothing else. Start reading at gate.c (the loop), then
 * door.c (is a request for the API or for a box?), api.c (routes and their answers), edge.c (the way into a box).
 * What it knows of boxes it asks the warden (ask.h). */
#ifndef CLOCHE_GATE_H
#define CLOCHE_GATE_H

#include "base/base.h"
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
  uint64_t upload_max;          /* bytes of one archive of a template's files */
  unsigned box_connections_max; /* exchanges at once with one box, per gate; 0 = no limit */
  /* slow clients; see struct http_limits */
  unsigned client_head_s, client_idle_s, client_body_s, client_stall_s, connections_max;
  unsigned access_log_every; /* one line per so many requests; 0 = none */
  const char *admin_token;   /* opens /nodes and /admin; "" = they are closed */
};

/* What kind of machine this is, read before the gate gives up its rights. */
struct machine {
  char family[32], model[32], model_name[128], architecture[32];
  unsigned cpus;
};

struct gate {
  const struct gate_config *config;
  uv_loop_t *loop;
  struct link *control, *warden;
  struct http_server *server;
  struct tls *tls, *tls_inward; /* of the https listener; towards services that speak TLS inside a box */
  char secret[TOKEN_TEXT], domain[256];
  bool greeted; /* the warden's hello came */

  struct map asks; /* unanswered questions by their id */
  uint64_t next_ask;
  struct map teams;  /* key hash -> struct team *, short-lived */
  struct map routes; /* box id -> struct route * */
  uv_timer_t *calm;  /* while connections are kept for a crowd; see kept.c */

  struct figures *figures, *slots; /* this gate's slot, and all; see figures.h */
  size_t nslots;
  uint64_t logged;
  struct machine machine;
  struct http_server *metrics_server; /* NULL: none was asked for */
};

int gate_main(const struct gate_config *config);

/* door.c: every request comes in here. */
void door_request(struct http_x *x, void *gate);

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
typedef void (*answer_fn)(const struct answer *a, void *arg);

/* Sends the packet built in b (its id is set here). on_item may be NULL. Unanswered questions are asked again when the
 * warden comes back. Returns a number for ask_forget. */
uint64_t ask_warden(struct gate *g, struct buf *b, answer_fn on_item, answer_fn on_reply, void *arg);
void ask_forget(struct gate *g, uint64_t id); /* no callback will come; a late descriptor is closed */
extern const struct link_ops ask_ops;
void ask_link(struct gate *g, int fd); /* a new link: resend everything */

#endif
