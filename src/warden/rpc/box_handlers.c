/* SPDX-License-Identifier: Apache-2.0 */
/* box_handlers.c - requests about boxes, one function each. Reads only the fixed shapes of wire.h; text that clients
 * wrote passes through untouched. */
#include "warden/rpc/handlers.h"

#include "warden/box/box.h"
#include "warden/box/box_create.h"
#include "warden/box/box_network.h"
#include "warden/core/context.h"
#include "warden/core/box_log.h"
#include "warden/core/net_log.h"
#include "warden/core/box_reply.h"
#include "warden/db/ref.h"
#include "warden/box/pause.h"
#include "warden/core/quota.h"
#include "warden/core/token_index.h"
#include "warden/secret/workload_identity.h"
#include "warden/webhook/webhooks.h"
#include "warden/warm/warm_pool.h"
#include "wire/api_key.h"

/* ---- boxes ---- */

void handle_box_create(struct request *q)
{
  struct err err = ERR_NONE;
  struct box_params params = {
      .id = wire_get(q->packet, W_ID),
      .team = q->team,
      .ref = wire_get(q->packet, W_REF),
      .config = wire_get(q->packet, W_CONFIG),
      .init = wire_get(q->packet, W_INIT),
      .allow = wire_get(q->packet, W_ALLOW),
      .deny = wire_get(q->packet, W_DENY),
      .mounts = wire_get(q->packet, W_MOUNTS),
      .mount_faults = wire_get(q->packet, W_MOUNT_FAULTS),
      .tokens = wire_get(q->packet, W_TOKENS),
      .egress = wire_get(q->packet, W_EGRESS),
      .rules = wire_get(q->packet, W_RULES),
      .timeout_s = (uint32_t)wire_u64(q->packet, W_TIMEOUT, 15),
      .flags = (unsigned)wire_u64(q->packet, W_FLAGS, 0),
      .idempotency_key = wire_get(q->packet, W_IDEMPOTENCY_KEY),
      .fingerprint = wire_get(q->packet, W_FINGERPRINT),
  };
  int (*make)(struct warden *, const struct box_params *, struct origin, unsigned *, struct err *) =
      params.idempotency_key.n ? box_create_once : box_create;
  unsigned retry = 0;
  const struct box *have = box_find(q->warden, params.id, STR_NONE);
  if (!id_valid(params.id)) {
    reply_error(q, -EINVAL, "invalid sandbox ID");
  } else if (have && !str_is(params.team, have->row.team)) {
    reply_error(q, -EEXIST, "the sandbox ID is in use");
  } else if (params.tokens.n && !identity_ready(q->warden, &err)) {
    reply_error(q, -EINVAL, "'iam' tokens are not available: the master key of this server is missing or another one");
  } else if (warden_stopping(q->warden)) {
    reply_error(q, -ESHUTDOWN, "Failed to place sandbox: the server is stopping");
  } else if (make(q->warden, &params, request_origin(q), &retry, &err)) {
    reply_begin(q, WIRE_REPLY, err.code ? err.code : -EIO);
    wire_putz(q->out, W_MESSAGE, err.msg);
    wire_put_u64(q->out, W_RETRY, retry);
    reply_send(q);
  }
}

static void answer_box(struct request *q, const struct box *b)
{
  reply_begin(q, WIRE_REPLY, 0);
  box_put_visible(q->out, q->proven, b);
  reply_send(q);
}

/* With a port: a way in comes along where there is one, so that the first request into a box asks only once. */
void handle_box_get(struct request *q)
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
  box_put_visible(q->out, q->proven, b);
  reply_send_fd(q, fd >= 0 ? fd : -1);
}

/* By whom, as far as the request shows it. */
static void kill_cause(struct request *q, char *out, size_t size)
{
  const struct row_key *const *keys;
  struct str hash = wire_get(q->packet, W_PROOF);
  size_t n = catalog_keys(warden_catalog(q->warden), &keys);
  snprintf(out, size, "killed: by request");
  for (size_t i = 0; q->proven == BY_KEY && i < n; i++)
    if (str_eq(hash, str_make(keys[i]->hash, SHA256_LEN)))
      snprintf(out, size, CAUSE_BY_KEY "%s'", keys[i]->name);
  if (q->proven == BY_ROOT)
    snprintf(out, size, "killed: by the root user of the host");
}

void handle_box_kill(struct request *q)
{
  char cause[200];
  struct box *b = request_box(q);
  if (!b)
    return;
  kill_cause(q, cause, sizeof(cause));
  box_end(b, cause);
  reply_ok(q);
}

void handle_box_timeout(struct request *q)
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

void handle_box_pause(struct request *q)
{
  struct box *b = request_box(q);
  if (b)
    box_pause(b, &(struct pending_op){.origin = request_origin(q),
                                      .pause = true,
                                      .cold = wire_u64(q->packet, W_COLD, 0) != 0,
                                      .healthy = wire_u64(q->packet, W_HEALTHY, 0) != 0});
}

