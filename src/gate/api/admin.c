/* SPDX-License-Identifier: Apache-2.0 */
/* admin.c - /admin: what an administrator may do to teams. */
#include "gate/api/api.h"

/* ---- teams ---- */

static void killed(const struct warden_reply *reply, void *arg)
{
  api_counted(arg, reply, "killedCount");
}

void admin_kill(struct req *r)
{
  cleanup_buf struct buf b = BUF_INIT(1024);
  wire_begin(&b, WIRE_TEAM_KILL, 0, 0);
  wire_put(&b, W_TEAM, r->id);
  api_call_warden(r, &b, NULL, killed);
}

static void count_item(const struct warden_reply *reply, void *arg)
{
  struct req *r = arg;
  struct jw *w = r->state;
  jw_keys(w, wire_get(reply->packet, W_TEAM));
  jw_uint(w, wire_u64(reply->packet, W_COUNT, 0));
}

void admin_counts(struct req *r)
{
  api_items_begin(r, '{');
  cleanup_buf struct buf b = BUF_INIT(256);
  wire_begin(&b, WIRE_TEAM_LIST, 0, 0);
  api_call_warden(r, &b, count_item, api_items_told);
}

/* Keys of any team: the same handlers, with the team from the path. */
static bool take_team(struct req *r)
{
  if (r->id.n && !str_copyz(r->id, r->team.id, sizeof(r->team.id)))
    return true;
  api_error(r, 404, "team '" STR_FMT "' not found", STR_ARG(str_sub(r->id, 0, 100)));
  return false;
}

void admin_key_create(struct req *r)
{
  if (take_team(r))
    key_create(r);
}

void admin_key_delete(struct req *r)
{
  if (!take_team(r))
    return;
  r->id = r->second;
  key_delete(r);
}
