/* SPDX-License-Identifier: Apache-2.0 */
/* launch.c - see launch.h. The worker sees only copies: the loop may end the box meanwhile. What is waited for inside
 * the box is waited for on the loop, for a bounded time: a mute agent costs its own box and keeps no thread. */
#include "warden/warm/launch.h"

#include "warden/core/agent_reply.h"
#include "wire/boot_packet.h"
#include "wire/box_socket.h"
#include "warden/core/identity.h"
#include "warden/core/checkpoint_store.h"
#include "warden/core/microvm.h"
#include "warden/core/warden_state.h"
#include "warden/warm/warm_box.h"
#include "warden/core/box_spec.h"
#include "warden/core/worker_pool.h"
#include "warden/warm/zygote.h"
#include "wire/sizes.h"
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
  if (b->egress && b->egress->cert.n)
    boot_field(p, BOOT_AUTHORITY, buf_str(&b->egress->cert));
  boot_field(p, BOOT_INIT, str_of(b->row.init));
}

static void boot_whole(struct buf *p, const struct box *b)
{
  boot_field(p, BOOT_TEMPLATE, str_of(b->build->row.config));
  boot_identity(p, b);
}

/* What the agent answered: 0, or why not; -EAGAIN: its answer, or the end of the socket behind it, is still to come. A
 * box that holds the socket could not be checkpointed yet. */
static int read_agent_status(struct launch *h)
{
  char word[AGENT_WORD_MAX];
  ssize_t n = box_socket_recv(h->boot_fd, word, sizeof(word));
  if (!h->answered && n != -EAGAIN) {
    int r = agent_reply_ready(str_make(word, n > 0 ? (size_t)n : 0), &h->err);
    if (r)
      return r;
    h->answered = true;
    n = box_socket_recv(h->boot_fd, word, sizeof(word));
  }
  if (n == -EAGAIN)
    return -EAGAIN;
  return n == 0 || n == -ECONNRESET ? 0 : err_set(&h->err, -EPROTO, "the agent kept its boot socket after its answer");
}

/* ---- from nothing, on a worker ---- */

static int send_packet(struct launch *h, int nursery)
{
  ssize_t sent = fd_send(h->boot_fd, h->boot.p, h->boot.n, &nursery, nursery >= 0 ? 1 : 0, MSG_DONTWAIT);
  return sent < 0 ? err_set(&h->err, (int)sent, "boot packet of %zu bytes not sent: %s", h->boot.n,
                            strerrordesc_np((int)-sent))
                  : 0;
}

/* In pre-created namespaces; in new ones where those are unusable. */
static int launch_in_namespaces(struct launch *h)
{
  if (h->created && !jail_start(&h->spec, steal(&h->created), &h->jail, &h->err))
    return 0;
  if (h->err.msg[0])
    log_warn("box %s: pre-created namespaces unusable, creating new ones: %s", h->spec.id, h->err.msg);
  h->err = ERR_NONE;
  return jail_spawn(&h->spec, &h->jail, &h->err);
}

static int launch_jail(struct launch *h)
{
  int boot[2], nursery[2] = {-1, -1};
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, boot))
    return err_errno(&h->err, "socketpair");
  h->boot_fd = boot[0];
  box_socket_guard(h->boot_fd);
  cleanup_fd int theirs = boot[1];
  int size = BOOT_MAX * 2;
  setsockopt(h->boot_fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size));
  if (h->zygote && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, nursery))
    return err_errno(&h->err, "socketpair");
  cleanup_boxsock int agents = nursery[0], forks = nursery[1];
  if (h->zygote)
    boot_field(&h->boot, BOOT_NURSERY, STR("python"));
  if (buf_failed(&h->boot))
    return err_set(&h->err, -E2BIG, "variables and settings of the sandbox exceed %u bytes", BOOT_MAX);
  h->spec.boot_fd = theirs;
  bool waits = h->spec.volumes_n > 0; /* the agent does nothing before it has the packet, and then it has its volumes */
  int r = waits ? 0 : send_packet(h, agents);
  r = r ? r : launch_in_namespaces(h);
  r = r || !waits ? r : send_packet(h, agents);
  if (r)
    return r;
  close(steal_fd(&theirs));
  h->boot_us = clock_mono_us();
  struct err why = ERR_NONE;
  if (h->zygote && zygote_enter(h->zygote, &h->spec, &h->jail, false, forks, &why))
    log_warn("box %s: zygote fork failed; cold Python start: %s", h->spec.id,
             why.msg); /* the agent sees its socket close */
  return 0;
}

