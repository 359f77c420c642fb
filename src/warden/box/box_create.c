/* SPDX-License-Identifier: Apache-2.0 */
/* box_create.c - see box_create.h. */
#include "warden/box/box_create.h"

#include "warden/box/box.h"
#include "warden/box/box_create_once.h"
#include "warden/box/memory_guard.h"
#include "warden/core/node.h"
#include "warden/core/box_event.h"
#include "warden/core/box_reply.h"
#include "warden/core/egress.h"
#include "warden/core/id_slots.h"
#include "warden/core/microvm.h"
#include "warden/db/idempotency.h"
#include "warden/egress/keep.h"
#include "warden/egress/policies.h"
#include "warden/egress/prepare.h"
#include "warden/warm/launch.h"
#include "warden/core/quota.h"
#include "warden/core/storage_quota.h"
#include "warden/core/volume_mounts.h"
#include "warden/core/warden_state.h"
#include "warden/core/worker_pool.h"
#include "warden/warm/ns_pool.h"
#include "warden/warm/nursery_request.h"
#include "warden/warm/warm_box.h"
#include "warden/warm/warm_pool.h"
#include "wire/api_key.h"
#include "wire/box_socket.h"
#include <stdio.h>

static void reply_waiting(struct box *b, int status, const struct err *err)
{
  for (size_t i = 0; i < b->waiting.n; i++)
    reply_created(b->warden, b->waiting.p[i], status, b, err);
  b->waiting.n = 0;
}

/* The row, and with it its egress settings and the answer to the key of its create. */
static int keep(const struct box *b, box_put_fn put, struct err *err)
{
  struct warden *w = b->warden;
  if (!b->idempotency_key && !b->egress)
    return put(w, &b->row, err);
  int r = store_begin(w->store, err);
  if (r)
    return r;
  r = put(w, &b->row, err);
  r = r || !b->egress ? r : egress_keep(b, err);
  r = r || !b->idempotency_key ? r : idempotency_created(w->store, &b->row, b->idempotency_key, err);
  return store_end(w->store, r, err);
}

void box_launch_failed(struct box *b, int r, const struct err *err)
{
  b->warden->launches_failed++;
  if (b->idempotency_key)
    box_create_once_failed(b, r, err);
  reply_waiting(b, r, err);
  log_with(LOG_WARN, (const char *[]){"box", b->row.id, NULL}, "launch failed: %s", err->msg);
  policy_remove(b);
  box_unregister(b);
  box_destroy(b);
}

int box_launched(struct launch *launch, box_put_fn put)
{
  struct box *b = launch->box;
  struct warden *w = b->warden;
  w->launches--;
  if (b->missed)
    warm_pool_miss_served(w, b->build);
  b->missed = false;
  b->jail = launch->jail;
  struct err err = launch->err;
  int r = launch->result;
  if (!r && b->ending)
    r = err_set(&err, -ENOENT, "the sandbox was ended while it started: %s", b->ending);
  if (!r) {
    b->row.state = BOX_RUNNING;
    b->row.started_us = clock_wall_us();
    b->row.end_us += b->row.started_us; /* held the length until now */
    b->row.init_proc = b->jail.init;
    r = keep(b, put, &err);
    b->trace.boot_us = launch->boot_us;
    b->trace.ready_us = launch->ready_us;
    b->trace.kept_us = clock_mono_us();
  }
  if (r) {
    launch->err = err;
    box_launch_failed(b, r, &err);
    return r;
  }
  w->launches_total++;
  box_watch(b);
  box_set_timer(b);
  catalog_spawned(w->catalog, b->template, b->row.started_us);
  quota_started(b);
  reply_waiting(b, 0, NULL);
  nursery_listen(b);
  return 0;
}

static void on_launched(struct launch *launch)
{
  box_launched(launch, box_put_created);
}

/* Tokens are the warden's: what the gate wrote for the agent gets the box's own put in front, unread. */
static char *init_of(const struct warden *w, const struct box_params *o)
{
  char token[TOKEN_TEXT];
  struct str rest = str_skip(o->init, 1);
  cleanup_buf struct buf b = BUF_INIT(WIRE_MAX * 2);
  token_make(str_of(w->secret), TOKEN_ACCESS, o->id, token);
  if (!(o->flags & BOX_SECURE) || !str_starts(o->init, STR("{")) || str_search(o->init, str_of(token)) >= 0)
    return xstrndup(o->init.n ? o->init.p : "", o->init.n);
  buf_addf(&b, "{\"accessToken\":\"%s\"%s", token, str_starts(rest, STR("}")) ? "" : ",");
  buf_adds(&b, rest);
  return xstrndup(b.p, b.n);
}

