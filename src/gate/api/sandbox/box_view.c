/* SPDX-License-Identifier: Apache-2.0 */
/* box_view.c - a box as JSON. Optional objects are left out rather than null: one client can't read null there. */
#include "gate/api/api.h"
#include "gate/api/volume/mount_list.h"

void box_view(struct str p, struct box_view *v)
{
  *v = (struct box_view){
      .id = wire_get(p, W_ID),
      .team = wire_get(p, W_TEAM),
      .template_id = wire_get(p, W_TEMPLATE),
      .alias = wire_get(p, W_ALIAS),
      .config = wire_get(p, W_CONFIG),
      .rules = wire_get(p, W_RULES),
      .mounts = wire_get(p, W_MOUNTS),
      .token = wire_get(p, W_TOKEN),
      .traffic = wire_get(p, W_TRAFFIC),
      .started_us = (int64_t)wire_u64(p, W_STARTED, 0),
      .end_us = (int64_t)wire_u64(p, W_END, 0),
      .state = (unsigned)wire_u64(p, W_STATE, 0),
      .cpus = (unsigned)wire_u64(p, W_CPUS, 0),
      .memory_mb = (unsigned)wire_u64(p, W_MEMORY_MB, 0),
      .disk_mb = (unsigned)wire_u64(p, W_DISK_MB, 0),
      .flags = (unsigned)wire_u64(p, W_FLAGS, 0),
      .tier = (unsigned)wire_u64(p, W_TIER, TIER_FROZEN),
      .run = wire_u64(p, W_RUN, 0),
  };
}

static void put_token(struct jw *w, const char *name, struct str token)
{
  jw_key(w, name);
  jw_str(w, token);
}

/* "[:port]" behind the name of a loopback address, which every name below localhost is, too. */
static bool is_local(struct str host, struct str *port)
{
  struct str name = host;
  if (!str_starts(host, STR("[::1]")))
    str_cut(host, ':', &name, port);
  else
    name = STR("localhost"), *port = str_skip(host, strlen("[::1]"));
  if (port->n && port->p[0] == ':')
    *port = str_skip(*port, 1);
  struct str below = STR(".localhost");
  return str_ieq(name, STR("localhost")) || str_is(name, "127.0.0.1") ||
         (name.n > below.n && str_ieq(str_skip(name, name.n - below.n), below));
}

/* The port is the one the client sees, which need not be ours. A host that is an address or a name of a network has no
 * names below it that we know of. */
struct str box_domain(struct str configured, struct str host, struct arena *a)
{
  struct str port = STR_NONE;
  uint64_t number = 0;
  if (configured.n || !is_local(host, &port))
    return configured;
  if (!port.n)
    return STR("localhost");
  if (str_u64(port, &number) || !number || number > UINT16_MAX)
    return STR_NONE;
  return str_of(arena_fmt(a, "localhost:%u", (unsigned)number));
}

static void put_domain(struct req *r, struct jw *w)
{
  struct str domain = box_domain(str_of(r->gate->domain), http_header(http_x_head(r->x), "host"), r->arena);
  jw_key(w, "domain");
  if (domain.n)
    jw_str(w, domain);
  else
    jw_null(w);
}

static void put_identity(struct jw *w, const struct box_view *v)
{
  jw_key(w, "templateID");
  jw_str(w, v->template_id);
  jw_key(w, "sandboxID");
  jw_str(w, v->id);
  jw_key(w, "clientID");
  jw_z(w, CLIENT_ID);
  jw_key(w, "alias");
  jw_str(w, v->alias);
  jw_key(w, "envdVersion");
  jw_z(w, ENVD_VERSION);
}

void box_put_sandbox(struct req *r, struct jw *w, const struct box_view *v)
{
  jw_open(w, '{');
  put_identity(w, v);
  if (v->token.n)
    put_token(w, "envdAccessToken", v->token);
  if (v->traffic.n) {
    put_token(w, "trafficAccessToken", v->traffic);
  } else {
    jw_key(w, "trafficAccessToken");
    jw_null(w);
  }
  put_domain(r, w);
  jw_close(w, '}');
}

static void put_time(struct jw *w, const char *name, int64_t us)
{
  char text[CLOCK_TEXT];
  clock_text(us, text);
  jw_key(w, name);
  jw_z(w, text);
}

static void copy_member(struct jw *w, const struct json *config, const char *name)
{
  const struct json *v = json_get(config, name);
  if (!json_given(v))
    return;
  jw_key(w, name);
  jw_value(w, v);
}

static void put_network(struct jw *w, const struct box_view *v, const struct json *config, struct arena *a)
{
  const struct json *network = json_get(config, "network"), *rules = json_read(a, v->rules, 0, NULL);
  if (!json_given(network) || !v->rules.n || !rules) {
    copy_member(w, config, "network");
    return;
  }
  jw_key(w, "network");
  jw_open(w, '{');
  for (const struct json *k = network->kids; k; k = k->next) {
    jw_keys(w, k->key);
    jw_value(w, k);
  }
  jw_key(w, "rules");
  jw_value(w, rules);
  jw_close(w, '}');
}

/* Not while the pause is under way: what it will have kept is not known before its end. */
static void put_pause_mode(struct jw *w, const struct box_view *v)
{
  if (v->state != BOX_PAUSED)
    return;
  jw_key(w, "pauseMode");
  jw_z(w, v->tier == TIER_FILES ? "filesystem" : "full");
}

/* Of a pause that is done, and only when it is so: clients know no other word for it. */
static void put_agent_silent(struct jw *w, const struct box_view *v)
{
  if (v->state != BOX_PAUSED || !(v->flags & BOX_AGENT_SILENT))
    return;
  jw_key(w, "envdUnresponsiveAtPause");
  jw_bool(w, true);
}

/* Of ours, and only where it is not what a sandbox is by default: processes in namespaces. */
static void put_isolation(struct jw *w, const struct box_view *v)
{
  if (!(v->flags & BOX_MICROVM))
    return;
  jw_key(w, "isolation");
  jw_z(w, "microvm");
}

static void put_detail(struct jw *w, const struct box_view *v, const struct json *config, struct req *r)
{
  if (v->token.n)
    put_token(w, "envdAccessToken", v->token);
  put_domain(r, w);
  copy_member(w, config, "allowInternetAccess");
  put_network(w, v, config, r->arena);
  jw_key(w, "lifecycle");
  jw_open(w, '{');
  jw_key(w, "autoResume");
  jw_bool(w, v->flags & BOX_AUTO_RESUME);
  jw_key(w, "onTimeout");
  jw_z(w, v->flags & BOX_AUTO_PAUSE ? "pause" : "kill");
  jw_close(w, '}');
  put_pause_mode(w, v);
}

void box_put_listed(struct jw *w, const struct box_view *v, const struct json *config, bool detail, struct req *r)
{
  jw_open(w, '{');
  put_identity(w, v);
  put_time(w, "startedAt", v->started_us);
  put_time(w, "endAt", v->end_us);
  jw_key(w, "state");
  jw_z(w, box_state_paused(v->state) ? "paused" : "running");
  jw_key(w, "cpuCount");
  jw_uint(w, v->cpus);
  jw_key(w, "memoryMB");
  jw_uint(w, v->memory_mb);
  jw_key(w, "diskSizeMB");
  jw_uint(w, v->disk_mb);
  copy_member(w, config, "metadata");
  jw_key(w, "volumeMounts");
  mount_list_put(w, v->mounts);
  put_agent_silent(w, v);
  put_isolation(w, v);
  if (detail)
    put_detail(w, v, config, r);
  jw_close(w, '}');
}
