/* SPDX-License-Identifier: Apache-2.0 */
/* box_create_once.c - see box_create_once.h. The rate limit comes before the key: a refusal by it is nobody's answer.
 */
#include "warden/box/box_create_once.h"

#include "warden/box/box.h"
#include "warden/box/box_create.h"
#include "warden/box/idempotency_rules.h"
#include "warden/core/box_reply.h"
#include "warden/core/quota.h"
#include "warden/core/warden_state.h"
#include "warden/db/idempotency.h"

static void replay(struct warden *w, const struct row_idempotency *k, struct origin origin)
{
  struct err err = ERR_NONE;
  if (k->status) {
    err_set(&err, k->status, "%s", k->message);
    reply_end(w, origin, k->status, &err);
    return;
  }
  struct box *now = box_find(w, str_of(k->box), str_of(k->team));
  struct box then = {.warden = w, .row = {.state = BOX_RUNNING, .flags = k->flags, .config = (char[]){""}}};
  str_copyz(str_of(k->box), then.row.id, sizeof(then.row.id));
  str_copyz(str_of(k->team), then.row.team, sizeof(then.row.team));
  str_copyz(str_of(k->template_id), then.row.template_id, sizeof(then.row.template_id));
  str_copyz(str_of(k->alias), then.row.alias, sizeof(then.row.alias));
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  wire_begin(&out, WIRE_REPLY, origin.id, 0);
  box_put_visible(&out, origin.proven, &then);
  if (now && origin.proven == BY_KEY)
    box_vouch(now, origin.client);
  reply_packet(w, origin, &out);
}

void box_create_once_forget(struct warden *w)
{
  idempotency_forget(w->store, clock_wall_us() - (int64_t)w->config->idempotency_s * 1000000);
}

/* A row is small, but there is one for every create of a day. */
static int check_room(struct warden *w, struct str team, struct err *err)
{
  const struct warden_config *c = w->config;
  if (idempotency_count(w->store, team) < c->team_idempotency_max)
    return 0;
  box_create_once_forget(w);
  if (idempotency_count(w->store, team) < c->team_idempotency_max)
    return 0;
  return err_set(err, -ENOBUFS,
                 "no room for another Idempotency-Key: %u of your team are kept, each for %u s "
                 "(team_idempotency_keys_max, idempotency_seconds); nothing was created",
                 c->team_idempotency_max, c->idempotency_s);
}

static int reserve(struct warden *w, const struct row_idempotency *k, struct err *err)
{
  int r = check_room(w, str_of(k->team), err);
  if (r || !(r = idempotency_reserve(w->store, k, err)))
    return r;
  log_error("idempotency key not reserved: %s", err->msg);
  return err_set(err, -ENOBUFS, "the Idempotency-Key can't be kept at the moment; nothing was created");
}

/* What came of the request, for repeats of it. A server that stops has not said no to it. */
static void keep_failure(struct warden *w, const struct row_idempotency *k, int status, const char *message)
{
  struct err err = ERR_NONE;
  if (key_keeps(status) && !w->stopping ? idempotency_answer(w->store, k, status, message, &err)
                                        : idempotency_delete(w->store, k, &err))
    log_error("answer to an idempotency key not kept, its outcome counts as unknown: %s", err.msg);
}

void box_create_once_failed(const struct box *b, int status, const struct err *err)
{
  struct row_idempotency k = {0};
  str_copyz(str_of(b->row.team), k.team, sizeof(k.team));
  str_copyz(str_of(b->idempotency_key), k.key, sizeof(k.key));
  str_copyz(str_of(b->row.id), k.box, sizeof(k.box));
  keep_failure(b->warden, &k, status, err->msg);
}

static int execute(struct warden *w, const struct box_params *o, const struct row_idempotency *k, struct origin origin,
                   unsigned *retry_s, struct err *err)
{
  int r = box_create(w, o, origin, retry_s, err);
  if (r)
    keep_failure(w, k, err->code ? err->code : -EIO, err->msg);
  return r;
}

static int refuse(enum key_verdict v, struct err *err)
{
  if (v == KEY_MISMATCH)
    return err_set(err, -EKEYREJECTED, "Idempotency-Key was already used with a different request");
  if (v == KEY_BUSY)
    return err_set(err, -EINPROGRESS, "the first request with this Idempotency-Key is still in progress");
  return err_set(err, -EOWNERDEAD,
                 "the server was stopped before it answered the first request with this Idempotency-Key: whether its "
                 "sandbox was created is unknown; list your sandboxes, then use another key");
}

int box_create_once(struct warden *w, const struct box_params *o, struct origin origin, unsigned *retry_s,
                    struct err *err)
{
  struct row_idempotency k = {.created_us = clock_wall_us()}, have = {0};
  if (o->fingerprint.n != sizeof(k.fingerprint) || str_copyz(o->idempotency_key, k.key, sizeof(k.key)) ||
      str_copyz(o->team, k.team, sizeof(k.team)) || str_copyz(o->id, k.box, sizeof(k.box)))
    return err_set(err, -EINVAL, "invalid idempotency key");
  memcpy(k.fingerprint, o->fingerprint.p, sizeof(k.fingerprint));
  int r = quota_pace(w, o->team, retry_s, err);
  if (r)
    return r;
  struct key_facts facts = {.reserved = !idempotency_get(w->store, o->team, o->idempotency_key, &have)};
  facts.answered = have.answered;
  facts.same = !memcmp(have.fingerprint, k.fingerprint, sizeof(k.fingerprint));
  facts.own = !strcmp(have.box, k.box);
  facts.live = box_find(w, str_of(have.box), o->team) != NULL;
  facts.age_us = k.created_us - have.created_us;
  enum key_verdict v = key_verdict(&facts, (int64_t)w->config->idempotency_s * 1000000,
                                   (int64_t)w->config->idempotency_wait_s * 1000000);
  struct box_params joined = *o;
  joined.id = str_of(have.box);
  switch (v) {
  case KEY_NEW:
    r = reserve(w, &k, err);
    return r ? r : execute(w, o, &k, origin, retry_s, err);
  case KEY_EXECUTE:
    return execute(w, o, &k, origin, retry_s, err);
  case KEY_JOIN:
    return box_create(w, &joined, origin, retry_s, err);
  case KEY_REPLAY:
    replay(w, &have, origin);
    return 0;
  default:
    return refuse(v, err);
  }
}