static int fill_row(struct box *b, const struct box_params *o, struct str mounts, const unsigned *slot)
{
  struct warden *w = b->warden;
  struct row_box *r = &b->row;
  uint8_t secret[SHA256_LEN];
  random_bytes(secret, sizeof(secret));
  hex_encode(secret, sizeof(secret), r->secret);
  r->config = xstrndup(o->config.n ? o->config.p : "", o->config.n);
  r->init = init_of(w, o);
  r->allow = xstrndup(o->allow.n ? o->allow.p : "", o->allow.n);
  r->deny = xstrndup(o->deny.n ? o->deny.p : "", o->deny.n);
  r->mounts = xstrndup(mounts.n ? mounts.p : "", mounts.n);
  r->tokens = xstrndup(o->tokens.n ? o->tokens.p : "", o->tokens.n);
  memcpy(r->host_name, b->name, sizeof(r->host_name));
  r->flags = (microvm_choose(w, b->build, o->team, o->flags) & ~(unsigned)BOX_LINKED) |
             (egress_wanted(w, o->flags, o->allow) ? BOX_LINKED : 0);
  r->cpus = b->build->row.cpus;
  r->memory_mb = b->build->row.memory_mb;
  r->disk_mb = b->build->row.disk_mb;
  r->state = BOX_STARTING;
  r->run = 1;
  uuid4(r->execution);
  r->started_us = clock_wall_us();
  r->timeout_s = o->timeout_s;
  r->end_us = (int64_t)o->timeout_s * 1000000;
  bool restores = b->build->row.checkpoint[0] && w->checkpoints_on && !(r->flags & BOX_MICROVM);
  memcpy(r->runtime, restores ? b->build->row.runtime : w->runtime, sizeof(r->runtime));
  memcpy(r->build, b->build->row.id, sizeof(r->build));
  memcpy(r->template_id, b->template->row.id, sizeof(r->template_id));
  memcpy(r->base, b->build->row.base, sizeof(r->base));
  snprintf(r->alias, sizeof(r->alias), "%s", template_name(b->template));
  if (str_copyz(o->id, r->id, sizeof(r->id)) || str_copyz(o->team, r->team, sizeof(r->team)))
    return -EINVAL;
  if (!slot)
    return slot_take(w, &r->slot);
  r->slot = *slot;
  return 0;
}

/* ---- the beginning of a launch ---- */

/* What a new box is made of. */
struct start {
  struct box *box;
  struct warm_box *warm; /* or NULL */
  struct pooled_ns *ns;  /* the same */
  bool restore;          /* its build holds memory */
  uv_work_t work;        /* turning its traffic */
  struct arena arena;    /* what that needs */
  struct jail_net net;
  int result;
  struct err err;
};

static void start_launch(struct start *s)
{
  struct box *b = s->box;
  const struct row_build *build = &b->build->row;
  if (s->restore && s->warm)
    launch_thaw(b, s->warm, on_launched);
  else if (s->restore)
    launch_restore(b, build->checkpoint, build->secret, on_launched, NULL);
  else
    launch_start(b, s->warm, s->ns ? s->ns->created : NULL, on_launched);
  free(s->warm); /* the launch has what it needs of them */
  free(s->ns);
  free(s);
}

static void start_failed(struct start *s, int r, const struct err *err)
{
  struct box *b = s->box;
  b->warden->launches--;
  if (b->missed)
    warm_pool_miss_served(b->warden, b->build);
  if (s->warm && s->warm->boot >= 0)
    box_socket_close(s->warm->boot);
  if (s->warm)
    b->jail = s->warm->jail; /* removed with the box */
  if (s->ns)
    jail_created_free(s->ns->created);
  box_launch_failed(b, r, err);
  free(s->warm);
  free(s->ns);
  free(s);
}

static void on_policy(void *arg, int result, const struct err *err)
{
  struct start *s = arg;
  if (result)
    start_failed(s, result, err);
  else
    start_launch(s);
}

static void turn_work(uv_work_t *work)
{
  struct start *s = work->data;
  s->result = jail_net_update(&s->net, &s->err);
}

static void turn_done(uv_work_t *work, int status)
{
  struct start *s = work->data;
  arena_free(&s->arena);
  if (!s->result && s->box->ending)
    s->result = err_set(&s->err, -ENOENT, "the sandbox was ended while it started: %s", s->box->ending);
  if (s->result)
    start_failed(s, s->result, &s->err);
  else
    policy_apply(s->box, on_policy, s);
}

/* On a worker: nft may take its time. */
static void turn(struct start *s)
{
  const struct row_box *r = &s->box->row;
  s->arena = ARENA_INIT(1 << 20);
  egress_plan(s->box->warden, r->slot, r->flags, str_of(r->allow), str_of(r->deny), s->box->egress, &s->arena, &s->net);
  s->work.data = s;
  worker_pool_queue(s->box->warden, r->team, &s->work, turn_work, turn_done);
}

