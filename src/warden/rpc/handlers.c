/* desk.c - questions of the gates, one function each. Reads only the fixed shapes of wire.h; text that clients wrote
 * passes through untouched. */
#include "warden/rpc/reply.h"

#include "warden/quota.h"
#include "warden/box_log.h"
#include "warden/rpc/request.h"
#include "warden/pause.h"
#include "warden/warm/warm_pool.h"
#include <stdio.h>

void desk_begin(struct question *q, enum wire_type type, int status)
{
  wire_begin(q->out, type, q->id, status);
}

static void send_to(struct link *l, const struct buf *b, int fd)
{
  int r = buf_failed(b) ? buf_failed(b) : link_send(l, buf_str(b), fd);
  if (r && r != -EPIPE)
    log_error("answer of %zu bytes not sent: %s", b->n, strerrordesc_np(-r));
}

void desk_finish_with(struct question *q, int fd)
{
  send_to(q->link, q->out, fd);
}

void desk_finish(struct question *q)
{
  send_to(q->link, q->out, -1);
}

void desk_refuse(struct question *q, int status, const char *message)
{
  desk_begin(q, WIRE_REPLY, status);
  wire_putz(q->out, W_MESSAGE, message);
  desk_finish(q);
}

void desk_refuse_err(struct question *q, const struct err *err)
{
  desk_refuse(q, err->code ? err->code : -EIO, err->msg);
}

void desk_agree(struct question *q)
{
  desk_begin(q, WIRE_REPLY, 0);
  desk_finish(q);
}

bool desk_alive(struct warden *w, struct ask ask)
{
  for (size_t i = 0; i < w->links.n; i++)
    if (w->links.p[i] == ask.link)
      return link_serial(ask.link) == ask.serial;
  return false;
}

void desk_send(struct warden *w, struct ask ask, const struct buf *b)
{
  if (desk_alive(w, ask))
    send_to(ask.link, b, -1);
}

struct ask desk_ask(const struct question *q)
{
  return (struct ask){.link = q->link, .serial = link_serial(q->link), .id = q->id, .again = wire_head(q->packet)->status == WIRE_AGAIN};
}

static void answer_about(struct warden *w, struct ask ask, int status, const struct box *b, const struct err *err, bool trace)
{
  if (!desk_alive(w, ask))
    return;
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  wire_begin(&out, WIRE_REPLY, ask.id, status);
  if (status)
    wire_putz(&out, W_MESSAGE, err->msg);
  else
    box_record(&out, b);
  if (trace && !status)
    wire_put(&out, W_TRACE, str_make(&b->trace, sizeof(b->trace)));
  if (ask.resumed)
    wire_put_u64(&out, W_RESUMED, 1);
  send_to(ask.link, &out, -1);
}

void desk_answer_box(struct warden *w, struct ask ask, int status, const struct box *b, const struct err *err)
{
  answer_about(w, ask, status, b, err, false);
}

void desk_answer_born(struct warden *w, struct ask ask, int status, const struct box *b, const struct err *err)
{
  answer_about(w, ask, status, b, err, true);
}

/* ---- boxes ---- */

static void ask_create(struct question *q)
{
  struct err err = ERR_NONE;
  struct box_order order = {
      .id = wire_get(q->packet, W_ID),
      .team = q->team,
      .ref = wire_get(q->packet, W_REF),
      .config = wire_get(q->packet, W_CONFIG),
      .init = wire_get(q->packet, W_INIT),
      .allow = wire_get(q->packet, W_ALLOW),
      .deny = wire_get(q->packet, W_DENY),
      .timeout_s = (uint32_t)wire_u64(q->packet, W_TIMEOUT, 15),
      .flags = (unsigned)wire_u64(q->packet, W_FLAGS, 0),
  };
  unsigned retry = 0;
  if (q->warden->stopping) {
    desk_refuse(q, -ESHUTDOWN, "Failed to place sandbox: the server is stopping");
  } else if (box_create(q->warden, &order, desk_ask(q), &retry, &err)) {
    desk_begin(q, WIRE_REPLY, err.code ? err.code : -EIO);
    wire_putz(q->out, W_MESSAGE, err.msg);
    wire_put_u64(q->out, W_RETRY, retry);
    desk_finish(q);
  }
}

