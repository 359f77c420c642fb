/* SPDX-License-Identifier: Apache-2.0 */
/* metrics.c - see metrics.h. */
#include "gate/metrics.h"

#include <stdio.h>

/* One line per n-th request; the query is left out, it may hold a signature. */
static void access_log(struct gate *g, struct http_x *x, const char *box, int status, int64_t took_us)
{
  unsigned every = g->config->access_log_every;
  if (!every || g->logged++ % every)
    return;
  const struct http_head *h = http_x_head(x);
  char peer[PEER_SIZE], method[16], path[256], code[16], took[24];
  http_x_peer(x, peer, sizeof(peer));
  snprintf(method, sizeof(method), STR_FMT, STR_ARG(h->method));
  snprintf(path, sizeof(path), STR_FMT, STR_ARG(h->path));
  snprintf(code, sizeof(code), "%d", status);
  snprintf(took, sizeof(took), "%lld", (long long)took_us);
  log_with(LOG_INFO,
           (const char *[]){"client", peer, "method", method, "path", path, "status", code, "took_us", took,
                            box ? "box" : NULL, box, NULL},
           "request");
}

void metrics_note_open(struct gate *g)
{
  g->metrics_slot->connections = http_server_conns(g->server);
  g->metrics_slot->calls = g->calls.n;
}

void metrics_record(struct gate *g, struct http_x *x, const struct metrics_answer *a)
{
  size_t team = a->team && a->team[0] && g->config->metrics_teams_max
                    ? metrics_team(g->metrics_teams, g->config->metrics_teams_max, a->team, true)
                    : METRICS_OTHER + 1;
  metrics_note_open(g);
  metrics_count(g->metrics_slot, a, team);
  access_log(g, x, a->box, a->status, a->took_us);
}
