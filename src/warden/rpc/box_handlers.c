/* SPDX-License-Identifier: Apache-2.0 */
/* handlers.c - questions of the gates, one function each. Reads only the fixed shapes of wire.h; text that clients
 * wrote passes through untouched. */
#include "warden/rpc/reply.h"

#include "warden/quota.h"
#include "warden/box_log.h"
#include "warden/rpc/request.h"
#include "warden/pause.h"
#include "warden/token_index.h"
#include "warden/warm/warm_pool.h"
#include <stdio.h>

void reply_begin(struct request *q, enum wire_type type, int status)
{
  wire_begin(q->out, type, q->id, status);
}

static void send_to(struct ipc *l, const struct buf *b, int fd)
{
  int r = buf_failed(b) ? buf_failed(b) : ipc_send(l, buf_str(b), fd);
  if (r && r != -EPIPE)
    log_error("answer of %zu bytes not sent: %s", b->n, strerrordesc_np(-r));
}

void reply_send_fd(struct request *q, int fd)
{
  send_to(q->ipc, q->out, fd);
}

void reply_send(struct request *q)
{
  const struct wire_head *h = (const struct wire_head *)q->out->p;
  if (h && h->type == WIRE_ITEM) {
    int r = buf_failed(q->out) ? buf_failed(q->out) : ipc_send_bulk(q->ipc, buf_str(q->out));
    q->lost = q->lost ? q->lost : r;
    return;
  }
  if (q->lost && q->lost != -EPIPE) {
    wire_begin(q->out, WIRE_REPLY, q->id, -ENOBUFS);
    wire_putz(q->out, W_MESSAGE, "the answer is larger than this server can send at once; ask for less");
  }
  send_to(q->ipc, q->out, -1);
}

void reply_error(struct request *q, int status, const char *message)
{
  reply_begin(q, WIRE_REPLY, status);
  wire_putz(q->out, W_MESSAGE, message);
  reply_send(q);
}

void reply_err(struct request *q, const struct err *err)
{
  reply_error(q, err->code ? err->code : -EIO, err->msg);
}

void reply_ok(struct request *q)
{
  reply_begin(q, WIRE_REPLY, 0);
  reply_send(q);
}

bool reply_possible(struct warden *w, struct origin origin)
{
  for (size_t i = 0; i < w->links.n; i++)
    if (w->links.p[i] == origin.ipc)
      return ipc_serial(origin.ipc) == origin.serial;
  return false;
}

void reply_packet(struct warden *w, struct origin origin, const struct buf *b)
{
  if (reply_possible(w, origin))
    send_to(origin.ipc, b, -1);
}

struct origin request_origin(const struct request *q)
{
  struct origin origin = {.ipc = q->ipc,
                          .serial = ipc_serial(q->ipc),
                          .id = q->id,
                          .again = wire_head(q->packet)->status == WIRE_AGAIN,
                          .proven = (unsigned)q->proven};
  struct str client = wire_get(q->packet, W_CLIENT);
  if (client.n == sizeof(origin.client))
    memcpy(origin.client, client.p, client.n);
  return origin;
}

static void put_token(struct buf *out, enum wire_tag plain, enum wire_tag hashed, enum token_kind kind, bool show,
                      const struct box *b)
{
  char token[TOKEN_TEXT];
  uint8_t hash[SHA256_LEN];
  token_make(str_of(b->warden->secret), kind, str_of(b->row.id), token);
  sha256_of(token, strlen(token), hash);
  wire_put(out, hashed, str_make(hash, sizeof(hash)));
  if (show)
    wire_putz(out, plain, token);
}

void desk_put_box(struct buf *out, enum authority proven, const struct box *b)
{
  bool own = proven == BY_KEY;
  if (proven == BY_ANYONE)
    box_route(out, b);
  else
    box_put_fields(out, b);
  if (b->row.flags & BOX_SECURE)
    put_token(out, W_TOKEN, W_TOKEN_HASH, TOKEN_ACCESS, own, b);
  if (b->row.flags & BOX_PRIVATE)
    put_token(out, W_TRAFFIC, W_TRAFFIC_HASH, TOKEN_TRAFFIC, own, b);
}

