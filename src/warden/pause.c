/* pause.c - see pause.h.
 *
 * The store is written after the freezer did its work, so a daemon that dies in between finds a box whose row and
 * freezer differ; box_settle then does again what the row says. */
#include "warden/pause.h"

#include "warden/account.h"
#include "warden/desk.h"
#include <stdio.h>

struct passage {
  uv_work_t work;
  struct warden *warden;
  struct box *box;
  char id[64];
  bool freeze;
  bool orphan;      /* the box ended meanwhile */
  bool expired;     /* the clock asked, nobody else */
  struct wish wish; /* who began it; its link is NULL when the clock did */
  int result;
  struct err err;
};

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

/* ---- passages ---- */

static void passage_work(uv_work_t *work)
{
  struct passage *p = work->data;
  p->result = jail_freeze(p->warden->instance, p->id, p->freeze, &p->err);
}

static void grant(struct box *b, const struct wish *w)
{
  if (w->pause && b->row.state == BOX_PAUSED)
    answer(b, w->ask, 0, NULL); /* asked while another pause was under way: they are one */
  else if (w->pause)
    box_pause(b, w->ask);
  else
    box_connect(b, w);
}

static void fell_asleep(struct box *b, struct passage *p)
{
  struct warden *w = b->warden;
  b->row.state = BOX_PAUSED;
  b->row.end_us = clock_wall_us();
  account_count(b, false);
  w->pauses_total++;
  if (store_box_put(w->store, &b->row, &p->err))
    log_error("box %s: %s", b->row.id, p->err.msg);
  box_run_over(b);
  log_with(LOG_INFO, (const char *[]){"box", b->row.id, "tier", "frozen", NULL}, p->expired ? "paused at its timeout" : "paused");
}

static void woke_up(struct box *b, struct passage *p)
{
  struct warden *w = b->warden;
  if (p->wish.auto_pause >= 0)
    b->row.flags = (b->row.flags & ~(unsigned)BOX_AUTO_PAUSE) | (p->wish.auto_pause ? BOX_AUTO_PAUSE : 0);
  b->row.state = BOX_RUNNING;
  b->row.run++;
  b->row.started_us = clock_wall_us();
  b->row.end_us = b->row.started_us + (int64_t)p->wish.timeout_s * 1000000;
  w->resumes_total++;
  if (store_box_put(w->store, &b->row, &p->err))
    log_error("box %s: %s", b->row.id, p->err.msg);
  box_arm(b);
  log_with(LOG_INFO, (const char *[]){"box", b->row.id, "tier", "frozen", NULL}, "resumed");
}

static void passage_failed(struct box *b, struct passage *p)
{
  log_with(LOG_WARN, (const char *[]){"box", b->row.id, NULL}, "%s: %s", p->freeze ? "not paused" : "not resumed", p->err.msg);
  b->row.state = p->freeze ? BOX_RUNNING : BOX_PAUSED;
  account_count(b, p->freeze);
  if (p->freeze)
    box_arm(b);
  answer(b, p->wish.ask, p->result, &p->err);
}

static void passage_done(uv_work_t *work, int status)
{
  struct passage *p = work->data;
  struct box *b = p->box;
  b->passage = NULL;
  p->warden->passages--;
  if (p->orphan) {
    box_bury(b);
    free(p);
    return;
  }
  if (p->result && p->expired) { /* it may live no longer, and it can't sleep */
    char cause[400];
    snprintf(cause, sizeof(cause), "timeout: it reached its end of life and could not be paused: %.300s", p->err.msg);
    free(p);
    box_end(b, cause);
    return;
  }
  if (p->result) {
    passage_failed(b, p);
  } else {
    p->freeze ? fell_asleep(b, p) : woke_up(b, p);
    p->wish.ask.resumed = !p->freeze;
    answer(b, p->wish.ask, 0, NULL);
  }
  free(p);
  struct wish *wishes = steal(&b->wishes.p);
  size_t n = b->wishes.n;
  b->wishes.n = b->wishes.cap = 0;
  for (size_t i = 0; i < n; i++)
    grant(b, &wishes[i]);
  free(wishes);
}

static void passage_begin(struct box *b, bool freeze, struct wish wish)
{
  struct passage *p = xcalloc(1, sizeof(*p));
  p->warden = b->warden;
  p->box = b;
  p->freeze = freeze;
  p->wish = wish;
  p->expired = freeze && !wish.ask.link;
  memcpy(p->id, b->name, sizeof(p->id));
  b->passage = p;
  p->warden->passages++;
  b->row.state = freeze ? BOX_PAUSING : BOX_RESUMING;
  alarm_unset(&b->warden->alarms, &b->alarm);
  p->work.data = p;
  uv_queue_work(b->warden->loop, &p->work, passage_work, passage_done);
}

bool box_leave_passage(struct box *b)
{
  for (size_t i = 0; i < b->wishes.n; i++)
    refuse(b, b->wishes.p[i].ask, b->wishes.p[i].pause ? -ENOENT : -EBUSY, "the sandbox is being killed");
  b->wishes.n = 0;
  if (!b->passage)
    return false;
  refuse(b, b->passage->wish.ask, b->passage->freeze ? -ENOENT : -EBUSY, "the sandbox is being killed");
  b->passage->orphan = true;
  return true;
}

/* ---- what is asked ---- */

void box_pause(struct box *b, struct ask ask)
{
  struct wish wish = {.ask = ask, .pause = true};
  if (b->row.state == BOX_RUNNING)
    passage_begin(b, true, wish);
  else if (b->row.state == BOX_PAUSED)
    refuse(b, ask, -EALREADY, "the sandbox is already paused");
  else if (b->row.state == BOX_STARTING)
    refuse(b, ask, -EBUSY, "the sandbox is still starting");
  else
    vec_push(&b->wishes, wish);
}

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
  if (mode == CONNECT_CONNECT)
    extend(b, ask, timeout_s);
  else if (mode == CONNECT_RESUME)
    refuse(b, ask, -EALREADY, "the sandbox is already running");
  else
    answer(b, ask, 0, NULL);
}

static void wake(struct box *b, struct wish wish)
{
  struct err err = ERR_NONE;
  unsigned retry;
  if (wish.mode == CONNECT_JOIN || (wish.mode == CONNECT_WAKE && !(b->row.flags & BOX_AUTO_RESUME))) {
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
  passage_begin(b, false, wish);
}

void box_connect(struct box *b, const struct wish *wish)
{
  switch (b->row.state) {
  case BOX_RUNNING:
    connect_running(b, wish->ask, wish->mode, wish->timeout_s);
    break;
  case BOX_PAUSED:
    wake(b, *wish);
    break;
  case BOX_PAUSING:
  case BOX_RESUMING:
    vec_push(&b->wishes, *wish);
    break;
  default:
    refuse(b, wish->ask, -EBUSY, "the sandbox is still starting");
  }
}

void box_expire(struct box *b)
{
  if ((b->row.flags & BOX_AUTO_PAUSE) && b->row.state == BOX_RUNNING)
    passage_begin(b, true, (struct wish){.pause = true});
  else
    box_end(b, "timeout: it reached its end of life");
}

void box_settle(struct box *b)
{
  struct err err = ERR_NONE;
  bool asleep = b->row.state == BOX_PAUSED;
  if (jail_freeze(b->warden->instance, b->name, asleep, &err))
    log_warn("box %s: %s", b->row.id, err.msg);
  account_count(b, !asleep);
}
