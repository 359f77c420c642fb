/* bell.c - see bell.h. Whatever comes of a ring, the socket that came with it is closed here: the agent sees its end and helps
 * itself where no fork took it over. Only the box's first process is heard, and not more often than a nursery can
 * be made: a box can make the zygote work no harder than that. A ring of any other kind is the last one: root of a box could
 * ring without end, and must not keep the warden busy by it. */
#include "warden/warm/nursery_request.h"

#include "wire/boot_packet.h"
#include "warden/warm/warm_pool.h"
#include "warden/box_spec.h"
#include "warden/warm/zygote.h"
#include <fcntl.h>
#include <sys/socket.h>

#define RING_EVERY_US 1000000

struct bell {
  uv_poll_t poll;
  struct box *box;
  int fd;
  int waiting; /* a ring that came while the zygote was loading, or -1 */
  int64_t next_us;
};

struct errand {
  uv_work_t work;
  struct warden *warden;
  struct zygote *zygote;
  struct arena arena;
  struct jail_spec spec;
  struct jail_net net;
  struct jail jail; /* its pidfd is the errand's own */
  char name[64], dir[512], runtime[80];
  int sock;
};

/* ---- the errand ---- */

static void errand_work(uv_work_t *work)
{
  struct errand *e = work->data;
  struct err err = ERR_NONE;
  if (zygote_enter(e->zygote, &e->spec, &e->jail, true, e->sock, &err))
    log_warn("box %s makes a nursery of its own: %s", e->name, err.msg);
}

static void errand_done(uv_work_t *work, int status)
{
  struct errand *e = work->data;
  e->warden->births--;
  close(e->sock);
  if (e->jail.pidfd >= 0)
    close(e->jail.pidfd);
  arena_free(&e->arena);
  free(e);
}

static void send_nursery(struct box *b, struct zygote *z, int sock)
{
  struct errand *e = xcalloc(1, sizeof(*e));
  e->warden = b->warden;
  e->zygote = z;
  e->sock = sock;
  e->jail = JAIL_NONE;
  e->jail.pidfd = fcntl(b->jail.pidfd, F_DUPFD_CLOEXEC, 3);
  memcpy(e->name, b->name, sizeof(e->name));
  memcpy(e->dir, b->dir, sizeof(e->dir));
  memcpy(e->runtime, b->row.runtime, sizeof(e->runtime));
  struct walls walls = {.build = b->build, .runtime = e->runtime, .name = e->name, .dir = e->dir, .slot = b->row.slot, .flags = b->row.flags};
  walls_plan(b->warden, &walls, &e->arena, &e->spec, &e->net);
  e->work.data = e;
  b->warden->births++;
  uv_queue_work(b->warden->loop, &e->work, errand_work, errand_done);
}

/* ---- the bell ---- */

/* What was said, by whom: the sender's pid, with its socket in *sock, or -1 there. */
static pid_t hear(int fd, char *text, size_t size, int *sock)
{
  union {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(struct ucred)) + CMSG_SPACE(4 * sizeof(int))];
  } control;
  struct iovec part = {text, size - 1};
  struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof(control)};
  pid_t from = 0;
  ssize_t n = recvmsg(fd, &m, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
  *sock = -1;
  if (n < 0)
    return 0;
  text[n] = 0;
  for (struct cmsghdr *c = CMSG_FIRSTHDR(&m); c; c = CMSG_NXTHDR(&m, c)) {
    size_t bytes = c->cmsg_len - CMSG_LEN(0);
    int given[4];
    if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SCM_CREDENTIALS && bytes == sizeof(struct ucred))
      memcpy(&from, CMSG_DATA(c) + offsetof(struct ucred, pid), sizeof(from));
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
      continue;
    memcpy(given, CMSG_DATA(c), MIN(bytes, sizeof(given)));
    for (size_t i = 0; i < MIN(bytes, sizeof(given)) / sizeof(int); i++)
      if (*sock < 0)
        *sock = given[i];
      else
        close(given[i]);
  }
  return from;
}

static bool is_stream(int sock)
{
  int domain = 0, type = 0;
  socklen_t len = sizeof(int);
  return sock >= 0 && !getsockopt(sock, SOL_SOCKET, SO_DOMAIN, &domain, &len) && !getsockopt(sock, SOL_SOCKET, SO_TYPE, &type, &len) &&
         domain == AF_UNIX && type == SOCK_STREAM;
}

/* Loading takes a zygote no longer than it would take the box. */
static void answer(struct bell *bell)
{
  struct box *b = bell->box;
  struct zygote *z = b->build->zygote;
  if (bell->waiting < 0)
    return;
  if (!zygote_hopeful(z) && b->build->row.kind == BUILD_PLAIN) {
    shelf_load(b->warden, b->build); /* lets it go again when nobody needs it */
    zygote_of(b->warden, b->build);
    zygote_used(b->build, clock_mono_us());
  }
  if (!zygote_ready(z) && zygote_hopeful(z))
    return;
  if (zygote_ready(z) && jail_owner(&b->jail) == zygote_user(z))
    send_nursery(b, z, steal_fd(&bell->waiting));
  else
    close(steal_fd(&bell->waiting));
}

void bells_answer(struct warden *w)
{
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);)
    if (((struct box *)value)->bell)
      answer(((struct box *)value)->bell);
}

static void rung(uv_poll_t *poll, int status, int events)
{
  struct bell *bell = poll->data;
  struct box *b = bell->box;
  struct warden *w = b->warden;
  char text[32];
  int64_t now = clock_mono_us();
  cleanup_fd int sock = -1;
  pid_t from = hear(bell->fd, text, sizeof(text), &sock);
  if (w->stopping)
    return;
  if (from != b->jail.init.pid || !is_stream(sock) || strcmp(text, "python") != 0 || now < bell->next_us) {
    log_info("box %s rings without need: its bell is taken down", b->name);
    bell_take(b);
    return;
  }
  bell->next_us = now + RING_EVERY_US;
  if (bell->waiting < 0)
    bell->waiting = steal_fd(&sock);
  answer(bell);
}

static void bell_closed(uv_handle_t *h)
{
  free(h->data);
}

void bell_hang(struct box *b)
{
  struct err err = ERR_NONE;
  if (b->bell || !b->build->zygote || strcmp(b->row.runtime, b->warden->runtime))
    return;
  int fd = jail_bell(&b->jail, BOOT_BELL, &err);
  if (fd < 0) {
    log_debug("box %s has no bell: %s", b->name, err.msg);
    return;
  }
  b->bell = xcalloc(1, sizeof(*b->bell));
  b->bell->fd = fd;
  b->bell->waiting = -1;
  b->bell->box = b;
  uv_poll_init(b->warden->loop, &b->bell->poll, fd);
  b->bell->poll.data = b->bell;
  uv_poll_start(&b->bell->poll, UV_READABLE, rung);
}

void bell_take(struct box *b)
{
  struct bell *bell = steal(&b->bell);
  if (!bell)
    return;
  uv_poll_stop(&bell->poll);
  close(bell->fd);
  if (bell->waiting >= 0)
    close(bell->waiting);
  uv_close((uv_handle_t *)&bell->poll, bell_closed);
}
