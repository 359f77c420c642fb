/* door.c - who is meant? A request with routing headers or a host that names a box goes to the edge; a signed file URL
 * without either is searched for; /box/{id}/{port}/ is the way for people without wildcard names; everything else is the
 * API. */
#include "gate/api.h"
#include "gate/edge.h"

static bool box_name(struct str s)
{
  for (size_t i = 0; i < s.n; i++)
    if (!((s.p[i] >= 'a' && s.p[i] <= 'z') || (s.p[i] >= '0' && s.p[i] <= '9')))
      return false;
  return s.n > 0 && s.n < sizeof(((struct edge_target *)0)->box);
}

static bool port_number(struct str s, unsigned *out)
{
  uint64_t v;
  if (str_u64(s, &v) || v < 1 || v > 65535)
    return false;
  *out = (unsigned)v;
  return true;
}

/* "{port}-{id}[-anything].domain[:port]" */
static bool host_names_box(struct str host, struct edge_target *t)
{
  struct str label, rest, port, id, tail;
  if (!str_cut(host, '.', &label, &rest) || !str_cut(label, '-', &port, &id) || !port_number(port, &t->port))
    return false;
  str_cut(id, '-', &id, &tail);
  return box_name(id) && !str_copyz(id, t->box, sizeof(t->box));
}

static bool headers_name_box(struct http_x *x, struct str id, struct str port, struct edge_target *t)
{
  struct str head, tail;
  str_cut(id, '-', &head, &tail);
  if (box_name(head) && port_number(port, &t->port))
    return !str_copyz(head, t->box, sizeof(t->box));
  edge_refuse(x, EDGE_BAD_TARGET, NULL, 0,
              !id.n || !port.n ? STR("both E2b-Sandbox-Id and E2b-Sandbox-Port are needed") : STR("E2b-Sandbox-Id or E2b-Sandbox-Port is malformed"));
  return false;
}

/* "/box/{id}/{port}" and what follows: for people without wildcard names. */
static bool path_names_box(struct str path, struct edge_target *t)
{
  struct str rest = str_skip(path, 5), id, port, tail;
  if (!str_starts(path, STR("/box/")) || !str_cut(rest, '/', &id, &rest) || !box_name(id))
    return false;
  str_cut(rest, '/', &port, &tail);
  if (!port_number(port, &t->port) || str_copyz(id, t->box, sizeof(t->box)))
    return false;
  t->skip = 5 + id.n + 1 + port.n;
  return true;
}

static void ignore(struct http_x *x, enum http_end how)
{
}

static const struct http_x_ops refused_ops = {.gone = ignore};

void door_request(struct http_x *x, void *arg)
{
  struct gate *g = arg;
  const struct http_head *h = http_x_head(x);
  struct str id = http_header(h, "e2b-sandbox-id"), port = http_header(h, "e2b-sandbox-port"), host = http_header(h, "host");
  struct edge_target t = {0};
  if (host_names_box(host, &t)) {
    edge_request(g, x, &t);
  } else if (id.p || port.p) {
    http_x_handle(x, &refused_ops, NULL);
    if (headers_name_box(x, id, port, &t))
      edge_request(g, x, &t);
  } else if (path_names_box(h->path, &t)) {
    edge_request(g, x, &t);
  } else if (str_is(h->path, "/files") && str_search(h->query, STR("signature=")) >= 0) {
    edge_signed(g, x);
  } else {
    api_request(g, x);
  }
}
