/* SPDX-License-Identifier: Apache-2.0 */
/* service_manager.c - see service_manager.h, sd_notify(3), sd_listen_fds(3). */
#include "cli/service_manager.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#define FIRST_FD    3
#define GIVEN_MAX   4096
#define MESSAGE_MAX 2048

/* ---- beginnings ---- */

/* A variable for this process: LISTEN_PID and WATCHDOG_PID say whose theirs are. */
static bool number(const char *name, uint64_t max, uint64_t *out)
{
  const char *text = getenv(name);
  return text && !str_u64(str_of(text), out) && *out <= max;
}

static bool for_us(const char *name)
{
  uint64_t pid;
  return !getenv(name) || (number(name, INT32_MAX, &pid) && (pid_t)pid == getpid());
}

/* A path, or @ and an abstract name. */
static void open_socket(struct service_manager *m)
{
  const char *path = getenv("NOTIFY_SOCKET");
  size_t n = path ? strlen(path) : 0;
  m->notify = -1;
  if (n < 2 || (path[0] != '/' && path[0] != '@') || n >= sizeof(m->to.sun_path)) {
    if (n)
      log_warn("NOTIFY_SOCKET '%s' is neither a path nor an abstract name; the service manager is not told", path);
    return;
  }
  m->to.sun_family = AF_UNIX;
  memcpy(m->to.sun_path, path, n);
  if (path[0] == '@')
    m->to.sun_path[0] = 0;
  m->to_size = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + n + (path[0] == '/'));
  m->notify = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
}

static void take_given(struct service_manager *m)
{
  const char *names = getenv("LISTEN_FDNAMES");
  struct str rest = str_of(names ? names : ""), name;
  uint64_t n;
  if (!getenv("LISTEN_PID") || !for_us("LISTEN_PID") || !number("LISTEN_FDS", GIVEN_MAX, &n))
    return;
  for (int i = 0; i < (int)n; i++) {
    struct service_fd given = {.fd = FIRST_FD + i};
    str_cut(rest, ':', &name, &rest);
    str_copyz(str_sub(name, 0, SERVICE_NAME_MAX), given.name, sizeof(given.name));
    if (!fd_cloexec(given.fd))
      vec_push(&m->given, given);
  }
}

void service_open(struct service_manager *m)
{
  static const char *const names[] = {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
                                      "LISTEN_PID",    "LISTEN_FDS",    "LISTEN_FDNAMES"};
  uint64_t watchdog;
  *m = (struct service_manager){.notify = -1};
  open_socket(m);
  if (m->notify >= 0 && for_us("WATCHDOG_PID") && number("WATCHDOG_USEC", INT64_MAX, &watchdog))
    m->watchdog_us = (int64_t)watchdog;
  take_given(m);
  for (size_t i = 0; i < ARRAY_LEN(names); i++)
    unsetenv(names[i]);
}

bool service_here(const struct service_manager *m)
{
  return m->notify >= 0;
}

/* ---- telling ---- */

static void tell(struct service_manager *m, const char *text, size_t n, int fd)
{
  union {
    char room[CMSG_SPACE(sizeof(int))];
    struct cmsghdr align;
  } control = {0};
  struct iovec part = {(char *)text, n};
  struct msghdr msg = {.msg_name = &m->to, .msg_namelen = m->to_size, .msg_iov = &part, .msg_iovlen = 1};
  if (fd >= 0) {
    msg.msg_control = control.room;
    msg.msg_controllen = sizeof(control.room);
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    *c = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(c), &fd, sizeof(int));
  }
  if (sendmsg(m->notify, &msg, MSG_NOSIGNAL) < 0)
    log_warn("the service manager was not told '%.*s': %s", (int)strcspn(text, "\n"), text, strerrordesc_np(errno));
}

void service_tell(struct service_manager *m, const char *format, ...)
{
  char text[MESSAGE_MAX];
  va_list args;
  if (m->notify < 0)
    return;
  va_start(args, format);
  int n = vsnprintf(text, sizeof(text), format, args);
  va_end(args);
  tell(m, text, MIN((size_t)n, sizeof(text) - 1), -1);
}

void service_keep(struct service_manager *m, const char *name, int fd)
{
  char text[MESSAGE_MAX];
  if (m->notify >= 0)
    tell(m, text, (size_t)snprintf(text, sizeof(text), "FDSTORE=1\nFDNAME=%s", name), fd);
}

void service_drop(struct service_manager *m, const char *name)
{
  service_tell(m, "FDSTOREREMOVE=1\nFDNAME=%s", name);
}

int service_alive(struct service_manager *m, int longest)
{
  if (!m->watchdog_us)
    return longest;
  int64_t now = clock_mono_us(), half = m->watchdog_us / 2;
  if (now - m->alive_us >= half) {
    service_tell(m, "WATCHDOG=1");
    m->alive_us = now;
  }
  return (int)MIN((int64_t)longest, (m->alive_us + half - now) / 1000 + 1);
}

/* ---- what was given ---- */

int service_take(struct service_manager *m, const char *name)
{
  for (size_t i = 0; i < m->given.n; i++)
    if (m->given.p[i].fd >= 0 && !strcmp(m->given.p[i].name, name))
      return steal_fd(&m->given.p[i].fd);
  return -1;
}

void service_close_rest(struct service_manager *m)
{
  for (size_t i = 0; i < m->given.n; i++) {
    if (m->given.p[i].fd < 0)
      continue;
    log_info("descriptor '%s' of the service manager is not used; closing it", m->given.p[i].name);
    close(m->given.p[i].fd);
    service_drop(m, m->given.p[i].name);
  }
  vec_free(&m->given);
}