/* The box a question is about; answers the refusal itself. A box that ended is told with its cause. */
struct box *desk_box(struct question *q)
{
  struct str id = wire_get(q->packet, W_ID);
  struct box *b = box_find(q->warden, id, q->team);
  if (b)
    return b;
  char cause[256] = "";
  int64_t when = 0;
  desk_begin(q, WIRE_REPLY, -ENOENT);
  if (!store_cause(q->warden->store, id, q->team, cause, sizeof(cause), &when)) {
    wire_putz(q->out, W_CAUSE, cause);
    wire_put_u64(q->out, W_END, (uint64_t)when);
  }
  desk_finish(q);
  return NULL;
}

static void answer_box(struct question *q, const struct box *b)
{
  desk_begin(q, WIRE_REPLY, 0);
  box_record(q->out, b);
  desk_finish(q);
}

/* With a port: a way in comes along where there is one, so that the first request into a box asks only once. */
static void ask_get(struct question *q)
{
  struct box *b = desk_box(q);
  struct err err = ERR_NONE;
  if (!b)
    return;
  unsigned port = (unsigned)wire_u64(q->packet, W_PORT, 0);
  cleanup_fd int fd = port ? box_door(b, port, &err) : -1;
  desk_begin(q, WIRE_REPLY, 0);
  box_record(q->out, b);
  desk_finish_with(q, fd >= 0 ? fd : -1);
}

static void ask_list(struct question *q)
{
  void *value;
  for (size_t i = 0; map_next(&q->warden->boxes, &i, NULL, &value);) {
    struct box *b = value;
    if ((q->team.n && !str_is(q->team, b->row.team)) || b->row.state == BOX_STARTING)
      continue;
    desk_begin(q, WIRE_ITEM, 0);
    box_record(q->out, b);
    desk_finish(q);
  }
  desk_agree(q);
}

static void ask_kill(struct question *q)
{
  struct box *b = desk_box(q);
  if (!b)
    return;
  box_end(b, "killed: by request");
  desk_agree(q);
}

static void ask_timeout(struct question *q)
{
  struct box *b = desk_box(q);
  if (!b)
    return;
  int64_t end = clock_wall_us() + (int64_t)wire_u64(q->packet, W_TIMEOUT, 0) * 1000000;
  int64_t last = b->row.started_us + (int64_t)account_timeout_max(q->warden, str_of(b->row.team)) * 1000000;
  bool extend = wire_u64(q->packet, W_MODE, TIMEOUT_SET) == TIMEOUT_EXTEND;
  struct err err = ERR_NONE;
  if (b->row.state == BOX_PAUSED)
    desk_refuse(q, -ENOENT, "the sandbox is paused");
  else if (b->row.state != BOX_RUNNING && b->row.state != BOX_COPYING)
    desk_refuse(q, -EBUSY, "the sandbox is changing its state");
  else if (clock_wall_us() > last)
    desk_refuse(q, -EINVAL, "the sandbox has reached the longest life of one run");
  else if (box_set_end(b, extend ? MAX(MIN(end, last), b->row.end_us) : MIN(end, last), &err))
    desk_refuse_err(q, &err);
  else
    answer_box(q, b);
}

static void ask_pause(struct question *q)
{
  struct box *b = desk_box(q);
  if (b)
    box_pause(b, &(struct wish){.ask = desk_ask(q), .pause = true, .cold = wire_u64(q->packet, W_COLD, 0) != 0});
}