static void answer_about(struct warden *w, struct origin origin, int status, struct box *b, const struct err *err,
                         bool trace)
{
  if (!reply_possible(w, origin))
    return;
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  wire_begin(&out, WIRE_REPLY, origin.id, status);
  if (status)
    wire_putz(&out, W_MESSAGE, err->msg);
  else
    desk_put_box(&out, (enum authority)origin.proven, b);
  if (!status && origin.proven == BY_KEY)
    box_vouch(b, origin.client);
  if (trace && !status)
    wire_put(&out, W_TRACE, str_make(&b->trace, sizeof(b->trace)));
  if (origin.resumed)
    wire_put_u64(&out, W_RESUMED, 1);
  send_to(origin.ipc, &out, -1);
}

void reply_box(struct warden *w, struct origin origin, int status, struct box *b, const struct err *err)
{
  answer_about(w, origin, status, b, err, false);
}

void reply_created(struct warden *w, struct origin origin, int status, struct box *b, const struct err *err)
{
  answer_about(w, origin, status, b, err, true);
}

/* ---- boxes ---- */

static void handle_create(struct request *q)
{
  struct err err = ERR_NONE;
  struct box_params order = {
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
  const struct box *have = box_find(q->warden, order.id, STR_NONE);
  if (!id_good(order.id)) {
    reply_error(q, -EINVAL, "invalid sandbox ID");
  } else if (have && !str_is(order.team, have->row.team)) {
    reply_error(q, -EEXIST, "the sandbox ID is in use");
  } else if (q->warden->stopping) {
    reply_error(q, -ESHUTDOWN, "Failed to place sandbox: the server is stopping");
  } else if (box_create(q->warden, &order, request_origin(q), &retry, &err)) {
    reply_begin(q, WIRE_REPLY, err.code ? err.code : -EIO);
    wire_putz(q->out, W_MESSAGE, err.msg);
    wire_put_u64(q->out, W_RETRY, retry);
    reply_send(q);
  }
}

/* The box a question is about; answers the refusal itself. A box that ended is told with its cause. */
struct box *request_box(struct request *q)
{
  struct str id = wire_get(q->packet, W_ID);
  struct box *b = box_find(q->warden, id, q->team);
  if (b)
    return b;
  char cause[256] = "";
  int64_t when = 0;
  reply_begin(q, WIRE_REPLY, -ENOENT);
  if (!store_cause(q->warden->store, id, q->team, cause, sizeof(cause), &when)) {
    wire_putz(q->out, W_CAUSE, cause);
    wire_put_u64(q->out, W_END, (uint64_t)when);
  }
  reply_send(q);
  return NULL;
}

static void answer_box(struct request *q, const struct box *b)
{
  reply_begin(q, WIRE_REPLY, 0);
  desk_put_box(q->out, q->proven, b);
  reply_send(q);
}

/* With a port: a way in comes along where there is one, so that the first request into a box asks only once. */
static void handle_get(struct request *q)
{
  struct box *b = request_box(q);
  struct err err = ERR_NONE;
  if (!b)
    return;
  unsigned port = (unsigned)wire_u64(q->packet, W_PORT, 0);
  cleanup_fd int fd = port ? box_dial(b, port, &err) : -1;
  if (q->proven == BY_KEY)
    box_vouch(b, request_origin(q).client);
  reply_begin(q, WIRE_REPLY, 0);
  desk_put_box(q->out, q->proven, b);
  reply_send_fd(q, fd >= 0 ? fd : -1);
}

static void handle_kill(struct request *q)
{
  struct box *b = request_box(q);
  if (!b)
    return;
  box_end(b, "killed: by request");
  reply_ok(q);
}

static void handle_timeout(struct request *q)
{
  struct box *b = request_box(q);
  if (!b)
    return;
  int64_t end = clock_wall_us() + (int64_t)wire_u64(q->packet, W_TIMEOUT, 0) * 1000000;
  int64_t last = b->row.started_us + (int64_t)quota_timeout_max(q->warden, str_of(b->row.team)) * 1000000;
  bool extend = wire_u64(q->packet, W_MODE, TIMEOUT_SET) == TIMEOUT_EXTEND;
  struct err err = ERR_NONE;
  if (b->row.state == BOX_PAUSED)
    reply_error(q, -ENOENT, "the sandbox is paused");
  else if (b->row.state != BOX_RUNNING && b->row.state != BOX_COPYING)
    reply_error(q, -EBUSY, "the sandbox is changing its state");
  else if (clock_wall_us() > last)
    reply_error(q, -EINVAL, "the sandbox has reached the longest life of one run");
  else if (box_set_end(b, extend ? MAX(MIN(end, last), b->row.end_us) : MIN(end, last), &err))
    reply_err(q, &err);
  else
    answer_box(q, b);
}

static void handle_pause(struct request *q)
{
  struct box *b = request_box(q);
  if (b)
    box_pause(b, &(struct pending_op){
                     .origin = request_origin(q), .pause = true, .cold = wire_u64(q->packet, W_COLD, 0) != 0});
}

static void handle_connect(struct request *q)
{
  struct box *b = request_box(q);
  if (!b)
    return;
  struct pending_op pending_op = {.origin = request_origin(q),
                                  .mode = (enum connect_mode)wire_u64(q->packet, W_MODE, CONNECT_CONNECT),
                                  .timeout_s = (uint32_t)wire_u64(q->packet, W_TIMEOUT, 0),
                                  .cold = wire_u64(q->packet, W_COLD, 0) != 0,
                                  .auto_pause = -1};
  if (q->proven == BY_ANYONE && pending_op.mode != CONNECT_WAKE && pending_op.mode != CONNECT_JOIN) {
    reply_error(q, -EACCES, "a key is needed for this");
    return;
  }
  if (wire_get(q->packet, W_FLAGS).p && q->proven != BY_ANYONE)
    pending_op.auto_pause = (wire_u64(q->packet, W_FLAGS, 0) & BOX_AUTO_PAUSE) != 0;
  box_connect(b, &pending_op);
}

static void handle_config(struct request *q)
{
  struct box *b = request_box(q);
  struct err err = ERR_NONE;
  if (!b)
    return;
  if (b->row.state == BOX_PAUSED)
    reply_error(q, -ENOENT, "the sandbox is paused");
  else if (b->row.state != BOX_RUNNING)
    reply_error(q, -EBUSY, "the sandbox is changing its state");
  else if (quota_change(q->warden, str_of(b->row.team), &err) ||
           box_configure(b, wire_get(q->packet, W_CONFIG), (unsigned)wire_u64(q->packet, W_FLAGS, b->row.flags),
                         wire_get(q->packet, W_ALLOW), wire_get(q->packet, W_DENY), &err))
    reply_err(q, &err);
  else
    reply_ok(q);
}

static void handle_dial(struct request *q)
{
  struct box *b = request_box(q);
  if (!b)
    return;
  struct err err = ERR_NONE;
  cleanup_fd int fd = box_dial(b, (unsigned)wire_u64(q->packet, W_PORT, 0), &err);
  if (fd < 0) {
    reply_begin(q, WIRE_REPLY, fd);
    wire_putz(q->out, W_MESSAGE, err.msg);
    wire_put_u64(q->out, W_RUN, b->row.run);
    reply_send(q);
    return;
  }
  reply_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_RUN, b->row.run);
  send_to(q->ipc, q->out, fd);
}

