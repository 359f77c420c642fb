/* edge.h - the way into a box: from a client's request to a port inside, streaming both ways. */
#ifndef CLOCHE_EDGE_H
#define CLOCHE_EDGE_H

#include "gate/gate.h"

struct edge_target {
  char box[64];
  unsigned port;
};

/* What is known of a box, kept until the warden says that it ended. */
struct route {
  char id[64], team[40], mask_host[256];
  unsigned flags;
  uint64_t run;
  struct edge *live;                            /* exchanges under way: cut when the box ends */
  VEC(struct idle_call { struct http_call *call; unsigned port; }) idle; /* kept connections into the box */
};

#define EDGE_IDLE_MAX 64 /* kept connections per box and gate */

void edge_request(struct gate *g, struct http_x *x, const struct edge_target *t); /* takes the exchange */
/* A signed file URL on a host that names no box: found by trying the tokens of the running ones. */
void edge_signed(struct gate *g, struct http_x *x);

/* edge_error.c: JSON, or a page when a person's browser asks. */
enum edge_error {
  EDGE_BAD_TARGET,    /* 400 */
  EDGE_NOT_FOUND,     /* 502 */
  EDGE_PORT_CLOSED,   /* 502 */
  EDGE_TOKEN_MISSING, /* 403 */
  EDGE_TOKEN_WRONG,   /* 403 */
  EDGE_INTERNAL,      /* 404: a path of the control plane */
  EDGE_BROKEN,        /* 502: the service answered nonsense or left */
  EDGE_UNSIGNED,      /* 401 */
};
void edge_refuse(struct http_x *x, enum edge_error what, const char *box, unsigned port, struct str detail);

#endif
