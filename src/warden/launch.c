/* birth.c - see birth.h. The worker sees only copies: the loop may end the box meanwhile. */
#include "warden/launch.h"

#include "wire/boot_packet.h"
#include "warden/identity.h"
#include "warden/checkpoint_store.h"
#include "warden/warm/warm_pool.h"
#include "warden/box_spec.h"
#include "warden/warm/zygote.h"
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>

/* ---- the boot packet ---- */

static void boot_field(struct buf *b, enum boot_tag tag, struct str value)
{
  buf_add(b, &(struct boot_field){tag, (uint32_t)value.n}, sizeof(struct boot_field));
  buf_adds(b, value);
}

static void boot_identity(struct buf *p, const struct box *b)
{
  boot_field(p, BOOT_BOX_ID, str_of(b->row.id));
  boot_field(p, BOOT_TEMPLATE_ID, str_of(b->row.template_id));
  boot_field(p, BOOT_BUILD_ID, str_of(b->row.build));
  boot_field(p, BOOT_SECRET, str_of(b->row.secret));
  boot_field(p, BOOT_INIT, str_of(b->row.init));
}

static void boot_whole(struct buf *p, const struct box *b)
{
  boot_field(p, BOOT_TEMPLATE, str_of(b->build->row.config));
  boot_identity(p, b);
}

/* What the agent answered: 0, or why not. */
static int agent_word(struct birth *h, int fd)
{
  char word[512];
  ssize_t n = recv(fd, word, sizeof(word) - 1, 0);
  if (n >= 1 && word[0] == BOOT_READY)
    return 0;
  if (n >= 1 && word[0] == BOOT_FAILED) {
    word[n] = 0;
    return err_set(&h->err, -EIO, "the agent could not start: %s", word + 1);
  }
  return err_set(&h->err, -EIO, "the agent ended before it was ready");
}

/* ---- from nothing, on a worker ---- */

static int wait_ready(struct birth *h)
{
  struct pollfd p = {.fd = h->boot_fd, .events = POLLIN};
  int k;
  do
    k = poll(&p, 1, BIRTH_READY_MS);
  while (k < 0 && errno == EINTR);
  if (k == 0)
    return err_set(&h->err, -ETIMEDOUT, "the agent did not answer within %d s", BIRTH_READY_MS / 1000);
  return agent_word(h, h->boot_fd);
}

static int send_packet(struct birth *h, int nursery)
{
  ssize_t sent = fd_send(h->boot_fd, h->boot.p, h->boot.n, &nursery, nursery >= 0 ? 1 : 0, 0);
  return sent < 0 ? err_set(&h->err, (int)sent, "boot packet of %zu bytes not sent: %s", h->boot.n, strerrordesc_np((int)-sent)) : 0;
}

/* In walls that stand; where they turn out not to, in new ones. */
static int raise_walls(struct birth *h)
{
  if (h->blank && !jail_raise(&h->spec, steal(&h->blank), &h->jail, &h->err))
    return 0;
  if (h->err.msg[0])
    log_warn("walls made ahead were of no use for box %s: %s", h->spec.id, h->err.msg);
  h->err = ERR_NONE;
  return jail_spawn(&h->spec, &h->jail, &h->err);
}

static int give_birth(struct birth *h)
{
  int boot[2], nursery[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, boot))
    return err_errno(&h->err, "socketpair");
  h->boot_fd = boot[0];
  cleanup_fd int theirs = boot[1];
  int size = BOOT_MAX * 2;
  setsockopt(h->boot_fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
  if (h->zygote && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, nursery))
    return err_errno(&h->err, "socketpair");
  cleanup_fd int agents = nursery[0], forks = nursery[1];
  if (h->zygote)
    boot_field(&h->boot, BOOT_NURSERY, STR("python"));
  if (buf_failed(&h->boot))
    return err_set(&h->err, -E2BIG, "variables and settings of the sandbox exceed %u bytes", BOOT_MAX);
  h->spec.boot_fd = theirs;
  int r = send_packet(h, agents);
  r = r ? r : raise_walls(h);
  if (r)
    return r;
  close(steal_fd(&theirs));
  h->told_us = clock_mono_us();
  struct err why = ERR_NONE;
  if (h->zygote && zygote_enter(h->zygote, &h->spec, &h->jail, false, forks, &why))
    log_warn("box %s warms itself: %s", h->spec.id, why.msg); /* the agent sees its socket close */
  return 0;
}