static void ask_connect(struct question *q)
{
  struct box *b = desk_box(q);
  if (!b)
    return;
  struct wish wish = {.ask = desk_ask(q),
                      .mode = (enum connect_mode)wire_u64(q->packet, W_MODE, CONNECT_CONNECT),
                      .timeout_s = (uint32_t)wire_u64(q->packet, W_TIMEOUT, 0),
                      .cold = wire_u64(q->packet, W_COLD, 0) != 0,
                      .auto_pause = -1};
  if (wire_get(q->packet, W_FLAGS).p)
    wish.auto_pause = (wire_u64(q->packet, W_FLAGS, 0) & BOX_AUTO_PAUSE) != 0;
  box_connect(b, &wish);
}

static void ask_config(struct question *q)
{
  struct box *b = desk_box(q);
  struct err err = ERR_NONE;
  if (!b)
    return;
  if (b->row.state == BOX_PAUSED)
    desk_refuse(q, -ENOENT, "the sandbox is paused");
  else if (b->row.state != BOX_RUNNING)
    desk_refuse(q, -EBUSY, "the sandbox is changing its state");
  else if (box_configure(b, wire_get(q->packet, W_CONFIG), (unsigned)wire_u64(q->packet, W_FLAGS, b->row.flags), wire_get(q->packet, W_ALLOW),
                         wire_get(q->packet, W_DENY), &err))
    desk_refuse_err(q, &err);
  else
    desk_agree(q);
}

static void ask_door(struct question *q)
{
  struct box *b = desk_box(q);
  if (!b)
    return;
  struct err err = ERR_NONE;
  cleanup_fd int fd = box_door(b, (unsigned)wire_u64(q->packet, W_PORT, 0), &err);
  if (fd < 0) {
    desk_begin(q, WIRE_REPLY, fd);
    wire_putz(q->out, W_MESSAGE, err.msg);
    wire_put_u64(q->out, W_RUN, b->row.run);
    desk_finish(q);
    return;
  }
  desk_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_RUN, b->row.run);
  send_to(q->link, q->out, fd);
}

/* No descriptor comes with the answer when the box printed nothing. */
static void ask_log(struct question *q)
{
  struct str id = wire_get(q->packet, W_ID);
  struct box *b = box_find(q->warden, id, q->team);
  cleanup_fd int fd = b && !b->away ? boxlog_open(&b->jail) : boxlog_kept(q->warden, id, q->team);
  char cause[256];
  int64_t when;
  if (fd < 0 && !b && store_cause(q->warden->store, id, q->team, cause, sizeof(cause), &when)) {
    desk_begin(q, WIRE_REPLY, -ENOENT);
    desk_finish(q);
    return;
  }
  desk_begin(q, WIRE_REPLY, 0);
  send_to(q->link, q->out, fd >= 0 ? fd : -1);
}

static void ask_usage(struct question *q)
{
  struct box *b = desk_box(q);
  if (!b)
    return;
  int64_t from = (int64_t)wire_u64(q->packet, W_FROM, 0), to = (int64_t)wire_u64(q->packet, W_TO, INT64_MAX);
  for (size_t i = 0; i < b->usage.n; i++) {
    const struct wire_sample *s = &b->usage.samples[i];
    if (s->wall_us < from || s->wall_us > to)
      continue;
    desk_begin(q, WIRE_ITEM, 0);
    wire_put(q->out, W_SAMPLE, str_make(s, sizeof(*s)));
    desk_finish(q);
  }
  desk_agree(q);
}

/* The newest sample of each of the team's boxes that were named. */
static void ask_latest(struct question *q)
{
  struct str rest = wire_get(q->packet, W_REF), id;
  while (rest.n) {
    str_cut(rest, ',', &id, &rest);
    struct box *b = box_find(q->warden, id, q->team);
    if (!b || !b->usage.n)
      continue;
    desk_begin(q, WIRE_ITEM, 0);
    wire_put(q->out, W_ID, id);
    wire_put(q->out, W_SAMPLE, str_make(&b->usage.samples[b->usage.n - 1], sizeof(struct wire_sample)));
    desk_finish(q);
  }
  desk_agree(q);
}