static void launch_work(uv_work_t *work)
{
  struct launch *h = work->data;
  h->result = launch_jail(h);
  if (h->created) /* it did not come so far */
    jail_created_free(steal(&h->created));
}

static void launch_free(struct launch *h)
{
  if (h->boot_fd >= 0)
    box_socket_close(h->boot_fd);
  buf_free(&h->boot);
  arena_free(&h->arena);
  free(h);
}

static void launch_end(struct launch *h)
{
  h->done(h);
  launch_free(h);
}

/* ---- the agent's answer, on the loop ---- */

static void handle_closed(uv_handle_t *handle)
{
  free(handle);
}

static void listened(struct launch *h)
{
  uv_poll_stop(h->poll);
  uv_timer_stop(h->timer);
  uv_close((uv_handle_t *)h->poll, handle_closed);
  uv_close((uv_handle_t *)h->timer, handle_closed);
  launch_end(h);
}

static void on_agent_ready(uv_poll_t *poll, int status, int events)
{
  struct launch *h = poll->data;
  int r = read_agent_status(h);
  if (r == -EAGAIN)
    return;
  h->ready_us = clock_mono_us();
  h->result = r;
  listened(h);
}

static void on_agent_timeout(uv_timer_t *timer)
{
  struct launch *h = timer->data;
  h->result = err_set(&h->err, -ETIMEDOUT, "the agent did not %s within %u s (setting agent_seconds)",
                      h->answered ? "close its boot socket" : "answer", h->patience_s);
  listened(h);
}

/* A template's own command may take its time before the box counts as ready; the agent ends that wait itself. */
static unsigned patience(const struct launch *h)
{
  bool waits = str_search(str_of(h->box->build->row.config), STR("\"ready\"")) >= 0;
  bool guest = h->box->row.flags & BOX_MICROVM;
  return h->warden->config->agent_s + (waits ? START_WAIT_S : 0) + (guest ? microvm_patience_s(h->warden) : 0);
}

static void launch_listen(struct launch *h)
{
  h->patience_s = patience(h);
  h->poll = xcalloc(1, sizeof(*h->poll));
  h->timer = xcalloc(1, sizeof(*h->timer));
  uv_poll_init(h->warden->loop, h->poll, h->boot_fd);
  uv_timer_init(h->warden->loop, h->timer);
  h->poll->data = h->timer->data = h;
  uv_poll_start(h->poll, UV_READABLE | UV_DISCONNECT, on_agent_ready);
  uv_timer_start(h->timer, on_agent_timeout, h->patience_s * 1000ull, 0);
}

/* Threads are not kept waiting for what is in the box. */
static void launch_done(uv_work_t *work, int status)
{
  struct launch *h = work->data;
  if (!h->result && h->box)
    launch_listen(h);
  else
    launch_end(h);
}