static void birth_work(uv_work_t *work)
{
  struct birth *h = work->data;
  h->result = give_birth(h);
  if (h->blank) /* it did not come so far */
    jail_blank_free(steal(&h->blank));
  if (!h->result && h->box)
    h->result = wait_ready(h);
  h->ready_us = clock_mono_us();
}

static void birth_free(struct birth *h)
{
  if (h->boot_fd >= 0)
    close(h->boot_fd);
  buf_free(&h->boot);
  arena_free(&h->arena);
  free(h);
}

static void birth_done(uv_work_t *work, int status)
{
  struct birth *h = work->data;
  h->done(h);
  birth_free(h);
}

static struct birth *birth_new(struct warden *w, const char *name, unsigned slot, void (*done)(struct birth *))
{
  struct birth *h = xcalloc(1, sizeof(*h));
  h->warden = w;
  h->done = done;
  h->slot = slot;
  h->boot_fd = -1;
  h->jail = JAIL_NONE;
  h->work.data = h;
  buf_init(&h->boot, BOOT_MAX);
  snprintf(h->name, sizeof(h->name), "%s", name);
  snprintf(h->dir, sizeof(h->dir), "%s/boxes/%s", w->config->data, name);
  return h;
}

static void birth_begin(struct birth *h, struct build *build, unsigned flags, struct str allow, struct str deny)
{
  struct warden *w = h->warden;
  /* A copy of one box is not worth a loaded Python of its own. */
  struct zygote *z = w->config->zygotes && build->row.kind == BUILD_PLAIN ? zygote_of(w, build) : NULL;
  struct walls walls = {
      .build = build, .runtime = w->runtime, .name = h->name, .dir = h->dir, .slot = h->slot, .flags = flags, .allow = allow, .deny = deny};
  walls_plan(w, &walls, &h->arena, &h->spec, &h->net);
  h->zygote = zygote_ready(z) ? z : NULL;
  h->spec.owner = zygote_owner(w, build);
  h->spec.keep_dir = h->again;
  uv_queue_work(w->loop, &h->work, birth_work, birth_done);
}

void birth_ahead(struct warden *w, struct build *build, struct shelf *s, unsigned slot, void (*done)(struct birth *))
{
  char name[32] = "ready-";
  random_id(name + 6, 16);
  struct birth *h = birth_new(w, name, slot, done);
  h->shelf = s;
  boot_field(&h->boot, BOOT_TEMPLATE, str_of(build->row.config));
  boot_field(&h->boot, BOOT_PARK, STR_NONE);
  birth_begin(h, build, BOX_INTERNET, STR_NONE, STR_NONE);
}

/* ---- from the pool, on the loop ---- */

static void handle_closed(uv_handle_t *handle)
{
  free(handle);
}

static void named(struct birth *h)
{
  uv_poll_stop(h->poll);
  uv_timer_stop(h->timer);
  uv_close((uv_handle_t *)h->poll, handle_closed);
  uv_close((uv_handle_t *)h->timer, handle_closed);
  h->done(h);
  birth_free(h);
}

static void agent_answered(uv_poll_t *poll, int status, int events)
{
  struct birth *h = poll->data;
  h->ready_us = clock_mono_us();
  h->result = agent_word(h, h->boot_fd);
  named(h);
}

static void agent_silent(uv_timer_t *timer)
{
  struct birth *h = timer->data;
  h->result = err_set(&h->err, -ETIMEDOUT, "the agent did not answer within %d s", BIRTH_READY_MS / 1000);
  named(h);
}

static void birth_named(struct birth *h, struct parked *p)
{
  h->boot_fd = p->boot;
  h->jail = p->jail;
  h->result = buf_failed(&h->boot) ? err_set(&h->err, -E2BIG, "variables and settings of the sandbox exceed %u bytes", BOOT_MAX) : send_packet(h, -1);
  h->told_us = clock_mono_us();
  h->poll = xcalloc(1, sizeof(*h->poll));
  h->timer = xcalloc(1, sizeof(*h->timer));
  uv_poll_init(h->warden->loop, h->poll, h->boot_fd);
  uv_timer_init(h->warden->loop, h->timer);
  h->poll->data = h->timer->data = h;
  if (h->result) {
    named(h);
    return;
  }
  uv_poll_start(h->poll, UV_READABLE | UV_DISCONNECT, agent_answered);
  uv_timer_start(h->timer, agent_silent, BIRTH_READY_MS, 0);
}

