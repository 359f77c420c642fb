/* SPDX-License-Identifier: Apache-2.0 */
/* gate.c - the public role's loop: takes listening sockets and warden links from the supervisor, gives up every right
 * it does not need, and serves. */
#include "gate/gate.h"

#include "gate/api/api.h"
#include "gate/api/audit_tell.h"
#include "gate/api/disk_work.h"
#include "gate/api/mcp_proxy.h"
#include "gate/certificate.h"
#include "gate/console.h"
#include "gate/dispatch.h"
#include "gate/edge/edge.h"
#include "gate/gate_role.h"
#include "gate/metrics_shm.h"
#include "gate/tracing.h"
#include "net/tls.h"
#include "wire/control.h"
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

/* "<slot>/<slots>" and the memory they lie in. What is counted before that is lost, which is nothing. */
static void take_metrics_shm(struct gate *g, struct str text, int fd)
{
  struct str slot, slots;
  uint64_t i, n;
  if (!str_cut(text, '/', &slot, &slots) || str_u64(slot, &i) || str_u64(slots, &n) || i >= n || n > 4096)
    return;
  struct metrics_shm *all = mmap(NULL, metrics_shm_size(n), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (all == MAP_FAILED)
    return;
  g->metrics_teams = all->teams;
  g->slots = all->slots;
  g->nslots = n;
  g->metrics_slot = &g->slots[i];
  g->metrics_slot->open = g->metrics_slot->calls = g->metrics_slot->connections =
      0; /* those of a gate before this one are gone */
}

static void take_metrics_listener(struct gate *g, int fd)
{
  if (!g->metrics_server)
    g->metrics_server = http_server_new(g->loop, &http_limits_default, api_metrics_request, g);
  http_server_listen(g->metrics_server, fd);
}

static void keys_changed(struct gate *g)
{
  auth_forget(g);
  identity_keys_forget();
}

static const struct warden_events warden_events = {edge_recheck, edge_box_held, edge_box_ended, keys_changed};

static struct http_limits limits_of(const struct gate_config *c)
{
  struct http_limits limits = http_limits_default;
  limits.head_ms = c->client_head_s * 1000;
  limits.idle_ms = c->client_idle_s * 1000;
  limits.body_ms = c->client_body_s * 1000;
  limits.linger_ms = c->client_stall_s * 1000;
  limits.conns_max = c->connections_max;
  limits.address_max = c->address_connections_max;
  limits.held_max = c->buffers_max;
  return limits;
}

/* What is not read from the config each time. */
static void settings_changed(struct gate *g)
{
  struct http_limits limits = limits_of(g->config);
  http_server_limits(g->server, &limits);
  g->throttle.per_minute = g->config->auth_failures_per_minute;
  g->unknown.per_minute = g->config->unknown_boxes_per_minute;
}

static void control_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  struct gate *g = arg;
  char letter = packet.p[0];
  if (letter == CONTROL_METRICS_SHM && fd >= 0)
    take_metrics_shm(g, str_skip(packet, 1), fd); /* and closed below */
  if (letter == CONTROL_LINK && fd >= 0)
    warden_attach(g, fd, &warden_events);
  else if (letter == CONTROL_LISTEN && fd >= 0)
    http_server_listen(g->server, fd);
  else if (letter == CONTROL_CERTIFICATE && fd >= 0)
    gate_take_certificate(g, fd);
  else if (letter == CONTROL_LISTEN_TLS && fd >= 0)
    gate_take_tls_listener(g, fd);
  else if (letter == CONTROL_CONSOLE)
    console_take(g, fd);
  else if (letter == CONTROL_METRICS && fd >= 0)
    take_metrics_listener(g, fd);
  else if (letter == CONTROL_EXPORTER && fd >= 0) {
    tracing_attach(g, fd);
    if (str_is(str_skip(packet, 1), "0")) /* one tells for all */
      tracing_metrics_start(g);
  } else if (letter == CONTROL_AUDIT && fd >= 0)
    audit_attach(g, fd);
  else if (letter == CONTROL_MCP && fd >= 0)
    mcp_attach(g, fd);
  else if (fd >= 0)
    close(fd);
  if (control_settings(packet))
    settings_changed(g);
  if (letter == CONTROL_STOP)
    uv_stop(g->loop);
}

static void control_closed(struct ipc *l, void *arg)
{
  struct gate *g = arg;
  uv_stop(g->loop);
}

static const struct ipc_ops control_ops = {control_packet, control_closed};

int gate_main(const struct gate_config *config)
{
  static uv_loop_t loop;
  static struct metrics_slot alone; /* until the supervisor's shared memory comes */
  static struct gate g;             /* to the process's end: what it still holds then was not lost */
  g = (struct gate){.config = config, .loop = &loop, .metrics_slot = &alone, .slots = &alone, .nslots = 1};
  g.started_us = clock_wall_us();
  machine_read(&g.machine);
  struct err err = ERR_NONE;
  struct http_limits limits = limits_of(config);
  prctl(PR_SET_NAME, "cloche-gate");
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  uv_loop_init(&loop);
  uv_timer_init(&loop, &g.unsent_timer);
  g.unsent_timer.data = &g;
  g.throttle.per_minute = config->auth_failures_per_minute;
  g.unknown.per_minute = config->unknown_boxes_per_minute;
  g.control = ipc_new(&loop, CONTROL_FD, &control_ops, &g);
  g.server = http_server_new(&loop, &limits, dispatch_request, &g);
  tls_prepare();
  int confined = confine_rights(&gate_role, config->uid, &err);
  if (!confined)
    disk_threads_start(&g);
  if (confined || confine_filter(&gate_role, config->uid, &err))
    return control_failed(g.control, &err);
  ipc_send(g.control, (struct str){(char[]){CONTROL_READY}, 1}, -1);
  uv_run(&loop, UV_RUN_DEFAULT);
  return 0;
}
