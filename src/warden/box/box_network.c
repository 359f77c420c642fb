/* SPDX-License-Identifier: Apache-2.0 */
/* box_network.c - see box_network.h. The gateway gets the new policy before traffic is turned to it, and loses the old
 * one after traffic has been turned away. What must be waited for is waited for with copies: the box may end meanwhile.
 *
 * Changes of one box are made one after the other, in the order that they came in; those of others do not wait for
 * them. nft runs on a worker of the box's team, and the box's slot is held until it is done, so that no other box gets
 * rules that were meant for one that has gone. Where the box was paused or copied meanwhile the change fails, and the
 * rules of its row are written again. */
#include "warden/box/box_network.h"

#include "warden/box/box.h"
#include "warden/core/egress.h"
#include "warden/core/id_slots.h"
#include "warden/core/identity.h"
#include "warden/core/warden_state.h"
#include "warden/core/worker_pool.h"
#include "warden/egress/policies.h"
#include "warden/egress/prepare.h"
#include <stdio.h>

struct change {
  struct change *next; /* later ones */
  struct warden *warden;
  struct origin origin;
  char id[BOX_ID_SIZE], team[UUID_SIZE];
  uint64_t run;
  char *config, *allow, *deny;
  unsigned flags, slot;
  struct box_egress *egress; /* until it is the box's */
  struct box_egress *old;    /* what was the box's, until the new one is committed */
  bool plain;                /* nothing of it goes to the gateway */
  bool linked;               /* the box has a link, perhaps one that was made for this */
  bool told;                 /* the agent knows the authority */
  bool answered, written;    /* the gateway has answered; the rules are written and committed, or are not */
  uv_work_t work;
  struct egress_writing writing;
  int result;
  struct err err, refusal; /* refusal: the worker's */
  bool begun;
};

static struct change *changes; /* of all boxes, in the order that they came in */

static void change_begin(struct change *c);

/* The first one of its box. */
static struct change *first_of(const char *id)
{
  struct change *c = changes;
  while (c && strcmp(c->id, id) != 0)
    c = c->next;
  return c;
}

static size_t count_of(const char *id)
{
  size_t n = 0;
  for (const struct change *c = changes; c; c = c->next)
    n += !strcmp(c->id, id);
  return n;
}

static void change_end(struct change *c, int result, const struct err *err)
{
  struct change **at = &changes;
  while (*at != c)
    at = &(*at)->next;
  *at = c->next;
  reply_end(c->warden, c->origin, result, err);
  struct change *next = first_of(c->id);
  box_egress_free(c->egress);
  box_egress_free(c->old);
  free(c->config);
  free(c->allow);
  free(c->deny);
  free(c);
  if (next && !next->begun)
    change_begin(next);
}

/* The box, if it still is the one that was asked for and runs. */
static struct box *changed_box(const struct change *c, struct err *err)
{
  struct box *b = box_find(c->warden, str_of(c->id), STR_NONE);
  if (!b || b->row.run != c->run)
    err_set(err, -ENOENT, "it ended, or was paused, while its network settings were changed");
  else if (b->row.state != BOX_RUNNING)
    err_set(err, -EBUSY, "the sandbox is changing its state");
  return err->code ? NULL : b;
}

/* ---- nft ---- */

static void write_work(uv_work_t *work)
{
  struct change *c = work->data;
  c->result = egress_write(&c->writing, &c->refusal);
}

static void write_begin(struct change *c, uv_after_work_cb done)
{
  slot_hold(c->warden, c->slot);
  c->work.data = c;
  worker_pool_queue(c->warden, c->team, &c->work, write_work, done);
}

static void write_end(struct change *c)
{
  egress_writing_end(&c->writing);
  slot_let_go(c->warden, c->slot);
}

/* ---- the end ---- */

static void on_trusted(void *arg, int result, const struct err *err)
{
  struct change *c = arg;
  struct err why = ERR_NONE;
  if (result)
    err_set(&why, -ESHUTDOWN, "the rules are in force, but the sandbox's programs were not told whom to trust: %.300s",
            err->msg);
  change_end(c, why.code, &why);
}

/* Both the firewall and, where it has a part in it, the gateway have said their word. */
static void change_settle(struct change *c)
{
  struct err why = c->err;
  if (!c->answered || !c->written)
    return;
  struct box *b = why.code ? NULL : changed_box(c, &why);
  if (b && b->egress && b->egress->cert.n && !c->told)
    agent_trust(c->warden->loop, &b->jail, b->row.secret, buf_str(&b->egress->cert), c->warden->config->agent_s,
                on_trusted, c);
  else
    change_end(c, why.code, &why);
}

static void on_policy(void *arg, int result, const struct err *err)
{
  struct change *c = arg;
  if (result && !c->err.code)
    c->err = *err;
  c->answered = true;
  change_settle(c);
}

static void on_restored(uv_work_t *work, int status)
{
  struct change *c = work->data;
  if (c->result)
    log_with(LOG_ERROR, (const char *[]){"box", c->id, NULL}, "its network rules could not be restored");
  write_end(c);
  c->written = true;
  change_settle(c);
}

static void restore_work(uv_work_t *work)
{
  struct change *c = work->data;
  c->result = egress_write(&c->writing, NULL);
}

/* The firewall may have rules that the box's row does not know of. */
static void restore(struct change *c, struct box *b)
{
  b->row.flags |= c->linked ? BOX_LINKED : 0;
  egress_writing_plan(&c->writing, b, b->row.flags, str_of(b->row.allow), str_of(b->row.deny), b->egress);
  slot_hold(c->warden, c->slot);
  worker_pool_queue(c->warden, c->team, &c->work, restore_work, on_restored);
}

