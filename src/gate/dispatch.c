/* door.c - who is meant? A request with routing headers or a host that names a box goes to the edge; a signed file URL
 * without either is searched for; /box/{id}/{port}/ is the way for people without wildcard names; everything else is the
 * API. */
#include "gate/api.h"
#include "gate/edge.h"

static void ignore(struct http_x *x, enum http_end how)
{
}

static const struct http_x_ops refused_ops = {.gone = ignore};

static void refuse(struct http_x *x, bool missing)
{
  http_x_handle(x, &refused_ops, NULL);
  edge_refuse(x, EDGE_BAD_TARGET, NULL, 0,
              missing ? STR("both E2b-Sandbox-Id and E2b-Sandbox-Port are needed") : STR("E2b-Sandbox-Id or E2b-Sandbox-Port is malformed"));
}

void door_request(struct http_x *x, void *arg)
{
  struct gate *g = arg;
  const struct http_head *h = http_x_head(x);
  struct str id = http_header(h, "e2b-sandbox-id"), port = http_header(h, "e2b-sandbox-port"), host = http_header(h, "host");
  struct edge_target t = {0};
  if (target_from_host(host, &t)) {
    edge_request(g, x, &t);
  } else if (id.p || port.p) {
    if (target_from_headers(id, port, &t))
      edge_request(g, x, &t);
    else
      refuse(x, !id.n || !port.n);
  } else if (target_from_path(h->path, &t)) {
    edge_request(g, x, &t);
  } else if (str_is(h->path, "/files") && str_search(h->query, STR("signature=")) >= 0) {
    edge_signed(g, x);
  } else {
    api_request(g, x);
  }
}
