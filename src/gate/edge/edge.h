/* SPDX-License-Identifier: Apache-2.0 */
/* edge.h - the proxy into boxes: from a client's request to a port inside, streaming both ways. It promises that no
 * byte passes before the tokens of the box allow it, that the slower side holds the other back, and that exchanges with
 * a box that ended are cut without a final chunk, so that clients notice. Files: edge.c (one exchange), edge_target.c
 * (which box and port is meant), edge_token.c and edge_signed.c (who may), upstream_pool.c (idle connections),
 * edge_error.c. */
#ifndef CLOCHE_EDGE_H
#define CLOCHE_EDGE_H

#include "gate/edge/edge_error.h"
#include "gate/edge/edge_target.h"
#include "gate/gate_state.h"

#define EDGE_TLS_PORTS_MAX 128 /* as many as the API takes in httpsPorts */

/* What is known of a box, cached until the warden announces that it ended. */
struct route {
  char id[BOX_ID_SIZE], team[UUID_SIZE], mask_host[DOMAIN_SIZE];
  unsigned flags;
  uint8_t access[SHA256_LEN], traffic[SHA256_LEN]; /* hashes of its tokens, where it has them */
  uint8_t clients[8][CLIENT_LEN];                  /* that have shown the access token or were vouched for */
  unsigned next_client;
  uint16_t tls_ports[EDGE_TLS_PORTS_MAX]; /* inside, services that speak TLS; unused ones are 0 */
  uint64_t run;
  bool held;                   /* the box is about to pause: new exchanges request the route again */
  struct edge *live;           /* exchanges under way: cut when the box ends or pauses */
  size_t nlive, peak, busiest; /* peak: the most of them at once since upstream_pool.c looked last; busiest: lately */
  VEC(struct pooled_call {
    struct http_call *call;
    unsigned port;
  })
  pooled; /* idle connections into the box; upstream_pool.c */
};

/* upstream_pool.c */
void upstream_pool_put(struct gate *g, struct route *rt, struct http_call *c,
                       unsigned port); /* takes it; closed when the pool is full */
/* NULL: there is none. One that is open and silent at this very moment: a service may have closed it between its last
 * answer and now (many do so after seconds), or sent more than its answer, and the loop need not have seen that yet.
 * Bytes that came before the request must not be taken for the answer to it. */
struct http_call *upstream_pool_take(struct route *rt, unsigned port);
void upstream_pool_free(struct route *rt);

/* edge_token.c */
enum token_verdict { TOKEN_GOOD, TOKEN_MISSING, TOKEN_WRONG, TOKEN_VOUCH /* good if the client is known */ };
#define TOKEN_GIVEN_MAX 256 /* a longer token or signature is wrong: nobody hashes it */
bool token_is(struct str given, const uint8_t hash[SHA256_LEN]);
bool token_contexts_path(struct str path);
enum token_verdict token_interpreter(const struct gate *g, const struct route *rt, const struct http_head *h,
                                     struct str path);
bool route_knows(const struct route *rt, const uint8_t client[CLIENT_LEN]);
void route_meet(struct route *rt, const uint8_t client[CLIENT_LEN]);
/* A client showed the right token: other gates will hear of it. */
void route_note_client(struct gate *g, struct route *rt, const struct http_x *x, struct str token);

/* What the warden announces. */
/* Streams are cut, the route is dropped. The packet says why, unless the box only paused. */
void edge_box_ended(struct gate *g, struct str packet);
void edge_box_held(struct gate *g, struct str id); /* no new exchange goes in by the route */
/* After the warden came back: routes of boxes that ended or paused meanwhile are dropped. */
void edge_recheck(struct gate *g);
void edge_request(struct gate *g, struct http_x *x, const struct edge_target *t); /* takes the exchange */
/* A signed file URL on a host that names no box: the warden knows whose token made the signature. */
void edge_signed(struct gate *g, struct http_x *x);
void edge_by_token(struct gate *g, struct http_x *x); /* likewise by the header X-Access-Token */

#endif
