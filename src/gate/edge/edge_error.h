/* SPDX-License-Identifier: Apache-2.0 */
/* edge_error.h - refusals at the edge: JSON, or a page when a person's browser asks. */
#ifndef CLOCHE_GATE_EDGE_ERROR_H
#define CLOCHE_GATE_EDGE_ERROR_H

#include "net/http.h"

enum edge_error {
  EDGE_BAD_TARGET,     /* 400 */
  EDGE_NOT_FOUND,      /* 502 */
  EDGE_PORT_CLOSED,    /* 502 */
  EDGE_TOKEN_MISSING,  /* 403 */
  EDGE_TOKEN_WRONG,    /* 403 */
  EDGE_INTERNAL,       /* 404: a path of the control plane */
  EDGE_BROKEN,         /* 502: the service broke the protocol or the connection */
  EDGE_RESUME_REFUSED, /* 403: it is paused, and this caller may not resume it */
  EDGE_TRANSITION,     /* 409 */
  EDGE_TEAM_LIMIT,     /* 429: it is paused, and its team runs as many as it may; the detail says so */
  EDGE_DRAINING,       /* 503: it is paused, and its server takes no boxes; the detail says so */
  EDGE_NO_MEMORY,      /* 503: it is paused, and its server is short of memory; the detail says so */
  EDGE_TOO_MANY,       /* 429: too many connections into this box; `port` carries the limit */
  EDGE_UNSIGNED,       /* 401 */
  EDGE_TEAM_BUSY,      /* 429: too many of this team's connections; `port` carries the limit */
  EDGE_ACCESS_MISSING, /* 401 */
  EDGE_ACCESS_WRONG,   /* 401 */
  EDGE_PAUSED,         /* 502: not found for clients, a page says that it is paused */
  EDGE_UNKNOWN_MANY,   /* 429: too many sandboxes that are not there; `port` carries the seconds to wait */
  EDGE_THROTTLED,      /* 429: too many wrong tokens or signatures; `port` carries the seconds to wait */
};
bool edge_wants_page(const struct http_head *h); /* a browser that navigates; programs and scripts in pages get JSON */
/* Returns the status. */
int edge_refuse(struct http_x *x, enum edge_error what, const char *box, unsigned port, struct str detail);

#endif