/* Who shows a box's token is remembered as a client of it; see box_vouch. */
static void handle_vouch(struct request *q)
{
  struct box *b = request_box(q);
  if (!b)
    return;
  struct origin origin = request_origin(q);
  struct str shown = wire_get(q->packet, W_TOKEN);
  char token[TOKEN_TEXT];
  token_make(str_of(q->warden->secret), TOKEN_ACCESS, str_of(b->row.id), token);
  bool good = shown.p ? str_eq_secret(shown, str_of(token)) : box_vouched(b, origin.client);
  if (good && shown.p)
    box_vouch(b, origin.client);
  if (good)
    reply_ok(q);
  else
    reply_error(q, -EACCES, "nothing vouches for this client");
}

static void handle_signed(struct request *q)
{
  struct str hash = wire_get(q->packet, W_TOKEN_HASH);
  if (hash.n) {
    const struct box *b = token_index_token(q->warden, hash);
    reply_begin(q, WIRE_REPLY, b ? 0 : -EACCES);
    if (b)
      wire_putz(q->out, W_ID, b->row.id);
    reply_send(q);
    return;
  }
  token_index_find(q->warden, request_origin(q), wire_get(q->packet, W_NAME), wire_get(q->packet, W_REF),
                   wire_get(q->packet, W_SIGNATURE));
}