void handle_box_connect(struct request *q)
{
  struct box *b = request_box(q);
  if (!b)
    return;
  struct pending_op pending_op = {.origin = request_origin(q),
                                  .mode = (enum connect_mode)wire_u64(q->packet, W_MODE, CONNECT_CONNECT),
                                  .timeout_s = (uint32_t)wire_u64(q->packet, W_TIMEOUT, 0),
                                  .cold = q->proven != BY_ANYONE && wire_u64(q->packet, W_COLD, 0) != 0,
                                  .auto_pause = -1};
  if (q->proven == BY_ANYONE && pending_op.mode != CONNECT_TRAFFIC && pending_op.mode != CONNECT_JOIN) {
    reply_error(q, -EACCES, "a key is needed for this");
    return;
  }
  if (wire_get(q->packet, W_FLAGS).p && q->proven != BY_ANYONE)
    pending_op.auto_pause = (wire_u64(q->packet, W_FLAGS, 0) & BOX_AUTO_PAUSE) != 0;
  box_connect(b, &pending_op);
}

void handle_box_config(struct request *q)
{
  struct box *b = request_box(q);
  struct err err = ERR_NONE;
  if (!b)
    return;
  if (b->row.state == BOX_PAUSED)
    reply_error(q, -ENOENT, "the sandbox is paused");
  else if (b->row.state != BOX_RUNNING)
    reply_error(q, -EBUSY, "the sandbox is changing its state");
  else if (quota_change(q->warden, str_of(b->row.team), &err))
    reply_err(q, &err);
  else
    box_change_network(b, &(struct network_params){.config = wire_get(q->packet, W_CONFIG),
                                                   .allow = wire_get(q->packet, W_ALLOW),
                                                   .deny = wire_get(q->packet, W_DENY),
                                                   .egress = wire_get(q->packet, W_EGRESS),
                                                   .rules = wire_get(q->packet, W_RULES),
                                                   .flags = (unsigned)wire_u64(q->packet, W_FLAGS, b->row.flags),
                                                   .origin = request_origin(q)});
}

void handle_box_dial(struct request *q)
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
  reply_send_fd(q, fd);
}

/* Who shows a box's token is remembered as a client of it; see box_vouch. */
void handle_box_vouch(struct request *q)
{
  struct box *b = request_box(q);
  if (!b)
    return;
  struct origin origin = request_origin(q);
  struct str shown = wire_get(q->packet, W_TOKEN);
  char token[TOKEN_TEXT];
  token_make(str_of(warden_secret(q->warden)), TOKEN_ACCESS, str_of(b->row.id), token);
  bool good = shown.p ? str_eq_secret(shown, str_of(token)) : box_vouched(b, origin.client);
  if (good && shown.p)
    box_vouch(b, origin.client);
  if (good)
    reply_ok(q);
  else
    reply_error(q, -EACCES, "nothing vouches for this client");
}

void handle_signed_find(struct request *q)
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

/* No descriptor comes with the answer when there is nothing to read. */
static void reply_ring(struct request *q, struct str id, const struct box *b, int ring)
{
  cleanup_fd int fd = ring;
  char cause[256];
  int64_t when;
  if (fd < 0 && !b && store_cause(warden_store(q->warden), id, q->team, cause, sizeof(cause), &when)) {
    reply_begin(q, WIRE_REPLY, -ENOENT);
    reply_send(q);
    return;
  }
  reply_begin(q, WIRE_REPLY, 0);
  reply_send_fd(q, fd >= 0 ? fd : -1);
}

void handle_box_log(struct request *q)
{
  struct str id = wire_get(q->packet, W_ID);
  struct box *b = box_find(q->warden, id, q->team);
  reply_ring(q, id, b, b && !b->on_disk ? boxlog_open(&b->jail) : boxlog_kept(q->warden, id, q->team));
}

void handle_box_net_log(struct request *q)
{
  struct str id = wire_get(q->packet, W_ID);
  const struct box *b = box_find(q->warden, id, q->team);
  int ring = net_log_read(q->warden, id, q->team, b);
  if (ring == -EOPNOTSUPP)
    reply_error(q, ring, "this server keeps no network log: set network_log to names or full");
  else
    reply_ring(q, id, b, ring);
}

void handle_box_usage(struct request *q)
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
void handle_usage_latest(struct request *q)
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

void handle_team_kill(struct request *q)
{
  VEC(struct box *) doomed = {0};
  size_t at = 0;
  for (struct box *b; (b = box_next(q->warden, &at));)
    if (str_is(q->team, b->row.team))
      vec_push(&doomed, b);
  for (size_t i = 0; i < doomed.n; i++)
    box_end(doomed.p[i], "killed: by the server's administrator");
  reply_begin(q, WIRE_REPLY, 0);
  wire_put_u64(q->out, W_COUNT, doomed.n);
  reply_send(q);
  vec_free(&doomed);
}
