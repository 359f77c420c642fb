/* SPDX-License-Identifier: Apache-2.0 */
/* relay.c - see relay.h. */
#include "egress/relay.h"

#include "net/conn.h"
#include <poll.h>

#define LEFT_MS 2000 /* for the last bytes to a far side that nobody hears any more */
#define LOOK_MS 1000 /* between two looks whether somebody does */

struct side {
  struct conn conn; /* first */
  struct relay *relay;
  struct side *other;
  uint64_t taken; /* bytes that it said */
  bool ended, freed;
};

struct relay {
  struct side near, far;
  struct relay_plan plan;
  const char *refusal;
  bool left; /* nobody hears the far side */
};

static struct side *side_of(struct conn *c)
{
  return (struct side *)c;
}

static void finish(struct relay *r)
{
  if (!r->near.freed || !r->far.freed)
    return;
  r->plan.done(r->plan.arg, r->far.taken, r->near.taken, r->refusal);
  free(r);
}

static void both_end(struct relay *r, bool reset)
{
  struct side *sides[] = {&r->near, &r->far};
  for (size_t i = 0; i < ARRAY_LEN(sides); i++)
    if (!sides[i]->freed && !sides[i]->conn.closed)
      (reset ? conn_reset : conn_close)(&sides[i]->conn);
}

/* Each hears the other's end after the last byte; when both have, nothing is left. */
static void look_for_end(struct relay *r)
{
  bool over = r->near.ended && r->far.ended && !r->near.conn.queued && !r->far.conn.queued;
  if (over || (r->left && !r->far.conn.queued))
    both_end(r, false);
}

static void keep_alive(struct relay *r)
{
  if (!r->left)
    conn_deadline(&r->near.conn, r->plan.idle_ms);
}

/* The other end of the pair is closed, where the kernel tells that from one that is only shut. */
static bool pair_closed(const struct relay *r)
{
  struct pollfd p = {.fd = r->near.conn.fd};
  return poll(&p, 1, 0) == 1 && p.revents & POLLHUP;
}

/* Who had the other end of the pair is gone, and so is what counted this connection: the far side must not be the one
 * who decides how long it stays. */
static void look_for_leaving(struct relay *r)
{
  if (!r->plan.pair || r->left || r->far.ended || r->near.conn.closed)
    return;
  if (pair_closed(r)) {
    r->left = true;
    conn_deadline(&r->near.conn, LEFT_MS);
    look_for_end(r);
  } else if (r->near.ended) {
    conn_deadline(&r->far.conn, LOOK_MS); /* nothing tells of it: the pair is not read any more */
  }
}

static void after_write(struct side *s)
{
  keep_alive(s->relay);
  if (s->other->conn.queued < s->relay->plan.high_water)
    return;
  s->conn.want = false;
  conn_full(&s->other->conn);
}

static void side_step(struct conn *c, struct str *in)
{
  struct side *s = side_of(c);
  if (in->n && s->other->conn.queued >= s->relay->plan.high_water)
    return;
  c->want = s->other->conn.queued < s->relay->plan.high_water;
  if (!in->n)
    return;
  struct iovec v = {(char *)in->p, in->n};
  s->taken += in->n;
  *in = str_skip(*in, in->n);
  if (conn_write(&s->other->conn, &v, 1, false)) {
    both_end(s->relay, true);
    return;
  }
  after_write(s);
}

static void side_eof(struct conn *c)
{
  struct side *s = side_of(c);
  s->relay->refusal = c->refusal ? c->refusal : s->relay->refusal;
  s->ended = true;
  if (c->refusal) {
    both_end(s->relay, true);
    return;
  }
  conn_shut(&s->other->conn);
  look_for_end(s->relay);
  look_for_leaving(s->relay);
}

/* Its last bytes wait for the other side. */
static void side_left(struct conn *c)
{
  look_for_leaving(side_of(c)->relay);
}

static void side_moved(struct conn *c)
{
  struct side *s = side_of(c);
  if (c->queued <= s->relay->plan.high_water / 4 && !s->other->conn.want && !s->other->conn.closed) {
    s->other->conn.want = true;
    conn_defer(&s->other->conn);
  }
  look_for_end(s->relay);
}

static void side_broken(struct conn *c, int code, bool writing)
{
  struct relay *r = side_of(c)->relay;
  (void)code, (void)writing;
  r->refusal = c->refusal ? c->refusal : r->refusal;
  both_end(r, true);
}

static void side_due(struct conn *c)
{
  struct side *s = side_of(c);
  if (s == &s->relay->far)
    look_for_leaving(s->relay);
  else
    both_end(s->relay, true);
}

static void side_freed(struct conn *c)
{
  struct side *s = side_of(c);
  s->freed = true;
  finish(s->relay);
}

static uint64_t side_pass(struct conn *c, struct conn_way *to)
{
  struct side *s = side_of(c);
  if (s->other->conn.queued >= s->relay->plan.high_water || s->other->conn.closed)
    return 0;
  to->conn = &s->other->conn;
  return s->relay->plan.high_water;
}

static void side_passed(struct conn *c, size_t n)
{
  struct side *s = side_of(c);
  s->taken += n;
  after_write(s);
}

static const struct conn_ops ops = {side_step, side_eof,   side_left, side_moved, side_broken,
                                    side_due,  side_freed, side_pass, side_passed};

static int side_open(struct side *s, struct net *net, int fd)
{
  int r = conn_start(&s->conn, net, fd, &ops, s->relay->plan.high_water);
  s->conn.want = true;
  s->freed = r != 0;
  return r;
}

struct relay *relay_start(const struct relay_plan *plan)
{
  struct relay *r = xcalloc(1, sizeof(*r));
  struct net *net = net_of(plan->loop);
  r->plan = *plan;
  r->near = (struct side){.relay = r, .other = &r->far};
  r->far = (struct side){.relay = r, .other = &r->near};
  int near = side_open(&r->near, net, plan->near), far = side_open(&r->far, net, plan->far);
  if (!near && !far && plan->tls)
    far = tls_conn_connect(&r->far.conn, plan->tls, plan->name, STR_NONE, NULL);
  net_unref(net);
  if (near && far) {
    free(r);
    return NULL;
  }
  if (near || far)
    both_end(r, true); /* `done` comes by the one that was opened */
  else
    keep_alive(r);
  return r;
}

void relay_cut(struct relay *r)
{
  both_end(r, true);
}
