/* pause.c - see pause.h. */
#include "warden/pause.h"

#include "warden/quota.h"
#include "warden/rpc/reply.h"
#include "warden/transition.h"

static void answer(struct box *b, struct ask ask, int status, const struct err *err)
{
  if (ask.link)
    desk_answer_box(b->warden, ask, status, b, err);
}

static void refuse(struct box *b, struct ask ask, int status, const char *why)
{
  struct err err = ERR_NONE;
  err_set(&err, status, "%s", why);
  answer(b, ask, status, &err);
}

/* ---- to sleep ---- */

static void lie_down(struct box *b, const struct wish *wish)
{
  passage_begin(b, wish->cold ? PASSAGE_STOP : b->warden->images_on ? PASSAGE_DUMP : PASSAGE_FREEZE, wish);
}

/* Asked again by a gate that a dead warden owes an answer: the sleep is that one's work. */
void box_pause(struct box *b, const struct wish *wish)
{
  if (b->row.state == BOX_RUNNING)
    lie_down(b, wish);
  else if (b->row.state == BOX_PAUSED && wish->ask.again)
    answer(b, wish->ask, 0, NULL);
  else if (b->row.state == BOX_PAUSED)
    refuse(b, wish->ask, -EALREADY, "the sandbox is already paused");
  else if (b->row.state == BOX_STARTING)
    refuse(b, wish->ask, -EBUSY, "the sandbox is still starting");
  else
    vec_push(&b->wishes, *wish);
}

void box_expire(struct box *b)
{
  struct wish wish = {.pause = true, .cold = (b->row.flags & BOX_AUTO_COLD) != 0};
  if ((b->row.flags & BOX_AUTO_PAUSE) && b->row.state == BOX_RUNNING)
    lie_down(b, &wish);
  else if ((b->row.flags & BOX_AUTO_PAUSE) && b->row.state == BOX_COPYING)
    vec_push(&b->wishes, wish);
  else
    box_end(b, "timeout: it reached its end of life");
}

/* ---- awake ---- */

static void extend(struct box *b, struct ask ask, uint32_t timeout_s)
{
  struct err err = ERR_NONE;
  int64_t last = b->row.started_us + (int64_t)account_timeout_max(b->warden, str_of(b->row.team)) * 1000000;
  int64_t end = MIN(clock_wall_us() + (int64_t)timeout_s * 1000000, last);
  int r = end > b->row.end_us ? box_set_end(b, end, &err) : 0;
  answer(b, ask, r, &err);
}

static void connect_running(struct box *b, struct ask ask, enum connect_mode mode, uint32_t timeout_s)
{
  ask.resumed = ask.again && mode == CONNECT_RESUME;
  if (mode == CONNECT_CONNECT)
    extend(b, ask, timeout_s);
  else if (mode == CONNECT_RESUME && !ask.again)
    refuse(b, ask, -EALREADY, "the sandbox is already running");
  else
    answer(b, ask, 0, NULL);
}

static bool may_wake(const struct box *b, enum connect_mode mode)
{
  if (mode == CONNECT_WAKE)
    return (b->row.flags & BOX_AUTO_RESUME) && b->row.tier != TIER_FILES;
  return mode != CONNECT_JOIN;
}

static void wake(struct box *b, struct wish wish)
{
  struct err err = ERR_NONE;
  unsigned retry;
  if (!may_wake(b, wish.mode)) {
    refuse(b, wish.ask, -EHOSTDOWN, "the sandbox is paused");
    return;
  }
  int r = account_admit(b->warden, str_of(b->row.team), false, &retry, &err);
  if (r) {
    answer(b, wish.ask, r, &err);
    return;
  }
  if (wish.mode == CONNECT_WAKE)
    wish.timeout_s = MIN(MAX(WAKE_LEAST_S, b->row.timeout_s), account_timeout_max(b->warden, str_of(b->row.team)));
  account_count(b, true);
  bool cold = wish.cold || b->row.tier == TIER_FILES;
  passage_begin(b, cold ? PASSAGE_COLD : b->row.tier == TIER_CHECKPOINT ? PASSAGE_RESTORE : PASSAGE_THAW, &wish);
}

void box_connect(struct box *b, const struct wish *wish)
{
  switch (b->row.state) {
  case BOX_RUNNING:
    connect_running(b, wish->ask, wish->mode, wish->timeout_s);
    break;
  case BOX_PAUSED:
    if (!b->passage) {
      wake(b, *wish);
      break;
    }
    passage_hurry(b); /* its walls are still going, or its image is being packed */
    vec_push(&b->wishes, *wish);
    break;
  case BOX_PAUSING:
  case BOX_RESUMING:
  case BOX_COPYING:
    vec_push(&b->wishes, *wish);
    break;
  default:
    refuse(b, wish->ask, -EBUSY, "the sandbox is still starting");
  }
}

/* ---- after a restart ---- */

void box_settle(struct box *b)
{
  struct err err = ERR_NONE;
  bool asleep = b->row.state == BOX_PAUSED;
  if (b->jail.pidfd >= 0 && jail_freeze(b->warden->instance, b->name, asleep, &err))
    log_warn("box %s: %s", b->row.id, err.msg);
  account_count(b, !asleep);
}
