/* SPDX-License-Identifier: Apache-2.0 */
/* pause.c - see pause.h. */
#include "warden/box/pause.h"

#include "warden/core/node.h"
#include "warden/core/quota.h"
#include "warden/core/box_reply.h"
#include "warden/core/identity.h"
#include "warden/core/microvm.h"
#include "warden/box/memory_guard.h"
#include "warden/box/pause_rules.h"
#include "warden/box/transition.h"
#include "warden/core/warden_state.h"
#include "warden/core/storage_quota.h"

static void answer(struct box *b, struct origin origin, int status, const struct err *err)
{
  if (origin.ipc)
    reply_box(b->warden, origin, status, b, err);
}

static void refuse(struct box *b, struct origin origin, int status, const char *why)
{
  struct err err = ERR_NONE;
  err_set(&err, status, "%s", why);
  answer(b, origin, status, &err);
}

static struct asked asked(const struct pending_op *op)
{
  return (struct asked){.again = op->origin.again, .waited = op->waited, .joined = op->joined};
}

/* ---- pause ---- */

/* A pause that waits for the agent's answer. The box runs meanwhile, and may be paused or ended by others. Where the
 * client does not insist on a healthy agent, the answer only tells whether the memory is worth resuming. */
struct health_check {
  struct warden *warden;
  struct pending_op op;
  char id[sizeof(((struct row_box *)0)->id)];
};

static void health_checked(void *arg, int result, const struct err *why)
{
  struct health_check *c = arg;
  struct box *b = box_find(c->warden, str_of(c->id), STR_NONE);
  struct err err = ERR_NONE;
  bool running = b && b->row.state == BOX_RUNNING, strict = c->op.healthy;
  c->op.healthy = strict && result;
  c->op.probed = !result || running;
  c->op.silent = result && running;
  c->op.waited |= !running;
  bool timed = !c->op.origin.ipc && !c->op.relief;
  if (b && timed && b->ends_us > clock_mono_us()) /* it was given more time meanwhile */
    log_debug("box %s: not paused, it has a new end time", b->row.id);
  else if (!b)
    reply_end(c->warden, c->op.origin, err_set(&err, -ENOENT, "the sandbox was killed"), &err);
  else if (result && running && strict)
    answer(b, c->op.origin, result, why);
  else /* or it is being copied, which keeps the agent from answering: it is asked again afterwards */
    box_pause(b, &c->op);
  free(c);
}

static void check_health(struct box *b, const struct pending_op *op)
{
  struct health_check *c = xcalloc(1, sizeof(*c));
  c->warden = b->warden;
  c->op = *op;
  memcpy(c->id, b->row.id, sizeof(c->id));
  const struct warden_config *config = b->warden->config;
  agent_health(b->warden->loop, &b->jail, op->healthy ? config->health_s : config->pause_health_s, health_checked, c);
}

static void pause_begin(struct box *b, const struct pending_op *op)
{
  struct err err = ERR_NONE;
  if (op->healthy || (!op->cold && !op->probed)) {
    check_health(b, op);
    return;
  }
  int r = op->cold ? microvm_refuse(b, "paused without its memory", &err) : 0;
  r = r ? r : op->origin.ipc ? storage_admit(b->warden, str_of(b->row.team), STORAGE_PAUSE, &err) : 0;
  if (r)
    answer(b, op->origin, r, &err);
  else
    transition_begin(b, pause_op(op->cold, b->warden->checkpoints_on && !(b->row.flags & BOX_MICROVM)), op);
}

void box_pause(struct box *b, const struct pending_op *op)
{
  switch (pause_verdict(b->row.state, asked(op))) {
  case VERDICT_BEGIN:
    pause_begin(b, op);
    break;
  case VERDICT_WAIT:
    vec_push(&b->pending_ops, *op);
    break;
  case VERDICT_DONE:
    answer(b, op->origin, 0, NULL);
    break;
  case VERDICT_ALREADY:
    refuse(b, op->origin, -EALREADY, "the sandbox is already paused");
    break;
  default:
    refuse(b, op->origin, -EBUSY, "the sandbox is still starting");
  }
}

/* The whole life of a run is what its timeout was set to, however often. */
static void box_time_out(struct box *b)
{
  char cause[80] = "timeout: it reached its end of life";
  if (b->row.end_us > b->row.started_us)
    snprintf(cause, sizeof(cause), "timeout: its lifetime of %lld s %swas over",
             (long long)((b->row.end_us - b->row.started_us + 500000) / 1000000),
             b->row.run > 1 ? "since it was resumed " : "");
  box_end(b, cause);
}

