/* SPDX-License-Identifier: Apache-2.0 */
/* admin.c - /nodes and /admin: this one node, and what its administrator may do to teams. */
#include "gate/api/api.h"

#include <stdio.h>
#include <sys/sysinfo.h>

#define NODE_ID "local"

/* ---- the node ---- */

static void put_number(struct jw *w, const char *name, uint64_t v)
{
  jw_key(w, name);
  jw_uint(w, v);
}

static void put_text(struct jw *w, const char *name, const char *text)
{
  jw_key(w, name);
  jw_z(w, text);
}

static void put_machine(struct jw *w, const struct machine *m)
{
  jw_key(w, "machineInfo");
  jw_open(w, '{');
  put_text(w, "cpuFamily", m->family);
  put_text(w, "cpuModel", m->model);
  put_text(w, "cpuModelName", m->model_name);
  put_text(w, "cpuArchitecture", m->architecture);
  jw_close(w, '}');
}

static void put_load(struct jw *w, const struct machine *m, const struct wire_status *s)
{
  struct sysinfo info = {0};
  sysinfo(&info);
  uint64_t unit = info.mem_unit ? info.mem_unit : 1;
  jw_key(w, "metrics");
  jw_open(w, '{');
  put_number(w, "allocatedCPU", s->cpus);
  jw_key(w, "cpuPercent");
  jw_double(w, 100.0 * (double)info.loads[0] / 65536.0 / m->cpus, 1);
  put_number(w, "cpuCount", m->cpus);
  put_number(w, "allocatedMemoryBytes", s->memory);
  put_number(w, "memoryUsedBytes", (info.totalram - info.freeram - info.bufferram) * unit);
  put_number(w, "memoryTotalBytes", info.totalram * unit);
  static const char *const pages[] = {"hugePagesTotal", "hugePagesUsed", "hugePagesReserved", "hugePageSizeBytes"};
  for (size_t i = 0; i < ARRAY_LEN(pages); i++)
    put_number(w, pages[i], 0);
  jw_key(w, "disks");
  jw_open(w, '[');
  jw_close(w, ']');
  jw_close(w, '}');
}

static void put_node(struct req *r, struct jw *w, const struct wire_status *s)
{
  char since[CLOCK_TEXT];
  clock_text(s->node_since_us, since);
  jw_open(w, '{');
  put_text(w, "id", NODE_ID);
  put_text(w, "serviceInstanceID", NODE_ID);
  put_text(w, "clusterID", NODE_ID);
  put_text(w, "version", CLOCHE_VERSION);
  put_text(w, "commit", "");
  put_text(w, "status", s->node == NODE_DRAINING ? "draining" : "ready");
  put_text(w, "statusChangedAt", since);
  put_number(w, "sandboxCount", s->running);
  put_number(w, "sandboxStartingCount", s->starting);
  put_number(w, "createSuccesses", s->launches_total);
  put_number(w, "createFails", s->launches_failed);
  put_machine(w, &r->gate->machine);
  put_load(w, &r->gate->machine, s);
  jw_close(w, '}');
}

static void tell_node(struct req *r, const struct warden_reply *reply, bool list)
{
  struct wire_status s;
  if (!api_status(r, reply, &s))
    return;
  cleanup_buf struct buf b = BUF_INIT(1 << 16);
  struct jw w = JW(&b);
  if (list)
    jw_open(&w, '[');
  put_node(r, &w, &s);
  if (list)
    jw_close(&w, ']');
  api_json(r, 200, buf_str(&b));
}

static void nodes_told(const struct warden_reply *reply, void *arg)
{
  tell_node(arg, reply, true);
}

static void node_told(const struct warden_reply *reply, void *arg)
{
  tell_node(arg, reply, false);
}

static void request_status(struct req *r, warden_reply_fn then)
{
  cleanup_buf struct buf b = BUF_INIT(256);
  wire_begin(&b, WIRE_STATUS, 0, 0);
  api_call_warden(r, &b, NULL, then);
}

void node_list(struct req *r)
{
  request_status(r, nodes_told);
}

static void no_node(struct req *r)
{
  api_error(r, 404, "node '" STR_FMT "' not found; this server has one: " NODE_ID, STR_ARG(r->id));
}

void node_get(struct req *r)
{
  if (str_is(r->id, NODE_ID))
    request_status(r, node_told);
  else
    no_node(r);
}

static void node_changed(const struct warden_reply *reply, void *arg)
{
  if (!api_refused(arg, reply))
    api_empty(arg, 204);
}

/* Of the contract's other words, `unhealthy` and the like are found out and not set. */
void node_change(struct req *r)
{
  struct str status = json_text(json_get(r->json, "status"), STR_NONE);
  bool drain = str_is(status, "draining");
  if (!str_is(r->id, NODE_ID)) {
    no_node(r);
    return;
  }
  if (!drain && !str_is(status, "ready")) {
    api_error(r, 400, "'status' must be \"ready\" or \"draining\"");
    return;
  }
  cleanup_buf struct buf b = BUF_INIT(256);
  wire_begin(&b, WIRE_NODE_CHANGE, 0, 0);
  wire_put_u64(&b, W_STATE, drain ? NODE_DRAINING : NODE_READY);
  api_call_warden(r, &b, NULL, node_changed);
}

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
