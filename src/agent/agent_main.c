/* SPDX-License-Identifier: Apache-2.0 */
/* agent_main.c - cloche-agent: the first process of a box. See agent.h for the way through its folders.
 *
 * The listeners are open before the boot packet is read, so everything that takes time is done when the box gets its
 * identity; requests that come early wait in the kernel's queue. */
#include "agent/agent.h"
#include "agent/agent_boot.h"
#include "agent/build/applets.h"
#include "agent/interpreter/interp.h"
#include "agent/envd/box_metrics.h"
#include "agent/pid1.h"
#include "agent/envd/process.h"
#include "agent/envd/router.h"
#include "agent/thread_pool.h"
#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
/* An agent with sanitizers is for tests (make asan-agent). Looking for leaks needs to trace the first process of a box,
 * which nobody in a box may. */
__attribute__((visibility("default"))) const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
  return "detect_leaks=0:handle_abort=1";
}
#endif

static uv_loop_t loop;
static struct http_server *server;

/* CLOCHE_AGENT_PORT lets tests run several agents on one machine. */
static uint16_t port_wanted(void)
{
  uint64_t port = 0;
  const char *text = getenv("CLOCHE_AGENT_PORT");
  return text && str_u64(str_of(text), &port) == 0 && port > 0 && port < 65536 ? (uint16_t)port : AGENT_PORT;
}

static int listener_open(struct err *err)
{
  struct sockaddr_in addr = {.sin_family = AF_INET, .sin_port = htons(port_wanted()), .sin_addr.s_addr = INADDR_ANY};
  int on = 1;
  cleanup_fd int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0)
    return err_errno(err, "socket");
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (bind(fd, (struct sockaddr *)&addr, sizeof(addr)) < 0)
    return err_errno(err, "bind to port %u", port_wanted());
  if (listen(fd, 1024) < 0)
    return err_errno(err, "listen");
  return steal_fd(&fd);
}

static void leave(void)
{
  process_stop_all();
  interp_stop();
  exit(0);
}

static void agent_defaults(struct agent *a)
{
  a->loop = &loop;
  a->box_id = xstrdup("");
  a->template_id = xstrdup("");
  a->build_id = xstrdup("");
  a->default_user = xstrdup("root");
  env_set(&a->internal, STR("E2B_SANDBOX"), STR("true"));
}

static int agent_open(struct agent *a, struct err *err)
{
  struct http_limits limits = http_limits_default;
  limits.idle_ms = 660 * 1000; /* longer than any proxy in front keeps an idle connection */
  limits.body_ms = 300 * 1000;
  int fd = listener_open(err);
  if (fd < 0)
    return fd;
  server = http_server_new(&loop, &limits, router_request, a);
  int rc = http_server_listen(server, fd);
  if (rc < 0)
    return err_set(err, rc, "cannot listen: %s", strerror(-rc));
  rc = pid1_start(&loop, leave, err);
  if (rc < 0)
    return rc;
  rc = interp_start(&loop, a);
  return rc < 0 ? err_set(err, rc, "interpreter: %s", strerror(-rc)) : 0;
}

/* The smallest box there is, for finding out what the host can do: nothing open, nothing to do. */
static _Noreturn void rest(void)
{
  syscall(SYS_close_range, 0, ~0u, 0);
  for (;;)
    pause();
}

int main(int argc, char **argv)
{
  if (argc == 2 && !strcmp(argv[1], "--rest"))
    rest();
  if (argc > 1)
    return applet_main(argc, argv);
  static struct agent agent;
  struct err err = ERR_NONE;
  pid1_prepare();
  log_open("agent", 2);
  uv_loop_init(&loop);
  work_start(&loop);
  agent_defaults(&agent);
  metrics_start();
  int rc = agent_open(&agent, &err);
  if (rc >= 0)
    rc = boot_receive(&agent, &err);
  if (rc < 0) {
    log_error("%s", err.msg);
    boot_answer(err.msg);
    return 1;
  }
  if (rc == BOOT_WAITING)
    boot_wait(&agent);
  else if (rc == BOOT_BUILDS)
    boot_build(&agent);
  else
    boot_finish(&agent);
  uv_run(&loop, UV_RUN_DEFAULT);
  return 0;
}
