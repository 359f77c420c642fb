/* edge.h - the way into a box: from a client's request to a port inside, streaming both ways. */
#ifndef CLOCHE_EDGE_H
#define CLOCHE_EDGE_H

#include "gate/gate.h"
#include "gate/edge_target.h"

/* What is known of a box, kept until the warden says that it ended. */
struct route {
  char id[64], team[40], mask_host[256];
  unsigned flags;
  uint16_t tls_ports[64]; /* inside, services that speak TLS; unused ones are 0 */
  uint64_t run;
  bool held;                   /* the box is about to sleep: who comes now asks the warden */
  struct edge *live;           /* exchanges under way: cut when the box ends or sleeps */
  size_t nlive, peak, busiest; /* peak: the most of them at once since kept.c looked last; busiest: lately */
  VEC(struct kept_call {
    struct http_call *call;
    unsigned port;
  })
  kept; /* connections into the box that wait for a request; kept.c */
};

/* kept.c */
void kept_put(struct gate *g, struct route *rt, struct http_call *c, unsigned port); /* takes it; closed when it is not worth keeping */
/* NULL: there is none. `once`, for a request that can't be sent twice: one that is open at this very moment. A service may have
 * closed it between its last answer and now (many do so after seconds), and the loop need not have seen that yet. */
struct http_call *kept_take(struct route *rt, unsigned port, bool once);
void kept_free(struct route *rt);

/* After the warden came back: routes of boxes that ended or slept meanwhile are dropped. */
void edge_recheck(struct gate *g);
void edge_request(struct gate *g, struct http_x *x, const struct edge_target *t); /* takes the exchange */
/* A signed file URL on a host that names no box: found by trying the tokens of the running ones. */
void edge_signed(struct gate *g, struct http_x *x);

/* metrics.c: counts an answer. */
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
};
bool edge_wants_page(const struct http_head *h); /* a browser that navigates; programs and scripts in pages get JSON */
int edge_refuse(struct http_x *x, enum edge_error what, const char *box, unsigned port, struct str detail);

#endif