/* No descriptor comes with the answer when the box printed nothing. */
static void handle_log(struct request *q)
{
  struct str id = wire_get(q->packet, W_ID);
  struct box *b = box_find(q->warden, id, q->team);
  cleanup_fd int fd = b && !b->on_disk ? boxlog_open(&b->jail) : boxlog_kept(q->warden, id, q->team);
  char cause[256];
  int64_t when;
  if (fd < 0 && !b && store_cause(q->warden->store, id, q->team, cause, sizeof(cause), &when)) {
    reply_begin(q, WIRE_REPLY, -ENOENT);
    reply_send(q);
    return;
  }
  reply_begin(q, WIRE_REPLY, 0);
  send_to(q->ipc, q->out, fd >= 0 ? fd : -1);
}

static void handle_usage(struct request *q)
{
  struct box *b = request_box(q);
  if (!b)
    return;
  int64_t from = (int64_t)wire_u64(q->packet, W_FROM, 0), to = (int64_t)wire_u64(q->packet, W_TO, INT64_MAX);
  for (size_t i = 0; i < b->usage.n; i++) {
    const struct wire_sample *s = &b->usage.samples[i];
    if (s->wall_us < from || s->wall_us > to)
      continue;
    reply_begin(q, WIRE_ITEM, 0);
    wire_put(q->out, W_SAMPLE, str_make(s, sizeof(*s)));
    reply_send(q);
  }
  reply_ok(q);
}

/* The newest sample of each of the team's boxes that were named. */
static void handle_usage_latest(struct request *q)
{
  struct str rest = wire_get(q->packet, W_REF), id;
  while (rest.n) {
    str_cut(rest, ',', &id, &rest);
    struct box *b = box_find(q->warden, id, q->team);
    if (!b || !b->usage.n)
      continue;
    reply_begin(q, WIRE_ITEM, 0);
    wire_put(q->out, W_ID, id);
    wire_put(q->out, W_SAMPLE, str_make(&b->usage.samples[b->usage.n - 1], sizeof(struct wire_sample)));
    reply_send(q);
  }
  reply_ok(q);
}

static void handle_team_kill(struct request *q)
{
  VEC(struct box *) doomed = {0};
  void *value;
  for (size_t i = 0; map_next(&q->warden->boxes, &i, NULL, &value);)
    if (str_is(q->team, ((struct box *)value)->row.team))
      vec_push(&doomed, (struct box *)value);
  for (size_t i = 0; i < doomed.n; i++)
    box_end(doomed.p[i], "killed: by the server's administrator");
  reply_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, doomed.n);
  reply_send(q);
  vec_free(&doomed);
}

