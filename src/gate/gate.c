/* gate.c - the public role's loop: takes listening sockets and warden links from the supervisor, gives up every right it
 * does not need, and serves. */
#include "gate/gate.h"

#include "gate/confine.h"
#include "warden/control.h"
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/resource.h>

static void control_packet(struct link *l, struct str packet, int fd, void *arg)
{
  struct gate *g = arg;
  char letter = packet.p[0];
  if (letter == CONTROL_LINK && fd >= 0)
    ask_link(g, fd);
  else if (letter == CONTROL_LISTEN && fd >= 0)
    http_server_listen(g->server, fd);
  else if (fd >= 0)
    close(fd);
  if (letter == CONTROL_STOP)
    uv_stop(g->loop);
}

static void control_closed(struct link *l, void *arg)
{
  struct gate *g = arg;
  uv_stop(g->loop);
}

static const struct link_ops control_ops = {control_packet, control_closed};

int gate_main(const struct gate_config *config)
{
  static uv_loop_t loop;
  struct gate g = {.config = config, .loop = &loop};
  struct err err = ERR_NONE;
  struct http_limits limits = http_limits_default;
  limits.head_ms = config->client_head_s * 1000;
  limits.idle_ms = config->client_idle_s * 1000;
  limits.body_ms = config->client_body_s * 1000;
  limits.linger_ms = config->client_stall_s * 1000;
  limits.conns_max = config->connections_max;
  prctl(PR_SET_NAME, "cloche-gate");
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  uv_loop_init(&loop);
  g.control = link_new(&loop, CONTROL_FD, &control_ops, &g);
  g.server = http_server_new(&loop, &limits, door_request, &g);
  if (gate_confine(config->uid, &err)) {
    char word[600];
    log_error("%s", err.msg);
    int n = snprintf(word, sizeof(word), "%c%s", CONTROL_FAILED, err.msg);
    link_send(g.control, (struct str){word, (size_t)MIN(n, (int)sizeof(word) - 1)}, -1);
    return 1;
  }
  link_send(g.control, (struct str){(char[]){CONTROL_READY}, 1}, -1);
  uv_run(&loop, UV_RUN_DEFAULT);
  return 0;
}
