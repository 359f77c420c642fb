/* SPDX-License-Identifier: Apache-2.0 */
/* audit_tell.c - see audit_tell.h. What is told is chosen here: identifiers, never what a client showed or sent. Of an
 * unknown path nothing is told but that it was asked for: people paste keys into the wrong place. */
#include "gate/api/audit_tell.h"

#include "gate/api/api.h"
#include "wire/audit_record.h"

#define WAITING_MAX ((size_t)4 << 20) /* bytes for a role that does not read; more are counted as lost */
#define LINKS       "link"            /* in place of a team, for requests by links */
#define TELL_MS     60000             /* from the first record that was left out to the record of how many were */

static void role_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  if (fd >= 0)
    close(fd);
}

static void role_closed(struct ipc *l, void *arg)
{
  struct gate *g = arg;
  if (g->audit == l)
    g->audit = NULL;
  ipc_free(l);
}

static const struct ipc_ops role_ops = {role_packet, role_closed};

void audit_attach(struct gate *g, int fd)
{
  ipc_free(g->audit);
  g->audit = ipc_new(g->loop, fd, &role_ops, g);
}

static bool wanted(const struct req *r, int status)
{
  unsigned mode = r->gate->config->audit;
  if (mode == AUDIT_OFF)
    return false;
  bool reads = r->entry && str_is(str_of(r->entry->method), "GET");
  return mode == AUDIT_ALL || status == 401 || status == 403 || (r->entry && !reads);
}

static enum audit_who who(const struct req *r)
{
  if (r->proof_tag == W_ADMIN)
    return AUDIT_ADMIN;
  if (r->proof_tag == W_PROOF && !r->team.id[0]) /* one that nobody has looked up */
    return AUDIT_NOBODY;
  if (r->proof_tag != W_PROOF)
    return r->entry && (r->entry->flags & NO_AUTH) ? AUDIT_LINK : AUDIT_NOBODY;
  return r->by_token ? AUDIT_TOKEN : AUDIT_KEY;
}

/* Where a value stands beside its name, people give it in place of the name: what was not found is not told there. */
static bool may_be_a_value(struct str route, unsigned status)
{
  static const char *const kinds[] = {"secrets/", "api-keys/", "access-tokens/"};
  for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
    if (str_search(route, str_of(kinds[i])) >= 0)
      return status >= 400;
  return false;
}

/* What a client shows in the path is no secret but for this: a path that is no route may be anything. */
static void put_route(const struct req *r, struct audit_record *a)
{
  a->method = http_x_head(r->x)->method;
  a->route = r->entry ? str_of(r->entry->path) : STR("?");
  if (may_be_a_value(a->route, a->status))
    return;
  a->id = r->id;
  a->second = r->second;
}

static void send_record(struct gate *g, struct audit_record *a)
{
  cleanup_buf struct buf b = BUF_INIT(16384);
  a->lost = g->audit_lost;
  audit_record_pack(&b, a);
  bool sent = g->audit && ipc_queued(g->audit) < WAITING_MAX && !ipc_send(g->audit, buf_str(&b), -1);
  g->audit_lost = sent ? 0 : g->audit_lost + (a->left_out ? a->left_out : 1);
}

/* ---- what comes too fast ---- */

static void tell_left_out(struct str team, uint64_t n, void *arg)
{
  bool link = str_is(team, LINKS);
  send_record(arg, &(struct audit_record){.who = link     ? AUDIT_LINK
                                                 : team.n ? AUDIT_KEY
                                                          : AUDIT_NOBODY,
                                          .team = link ? STR_NONE : team,
                                          .left_out = n});
}

static void time_to_tell(uv_timer_t *t)
{
  struct gate *g = t->data;
  audit_rates_tell(&g->audit_rates, uv_now(g->loop), tell_left_out, g);
}

/* An administrator is believed; links that worked share one measure. */
static bool in_time(struct gate *g, const struct audit_record *a)
{
  bool nobody = audit_record_unproven(a);
  if (a->who == AUDIT_ADMIN)
    return true;
  struct str team = nobody ? STR_NONE : a->team.n ? a->team : STR(LINKS);
  if (audit_rates_take(&g->audit_rates, team, uv_now(g->loop),
                       nobody ? g->config->audit_refused_rate : g->config->audit_team_rate))
    return true;
  if (!g->audit_timer.data)
    uv_timer_init(g->loop, &g->audit_timer);
  g->audit_timer.data = g;
  if (!uv_is_active((uv_handle_t *)&g->audit_timer))
    uv_timer_start(&g->audit_timer, time_to_tell, TELL_MS, 0);
  return false;
}

/* ---- a request ---- */

void audit_tell(const struct req *r, int status)
{
  struct gate *g = r->gate;
  if (!wanted(r, status))
    return;
  const struct http_head *h = http_x_head(r->x);
  char peer[PEER_SIZE];
  http_x_peer(r->x, peer, sizeof(peer));
  bool known = status != 401; /* a wrong key is of nobody */
  struct audit_record a = {.who = known ? who(r) : AUDIT_NOBODY,
                           .key = known ? str_of(r->team.key) : STR_NONE,
                           .team = known ? str_of(r->team.id) : STR_NONE,
                           .team_name = known ? str_of(r->team.name) : STR_NONE,
                           .client = str_of(peer),
                           .forwarded = http_header(h, "x-forwarded-for"),
                           .agent = http_header(h, "user-agent"),
                           .made = r->made,
                           .status = (unsigned)status,
                           .took_us = (uint64_t)(clock_mono_us() - r->began_us)};
  put_route(r, &a);
  if (in_time(g, &a))
    send_record(g, &a);
}