static void handle_status(struct request *q)
{
  struct warden *w = q->warden;
  struct wire_status s = {.started_us = w->started_us,
                          .removals = w->removals,
                          .warm_boxes = warm_pool_count(w),
                          .launches_total = w->launches_total,
                          .launches_failed = w->launches_failed,
                          .resumes_total = w->resumes_total,
                          .pauses_total = w->pauses_total,
                          .ends_total = w->ends_total,
                          .checkpoint_ready = w->checkpoints_on};
  void *value;
  for (size_t i = 0; map_next(&w->boxes, &i, NULL, &value);) {
    unsigned state = ((struct box *)value)->row.state;
    s.starting += state == BOX_STARTING;
    s.paused += box_state_asleep(state);
    s.checkpoints += ((struct box *)value)->row.checkpoint[0] != 0;
    s.checkpoint_bytes += ((struct box *)value)->row.checkpoint_size;
    bool runs = state == BOX_RUNNING || state == BOX_RESUMING;
    s.running += runs;
    s.cpus += runs ? ((struct box *)value)->row.cpus : 0;
    s.memory += runs ? (uint64_t)((struct box *)value)->row.memory_mb << 20 : 0;
  }
  reply_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, w->boxes.n);
  wire_put(q->out, W_STATUS, str_make(&s, sizeof(s)));
  reply_send(q);
}

static const struct {
  enum wire_type type;
  void (*answer)(struct request *q);
} questions[] = {
    {WIRE_BOX_CREATE, handle_create},
    {WIRE_BOX_GET, handle_get},
    {WIRE_BOX_LIST, desk_list},
    {WIRE_BOX_KILL, handle_kill},
    {WIRE_BOX_TIMEOUT, handle_timeout},
    {WIRE_BOX_PAUSE, handle_pause},
    {WIRE_BOX_CONNECT, handle_connect},
    {WIRE_BOX_CONFIG, handle_config},
    {WIRE_BOX_DIAL, handle_dial},
    {WIRE_BOX_USAGE, handle_usage},
    {WIRE_USAGE_LATEST, handle_usage_latest},
    {WIRE_TEAM_KILL, handle_team_kill},
    {WIRE_BOX_LOG, handle_log},
    {WIRE_STATUS, handle_status},
    {WIRE_BOX_VOUCH, handle_vouch},
    {WIRE_SIGNED_FIND, handle_signed},
};

static void on_gate_packet(struct ipc *l, struct str packet, int fd, void *arg)
{
  if (fd >= 0)
    close(fd);
  if (wire_check(packet)) {
    log_error("a gate sent a broken packet of %zu bytes", packet.n);
    return;
  }
  struct peer *peer = arg;
  static _Alignas(8) char copy[WIRE_MAX]; /* answers may re-enter the link's buffer */
  memcpy(copy, packet.p, packet.n);
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  struct request q = {.warden = peer->warden, .peer = peer, .ipc = l, .packet = {copy, packet.n}, .out = &out};
  q.id = wire_head(q.packet)->id;
  enum wire_type type = (enum wire_type)wire_head(q.packet)->type;
  if (authority_admit(&q, type))
    return;
  for (size_t i = 0; i < ARRAY_LEN(questions); i++)
    if (questions[i].type == type) {
      questions[i].answer(&q);
      return;
    }
  if (!handle_copy(&q, type) && !handle_catalog(&q, type) && !handle_build(&q, type) && !handle_admin(&q, type))
    reply_error(&q, -ENOSYS, "the warden does not know this request");
}

static void on_gate_closed(struct ipc *l, void *arg)
{
  struct peer *p = arg;
  struct warden *w = p->warden;
  for (size_t i = 0; i < w->links.n; i++)
    if (w->links.p[i] == l)
      vec_remove_swap(&w->links, i);
  desk_list_drop(p);
  ipc_free(l);
  free(p);
}

static const struct ipc_ops warden_rpc_ops = {on_gate_packet, on_gate_closed};

struct ipc *desk_link(struct warden *w, int fd, enum peer_kind kind)
{
  struct peer *p = xcalloc(1, sizeof(*p));
  struct ipc *l = ipc_new(w->loop, fd, &warden_rpc_ops, p);
  *p = (struct peer){.warden = w, .ipc = l, .kind = kind};
  ipc_pace(l);
  ipc_guard(l);
  ipc_on_drain(l, desk_list_go_on);
  vec_push(&w->links, l);
  return l;
}