/* As if nothing had been asked for; `b` is still there. */
static void take_back(struct change *c, struct box *b)
{
  bool wanted = !c->plain && b->egress && b->egress->wanted;
  if (c->plain)
    return;
  policy_remove(b);
  c->egress = b->egress;
  b->egress = steal(&c->old);
  if (b->egress)
    b->egress->wanted = false;
  if (wanted)
    policy_want(b);
}

/* The gate's, but for what is the warden's: the link, and which kernel the box runs on. */
static unsigned kept_flags(const struct box *b, unsigned flags)
{
  return (flags & ~(unsigned)(BOX_LINKED | BOX_MICROVM | BOX_PROCESS)) | (b->row.flags & BOX_MICROVM);
}

static int commit(struct box *b, const struct change *c, struct err *err)
{
  unsigned linked = c->writing.linked ? BOX_LINKED : 0;
  return box_configure(b, str_of(c->config), kept_flags(b, c->flags) | linked, str_of(c->allow), str_of(c->deny), err);
}

/* Without the gateway from now on. */
static int commit_plain(struct box *b, struct change *c, struct err *err)
{
  struct box_egress *old = b->egress;
  b->egress = NULL;
  int r = commit(b, c, err);
  b->egress = old;
  if (!r && old) {
    policy_remove(b);
    box_egress_free(steal(&b->egress));
  }
  return r;
}

static void on_written(uv_work_t *work, int status)
{
  struct change *c = work->data;
  struct box *there = box_find(c->warden, str_of(c->id), STR_NONE);
  struct box *b = c->result ? NULL : changed_box(c, &c->refusal);
  bool done = b && !(c->plain ? commit_plain(b, c, &c->refusal) : commit(b, c, &c->refusal));
  bool changed = c->writing.needed && !c->result;
  c->linked = c->writing.linked;
  if (c->refusal.code)
    c->err = c->refusal;
  write_end(c);
  if (!done && there)
    take_back(c, there);
  if (!done && there && changed && there->row.state != BOX_STARTING && !there->on_disk) {
    restore(c, there);
    return;
  }
  if (done)
    box_egress_free(steal(&c->old));
  c->written = true;
  change_settle(c);
}

/* ---- the beginning ---- */

static void change_write(struct change *c, const struct box *b)
{
  egress_writing_plan(&c->writing, b, c->flags, str_of(c->allow), str_of(c->deny), c->plain ? NULL : b->egress);
  write_begin(c, on_written);
}

static void change_to_gateway(struct box *b, struct change *c)
{
  c->old = b->egress;
  c->told = c->old && c->old->cert.n && str_eq(buf_str(&c->old->cert), buf_str(&c->egress->cert));
  b->egress = steal(&c->egress);
  policy_apply(b, on_policy, c);
  change_write(c, b);
}

static void on_prepared(void *arg, int result, const struct err *err)
{
  struct change *c = arg;
  struct err why = result ? *err : ERR_NONE;
  struct box *b = result ? NULL : changed_box(c, &why);
  if (!b)
    change_end(c, why.code, &why);
  else
    change_to_gateway(b, c);
}

/* The authority that the box trusts already stays its own. */
static void keep_authority(const struct box *b, struct box_egress *e)
{
  if (!b->egress || !b->egress->key.n || !e->rules)
    return;
  buf_adds(&e->cert, buf_str(&b->egress->cert));
  buf_adds(&e->key, buf_str(&b->egress->key));
}

/* Those before it are done. */
static void change_begin(struct change *c)
{
  struct err err = ERR_NONE;
  struct box *b = changed_box(c, &err);
  c->begun = true;
  if (!b) {
    change_end(c, err.code, &err);
  } else if (c->plain) {
    c->answered = true;
    change_write(c, b);
  } else {
    keep_authority(b, c->egress);
    egress_prepare(c->warden, c->team, c->egress, false, on_prepared, c);
  }
}

static int change_check(struct change *c, const struct box *b, const struct network_params *o, struct err *err)
{
  if (count_of(b->row.id) >= NETWORK_CHANGES_MAX)
    return err_set(err, -EAGAIN, "%d changes of the sandbox's network settings are under way; wait for their answers",
                   NETWORK_CHANGES_MAX);
  if (c->plain)
    return 0;
  if (!egress_gateway(c->warden))
    return err_set(err, -EINVAL,
                   "'network.rules' and 'network.egressProxy' can't be used: this server has no egress gateway");
  int r = box_egress_read(o->egress, o->rules, &c->egress, err);
  return r ? r : policy_check(c->egress, b->row.tokens, err);
}

void box_change_network(struct box *b, const struct network_params *o)
{
  struct change *c = xcalloc(1, sizeof(*c)), **at = &changes;
  struct err err = ERR_NONE;
  c->warden = b->warden;
  c->origin = o->origin;
  c->run = b->row.run;
  c->slot = b->row.slot;
  c->flags = o->flags;
  c->plain = !o->egress.n;
  memcpy(c->id, b->row.id, sizeof(c->id));
  snprintf(c->team, sizeof(c->team), "%s", b->row.team);
  c->config = xstrndup(o->config.n ? o->config.p : "", o->config.n);
  c->allow = xstrndup(o->allow.n ? o->allow.p : "", o->allow.n);
  c->deny = xstrndup(o->deny.n ? o->deny.p : "", o->deny.n);
  int r = change_check(c, b, o, &err);
  bool alone = !first_of(c->id);
  while (*at)
    at = &(*at)->next;
  *at = c;
  if (r)
    change_end(c, r, &err);
  else if (alone)
    change_begin(c);
}
