/* SPDX-License-Identifier: Apache-2.0 */
/* nursery_request.c - see nursery_request.h. Whatever comes of a request, its connection is closed here: the agent sees
 * its end and helps itself where no fork took it over. Only the box's first process is heard, and not more often than a
 * nursery can be made: a box can make the zygote work no harder than that. Any other connection closes the
 * listener: root of a box could connect without end, and must not keep the warden busy by it. Nothing is read from the
 * box here, and no descriptor accepted (box_socket.h). */
#include "warden/warm/nursery_request.h"

#include "wire/boot_packet.h"
#include "wire/box_socket.h"
#include "warden/warm/warm_pool.h"
#include "warden/core/box_spec.h"
#include "warden/core/box_state.h"
#include "warden/core/warden_state.h"
#include "warden/warm/zygote.h"
#include "warden/core/worker_pool.h"
#include "wire/sizes.h"
#include <fcntl.h>
#include <sys/socket.h>

#define REQUEST_EVERY_US 1000000
#define BACKLOG          2 /* connections not accepted yet */

struct nursery_listener {
  uv_poll_t poll;
  struct box *box;
  int fd;
  int waiting; /* a request that came while the zygote was loading, or -1 */
  int64_t next_us;
};

struct nursery_fork_job {
  uv_work_t work;
  struct warden *warden;
  struct zygote *zygote;
  struct arena arena;
  struct jail_spec spec;
  struct jail_net net;
  struct jail jail; /* its pidfd is a duplicate */
  char name[HOST_NAME_SIZE], dir[DATA_DIR_SIZE], runtime[LAYER_ID_SIZE];
  int sock;
};

/* ---- the fork, on a worker ---- */

/* The fork takes descriptors from the agent, and says so to the socket itself when it is the box's own (zygote.py). */
static void nursery_fork_work(uv_work_t *work)
{
  struct nursery_fork_job *e = work->data;
  struct err err = ERR_NONE;
  if (zygote_enter(e->zygote, &e->spec, &e->jail, true, e->sock, &err))
    log_warn("box %s: no nursery from the zygote, the box starts its own: %s", e->name, err.msg);
}

static void nursery_fork_done(uv_work_t *work, int status)
{
  struct nursery_fork_job *e = work->data;
  e->warden->launches--;
  box_socket_close(e->sock);
  if (e->jail.pidfd >= 0)
    close(e->jail.pidfd);
  arena_free(&e->arena);
  free(e);
}

static void send_nursery(struct box *b, struct zygote *z, int sock)
{
  struct nursery_fork_job *e = xcalloc(1, sizeof(*e));
  e->warden = b->warden;
  e->zygote = z;
  e->sock = sock;
  e->jail = JAIL_NONE;
  e->jail.pidfd = fcntl(b->jail.pidfd, F_DUPFD_CLOEXEC, 3);
  memcpy(e->name, b->name, sizeof(e->name));
  memcpy(e->dir, b->dir, sizeof(e->dir));
  memcpy(e->runtime, b->row.runtime, sizeof(e->runtime));
  struct box_spec box_spec = {.build = b->build,
                              .runtime = e->runtime,
                              .name = e->name,
                              .dir = e->dir,
                              .slot = b->row.slot,
                              .flags = b->row.flags};
  box_jail_spec(b->warden, &box_spec, &e->arena, &e->spec, &e->net);
  e->work.data = e;
  b->warden->launches++;
  worker_pool_queue(b->warden, b->row.team, &e->work, nursery_fork_work, nursery_fork_done);
}

/* ---- requests ---- */

/* Unlike credentials in a message, those of a connection can't be chosen by who has rights in the box's namespace. */
static bool is_agent(const struct box *b, int sock)
{
  struct ucred peer;
  socklen_t len = sizeof(peer);
  return !getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &peer, &len) && peer.pid == b->jail.init.pid;
}

/* Loading takes a zygote no longer than it would take the box. */
static void answer(struct nursery_listener *nursery_listener)
{
  struct box *b = nursery_listener->box;
  struct zygote *z = b->build->zygote;
  if (nursery_listener->waiting < 0)
    return;
  if (!zygote_hopeful(z) && b->build->row.kind == BUILD_PLAIN) {
    warm_pool_load(b->warden, b->build); /* stops it again when it is not needed */
    zygote_of(b->warden, b->build);
    zygote_used(b->build, clock_mono_us());
  }
  if (!zygote_ready(z) && zygote_hopeful(z))
    return;
  if (zygote_ready(z) && jail_owner(&b->jail) == zygote_user(z))
    send_nursery(b, z, steal_fd(&nursery_listener->waiting));
  else
    box_socket_close(steal_fd(&nursery_listener->waiting));
}

void nursery_requests_answer(struct warden *w)
{
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);)
    if (((struct box *)value)->nursery_listener)
      answer(((struct box *)value)->nursery_listener);
}

static void on_connection(uv_poll_t *poll, int status, int events)
{
  struct nursery_listener *nursery_listener = poll->data;
  struct box *b = nursery_listener->box;
  struct warden *w = b->warden;
  int64_t now = clock_mono_us();
  cleanup_boxsock int sock = accept4(nursery_listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (sock < 0 || w->stopping)
    return;
  if (!is_agent(b, sock) || now < nursery_listener->next_us) {
    log_info("box %s: too many nursery requests, listener closed", b->name);
    nursery_unlisten(b);
    return;
  }
  nursery_listener->next_us = now + REQUEST_EVERY_US;
  if (nursery_listener->waiting < 0)
    nursery_listener->waiting = steal_fd(&sock);
  answer(nursery_listener);
}

static void nursery_listener_closed(uv_handle_t *h)
{
  free(h->data);
}

void nursery_listen(struct box *b)
{
  struct err err = ERR_NONE;
  if (b->nursery_listener || (b->row.flags & BOX_MICROVM) || !zygote_useful(b->build->zygote) ||
      strcmp(b->row.runtime, b->warden->runtime))
    return;
  cleanup_fd int fd = jail_listen_unix(&b->jail, BOOT_NURSERY_NAME "python", &err);
  if (fd >= 0)
    box_socket_guard(fd);
  if (fd < 0 || listen(fd, BACKLOG)) {
    log_debug("box %s: no nursery listener: %s", b->name, fd < 0 ? err.msg : strerror(errno));
    return;
  }
  b->nursery_listener = xcalloc(1, sizeof(*b->nursery_listener));
  b->nursery_listener->fd = steal_fd(&fd);
  b->nursery_listener->waiting = -1;
  b->nursery_listener->box = b;
  uv_poll_init(b->warden->loop, &b->nursery_listener->poll, b->nursery_listener->fd);
  b->nursery_listener->poll.data = b->nursery_listener;
  uv_poll_start(&b->nursery_listener->poll, UV_READABLE, on_connection);
}

void nursery_unlisten(struct box *b)
{
  struct nursery_listener *nursery_listener = steal(&b->nursery_listener);
  if (!nursery_listener)
    return;
  uv_poll_stop(&nursery_listener->poll);
  box_socket_close(nursery_listener->fd);
  if (nursery_listener->waiting >= 0)
    box_socket_close(nursery_listener->waiting);
  uv_close((uv_handle_t *)&nursery_listener->poll, nursery_listener_closed);
}