static void ask_team_kill(struct question *q)
{
  VEC(struct box *) doomed = {0};
  void *value;
  for (size_t i = 0; map_next(&q->warden->boxes, &i, NULL, &value);)
    if (str_is(q->team, ((struct box *)value)->row.team))
      vec_push(&doomed, (struct box *)value);
  for (size_t i = 0; i < doomed.n; i++)
    box_end(doomed.p[i], "killed: by the server's administrator");
  desk_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, doomed.n);
  desk_finish(q);
  vec_free(&doomed);
}

static void ask_status(struct question *q)
{
  struct warden *w = q->warden;
  struct wire_status s = {.started_us = w->started_us,
                          .removals = w->removals,
                          .parked = shelf_count(w),
                          .births_total = w->births_total,
                          .births_failed = w->births_failed,
                          .resumes_total = w->resumes_total,
                          .pauses_total = w->pauses_total,
                          .ends_total = w->ends_total,
                          .checkpoint_ready = w->images_on};
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
    unsigned state = ((struct box *)value)->row.state;
    s.starting += state == BOX_STARTING;
    s.paused += box_state_asleep(state);
    s.checkpoints += ((struct box *)value)->row.image[0] != 0;
    s.checkpoint_bytes += ((struct box *)value)->row.image_bytes;
    bool runs = state == BOX_RUNNING || state == BOX_RESUMING;
    s.running += runs;
    s.cpus += runs ? ((struct box *)value)->row.cpus : 0;
    s.memory += runs ? (uint64_t)((struct box *)value)->row.memory_mb << 20 : 0;
  }
  desk_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, w->boxes.n);
  wire_put(q->out, W_STATUS, str_make(&s, sizeof(s)));
  desk_finish(q);
}

static const struct {
  enum wire_type type;
  void (*answer)(struct question *q);
} questions[] = {
    {WIRE_BOX_CREATE, ask_create},   {WIRE_BOX_GET, ask_get},     {WIRE_BOX_LIST, ask_list},       {WIRE_BOX_KILL, ask_kill},
    {WIRE_BOX_TIMEOUT, ask_timeout}, {WIRE_BOX_PAUSE, ask_pause}, {WIRE_BOX_CONNECT, ask_connect}, {WIRE_BOX_CONFIG, ask_config},
    {WIRE_BOX_DOOR, ask_door},       {WIRE_BOX_USAGE, ask_usage}, {WIRE_USAGE_LATEST, ask_latest}, {WIRE_TEAM_KILL, ask_team_kill},
    {WIRE_BOX_LOG, ask_log},         {WIRE_STATUS, ask_status},
};

static void desk_packet(struct link *l, struct str packet, int fd, void *arg)
{
  if (fd >= 0)
    close(fd);
  if (wire_check(packet)) {
    log_error("a gate sent a broken packet of %zu bytes", packet.n);
    return;
  }
  static _Alignas(8) char copy[WIRE_MAX]; /* answers may re-enter the link's buffer */
  memcpy(copy, packet.p, packet.n);
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  struct question q = {.warden = arg, .link = l, .packet = {copy, packet.n}, .out = &out};
  q.id = wire_head(q.packet)->id;
  q.team = wire_get(q.packet, W_TEAM);
  for (size_t i = 0; i < ARRAY_LEN(questions); i++)
    if (questions[i].type == wire_head(q.packet)->type) {
      questions[i].answer(&q);
      return;
    }
  enum wire_type type = (enum wire_type)wire_head(q.packet)->type;
  if (!desk_copy(&q, type) && !desk_catalog(&q, type) && !desk_build(&q, type) && !desk_keeping(&q, type))
    desk_refuse(&q, -ENOSYS, "the warden does not know this request");
}

static void desk_closed(struct link *l, void *arg)
{
  struct warden *w = arg;
  for (size_t i = 0; i < w->links.n; i++)
    if (w->links.p[i] == l)
      vec_remove_swap(&w->links, i);
  link_free(l);
}

const struct link_ops desk_ops = {desk_packet, desk_closed};