void birth_start(struct box *b, struct parked *p, struct jail_blank *blank, const struct box_order *o, void (*done)(struct birth *))
{
  struct birth *h = birth_new(b->warden, b->name, b->row.slot, done);
  h->box = b;
  if (p) {
    boot_identity(&h->boot, b); /* it knows its template */
    birth_named(h, p);
    return;
  }
  h->blank = blank;
  boot_whole(&h->boot, b);
  birth_begin(h, b->build, b->row.flags, o->allow, o->deny);
}

static void birth_of_row(struct box *b, bool again, void (*done)(struct birth *), void *arg)
{
  struct birth *h = birth_new(b->warden, b->name, b->row.slot, done);
  h->box = b;
  h->arg = arg;
  h->again = again;
  boot_whole(&h->boot, b);
  birth_begin(h, b->build, b->row.flags, str_of(b->row.allow), str_of(b->row.deny));
}

void birth_plain(struct box *b, void (*done)(struct birth *), void *arg)
{
  birth_of_row(b, false, done, arg);
}

void birth_again(struct box *b, void (*done)(struct birth *))
{
  birth_of_row(b, true, done, NULL);
}

/* ---- from another box's memory ---- */

static void wake(struct birth *h)
{
  h->told_us = clock_mono_us();
  h->result = jail_freeze(h->warden->instance, h->name, false, &h->err); /* where it was made ahead */
  if (!h->result)
    h->result = identity_tell(&h->jail, h->was, &h->row, &h->err);
  h->ready_us = clock_mono_us();
}

static void wake_work(uv_work_t *work)
{
  wake(work->data);
}

static void restore_work(struct turn *t)
{
  struct birth *h = (struct birth *)((char *)t - offsetof(struct birth, turn));
  char image[1024];
  image_path(h->warden, h->image, image);
  struct jail_criu how = h->warden->criu;
  how.fleeting = h->fleeting;
  how.held = true;
  h->result = jail_restore(&how, &h->spec, image, &h->jail, &h->err);
  if (!h->result)
    jail_links_sweep(image, &h->jail, true);
  if (!h->result && h->box)
    wake(h);
}

static void restore_done(struct turn *t)
{
  struct birth *h = (struct birth *)((char *)t - offsetof(struct birth, turn));
  h->done(h);
  birth_free(h);
}

/* What it was, and who it is now. */
static void recall(struct birth *h, struct box *b, const char *image, const char *was)
{
  h->box = b;
  snprintf(h->image, sizeof(h->image), "%s", image);
  snprintf(h->was, sizeof(h->was), "%s", was);
  h->row = b->row;
  h->row.init = (char *)arena_z(&h->arena, str_of(b->row.init));
}

static void restore_begin(struct birth *h, struct build *build, const char *runtime, unsigned flags, struct str allow, struct str deny)
{
  snprintf(h->runtime, sizeof(h->runtime), "%s", runtime);
  h->fleeting = build->row.kind == BUILD_FORK;
  struct walls walls = {
      .build = build, .runtime = h->runtime, .name = h->name, .dir = h->dir, .slot = h->slot, .flags = flags, .allow = allow, .deny = deny};
  walls_plan(h->warden, &walls, &h->arena, &h->spec, &h->net);
  h->spec.owner = zygote_owner(h->warden, build);
  h->turn.act = restore_work;
  h->turn.done = restore_done;
  turn_wait(h->warden, &h->turn);
}

void birth_restore(struct box *b, const char *image, const char *was, void (*done)(struct birth *), void *arg)
{
  struct birth *h = birth_new(b->warden, b->name, b->row.slot, done);
  h->arg = arg;
  recall(h, b, image, was);
  restore_begin(h, b->build, b->row.runtime, b->row.flags, str_of(b->row.allow), str_of(b->row.deny));
}

void birth_restore_ahead(struct warden *w, struct build *build, struct shelf *s, unsigned slot, void (*done)(struct birth *))
{
  char name[32] = "ready-";
  random_id(name + 6, 16);
  struct birth *h = birth_new(w, name, slot, done);
  h->shelf = s;
  snprintf(h->image, sizeof(h->image), "%s", build->row.image);
  restore_begin(h, build, build->row.runtime, BOX_INTERNET, STR_NONE, STR_NONE);
}

void birth_wake(struct box *b, const struct parked *p, void (*done)(struct birth *))
{
  struct birth *h = birth_new(b->warden, b->name, b->row.slot, done);
  recall(h, b, b->build->row.image, b->build->row.secret);
  h->jail = p->jail;
  uv_queue_work(b->warden->loop, &h->work, wake_work, birth_done);
}