void box_relieve(struct box *b)
{
  struct pending_op op = {.pause = true, .cold = expire_without_memory(b->row.flags), .relief = true};
  if (b->row.state == BOX_RUNNING)
    pause_begin(b, &op);
  else if (b->row.state == BOX_COPYING)
    vec_push(&b->pending_ops, op);
}

void box_stop_writing(struct box *b)
{
  struct pending_op op = {.pause = true, .probed = true, .disk = true};
  transition_begin(b, TRANSITION_FREEZE, &op);
}

void box_expire(struct box *b)
{
  struct pending_op op = {.pause = true, .cold = expire_without_memory(b->row.flags)};
  switch (expire_verdict(b->row.state, b->row.flags)) {
  case VERDICT_BEGIN:
    pause_begin(b, &op);
    break;
  case VERDICT_WAIT:
    vec_push(&b->pending_ops, op);
    break;
  default:
    box_time_out(b);
  }
}

/* ---- connect and resume ---- */

static void extend(struct box *b, struct origin origin, uint32_t timeout_s)
{
  struct err err = ERR_NONE;
  int64_t end = extended_end(clock_wall_us(), timeout_s, b->row.started_us,
                             quota_timeout_max(b->warden, str_of(b->row.team)), b->row.end_us);
  int r = end > b->row.end_us ? box_set_end(b, end, &err) : 0;
  answer(b, origin, r, &err);
}

static void resume_begin(struct box *b, struct pending_op op)
{
  struct err err = ERR_NONE;
  unsigned retry;
  struct str team = str_of(b->row.team);
  int r = quota_fits(b->warden, team, (struct box_size){b->row.cpus, b->row.memory_mb, b->row.disk_mb}, &err);
  r = r ? r : node_admit(b->warden, &err);
  r = r ? r : memory_guard_admit(b->warden, team, &err);
  r = r ? r : storage_room(b->warden, ROOM_FOR_RESUME, &err);
  r = r ? r : quota_admit(b->warden, team, quota_missing(b), false, &retry, &err);
  if (r) {
    answer(b, op.origin, r, &err);
    return;
  }
  op.timeout_s = resume_timeout(op.mode, op.timeout_s, b->row.timeout_s, quota_timeout_max(b->warden, team));
  quota_count(b, QUOTA_RUNNING);
  transition_begin(b, resume_op(op.cold, b->row.tier), &op);
}

void box_connect(struct box *b, const struct pending_op *op)
{
  struct connect_facts facts = {.state = b->row.state,
                                .tier = b->row.tier,
                                .flags = b->row.flags,
                                .cold = op->cold,
                                .busy = b->transition != NULL};
  struct origin origin = op->origin;
  origin.resumed = connect_resumed(op->mode, asked(op));
  switch (connect_verdict(facts, op->mode, asked(op))) {
  case VERDICT_BEGIN:
    resume_begin(b, *op);
    break;
  case VERDICT_WAIT:
    if (b->row.state == BOX_PAUSED)
      transition_cancel_compress(b);
    vec_push(&b->pending_ops, *op);
    break;
  case VERDICT_EXTEND:
    extend(b, origin, op->timeout_s);
    break;
  case VERDICT_DONE:
    answer(b, origin, 0, NULL);
    break;
  case VERDICT_ALREADY:
    refuse(b, op->origin, -EALREADY, "the sandbox is already running");
    break;
  case VERDICT_PAUSED:
    refuse(b, op->origin, -EHOSTDOWN, "the sandbox is paused");
    break;
  case VERDICT_SILENT:
    refuse(b, op->origin, -ENOTRECOVERABLE,
           "the sandbox was paused while its agent did not answer, its processes can't be used any more: connect with "
           "\"memory\": false (on_resume=\"reboot\") to start it again from its files");
    break;
  default:
    refuse(b, op->origin, -EBUSY, "the sandbox is still starting");
  }
}

/* ---- after a restart ---- */

void box_sync_freezer(struct box *b)
{
  struct err err = ERR_NONE;
  bool is_paused = b->row.state == BOX_PAUSED;
  if (b->jail.pidfd >= 0 && jail_freeze(b->warden->instance, b->name, is_paused, &err))
    log_warn("box %s: %s", b->row.id, err.msg);
  quota_count(b, is_paused ? quota_paused(b->row.tier) : QUOTA_RUNNING);
}
