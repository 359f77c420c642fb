/* SPDX-License-Identifier: Apache-2.0 */
/* box_network.c - see box_network.h. The gateway gets the new policy before traffic is turned to it, and loses the old
 * one after traffic has been turned away. What must be waited for is waited for with copies: the box may end meanwhile.
 */
#include "warden/box/box_network.h"

#include "warden/box/box.h"
#include "warden/core/egress.h"
#include "warden/core/identity.h"
#include "warden/core/warden_state.h"
#include "warden/egress/policies.h"
#include "warden/egress/prepare.h"
#include <stdio.h>

struct change {
  struct warden *warden;
  struct origin origin;
  char id[BOX_ID_SIZE];
  uint64_t run;
  char *config, *allow, *deny;
  unsigned flags;
  struct box_egress *egress; /* until it is the box's */
  bool told;                 /* the agent knows the authority */
  struct err err;
};

static void change_end(struct change *c, int result, const struct err *err)
{
  reply_end(c->warden, c->origin, result, err);
  box_egress_free(c->egress);
  free(c->config);
  free(c->allow);
  free(c->deny);
  free(c);
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

static void on_trusted(void *arg, int result, const struct err *err)
{
  struct change *c = arg;
  struct err why = ERR_NONE;
  if (result)
    err_set(&why, -ESHUTDOWN, "the rules are in force, but the sandbox's programs were not told whom to trust: %.300s",
            err->msg);
  change_end(c, why.code, &why);
}

static void on_policy(void *arg, int result, const struct err *err)
{
  struct change *c = arg;
  struct err why = result ? *err : ERR_NONE;
  if (c->err.code)
    why = c->err;
  struct box *b = why.code ? NULL : changed_box(c, &why);
  if (b && b->egress && b->egress->cert.n && !c->told)
    agent_trust(c->warden->loop, &b->jail, b->row.secret, buf_str(&b->egress->cert), c->warden->config->agent_s,
                on_trusted, c);
  else
    change_end(c, why.code, &why);
}

static int configure(struct box *b, const struct change *c, struct err *err)
{
  return box_configure(b, str_of(c->config), c->flags, str_of(c->allow), str_of(c->deny), err);
}

/* Without the gateway from now on, or as before. */
static void change_to_plain(struct box *b, struct change *c)
{
  struct err err = ERR_NONE;
  struct box_egress *old = b->egress;
  b->egress = NULL;
  int r = configure(b, c, &err);
  b->egress = old;
  if (!r && old) {
    policy_remove(b);
    box_egress_free(steal(&b->egress));
  }
  change_end(c, r, &err);
}

static void change_to_gateway(struct box *b, struct change *c)
{
  struct box_egress *old = b->egress;
  c->told = old && old->cert.n && str_eq(buf_str(&old->cert), buf_str(&c->egress->cert));
  b->egress = steal(&c->egress);
  policy_apply(b, on_policy, c);
  if (!configure(b, c, &c->err)) {
    box_egress_free(old);
    return;
  }
  policy_remove(b); /* on_policy tells why */
  c->egress = b->egress;
  b->egress = old;
  policy_want(b);
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

void box_change_network(struct box *b, const struct network_params *o)
{
  struct warden *w = b->warden;
  struct change *c = xcalloc(1, sizeof(*c));
  struct err err = ERR_NONE;
  c->warden = w;
  c->origin = o->origin;
  c->run = b->row.run;
  c->flags = o->flags;
  memcpy(c->id, b->row.id, sizeof(c->id));
  c->config = xstrndup(o->config.n ? o->config.p : "", o->config.n);
  c->allow = xstrndup(o->allow.n ? o->allow.p : "", o->allow.n);
  c->deny = xstrndup(o->deny.n ? o->deny.p : "", o->deny.n);
  if (!o->egress.n) {
    change_to_plain(b, c);
    return;
  }
  int r = egress_gateway(w)
              ? box_egress_read(o->egress, o->rules, &c->egress, &err)
              : err_set(&err, -EINVAL,
                        "'network.rules' and 'network.egressProxy' can't be used: this server has no egress "
                        "gateway");
  r = r ? r : policy_check(c->egress, b->row.tokens, &err);
  if (r) {
    change_end(c, r, &err);
    return;
  }
  keep_authority(b, c->egress);
  egress_prepare(w, b->row.team, c->egress, false, on_prepared, c);
}
