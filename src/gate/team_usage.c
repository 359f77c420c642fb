/* SPDX-License-Identifier: Apache-2.0 */
/* team_usage.c - how many requests and streams each team has open in this gate. One team may not take all that a gate
 * can carry, so all of a team's exchanges have one limit together. A part of it is kept for its keys' requests:
 * everybody may ask a public port, and nobody may keep a team from its own API by doing so. */
#include "gate/team_usage.h"

#define API_PART 8 /* one in so many of a team's exchanges is for its keys' requests alone */

struct usage {
  char team[UUID_SIZE];
  size_t open[USAGE_KINDS];
};

unsigned usage_most(const struct gate *g, enum usage_kind kind)
{
  unsigned most = g->config->team_connections_max;
  if (kind == USAGE_API || most < 2)
    return most;
  return most - MAX(most / API_PART, 1u);
}

/* Those into boxes have their own limit below that of all together; what they leave is for the API. */
static bool may_enter(const struct gate *g, const struct usage *u, enum usage_kind kind)
{
  size_t all = u->open[USAGE_API] + u->open[USAGE_BOX];
  if (!g->config->team_connections_max)
    return true;
  return all < g->config->team_connections_max && u->open[kind] < usage_most(g, kind);
}

int usage_enter(struct gate *g, const char *team, enum usage_kind kind, struct usage **out)
{
  struct usage *u = map_get(&g->usage, str_of(team));
  if (*out)
    return 0;
  if (u && !may_enter(g, u, kind))
    return -EDQUOT;
  if (!u) {
    u = xcalloc(1, sizeof(*u));
    str_copyz(str_of(team), u->team, sizeof(u->team));
    map_put(&g->usage, str_of(u->team), u);
  }
  u->open[kind]++;
  *out = u;
  return 0;
}

void usage_leave(struct gate *g, enum usage_kind kind, struct usage **held)
{
  struct usage *u = steal(held);
  if (!u)
    return;
  u->open[kind]--;
  if (u->open[USAGE_API] || u->open[USAGE_BOX])
    return;
  map_del(&g->usage, str_of(u->team));
  free(u);
}
