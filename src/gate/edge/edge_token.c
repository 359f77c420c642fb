/* SPDX-License-Identifier: Apache-2.0 */
/* edge_token.c - the tokens that a request must show to come into a box. The id of a box is no secret: it is part of
 * host names, logs and URLs, and gives access to public ports only.
 *
 * - Port 49983, the agent: the agent itself requires the access token or a signature; wrong ones are counted here.
 * - Port 49999, the interpreter of a secure box: the access token. Without it pass: its health, as the agent's; a
 *   browser's preflight request (CORS), which can carry no token; and requests about contexts, with which stock clients
 *   send none, of a client that has shown the token or a key of the team before (WIRE_BOX_VOUCH).
 * - Other ports: public, unless the box was created without public traffic: then the traffic token, on 49999 too.
 *
 * A gate knows only hashes of tokens. */
#include "gate/edge/edge.h"
#include "gate/warden_client.h"

bool token_is(struct str given, const uint8_t hash[SHA256_LEN])
{
  uint8_t mine[SHA256_LEN];
  if (!given.n || given.n > TOKEN_GIVEN_MAX)
    return false;
  sha256_of(given.p, given.n, mine);
  return str_eq_secret(str_make(mine, sizeof(mine)), str_make(hash, SHA256_LEN));
}

/* Exactly the paths that clients request: nothing that is decoded or cleaned into another path further on. */
bool token_contexts_path(struct str path)
{
  struct str rest = str_skip(path, 9), id, tail;
  if (!str_starts(path, STR("/contexts")) || (rest.n && rest.p[0] != '/'))
    return false;
  if (!rest.n)
    return true;
  str_cut(str_skip(rest, 1), '/', &id, &tail);
  for (size_t i = 0; i < id.n; i++) {
    char c = id.p[i];
    if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
      return false;
  }
  return !tail.n || str_is(tail, "restart");
}

/* Neither runs or tells anything of what is in the box. */
static bool harmless(const struct http_head *h, struct str path)
{
  bool preflight =
      str_is(h->method, "OPTIONS") && http_header(h, "origin").p && http_header(h, "access-control-request-method").p;
  return preflight || ((str_is(h->method, "GET") || str_is(h->method, "HEAD")) && str_is(path, "/health"));
}

enum token_verdict token_interpreter(const struct gate *g, const struct route *rt, const struct http_head *h,
                                     struct str path)
{
  struct str given = http_header(h, "x-access-token");
  bool upgrade = http_header(h, "upgrade").p != NULL;
  if (!(rt->flags & BOX_SECURE) || (harmless(h, path) && !upgrade))
    return TOKEN_GOOD;
  if (given.n)
    return token_is(given, rt->access) ? TOKEN_GOOD : TOKEN_WRONG;
  if (g->config->interpreter_compatible && (rt->flags & BOX_FIRST_API))
    return TOKEN_GOOD;
  return token_contexts_path(path) && !upgrade ? TOKEN_VOUCH : TOKEN_MISSING;
}

bool route_knows(const struct route *rt, const uint8_t client[CLIENT_LEN])
{
  static const uint8_t nobody[CLIENT_LEN]; /* an unused place */
  for (size_t i = 0; i < ARRAY_LEN(rt->clients) && memcmp(client, nobody, CLIENT_LEN) != 0; i++)
    if (!memcmp(rt->clients[i], client, CLIENT_LEN))
      return true;
  return false;
}

void route_meet(struct route *rt, const uint8_t client[CLIENT_LEN])
{
  memcpy(rt->clients[rt->next_client++ % ARRAY_LEN(rt->clients)], client, CLIENT_LEN);
}

static void nobody_waits(const struct warden_reply *reply, void *arg)
{
}

void route_note_client(struct gate *g, struct route *rt, const struct http_x *x, struct str token)
{
  uint8_t client[CLIENT_LEN];
  client_of(x, client);
  if (route_knows(rt, client))
    return;
  route_meet(rt, client);
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_BOX_VOUCH, 0, 0);
  wire_putz(&b, W_ID, rt->id);
  wire_put(&b, W_CLIENT, str_make(client, sizeof(client)));
  wire_put(&b, W_TOKEN, token);
  warden_call(g, &b, NULL, nobody_waits, NULL);
}