/* Its traffic is turned to the gateway before anything of it runs; what was made in advance has the plain path. */
static void on_prepared(void *arg, int result, const struct err *why)
{
  struct start *s = arg;
  struct box *b = s->box;
  struct err err = result ? *why : ERR_NONE;
  if (!result && b->ending)
    result = err_set(&err, -ENOENT, "the sandbox was ended while it started: %s", b->ending);
  if (result)
    start_failed(s, result, &err);
  else if (s->warm || s->ns) /* both have a link */
    turn(s);
  else
    policy_apply(b, on_policy, s);
}

static void start(struct start *s)
{
  struct box *b = s->box;
  if (b->egress)
    egress_prepare(b->warden, b->row.team, b->egress, false, on_prepared, s);
  else
    start_launch(s);
}

/* What its settings ask of the egress gateway; nothing for most. */
static int read_egress(struct warden *w, const struct box_params *o, struct box_egress **out, struct err *err)
{
  *out = NULL;
  if (!o->egress.n)
    return 0;
  if (!egress_gateway(w))
    return err_set(err, -EINVAL,
                   "'network.rules' and 'network.egressProxy' can't be used: this server has no egress gateway");
  int r = box_egress_read(o->egress, o->rules, out, err);
  char *names = r ? NULL : xstrndup(o->tokens.n ? o->tokens.p : "", o->tokens.n);
  r = r ? r : policy_check(*out, names, err);
  free(names);
  if (r && *out)
    box_egress_free(steal(out));
  return r;
}

int box_create(struct warden *w, const struct box_params *o, struct origin origin, unsigned *retry_s, struct err *err)
{
  int64_t came_us = clock_mono_us();
  struct box *have = box_find(w, o->id, o->team);
  if (have && have->row.state != BOX_STARTING) {
    reply_box(w, origin, 0, have, NULL);
    return 0;
  }
  if (have) {
    vec_push(&have->waiting, origin);
    return 0;
  }
  struct template *t;
  struct build *build;
  int r = catalog_find(w->catalog, o->team, o->ref, &t, &build, err);
  unsigned flags = r ? 0 : microvm_choose(w, build, o->team, o->flags);
  bool guest = flags & BOX_MICROVM;
  r = r ? r : microvm_admit(w, o, build, flags, err);
  r = r ? r : quota_fits(w, o->team, (struct box_size){build->row.cpus, build->row.memory_mb, build->row.disk_mb}, err);
  cleanup_buf struct buf mounts = BUF_INIT(VOLUME_MOUNTS_BYTES);
  r = r ? r : volume_mounts_resolve(w, o, build->row.mounts, &mounts, err);
  r = r ? r : memory_guard_admit(w, o->team, err);
  r = r ? r : storage_room(w, ROOM_FOR_CREATE, err);
  if (!r && (o->flags & BOX_AUTO_PAUSE)) /* at its timeout it would be kept, whatever is there by then */
    r = storage_admit(w, o->team, STORAGE_PAUSE, err);
  r = r ? r : node_admit(w, err);
  r = r ? r : quota_admit(w, o->team, build->row.memory_mb, !o->idempotency_key.n, retry_s, err);
  if (r)
    return r;
  if ((r = box_check_limit(w, err)))
    return r;
  if (o->id.n >= sizeof(((struct row_box *)0)->id))
    return err_set(err, -EINVAL, "invalid sandbox ID");
  bool warm = build->row.checkpoint[0] && !guest &&
              (w->checkpoints_on || build->row.kind != BUILD_PLAIN); /* a plain one can start its command anew */
  bool plain = !guest && (!egress_on(w) || egress_plain(o->flags, o->allow, o->deny));
  if (warm && !w->checkpoints_on)
    return err_set(err, -ENOTSUP, "template '" STR_FMT "' holds memory, which this host can't restore: %s",
                   STR_ARG(o->ref), w->checkpoints_why);
  struct box_egress *egress;
  if ((r = read_egress(w, o, &egress, err)))
    return r;
  struct warm_box *p = plain ? warm_pool_take(w, build) : NULL;
  struct pooled_ns *pooled_ns = plain && !warm && !p ? ns_pool_take(w, build) : NULL;
  struct box *b = box_new(w, p ? p->name : pooled_ns ? pooled_ns->name : NULL);
  b->template = t;
  b->build = build;
  b->egress = egress;
  if ((r = fill_row(b, o, buf_str(&mounts), p ? &p->slot : pooled_ns ? &pooled_ns->slot : NULL))) {
    box_free(b);
    if (plain && !p)
      warm_pool_miss_served(w, build);
    warm_box_drop(p);
    ns_pool_drop(w, pooled_ns);
    return err_set(err, r, "no free id range for another sandbox (%u in use)", ID_SLOTS);
  }
  b->idempotency_key = o->idempotency_key.n ? xstrndup(o->idempotency_key.p, o->idempotency_key.n) : NULL;
  b->missed = plain && !p;
  b->trace.came_us = came_us;
  vec_push(&b->waiting, origin);
  box_register(b);
  struct start *s = xcalloc(1, sizeof(*s));
  *s = (struct start){.box = b, .warm = p, .ns = pooled_ns, .restore = warm};
  start(s);
  return 0;
}
