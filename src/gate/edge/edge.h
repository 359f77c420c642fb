/* SPDX-License-Identifier: Apache-2.0 */
/* edge.h - the way into a box: from a client's request to a port inside, streaming both ways. */
#ifndef CLOCHE_EDGE_H
#define CLOCHE_EDGE_H

#include "gate/gate.h"
#include "gate/edge/edge_target.h"

/* What is known of a box, kept until the warden says that it ended. */
struct route {
  char id[64], team[40], mask_host[256];
  unsigned flags;
  uint8_t access[SHA256_LEN], traffic[SHA256_LEN]; /* hashes of its tokens, where it has them */
  uint8_t clients[8][CLIENT_LEN];                  /* that have shown the access token or were vouched for */
  unsigned next_client;
  uint16_t tls_ports[64]; /* inside, services that speak TLS; unused ones are 0 */
  uint64_t run;
  bool held;                   /* the box is about to sleep: who comes now asks the warden */
  struct edge *live;           /* exchanges under way: cut when the box ends or sleeps */
  size_t nlive, peak, busiest; /* peak: the most of them at once since upstream_pool.c looked last; busiest: lately */
  VEC(struct pooled_call {
    struct http_call *call;
    unsigned port;
  })
  pooled; /* connections into the box that wait for a request; upstream_pool.c */
};

/* upstream_pool.c */
void upstream_pool_put(struct gate *g, struct route *rt, struct http_call *c,
                       unsigned port); /* takes it; closed when it is not worth keeping */
/* NULL: there is none. One that is open and silent at this very moment: a service may have closed it between its last
 * answer and now (many do so after seconds), or sent more than its answer, and the loop need not have seen that yet.
 * Bytes that came before the request must not be taken for the answer to it. */
struct http_call *upstream_pool_take(struct route *rt, unsigned port);
void upstream_pool_free(struct route *rt);

/* edge_token.c */
enum token_verdict { TOKEN_GOOD, TOKEN_MISSING, TOKEN_WRONG, TOKEN_VOUCH /* good if the client is known */ };
bool token_is(struct str given, const uint8_t hash[SHA256_LEN]);
bool token_contexts_path(struct str path);
enum token_verdict token_interpreter(const struct gate *g, const struct route *rt, const struct http_head *h,
                                     struct str path);
bool route_knows(const struct route *rt, const uint8_t client[CLIENT_LEN]);
void route_meet(struct route *rt, const uint8_t client[CLIENT_LEN]);
/* A client showed the right token: other gates will hear of it. */
void route_note_client(struct gate *g, struct route *rt, const struct http_x *x, struct str token);

/* After the warden came back: routes of boxes that ended or slept meanwhile are dropped. */
void edge_recheck(struct gate *g);
void edge_request(struct gate *g, struct http_x *x, const struct edge_target *t); /* takes the exchange */
/* A signed file URL on a host that names no box: the warden knows whose token made the signature. */
void edge_signed(struct gate *g, struct http_x *x);
void edge_by_token(struct gate *g, struct http_x *x); /* likewise by the header X-Access-Token */

/* metrics_api.c: counts an answer. */
void metrics_edge(struct gate *g, struct http_x *x, const struct edge_target *t, int status, int64_t took_us);

/* edge_error.c: JSON, or a page when a person's browser asks. edge_refuse returns the status. */
enum edge_error {
  EDGE_BAD_TARGET,     /* 400 */
  EDGE_NOT_FOUND,      /* 502 */
  EDGE_PORT_CLOSED,    /* 502 */
  EDGE_TOKEN_MISSING,  /* 403 */
  EDGE_TOKEN_WRONG,    /* 403 */
  EDGE_INTERNAL,       /* 404: a path of the control plane */
  EDGE_BROKEN,         /* 502: the service answered nonsense or left */
  EDGE_RESUME_REFUSED, /* 403: it sleeps, and this caller may not wake it */
  EDGE_TRANSITION,     /* 409 */
  EDGE_TEAM_LIMIT,     /* 429: it sleeps, and its team runs as many as it may; the detail says so */
  EDGE_TOO_MANY,       /* 429: too many connections into this box; `port` carries the limit */
  EDGE_UNSIGNED,       /* 401 */
  EDGE_TEAM_BUSY,      /* 429: too many of this team's connections; `port` carries the limit */
  EDGE_ACCESS_MISSING, /* 401 */
  EDGE_ACCESS_WRONG,   /* 401 */
  EDGE_THROTTLED,      /* 429: too many wrong tokens or signatures; `port` carries the seconds to wait */
};
bool edge_wants_page(const struct http_head *h); /* a browser that navigates; programs and scripts in pages get JSON */
int edge_refuse(struct http_x *x, enum edge_error what, const char *box, unsigned port, struct str detail);

#endif
