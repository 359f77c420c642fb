/* SPDX-License-Identifier: Apache-2.0 */
/* dispatch.c - who is meant? A request with routing headers or a host that names a box goes to the edge; a signed file
 * URL without either is searched for, and so is a path of the agent with a box's token; /box/{id}/{port}/ is the way
 * for people without wildcard names; `/` and what is below /console/ is the console; everything else is the API. PyPI
 * e2b 2.7 to 2.26 sends the routing headers of a box's agent with POST /sandboxes/{id}/connect as well: what brings an
 * API key and a path that only the API has is the API's. */
#include "gate/dispatch.h"

#include "gate/api/api.h"
#include "gate/console.h"
#include "gate/edge/edge.h"

static void ignore(struct http_x *x, enum http_end how)
{
}

static const struct http_x_ops refused_ops = {.gone = ignore};

static void refuse(struct http_x *x, bool missing)
{
  http_x_handle(x, &refused_ops, NULL);
  edge_refuse(x, EDGE_BAD_TARGET, NULL, 0,
              missing ? STR("both E2b-Sandbox-Id and E2b-Sandbox-Port are needed")
                      : STR("E2b-Sandbox-Id or E2b-Sandbox-Port is malformed"));
}

static bool names_api(const struct http_head *h, const struct edge_target *t)
{
  return t->port == ENVD_PORT && http_header(h, "x-api-key").n && api_owns(h->path);
}

static bool names_agent(struct str path)
{
  return str_is(path, "/files") || str_is(path, "/health") || str_starts(path, STR("/process.Process/")) ||
         str_starts(path, STR("/filesystem.Filesystem/"));
}

/* Whether a page of this origin, which is the console, wants what a box serves as a part of itself. Pages of boxes have
 * no origin (edge.c), so theirs are none of those. */
static bool would_run_here(const struct http_head *h)
{
  static const char *const kinds[] = {"script",        "style",    "worker", "sharedworker",
                                      "serviceworker", "manifest", "object"};
  struct str kind = http_header(h, "sec-fetch-dest");
  for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
    if (str_is(kind, kinds[i]))
      return str_is(http_header(h, "sec-fetch-site"), "same-origin");
  return false;
}

static void refuse_part(struct http_x *x)
{
  http_x_handle(x, &refused_ops, NULL);
  http_reply(x, 403, "application/json",
             STR("{\"code\":403,\"message\":\"what a sandbox serves is no script or style of the console\"}"));
}

void dispatch_request(struct http_x *x, void *arg)
{
  struct gate *g = arg;
  const struct http_head *h = http_x_head(x);
  struct str id = http_header(h, "e2b-sandbox-id"), port = http_header(h, "e2b-sandbox-port"),
             host = http_header(h, "host");
  struct edge_target t = {0};
  if (str_is(h->method, "CONNECT")) {
    http_x_handle(x, &refused_ops, NULL);
    http_reply(x, 501, "application/json", STR("{\"code\":501,\"message\":\"CONNECT is not served\"}"));
    return;
  }
  if (target_from_host(host, &t)) {
    edge_request(g, x, &t);
  } else if (would_run_here(h) && !console_owns(g, h)) {
    refuse_part(x);
  } else if (id.p || port.p) {
    if (!target_from_headers(id, port, &t))
      refuse(x, !id.n || !port.n);
    else if (names_api(h, &t))
      api_request(g, x);
    else {
      t.shared = http_header(h, "sec-fetch-site").p != NULL; /* only browsers send it, and no page can leave it out */
      edge_request(g, x, &t);
    }
  } else if (target_from_path(h->path, &t)) {
    edge_request(g, x, &t);
  } else if (str_is(h->path, "/files") && str_search(h->query, STR("signature=")) >= 0) {
    edge_signed(g, x);
  } else if (http_header(h, "x-access-token").n && names_agent(h->path)) {
    edge_by_token(g, x);
  } else if (console_owns(g, h)) {
    console_request(g, x);
  } else {
    api_request(g, x);
  }
}
