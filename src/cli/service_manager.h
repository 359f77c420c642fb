/* SPDX-License-Identifier: Apache-2.0 */
/* service_manager.h - what the supervisor and a service manager (systemd) say to each other: readiness, status and the
 * watchdog's sign of life by the notification socket; listening sockets that a .socket unit opened, and those that the
 * manager keeps while one server ends and the next begins. Without a service manager all of it does nothing.
 *
 * The protocol is lines of text in one datagram, documented and stable, so it is written here (service_manager.c)
 * rather than linked: libsystemd would bring its compression libraries into a process that runs as root. */
#ifndef CLOCHE_CLI_SERVICE_MANAGER_H
#define CLOCHE_CLI_SERVICE_MANAGER_H

#include "base/base.h"
#include <sys/socket.h>
#include <sys/un.h>

#define SERVICE_NAME_MAX 255 /* of a descriptor: what the manager takes */

struct service_fd {
  int fd; /* -1: taken */
  char name[SERVICE_NAME_MAX + 1];
};

struct service_manager {
  int notify; /* -1: none */
  struct sockaddr_un to;
  socklen_t to_size;
  int64_t watchdog_us, alive_us; /* 0: it does not watch; when it last heard */
  VEC(struct service_fd) given;
};

/* Reads NOTIFY_SOCKET, WATCHDOG_USEC, LISTEN_FDS and the like, and takes them out of the environment: they are for this
 * process alone. */
void service_open(struct service_manager *m);
bool service_here(const struct service_manager *m);
/* Lines of NAME=VALUE. */
void service_tell(struct service_manager *m, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The manager keeps a copy of the descriptor, and hands it to the next start under this name. */
void service_keep(struct service_manager *m, const char *name, int fd);
void service_drop(struct service_manager *m, const char *name);
/* A descriptor that was given under this name; the caller's from then on. -1: none (any more). */
int service_take(struct service_manager *m, const char *name);
/* What nobody took is closed, and no longer kept; each is logged. */
void service_close_rest(struct service_manager *m);
/* Says that we live when it is time. Returns the milliseconds until the next time, `longest` at most. */
int service_alive(struct service_manager *m, int longest);

#endif