static struct launch *launch_new(struct warden *w, const char *name, unsigned slot, void (*done)(struct launch *))
{
  struct launch *h = xcalloc(1, sizeof(*h));
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

static struct launch *launch_new_warm(struct warden *w, struct warm_pool *s, unsigned slot,
                                      void (*done)(struct launch *))
{
  char name[32] = "ready-";
  random_id(name + 6, 16);
  struct launch *h = launch_new(w, name, slot, done);
  h->warm_pool = s;
  return h;
}

/* What its jail is made of. `runtime` outlives the launch. */
static void launch_spec(struct launch *h, struct build *build, const char *runtime, unsigned flags, struct str allow,
                        struct str deny)
{
  struct box_spec spec = {.build = build,
                          .runtime = runtime,
                          .name = h->name,
                          .dir = h->dir,
                          .slot = h->slot,
                          .flags = flags,
                          .allow = allow,
                          .deny = deny,
                          .mounts = h->box ? h->box->row.mounts : NULL,
                          .egress = h->box ? h->box->egress : NULL};
  box_jail_spec(h->warden, &spec, &h->arena, &h->spec, &h->net);
  h->spec.owner = flags & BOX_MICROVM ? 0 : zygote_owner(h->warden, build); /* nothing enters a guest */
}

static bool has_mounts(const struct box *b)
{
  return b && b->row.mounts && b->row.mounts[0];
}

static void launch_queue(struct launch *h, uv_work_cb act, uv_after_work_cb done)
{
  const char *team = h->box ? h->box->row.team : "";
  if (has_mounts(h->box)) /* it waits for the volumes' filesystem */
    worker_pool_queue_volume(h->warden, team, &h->work, act, done);
  else
    worker_pool_queue(h->warden, team, &h->work, act, done);
}

static void launch_begin(struct launch *h, struct build *build, unsigned flags, struct str allow, struct str deny)
{
  struct warden *w = h->warden;
  /* A copy of one box is not worth a loaded Python of its own. */
  bool forks = w->config->zygotes && build->row.kind == BUILD_PLAIN && !(flags & BOX_MICROVM);
  struct zygote *z = forks ? zygote_of(w, build) : NULL;
  launch_spec(h, build, w->runtime, flags, allow, deny);
  h->zygote = zygote_ready(z) ? z : NULL;
  h->spec.keep_dir = h->again;
  launch_queue(h, launch_work, launch_done);
}

void launch_warm(struct warden *w, struct build *build, struct warm_pool *s, unsigned slot,
                 void (*done)(struct launch *))
{
  struct launch *h = launch_new_warm(w, s, slot, done);
  boot_field(&h->boot, BOOT_TEMPLATE, str_of(build->row.config));
  boot_field(&h->boot, BOOT_WAIT, STR_NONE);
  launch_begin(h, build, BOX_INTERNET, STR_NONE, STR_NONE);
}

/* ---- from the pool, on the loop ---- */

static void thaw(struct launch *h);

static void launch_named(struct launch *h)
{
  h->result = buf_failed(&h->boot)
                  ? err_set(&h->err, -E2BIG, "variables and settings of the sandbox exceed %u bytes", BOOT_MAX)
                  : send_packet(h, -1);
  h->boot_us = clock_mono_us();
  if (h->result)
    launch_end(h);
  else
    launch_listen(h);
}

static void mount_work(uv_work_t *work)
{
  struct launch *h = work->data;
  h->result = jail_mount_volumes(&h->spec, &h->jail, &h->err);
}

static void mounted(uv_work_t *work, int status)
{
  struct launch *h = work->data;
  if (h->result)
    launch_end(h);
  else if (h->checkpoint[0])
    thaw(h);
  else
    launch_named(h);
}

/* A warm box gets its volumes before it knows who it is. */
static bool launch_mounts(struct launch *h)
{
  struct box *b = h->box;
  if (!has_mounts(b))
    return false;
  launch_spec(h, b->build, b->row.runtime, b->row.flags, STR_NONE, STR_NONE);
  launch_queue(h, mount_work, mounted);
  return true;
}

void launch_start(struct box *b, struct warm_box *p, struct jail_created *created, void (*done)(struct launch *))
{
  struct launch *h = launch_new(b->warden, b->name, b->row.slot, done);
  h->box = b;
  if (p) {
    boot_identity(&h->boot, b); /* it knows its template */
    h->boot_fd = p->boot;
    h->jail = p->jail;
    if (!launch_mounts(h))
      launch_named(h);
    return;
  }
  h->created = created;
  boot_whole(&h->boot, b);
  launch_begin(h, b->build, b->row.flags, str_of(b->row.allow), str_of(b->row.deny));
}

static void launch_of_row(struct box *b, bool again, void (*done)(struct launch *), void *arg)
{
  struct launch *h = launch_new(b->warden, b->name, b->row.slot, done);
  h->box = b;
  h->arg = arg;
  h->again = again;
  boot_whole(&h->boot, b);
  launch_begin(h, b->build, b->row.flags, str_of(b->row.allow), str_of(b->row.deny));
}

void launch_from_build(struct box *b, void (*done)(struct launch *), void *arg)
{
  launch_of_row(b, false, done, arg);
}

void launch_cold(struct box *b, void (*done)(struct launch *))
{
  launch_of_row(b, true, done, NULL);
}

/* ---- from another box's memory ---- */

static void identified(void *arg, int result, const struct err *err)
{
  struct launch *h = arg;
  h->ready_us = clock_mono_us();
  h->result = result;
  if (result)
    h->err = *err;
  launch_end(h);
}

/* On the loop: it gets its identity once it runs. */
static void thaw(struct launch *h)
{
  h->boot_us = clock_mono_us();
  h->result = jail_freeze(h->warden->instance, h->name, false, &h->err);
  if (h->result)
    launch_end(h);
  else
    identity_begin(h->warden->loop, &h->jail, h->was, &h->row, h->authority, h->warden->config->agent_s, identified, h);
}

static void restore_work(struct checkpoint_job *t)
{
  struct launch *h = (struct launch *)((char *)t - offsetof(struct launch, checkpoint_job));
  char path[DATA_PATH_SIZE];
  checkpoint_path(h->warden, h->checkpoint, path);
  struct jail_criu how = h->warden->criu;
  how.transient = h->transient;
  how.held = true;
  h->result = jail_restore(&how, &h->spec, path, &h->jail, &h->err);
  if (!h->result)
    jail_link_remaps_remove(path, &h->jail, true);
}

static void restore_done(struct checkpoint_job *t)
{
  struct launch *h = (struct launch *)((char *)t - offsetof(struct launch, checkpoint_job));
  if (!h->result && h->box)
    thaw(h);
  else
    launch_end(h);
}

/* What it was, and who it is now. */
static void restore_box(struct launch *h, struct box *b, const char *checkpoint, const char *was)
{
  h->box = b;
  snprintf(h->checkpoint, sizeof(h->checkpoint), "%s", checkpoint);
  snprintf(h->was, sizeof(h->was), "%s", was);
  h->row = b->row;
  h->row.init = (char *)arena_z(&h->arena, str_of(b->row.init));
  h->authority = b->egress ? arena_str(&h->arena, buf_str(&b->egress->cert)) : STR_NONE;
}

static void restore_begin(struct launch *h, struct build *build, const char *runtime, unsigned flags, struct str allow,
                          struct str deny)
{
  snprintf(h->runtime, sizeof(h->runtime), "%s", runtime);
  h->transient = build->row.kind == BUILD_FORK;
  launch_spec(h, build, h->runtime, flags, allow, deny);
  h->checkpoint_job.act = restore_work;
  h->checkpoint_job.done = restore_done;
  checkpoint_queue_add(h->warden,
                       h->box                  ? h->box->row.team
                       : build->of->row.public ? ""
                                               : build->of->row.team,
                       &h->checkpoint_job);
}

void launch_restore(struct box *b, const char *checkpoint, const char *was, void (*done)(struct launch *), void *arg)
{
  struct launch *h = launch_new(b->warden, b->name, b->row.slot, done);
  h->arg = arg;
  restore_box(h, b, checkpoint, was);
  restore_begin(h, b->build, b->row.runtime, b->row.flags, str_of(b->row.allow), str_of(b->row.deny));
}

void launch_restore_warm(struct warden *w, struct build *build, struct warm_pool *s, unsigned slot,
                         void (*done)(struct launch *))
{
  struct launch *h = launch_new_warm(w, s, slot, done);
  snprintf(h->checkpoint, sizeof(h->checkpoint), "%s", build->row.checkpoint);
  restore_begin(h, build, build->row.runtime, BOX_INTERNET, STR_NONE, STR_NONE);
}

void launch_thaw(struct box *b, const struct warm_box *p, void (*done)(struct launch *))
{
  struct launch *h = launch_new(b->warden, b->name, b->row.slot, done);
  restore_box(h, b, b->build->row.checkpoint, b->build->row.secret);
  h->jail = p->jail;
  if (!launch_mounts(h))
    thaw(h);
}
