/* SPDX-License-Identifier: Apache-2.0 */
/* list_call.c - listings of all that a team has: the warden sends an item for each, and this gate reads every one, for
 * some bytes of a request. So few of them are under way at once, a part of them of one team (wire/fair_queue.h); the
 * others wait here. A client that leaves gives its place back when the warden's reply is through, not before: those
 * that ask and leave would have the warden send any number of lists otherwise. */
#include "gate/api/api.h"
#include "wire/fair_queue.h"

struct list_call {
  struct fair_queue_item place; /* first: fair_queue_next gives it */
  struct gate *gate;
  struct req *r; /* NULL: it is gone */
  struct buf packet;
  warden_reply_fn on_item, on_reply;
};

static struct fair_queue places;

static void admit(void);

static void item(const struct warden_reply *reply, void *arg)
{
  struct list_call *c = arg;
  if (c->r)
    c->on_item(reply, c->r);
}

static void list_call_free(struct list_call *c)
{
  if (c->r)
    c->r->list_call = NULL;
  buf_free(&c->packet);
  free(c);
}

static void replied(const struct warden_reply *reply, void *arg)
{
  struct list_call *c = arg;
  struct req *r = c->r;
  warden_reply_fn on_reply = c->on_reply;
  fair_queue_done(&places, &c->place);
  list_call_free(c);
  if (r)
    on_reply(reply, r);
  admit();
}

static void admit(void)
{
  for (struct list_call *c; (c = (struct list_call *)fair_queue_next(&places));)
    warden_call(c->gate, &c->packet, item, replied, c);
}

void api_call_warden_list(struct req *r, struct buf *b, warden_reply_fn on_item, warden_reply_fn on_reply)
{
  if (!api_put_proof(r, b))
    return;
  struct list_call *c = xcalloc(1, sizeof(*c));
  *c = (struct list_call){
      .gate = r->gate, .r = r, .packet = BUF_INIT(WIRE_MAX), .on_item = on_item, .on_reply = on_reply};
  buf_adds(&c->packet, buf_str(b));
  r->list_call = c;
  places.places = r->gate->config->lists_max;
  places.share = (places.places + 1) / 2;
  fair_queue_push(&places, str_of(r->team.id), &c->place);
  admit();
}

void list_call_leave(struct req *r)
{
  struct list_call *c = r->list_call;
  if (!c)
    return;
  if (fair_queue_cancel(&places, &c->place)) {
    list_call_free(c);
    return;
  }
  r->list_call = NULL;
  c->r = NULL;
}
