/* SPDX-License-Identifier: Apache-2.0 */
/* list_handlers.c - the boxes of a team. Such a reply can be much larger than what a connection buffers (a thousand
 * boxes with their metadata), so it is not written at once: the ids are noted, and boxes are sent as fast as the client
 * reads. What ended meanwhile is left out. */
#include "warden/rpc/handlers.h"

#include "warden/box/box.h"
#include "warden/core/context.h"
#include "warden/core/box_reply.h"
#include "wire/sizes.h"

struct box_id {
  char text[BOX_ID_SIZE];
};

struct listing {
  struct listing *next;
  uint64_t id; /* of the request */
  VEC(struct box_id) ids;
  size_t at;
};

static void listing_free(struct listing *l)
{
  vec_free(&l->ids);
  free(l);
}

void box_list_drop(struct peer *p)
{
  while (p->listings) {
    struct listing *l = p->listings;
    p->listings = l->next;
    listing_free(l);
  }
}

static int send_box(struct peer *p, const struct listing *l, struct buf *out)
{
  struct box *b = box_find(p->warden, str_of(l->ids.p[l->at].text), STR_NONE);
  if (!b)
    return 0;
  wire_begin(out, WIRE_ITEM, l->id, 0);
  box_put_fields(out, b);
  return buf_failed(out) ? buf_failed(out) : ipc_send_bulk(p->ipc, buf_str(out));
}

/* True when the answer is complete, for better or worse. */
static bool listing_step(struct peer *p, struct listing *l)
{
  cleanup_buf struct buf out = BUF_INIT(WIRE_MAX);
  int r = 0;
  for (; !r && l->at < l->ids.n; l->at++) {
    if (ipc_busy(p->ipc))
      return false;
    r = send_box(p, l, &out);
  }
  wire_begin(&out, WIRE_REPLY, l->id, r);
  if (r)
    wire_putz(&out, W_MESSAGE, "the list of sandboxes could not be sent");
  ipc_send(p->ipc, buf_str(&out), -1);
  return true;
}

void box_list_continue(struct ipc *ipc, void *arg)
{
  struct peer *p = arg;
  for (struct listing **at = &p->listings; *at;) {
    struct listing *l = *at;
    if (!listing_step(p, l))
      return;
    *at = l->next;
    listing_free(l);
  }
}

void handle_box_list(struct request *q)
{
  struct listing *l = xcalloc(1, sizeof(*l)), **last = &q->peer->listings;
  size_t at = 0;
  l->id = q->id;
  for (const struct box *b; (b = box_next(q->warden, &at));) {
    if ((q->team.n && !str_is(q->team, b->row.team)) || b->row.state == BOX_STARTING)
      continue;
    struct box_id id;
    memcpy(id.text, b->row.id, sizeof(id.text));
    vec_push(&l->ids, id);
  }
  while (*last)
    last = &(*last)->next;
  *last = l;
  box_list_continue(q->ipc, q->peer);
}
