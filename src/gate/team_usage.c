/* SPDX-License-Identifier: Apache-2.0 */
/* team_usage.c - how many requests and streams each team has open in this gate. One team may not take all that a gate
 * can carry. Its keys' requests and those into its boxes are counted apart: everybody may ask a public port, and nobody
 * may keep a team from its own API by doing so. */
#include "gate/team_usage.h"

struct usage {
  char team[UUID_SIZE];
  size_t open[USAGE_KINDS];
};

int usage_enter(struct gate *g, const char *team, enum usage_kind kind, struct usage **out)
{
  unsigned most = g->config->team_connections_max;
  struct usage *u = map_get(&g->usage, str_of(team));
  if (*out)
    return 0;
  if (u && most && u->open[kind] >= most)
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
